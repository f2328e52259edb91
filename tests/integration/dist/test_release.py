"""What a release hands out: whole, checked by its sums, the same whenever and wherever it is made, and it runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from entrypoints.version import VERSION
from integration.dist.conftest import ARCHITECTURE, ROOT

TOP = f"tortie-{VERSION}-linux-{ARCHITECTURE}"


@pytest.fixture(scope="module")
def dist(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make dist` leaves it, under the name that it has there."""
    folder = tmp_path_factory.mktemp("dist")
    shutil.copytree(executable, folder / f"linux-{ARCHITECTURE}", symlinks=True)
    return folder


def released(dist: Path, target: Path, **environment: str) -> Path:
    subprocess.run([ROOT / "packaging" / "bootstrap.sh", "release"], check=True, stdout=subprocess.DEVNULL)
    python = ROOT / "build" / "release-tools" / "bin" / "python"
    words = [python, ROOT / "packaging" / "release" / "release.py", dist, target, ARCHITECTURE]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)
    return target


@pytest.fixture(scope="module")
def release(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(dist, tmp_path_factory.mktemp("one") / "release")


def test_made_twice_it_has_the_same_octets(release: Path, dist: Path, tmp_path: Path) -> None:
    """At another time, in another zone and order of words, from files with other times and modes."""
    again = tmp_path / "dist"
    shutil.copytree(dist, again, symlinks=True, copy_function=shutil.copyfile)
    for path in again.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    second = released(again, tmp_path / "release", TZ="Asia/Tokyo", PYTHONHASHSEED="7", LC_ALL="C")
    names = sorted(path.name for path in release.iterdir())
    assert names == sorted([f"{TOP}.tar.gz", f"{TOP}.cdx.json", "SHA256SUMS"])
    for name in names:
        assert (second / name).read_bytes() == (release / name).read_bytes(), name


def test_the_sums_are_those_of_all_files(release: Path) -> None:
    said = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    files = [path for path in release.iterdir() if path.name != "SHA256SUMS"]
    assert said == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=release, check=True)


def test_unpacked_it_runs_under_each_name(release: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", release / f"{TOP}.tar.gz", "-C", tmp_path], check=True)
    folder = tmp_path / TOP
    for name in ("calico", "calico-ipam", "my-custom-cni"):
        done = subprocess.run([folder / name], env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=True)
        assert "1.0.0" in json.loads(done.stdout)["supportedVersions"]
    shown = subprocess.run([folder / "calico", "version"], env={}, capture_output=True, text=True, check=True)
    assert VERSION in shown.stdout
    assert (folder / "calico").stat().st_mode & 0o7777 == 0o755
    assert (folder / "manifests" / "fresh.yaml").is_file()
    assert (folder / "docs" / "install.md").is_file()
    assert (folder / "share" / "man" / "man1" / "tortie.1").is_file()


def test_everything_inside_is_billed_and_has_its_terms(release: Path, executable: Path, tmp_path: Path) -> None:
    bill = json.loads((release / f"{TOP}.cdx.json").read_text())
    inside = dict(line.split(" ", 1) for line in (executable / "versions").read_text().splitlines())
    assert {one["name"]: one["version"] for one in bill["components"]} == inside
    assert {"CPython", "OpenSSL", "PyYAML", "SQLite", "libgcc", "musl"} <= set(inside)
    assert all(one["licenses"] and one["purl"] for one in bill["components"])
    program = hashlib.sha256((executable / "calico").read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": program}]
    subprocess.run(["tar", "-xzf", release / f"{TOP}.tar.gz", "-C", tmp_path], check=True)
    assert {path.name for path in (tmp_path / TOP / "LICENSES").iterdir()} >= {"tortie", *inside}
    assert json.loads((tmp_path / TOP / "sbom.cdx.json").read_text()) == bill


def test_without_an_executable_nothing_is_written(dist: Path, tmp_path: Path) -> None:
    python = ROOT / "build" / "release-tools" / "bin" / "python"
    words = [python, ROOT / "packaging" / "release" / "release.py", dist, tmp_path / "release", "other"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("There is no executable for other")
    assert list(tmp_path.iterdir()) == []
