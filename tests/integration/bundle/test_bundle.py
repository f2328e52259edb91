"""The built and installed executables: they run from anywhere, depend on nothing around them, and updates are safe."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[3]
MEMORY = Path("/dev/shm")
NAMES = ("calico", "calico-ipam", "my-custom-cni", "tortie")


def bundle(project: Path, *words: str | Path, umask: int = 0o022) -> None:
    command = [sys.executable, project / "packaging" / "bundle.py", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=120, umask=umask)


def version(program: Path | str, **options: object) -> str:
    """What VERSION answers, with nothing else in the environment."""
    options = {"env": {"CNI_COMMAND": "VERSION"}, "timeout": 30, "text": True, "capture_output": True} | options
    done = subprocess.run([program], check=False, **options)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    seen = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    return {name: (status.st_mode, status.st_mtime_ns, status.st_ino) for name, status in seen.items()}


def modes(folder: Path) -> set[tuple[str, str]]:
    """(kind, permissions) of everything in the folder but links."""
    paths = [path for path in folder.rglob("*") if not path.is_symlink()]
    return {("folder" if path.is_dir() else "file", oct(path.stat().st_mode & 0o7777)) for path in paths}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where thousands of files are written quickly: in memory, if programs may be run from there."""
    if not os.access(MEMORY, os.W_OK) or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        yield tmp_path_factory.mktemp("bundles")
        return
    with TemporaryDirectory(prefix="tortie-bundles-", dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(memory: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def project(memory: Path) -> Path:
    """A copy of the sources that a test may change; the fetched libraries are shared."""
    copy = memory / "project"
    copy.mkdir()
    for name in ("domain", "ports", "usecases", "adapters", "entrypoints", "packaging"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copyfile(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def built(project: Path, memory: Path) -> Path:
    target = memory / "built"
    bundle(project, "build", "--lock", project / "requirements.lock", target)
    return target


@pytest.fixture
def installed(project: Path, built: Path, tmp_path: Path) -> Path:
    target = tmp_path / "opt" / "cni" / "bin"
    bundle(project, "install", built, target)
    return target


def test_one_program_and_links_to_it(installed: Path) -> None:
    assert not (installed / "calico").is_symlink()
    assert os.readlink(installed / "calico-ipam") == "calico"
    assert os.readlink(installed / "tortie") == "calico"
    assert os.readlink(installed / "my-custom-cni") == "calico"
    last = (installed / "calico").read_text().splitlines()[-1]
    assert last.startswith("# build-stamp: ")
    assert len(last.split()[-1]) == 64


def test_bridge_is_installed_on_request_only_and_stays_when_it_is_updated(
    project: Path, built: Path, tmp_path: Path
) -> None:
    """Another plugin may have that name."""
    target = tmp_path / "bin"
    target.mkdir()
    (target / "bridge").write_text("somebody else's")
    bundle(project, "install", built, target)
    assert (target / "bridge").read_text() == "somebody else's"
    for words in (("--also", "bridge"), ()):
        bundle(project, "install", built, target, *words)
        assert os.readlink(target / "bridge") == "calico"
        assert json.loads(version(target / "bridge"))["supportedVersions"][-1] == "1.1.0"


def test_runs_in_an_empty_environment_from_any_directory(installed: Path) -> None:
    answers = {version(installed / name, cwd=cwd) for name in ("calico", "calico-ipam") for cwd in ("/", installed)}
    assert len(answers) == 1
    assert version("./calico", cwd=installed) in answers


def test_runs_in_a_directory_that_is_gone(installed: Path, tmp_path: Path) -> None:
    command = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec {installed}/calico"
    done = subprocess.run(
        ["/bin/sh", "-c", command], env={"CNI_COMMAND": "VERSION"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["supportedVersions"]


@pytest.mark.parametrize("flags", ["-r", "-rL", "-a"])
def test_runs_from_a_copy_of_its_folder(installed: Path, tmp_path: Path, flags: str) -> None:
    subprocess.run(["cp", flags, installed, tmp_path / "elsewhere"], check=True)
    shutil.rmtree(installed)
    for name in ("calico", "calico-ipam"):
        assert json.loads(version(tmp_path / "elsewhere" / name))["supportedVersions"]


def test_runs_through_a_link_elsewhere(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "calico-ipam").symlink_to(installed / "calico")
    assert json.loads(version(tmp_path / "calico-ipam"))["supportedVersions"]


def test_python_variables_and_a_hostile_directory_do_nothing(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "os.py").write_text("raise SystemExit('loaded from the working directory')")
    hostile = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere", "PYTHONSTARTUP": str(tmp_path / "os.py")}
    assert version(installed / "calico", cwd=tmp_path, env={"CNI_COMMAND": "VERSION", **hostile})


def test_running_writes_nothing_into_its_folder(installed: Path) -> None:
    before = snapshot(installed)
    for name in ("calico", "calico-ipam"):
        version(installed / name)
    subprocess.run([installed / "calico"], env={"CNI_COMMAND": "ADD"}, input=b"", capture_output=True, check=False)
    assert snapshot(installed) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_launcher_without_its_folder_says_so_in_one_json_error(installed: Path, tmp_path: Path, name: str) -> None:
    alone = tmp_path / 'with "quotes" and ümlaut'
    alone.mkdir()
    shutil.copyfile(installed / "calico", alone / name)
    (alone / name).chmod(0o755)
    done = subprocess.run([alone / name], env={"CNI_COMMAND": "VERSION"}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == 100
    assert str(alone / ".tortie") in json.loads(done.stdout)["msg"]
    assert done.stdout.startswith('{\n    "code"')
    assert not done.stdout.endswith("\n")


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_modes_do_not_depend_on_the_umask(project: Path, built: Path, tmp_path: Path, umask: int) -> None:
    bundle(project, "install", built, tmp_path / "bin", umask=umask)
    assert (tmp_path / "bin" / "calico").stat().st_mode & 0o7777 == 0o755
    assert modes(tmp_path / "bin" / ".tortie") == {("folder", "0o755"), ("file", "0o644")}


def test_equal_inputs_give_an_equal_program(project: Path, built: Path, tmp_path: Path) -> None:
    bundle(project, "build", "--lock", project / "requirements.lock", tmp_path / "again")
    assert (tmp_path / "again" / "calico").read_bytes() == (built / "calico").read_bytes()


def test_installing_again_repairs_a_damaged_bundle(project: Path, built: Path, installed: Path) -> None:
    expected = version(installed / "calico")
    for damaged in installed.rglob("main.*"):
        damaged.unlink()
    (installed / "calico-ipam").unlink()
    bundle(project, "install", built, installed)
    assert version(installed / "calico-ipam") == expected
    bundle(project, "install", built, installed)
    assert version(installed / "calico") == expected


def test_installing_over_foreign_executables_replaces_them_whole(project: Path, built: Path, tmp_path: Path) -> None:
    """A running executable cannot be written to (`text file busy`); it is replaced by a rename."""
    shutil.copyfile("/bin/sleep", tmp_path / "calico")
    (tmp_path / "calico").chmod(0o755)
    (tmp_path / "calico-ipam").symlink_to("/bin/true")
    (tmp_path / "host-local").write_text("somebody else's")
    running = subprocess.Popen([tmp_path / "calico", "60"])
    try:
        bundle(project, "install", built, tmp_path)
    finally:
        running.kill()
        running.wait()
    assert json.loads(version(tmp_path / "calico-ipam"))["supportedVersions"]
    assert (tmp_path / "host-local").read_text() == "somebody else's"


def test_an_update_that_is_killed_at_any_moment_leaves_a_working_program(
    project: Path, built: Path, tmp_path: Path
) -> None:
    target = tmp_path / "bin"
    bundle(project, "install", built, target)
    changed = project / "entrypoints" / "version.py"
    original = changed.read_text()
    changed.write_text(original + "# another build\n")
    try:
        bundle(project, "build", "--lock", project / "requirements.lock", tmp_path / "other")
    finally:
        changed.write_text(original)
    chance = random.Random(20)
    for turn in range(12):
        source = (tmp_path / "other", built)[turn % 2]
        command = [sys.executable, project / "packaging" / "bundle.py", "install", source, target]
        updating = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            time.sleep(chance.uniform(0.0, 0.5))
            assert json.loads(version(target / "calico"))["supportedVersions"]
        finally:
            updating.kill()
            updating.wait()
        assert json.loads(version(target / "calico-ipam"))["supportedVersions"]
    bundle(project, "install", built, target)
    assert (target / "calico").read_bytes() == (built / "calico").read_bytes()
    assert not [path.name for path in target.iterdir() if path.name.startswith(".") and path.name != ".tortie"]
    assert len(list((target / ".tortie").iterdir())) <= 2


def test_i01_a_launcher_is_not_installed_on_a_host_without_its_folder(installed: Path, tmp_path: Path) -> None:
    """An image's folders are not the host's: `tortie install` copies what runs alone."""
    host = tmp_path / "host"
    for folder in ("opt/cni/bin", "etc/cni/net.d"):
        (host / folder).mkdir(parents=True)
    words = [installed / "tortie", "install", "--root", host]
    done = subprocess.run(words, check=False, env={}, timeout=60, text=True, capture_output=True)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "[ERROR]" in line]
    assert f"Failed to verify installed binary {host}/opt/cni/bin/calico, a copy of {installed / 'tortie'}: " in line
    assert "what is installed has to run alone, as the self-contained executable does" in line
    assert not [path for path in host.rglob("*") if path.is_file()]
