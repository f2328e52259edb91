"""Installing on a Windows node: files, programs that run meanwhile, folders that change. Windows is a fake here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.windows.folder_watch import PollingWatch
from adapters.windows.host_files import WindowsHostFiles
from adapters.windows.installed_program import WindowsProgram
from contracts.folder_watch import FolderWatchContract
from contracts.host_files import HostFilesContract
from ports.errors import Refused, Unavailable
from ports.host_files import HostFileError
from services.windows_locking import Msvcrt


class TestWindowsHostFiles(HostFilesContract):
    @pytest.fixture
    def files(self):
        return WindowsHostFiles(Msvcrt)

    @pytest.fixture
    def place(self, tmp_path: Path):
        (tmp_path / "place").mkdir()
        return str(tmp_path / "place")

    def link(self, files, path, target):
        Path(path).symlink_to(target)

    def test_what_a_killed_process_has_left_goes_with_the_next_stage(self, files, place):
        """But not a stage that somebody works in."""
        worked_in, left = files.open_stage(place), Path(place, ".tortie-left.tmp")
        left.mkdir()
        (left / ".lock").write_text("")
        (left / "calico.exe").write_text("old")
        WindowsHostFiles(Msvcrt).open_stage(place)
        assert not left.exists()
        assert os.path.isdir(worked_in)
        files.close_stage(worked_in)
        assert not os.path.exists(worked_in)


def built(build: str) -> bytes:
    """The end of one, as packaging/windows lays it out."""
    return b"MZ" + bytes(100) + build.encode() + b"TORTIE01" + f"\n# build-stamp: {'0' * 64}\n".encode()


def test_what_earlier_builds_have_unpacked_goes_unless_a_program_uses_it(tmp_path):
    here, used, old = "a" * 16, "b" * 16, "c" * 16
    (tmp_path / "calico.exe").write_bytes(built(here))
    (tmp_path / "other.exe").write_bytes(b"short")
    for name in (here, f"{here}.new-7", used, old, f"{old}.new-9"):
        (tmp_path / ".tortie" / name).mkdir(parents=True)
        (tmp_path / ".tortie" / name / "python313.dll").write_text("x")

    def replace(path, target):
        if path.endswith(used):
            raise PermissionError(13, "Access is denied")
        os.replace(path, target)

    files = WindowsHostFiles(Msvcrt, replace)
    files.close_stage(files.open_stage(str(tmp_path)))
    assert sorted(os.listdir(tmp_path / ".tortie")) == [here, f"{here}.new-7", used]
    assert sorted(os.listdir(tmp_path)) == [".tortie", "calico.exe", "other.exe"]


class Running:
    """As Windows has it: what runs is not replaced, but can be renamed."""

    def __init__(self, *paths: str) -> None:
        self.paths = set(paths)

    def replace(self, path: str, target: str) -> None:
        if target in self.paths and os.path.exists(target):
            raise PermissionError(13, "Access is denied")
        os.replace(path, target)


def test_a_program_that_runs_is_put_aside(tmp_path):
    target = f"{tmp_path}/calico.exe"
    files = WindowsHostFiles(Msvcrt, Running(target).replace)
    for text in (b"old", b"new"):
        files.replace(target, text, 0o755)
        assert files.read(target) == text
    assert files.names(str(tmp_path)) == ("calico.exe",)


def test_what_cannot_be_replaced_stays(tmp_path):
    def denied(_path, _target):
        raise PermissionError(13, "Access is denied")

    target = tmp_path / "calico.exe"
    target.write_text("old")
    (tmp_path / "new").write_text("new")
    with pytest.raises(HostFileError, match=f"^rename {target}: "):
        WindowsHostFiles(Msvcrt, denied).move(f"{tmp_path}/absent", str(target))
    assert target.read_text() == "old"


class TestPollingWatch(FolderWatchContract):
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "folder").mkdir()
        return str(tmp_path / "folder")

    @pytest.fixture
    def absent(self, tmp_path):
        return str(tmp_path / "absent")

    @pytest.fixture
    def watch(self, folder, absent):
        return PollingWatch((folder, absent), SystemClock())

    @pytest.fixture
    def change(self, folder):
        made = iter(range(9))
        return lambda: Path(folder, str(next(made))).write_text("x")

    def test_one_that_comes_is_told(self, watch, absent):
        os.mkdir(absent)
        assert watch.wait(10) == (absent,)


def program(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{text}")
    path.chmod(0o755)
    return str(path)


def test_a_program_is_tried(tmp_path):
    clock = SystemClock()
    tried, soon = WindowsProgram(clock), clock.deadline(20)
    text = "assert (sys.argv[1:], os.environ['CNI_COMMAND']) == (['-v'], 'VERSION'); print('v1 ')"
    assert tried.version(program(tmp_path / "good", text), soon) == "v1"
    bad = program(tmp_path / "bad", 'print(\'{"msg": "no", "details": "store"}\'); sys.exit(1)')
    with pytest.raises(Refused, match=r"-v failed: no: store$"):
        tried.version(bad, soon)
    with pytest.raises(Unavailable, match=r"^no: store$"):
        tried.test_connection(bad, "{}", soon)
    silent = program(tmp_path / "silent", "sys.exit(3)")
    with pytest.raises(Unavailable, match="status 3, without a word"):
        tried.test_connection(silent, "{}", soon)
    for ask, error in ((tried.version, Refused), (lambda path, at: tried.test_connection(path, "{}", at), Unavailable)):
        with pytest.raises(error, match="exec "):
            ask(str(tmp_path / "absent"), soon)
    with pytest.raises(Refused, match="did not end in time"):
        tried.version(program(tmp_path / "slow", "import time; time.sleep(60)"), clock.deadline(0.3))
