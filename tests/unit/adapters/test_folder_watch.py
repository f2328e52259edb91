"""Changes of folders: in memory, and by the kernel's inotify, which needs no root."""

from __future__ import annotations

import os
import resource
import shutil
import threading
import time
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.folder_watch import InotifyWatch
from adapters.memory.clock import MemoryClock
from adapters.memory.folder_watch import MemoryFolderWatch
from contracts.folder_watch import LONG, FolderWatchContract
from services.mounted_secret import MountedSecret


class TestMemory(FolderWatchContract):
    @pytest.fixture
    def folder(self):
        return "/secrets"

    @pytest.fixture
    def absent(self):
        return "/nowhere"

    @pytest.fixture
    def watch(self, absent):
        watch = MemoryFolderWatch(MemoryClock())
        watch.refused = {absent: "no such file or directory"}
        watch.script = []
        wait = watch.wait

        def nothing_more(seconds):
            watch.script = watch.script or [()]
            return wait(seconds)

        watch.wait = nothing_more
        return watch

    @pytest.fixture
    def change(self, watch, folder):
        return lambda: watch.script.append((folder,))


class TestInotify(FolderWatchContract):
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "folder").mkdir()
        return str(tmp_path / "folder")

    @pytest.fixture
    def absent(self, tmp_path):
        return str(tmp_path / "absent")

    @pytest.fixture
    def watch(self, folder, absent):
        watch = InotifyWatch((folder, absent), SystemClock())
        yield watch
        watch.close()

    @pytest.fixture
    def change(self, folder):
        return lambda: Path(folder, "token").write_text(str(time.monotonic()))

    def test_a_mounted_secret_that_is_swapped_is_one_change(self, watch, folder):
        """TOK-005"""
        Path(folder).rmdir()
        mounted = MountedSecret(Path(folder))
        mounted.put(namespace="first")
        watch.unwatched()
        for number in range(5):
            mounted.put(namespace=f"next-{number}")
        assert watch.wait(LONG) == (folder,)
        assert watch.wait(0.2) == ()

    def test_reading_is_no_change(self, watch, folder, change):
        change()
        watch.unwatched()
        assert Path(folder, "token").read_text()
        assert os.listdir(folder)
        assert watch.wait(0.1) == ()

    def test_whoever_waits_is_woken(self, watch, folder, change):
        watch.unwatched()
        later = threading.Timer(0.1, change)
        later.start()
        begun = time.monotonic()
        assert watch.wait(LONG) == (folder,)
        assert time.monotonic() - begun < LONG / 2
        later.join()

    def test_a_folder_that_never_gets_quiet_is_told_at_the_end(self, watch, folder, change):
        watch.unwatched()
        over = threading.Event()

        def go_on():
            while not over.wait(0.01):
                change()

        change()
        thread = threading.Thread(target=go_on)
        thread.start()
        assert watch.wait(0.3) == (folder,)
        over.set()
        thread.join()

    def test_a_folder_that_comes_later_is_watched_then(self, watch, absent):
        assert absent in watch.unwatched()
        Path(absent).mkdir()
        assert not watch.unwatched()
        Path(absent, "x").touch()
        assert watch.wait(LONG) == (absent,)

    @pytest.mark.parametrize("gone", [shutil.rmtree, lambda path: os.rename(path, f"{path}-old")])
    def test_a_folder_that_was_made_anew_is_watched_anew(self, watch, folder, absent, change, gone):
        Path(absent).mkdir()
        watch.unwatched()
        gone(folder)
        assert watch.wait(LONG) == (folder,)
        assert list(watch.unwatched()) == [folder]
        Path(folder).mkdir()
        assert not watch.unwatched()
        change()
        assert watch.wait(LONG) == (folder,)

    def test_a_queue_that_has_run_over_stands_for_a_change_of_all(self, folder, absent):
        """Its room is in a setting of the kernel; what comes from it then is played here."""
        Path(absent).mkdir()
        watch = InotifyWatch((folder, absent), SystemClock())
        watch.unwatched()
        queue, watch._queue = watch._queue, -1
        os.close(queue)
        reads, writes = os.pipe2(os.O_NONBLOCK)
        os.write(writes, b"\xff\xff\xff\xff" + (0x4000).to_bytes(4, "little") + bytes(8))
        watch._queue = reads
        assert set(watch.wait(LONG)) == {folder, absent}
        os.close(writes)
        watch.close()

    def test_a_file_is_no_folder(self, tmp_path):
        path = tmp_path / "file"
        path.touch()
        watch = InotifyWatch((str(path),), SystemClock())
        assert watch.unwatched() == {str(path): "Not a directory"}
        watch.close()

    def test_without_a_queue_of_changes_time_is_all_that_is_waited_for(self, folder):
        """The process may not open another descriptor; a container may have used up its queues."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            watch = InotifyWatch((folder,), SystemClock())
            refused = watch.unwatched()
            begun = time.monotonic()
            assert watch.wait(0.05) == ()
            assert time.monotonic() - begun >= 0.05
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert refused == {folder: "Too many open files"}

    def test_thirty_watches_leave_nothing(self, folder):
        """TOK-008 TOK-009"""
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(30):
            watch = InotifyWatch((folder,), SystemClock())
            watch.unwatched()
            watch.wait(0.0)
            for _ in range(3):
                watch.close()
        assert len(os.listdir("/proc/self/fd")) == before
