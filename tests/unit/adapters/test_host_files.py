"""The host's files in memory, and on the disk as far as that needs no root."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from adapters.linux.host_files import LinuxHostFiles
from adapters.memory.host_files import MemoryHostFiles
from contracts.host_files import HostFilesContract
from ports.host_files import FOLDER, LINK, HostFileError, HostFiles


class TestMemoryHostFiles(HostFilesContract):
    @pytest.fixture
    def files(self) -> MemoryHostFiles:
        files = MemoryHostFiles()
        files.put("/place", kind=FOLDER, mode=0o755)
        return files

    @pytest.fixture
    def place(self) -> str:
        return "/place"

    def link(self, files: HostFiles, path: str, target: str) -> None:
        assert isinstance(files, MemoryHostFiles)
        files.put(path, target, kind=LINK)

    def test_a_read_only_folder_takes_nothing(self, files: MemoryHostFiles) -> None:
        files.read_only.add("/place")
        assert files.why_unwritable("/place") == "read-only file system"
        with pytest.raises(HostFileError, match="read-only file system"):
            files.write("/place/one", b"", 0o644)

    def test_trouble_comes_before_the_change(self, files: MemoryHostFiles) -> None:
        def trouble(operation: str, path: str) -> None:
            raise HostFileError(operation, path, "no space left on device")

        files.trouble = trouble
        with pytest.raises(HostFileError, match="no space left on device"):
            files.write("/place/one", b"", 0o644)
        assert files.names("/place") == ()


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
class TestLinuxHostFiles(HostFilesContract):
    @pytest.fixture
    def files(self) -> LinuxHostFiles:
        return LinuxHostFiles()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        (tmp_path / "place").mkdir()
        (tmp_path / "place").chmod(0o755)
        return str(tmp_path / "place")

    def link(self, files: HostFiles, path: str, target: str) -> None:
        Path(path).symlink_to(target)

    def test_no_descriptor_stays_open(self, files: LinuxHostFiles, place: str) -> None:
        before = os.listdir("/proc/self/fd")
        files.replace(f"{place}/one", b"1", 0o600)
        files.copy(f"{place}/one", f"{place}/two")
        assert files.same(f"{place}/one", f"{place}/two")
        files.digest(f"{place}/one")
        files.remove_tree(f"{place}/one")
        with pytest.raises(HostFileError):
            files.copy(place, f"{place}/three")
        with pytest.raises(HostFileError):
            files.copy(f"{place}/two", f"{place}/two")
        assert os.listdir("/proc/self/fd") == before

    def test_a_full_disk_leaves_no_part_of_a_file(self, files: LinuxHostFiles, place: str) -> None:
        files.write(f"{place}/large", b"x" * 5000, 0o644)
        with limit_of_file_size(1000):
            with pytest.raises(HostFileError) as failed:
                files.write(f"{place}/new", b"x" * 5000, 0o644)
            with pytest.raises(HostFileError):
                files.copy(f"{place}/large", f"{place}/copied")
        assert str(failed.value) == f"write {place}/new: file too large"
        assert files.names(place) == ("large",)

    def test_a_folder_that_somebody_holds_is_waited_for(self, files: LinuxHostFiles, place: str) -> None:
        context = multiprocessing.get_context("fork")
        holding, done = context.Event(), context.Event()
        other = context.Process(target=_hold, args=(place, holding, done))
        other.start()
        assert holding.wait(60)
        done.set()
        with files.held(place):
            assert Path(place, "theirs").read_text() == "done"
        other.join()

    def test_many_look_whether_they_can_write_while_others_remove_leftovers(
        self, files: LinuxHostFiles, place: str
    ) -> None:
        context = multiprocessing.get_context("fork")
        others = [context.Process(target=_stage_again_and_again, args=(place,)) for _ in range(2)]
        for other in others:
            other.start()
        try:
            assert {files.why_unwritable(place) for _ in range(400)} == {""}
        finally:
            for other in others:
                other.kill()
                other.join()

    def test_the_stage_of_a_living_process_stays_and_that_of_a_dead_one_goes(
        self, files: LinuxHostFiles, place: str
    ) -> None:
        context = multiprocessing.get_context("fork")
        opened = context.Event()
        other = context.Process(target=_work_in_a_stage, args=(place, opened))
        other.start()
        try:
            assert opened.wait(60)
            (theirs,) = os.listdir(place)
            files.close_stage(files.open_stage(place))
            assert os.listdir(place) == [theirs]
        finally:
            os.kill(other.pid or 0, signal.SIGKILL)
            other.join()
        files.close_stage(files.open_stage(place))
        assert os.listdir(place) == []


def _hold(place: str, holding: Event, done: Event) -> None:
    with LinuxHostFiles().held(place):
        holding.set()
        done.wait(60)
        time.sleep(0.2)  # whoever does not wait is early
        Path(place, "theirs").write_text("done")


def _stage_again_and_again(place: str) -> None:
    files = LinuxHostFiles()
    while True:
        files.close_stage(files.open_stage(place))


def _work_in_a_stage(place: str, opened: Event) -> None:
    stage = LinuxHostFiles().open_stage(place)
    Path(stage, "half").write_text("x")
    opened.set()
    signal.pause()


class limit_of_file_size:  # noqa: N801 - used like a function
    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> None:
        import resource

        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self._handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._size, self._before[1]))

    def __exit__(self, *ended: object) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)
        signal.signal(signal.SIGXFSZ, self._handler)
