"""The bridge plugin's ports over memory, and those stores that are plain files, keep the contracts."""

from __future__ import annotations

import errno
import os
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

import pytest

from adapters.linux.attachment_files import AttachmentFiles
from adapters.linux.clock import SystemClock
from adapters.linux.host_local_files import HostLocalFiles
from adapters.memory.address_files import MemoryAddressFiles
from adapters.memory.attachments import MemoryAttachments
from adapters.memory.bridges import MemoryBridges
from adapters.memory.clock import MemoryClock
from adapters.memory.firewall import MemoryFirewall
from adapters.memory.log import RecordingLog
from contracts.bridge import C1, V4, AddressFilesContract, AttachmentsContract, BridgesContract, FirewallContract
from domain.bridge.attachment import BridgeAttachment
from domain.bridge.conf import AttachmentId
from ports.errors import Unavailable


@pytest.fixture
def near():
    return SystemClock().deadline(30)


class TestMemoryAttachments(AttachmentsContract):
    @pytest.fixture
    def attachments(self):
        return MemoryAttachments()


class TestAttachmentFiles(AttachmentsContract):
    @pytest.fixture
    def attachments(self, tmp_path: Path):
        return AttachmentFiles(str(tmp_path / "state"))

    def test_files_are_roots_alone_and_nothing_else_is_left(self, attachments, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            attachments.save("net1", BridgeAttachment(C1, "cni0", "eth0c1"))
        finally:
            os.umask(before)
        (file,) = (tmp_path / "state" / "net1").iterdir()
        assert file.name == "c1-eth0.json"
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o755

    def test_what_makes_no_sense_is_passed_over(self, attachments, tmp_path: Path) -> None:
        attachments.save("net1", BridgeAttachment(C1, "cni0", "eth0c1"))
        folder = tmp_path / "state" / "net1"
        (folder / "c2-eth0.json").write_text("{")
        (folder / "c3-eth0.json").mkdir()
        (folder / "README").touch()
        assert [one.id for one in attachments.all("net1")] == [C1]

    def test_of_two_attachments_that_come_to_one_file_the_later_has_it(self, attachments) -> None:
        one, other = AttachmentId("a", "b-c"), AttachmentId("a-b", "c")
        attachments.save("net1", BridgeAttachment(one, "cni0", "x"))
        attachments.save("net1", BridgeAttachment(other, "cni0", "x"))
        assert attachments.load("net1", one) is None
        attachments.forget("net1", one)
        assert attachments.load("net1", other).id == other

    @pytest.mark.parametrize("directory", ["/tmp/" + "x" * 300, "/tmp/a\0b"])
    def test_a_directory_that_cannot_be(self, directory: str) -> None:
        attachments = AttachmentFiles(directory)
        with pytest.raises(Unavailable):
            attachments.save("net1", BridgeAttachment(C1, "cni0", "eth0c1"))
        assert attachments.load("net1", C1) is None

    def test_what_cannot_be_there_is_forgotten(self) -> None:
        AttachmentFiles("/tmp/" + "x" * 300).forget("net1", C1)

    def test_a_directory_that_cannot_be_made_or_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        blocked = AttachmentFiles(str(tmp_path / "file"))
        with pytest.raises(Unavailable, match="not a directory"):
            blocked.save("net1", BridgeAttachment(C1, "cni0", "eth0c1"))
        with pytest.raises(Unavailable, match="not a directory"):
            blocked.all("net1")


class TestMemoryAddressFiles(AddressFilesContract):
    @pytest.fixture
    def files(self):
        return MemoryAddressFiles(MemoryClock())


class TestHostLocalFiles(AddressFilesContract):
    @pytest.fixture
    def files(self, tmp_path: Path):
        return HostLocalFiles(str(tmp_path / "networks" / "net1"), SystemClock())

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "networks" / "net1"
        folder.mkdir(parents=True)
        return folder

    def hold_elsewhere(self, files) -> None:
        folder = Path(files._directory)
        folder.mkdir(parents=True)
        self.descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CREAT)
        flock(self.descriptor, LOCK_EX)

    def teardown_method(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)
            del self.descriptor

    def test_the_files_are_host_locals(self, files, folder: Path, near) -> None:
        with files.held(near):
            files.reserve(V4.address, "c1", "eth0", 0)
        assert (folder / "10.44.0.2").read_bytes() == b"c1\r\neth0"
        assert (folder / "10.44.0.2").stat().st_mode & 0o777 == 0o600
        assert (folder / "last_reserved_ip.0").read_text() == "10.44.0.2"
        assert {file.name for file in folder.iterdir()} == {"10.44.0.2", "last_reserved_ip.0", "lock"}

    def test_what_stands_in_the_way_of_a_file_is_named(self, files, folder: Path, near) -> None:
        (folder / "last_reserved_ip.0").mkdir()
        with files.held(near), pytest.raises(Unavailable, match=r"last_reserved_ip\.0: is a directory"):
            files.reserve(V4.address, "c1", "eth0", 0)

    def test_records_of_older_versions_and_strange_files(self, files, folder: Path) -> None:
        (folder / "10.44.0.2").write_text("c1")
        (folder / "10.44.0.3").mkdir()
        (folder / "notes").write_text("c1")
        assert [(str(one.address), one.container_id, one.ifname) for one in files.reservations()] == [
            ("10.44.0.2", "c1", "")
        ]

    def test_b01_an_empty_file_reserves_nothing_and_is_replaced(self, files, folder: Path, near) -> None:
        (folder / "10.44.0.2").touch()
        assert files.reservations() == ()
        with files.held(near):
            files.reserve(V4.address, "c1", "eth0", 0)
        assert (folder / "10.44.0.2").read_bytes() == b"c1\r\neth0"

    def test_a_reservation_of_somebody_else_is_never_overwritten(self, files, folder: Path, near) -> None:
        (folder / "10.44.0.2").write_bytes(b"c2\r\neth0")
        with files.held(near), pytest.raises(Unavailable, match="file exists"):
            files.reserve(V4.address, "c1", "eth0", 0)
        assert (folder / "10.44.0.2").read_bytes() == b"c2\r\neth0"

    def test_b01_a_disk_that_cannot_be_written_is_told_with_its_path(self, files, folder: Path, near) -> None:
        """A device that is full stands in the way of the file that would be written first."""
        with files.held(near):
            (folder / f".tortie-{os.getpid()}").mkdir()
            with pytest.raises(Unavailable, match=rf"open {folder}/10\.44\.0\.2: ") as refused:
                files.reserve(V4.address, "c1", "eth0", 0)
        assert refused.value.__cause__.errno in {errno.EISDIR, errno.EPERM}
        assert files.reservations() == ()

    def test_a_container_of_any_length_has_its_interface(self, files, near) -> None:
        with files.held(near):
            files.reserve(V4.address, "c" * 100_000, "eth0", 0)
        (found,) = files.reservations()
        assert (len(found.container_id), found.ifname) == (100_000, "eth0")

    def test_a_lock_that_is_a_link_is_followed_as_the_original_follows_it(self, files, folder: Path, near) -> None:
        (folder / "real").touch()
        (folder / "lock").symlink_to("real")
        with files.held(near):
            descriptor = os.open(folder / "real", os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                flock(descriptor, LOCK_EX | LOCK_NB)
            os.close(descriptor)

    def test_a_lock_that_can_be_none_is_told_with_what_to_do(self, files, folder: Path, near) -> None:
        """Nothing is made where a link leads, and nobody waits for a pipe's other end."""
        (folder / "lock").symlink_to("absent")
        with pytest.raises(Unavailable, match=f"the lock {folder}/lock is a symbolic link to nothing: remove it"):
            files.held(near).__enter__()
        assert not (folder / "absent").exists()
        (folder / "lock").unlink()
        os.mkfifo(folder / "lock")
        with pytest.raises(Unavailable, match=f"the lock {folder}/lock is not a regular file: remove it"):
            files.held(near).__enter__()

    @pytest.mark.parametrize("directory", ["/tmp/absent-s", "/tmp/" + "x" * 300, "/tmp/a\0b", "/dev/null/x"])
    def test_where_nothing_can_be(self, directory: str) -> None:
        assert not HostLocalFiles(directory, SystemClock()).exist()

    def test_a_directory_that_cannot_be_made(self, tmp_path: Path, near) -> None:
        (tmp_path / "file").touch()
        files = HostLocalFiles(str(tmp_path / "file" / "net1"), SystemClock())
        with pytest.raises(Unavailable, match="not a directory"), files.held(near):
            pytest.fail("it was not held")
        with pytest.raises(Unavailable, match="not a directory"):
            files.reservations()


class TestMemoryFirewall(FirewallContract):
    @pytest.fixture
    def near(self):
        return MemoryClock().deadline(30)

    @pytest.fixture
    def firewall(self):
        return MemoryFirewall(MemoryClock())


class TestMemoryBridges(BridgesContract):
    @pytest.fixture
    def near(self):
        return MemoryClock().deadline(30)

    @pytest.fixture
    def bridges(self, netns: str):
        bridges = MemoryBridges(MemoryClock(), RecordingLog())
        bridges.network.add_namespace(netns)
        return bridges

    @pytest.fixture
    def netns(self) -> str:
        return "/var/run/netns/c1"

    @pytest.fixture
    def bridge(self) -> str:
        return "br0"
