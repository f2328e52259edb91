"""host-local's directory as an upgrade sees it, in memory and as it is."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.reservation_files import HostLocalDirectory
from adapters.memory.clock import MemoryClock
from adapters.memory.reservation_files import MemoryReservationFiles
from contracts.reservation_files import ReservationFilesContract
from ports.errors import Refused, Unavailable


@pytest.fixture
def near():
    return SystemClock().deadline(30)


class TestMemoryReservationFiles(ReservationFilesContract):
    @pytest.fixture
    def files(self):
        return MemoryReservationFiles(MemoryClock())

    def fill(self, files, **texts):
        files.texts = texts

    def spoil(self, files, name):
        files.texts[name] = "permission denied"
        files.unreadable.add(name)

    def test_a_directory_that_is_not_there_is_empty(self, files):
        assert files.names() == ()


class TestHostLocalDirectory(ReservationFilesContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "networks" / "k8s-pod-network"

    @pytest.fixture
    def files(self, folder):
        self.folder = folder
        return HostLocalDirectory(str(folder), SystemClock())

    def fill(self, files, **texts):
        self.folder.mkdir(parents=True)
        for name, text in texts.items():
            (self.folder / name).write_bytes(text.encode())

    def spoil(self, files, name):
        (self.folder / name).mkdir()

    def hold_elsewhere(self, files):
        self.holder = os.open(self.folder / "lock", os.O_RDONLY | os.O_CREAT)
        flock(self.holder, LOCK_EX | LOCK_NB)

    def test_host_local_waits_while_the_lock_is_held(self, files, folder, near):
        self.fill(files)
        with files.held(near):
            other = os.open(folder / "lock", os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                flock(other, LOCK_EX | LOCK_NB)
            os.close(other)

    def test_links_are_not_followed(self, files, folder, tmp_path):
        """Whoever can write there must not have other files read or removed."""
        outside = tmp_path / "outside"
        outside.write_text("c1")
        self.fill(files)
        (folder / "10.0.0.1").symlink_to(outside)
        with pytest.raises(Refused, match=r"open .*/10\.0\.0\.1: too many levels of symbolic links"):
            files.read("10.0.0.1")
        files.remove("10.0.0.1")
        assert outside.read_text() == "c1"

    def test_a_pipe_is_no_reservation_and_nobody_waits_for_its_writer(self, files, folder):
        self.fill(files)
        os.mkfifo(folder / "10.0.0.1")
        with pytest.raises(Refused, match=r"10\.0\.0\.1"):
            files.read("10.0.0.1")

    def test_a_folder_among_the_files_stays(self, files, folder):
        self.fill(files)
        (folder / "sub").mkdir()
        with pytest.raises(Unavailable, match=r"^remove .*/sub: "):
            files.remove("sub")
        with pytest.raises(Unavailable, match=r"^remove .*k8s-pod-network: directory not empty$"):
            files.remove_all()
        assert (folder / "sub").is_dir()

    def test_a_directory_that_is_none(self, tmp_path):
        (tmp_path / "f").write_text("")
        files = HostLocalDirectory(str(tmp_path / "f"), SystemClock())
        for verb in (files.names, files.remove_all):
            with pytest.raises(Unavailable, match="not a directory"):
                verb()

    def test_a_directory_that_somebody_sits_in_is_said(self, files, folder):
        """A mount point cannot be removed; nothing else of it is lost by that."""
        self.fill(files)
        with pytest.raises(Unavailable, match=r"^remove /proc/sys/net/ipv4/neigh: "):
            HostLocalDirectory("/proc/sys/net/ipv4/neigh", SystemClock()).remove_all()
