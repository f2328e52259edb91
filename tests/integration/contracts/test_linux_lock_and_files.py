"""Clock, host lock, node files and the absent cluster on a real machine."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.cluster_absent import AbsentCluster
from adapters.linux.lock_file import DEFAULT_PATH, LockFile
from adapters.linux.node_files import NodeFiles
from adapters.memory.log import RecordingLog
from contracts.clock import ClockContract
from contracts.cluster import AbsentClusterContract
from contracts.lock import NotedLockContract
from contracts.node import NodeContract
from ports.errors import BadConfiguration, Missing, Refused, Unavailable

ROOT = Path(__file__).parents[3]


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def log() -> RecordingLog:
    return RecordingLog()


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def put(kind: str, path: Path, target: Path) -> None:
    """What is no regular file."""
    if kind == "a symbolic link":
        path.symlink_to(target)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))


class TestSystemClock(ClockContract):
    def test_instants_increase_also_when_the_wall_clock_is_set_back_or_stands_still(self) -> None:
        told = iter([100, 100, 40, 101, 200])
        clock = SystemClock(lambda: next(told))
        assert [clock.now() for _ in range(5)] == [100, 101, 102, 103, 200]

    def test_a_signal_handlers_exception_ends_a_sleep(self, clock: SystemClock) -> None:
        def interrupt(*_: object) -> None:
            raise InterruptedError

        before = signal.signal(signal.SIGUSR1, interrupt)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        try:
            with pytest.raises(InterruptedError):  # noqa: PT012 - the signal may come at once
                timer.start()
                clock.sleep(20)
        finally:
            timer.join()
            signal.signal(signal.SIGUSR1, before)


class TestAbsentCluster(AbsentClusterContract):
    @pytest.fixture
    def absent(self) -> AbsentCluster:
        return AbsentCluster()


class TestLockFile(NotedLockContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "run" / "calico" / "ipam.lock"

    @pytest.fixture
    def lock(self, path: Path, clock: SystemClock, log: RecordingLog) -> LockFile:
        return LockFile(str(path), clock, log)

    @pytest.fixture
    def rival(self, path: Path, clock: SystemClock, log: RecordingLog) -> LockFile:
        return LockFile(str(path), clock, log)

    def test_what_is_kept_is_kept_from_others(
        self, lock: LockFile, rival: LockFile, clock: SystemClock, tmp_path: Path, log: RecordingLog
    ) -> None:
        """A container's namespace, or anything that exists; it need not be a regular file."""
        assert lock.keep(str(tmp_path), clock.deadline(0.1)) is True
        assert rival.keep(str(tmp_path), clock.deadline(0.1)) is False
        before = clock.monotonic()
        assert lock.keep(str(tmp_path), clock.deadline(10)) is True  # it has it already
        assert clock.monotonic() - before < 5
        assert lock.keep(str(tmp_path / "absent"), clock.deadline(0.1)) is False
        assert len(log.shown("warning")) == 1  # what is not there needs no lock

    def test_what_was_there_before_stays_as_it_is(
        self, path: Path, clock: SystemClock, log: RecordingLog, tmp_path: Path
    ) -> None:
        path.parent.mkdir(parents=True)
        path.touch(0o640)
        os.chmod(path, 0o640)
        with LockFile(str(path), clock, log).held(clock.deadline(0.1)) as really:
            assert really
        assert mode(path) == 0o640

    @pytest.mark.parametrize("kind", ["a symbolic link", "a folder", "a named pipe", "a socket"])
    def test_what_can_be_no_lock_is_named_and_left_alone(
        self, kind: str, path: Path, clock: SystemClock, log: RecordingLog, tmp_path: Path
    ) -> None:
        """Who is strict gets an error; who is not goes on without the lock."""
        path.parent.mkdir(parents=True)
        put(kind, path, tmp_path / "victim")
        before = (path.lstat().st_mode, path.lstat().st_ino)
        lock, open_before = LockFile(str(path), clock, log), os.listdir("/proc/self/fd")
        why = f'{path}: it is {kind}, and only a regular file can be the IPAM lock; remove it, or set "ipam_lock_file"'
        with pytest.raises(BadConfiguration, match=re.escape(why)), lock.held(clock.deadline(0.1), strict=True):
            pytest.fail("it ran")
        assert log.shown() == []
        with lock.held(clock.deadline(0.1)) as really:
            assert really is False
        assert why in log.shown("error")[0]
        assert (path.lstat().st_mode, path.lstat().st_ino) == before
        assert not (tmp_path / "victim").exists()
        assert os.listdir("/proc/self/fd") == open_before

    @pytest.mark.parametrize("cut", [1, 5, 18])
    def test_notes_that_were_cut_short_are_none(self, path: Path, lock: LockFile, clock: SystemClock, cut: int) -> None:
        with lock.held(clock.deadline(0.1)):
            lock.leave("notes\n")
        os.truncate(path, path.stat().st_size - cut)
        assert lock.notes() == ""

    @pytest.mark.parametrize("octets", [b"\0\0\0\0\0\0end of notes\n", b"\xff end of notes\n", b"calico"])
    def test_what_is_no_text_of_ours_is_none(
        self, path: Path, lock: LockFile, clock: SystemClock, octets: bytes
    ) -> None:
        with lock.held(clock.deadline(0.1)):
            path.write_bytes(octets)
            assert lock.notes() == ""

    @pytest.mark.parametrize("how", ["others may read it", "others may write it", "it is somebody else's"])
    def test_a_file_that_is_not_ours_alone_gets_no_notes_and_is_not_believed(
        self, path: Path, lock: LockFile, clock: SystemClock, how: str
    ) -> None:
        with lock.held(clock.deadline(0.1)):
            lock.leave("notes\n")
            if how == "it is somebody else's":
                os.chown(path, 4711, 0)
            else:
                path.chmod(0o640 if "read" in how else 0o602)
            assert lock.notes() is None
            lock.leave("other notes\n")
        assert path.read_bytes() == b"notes\nend of notes\n"

    def test_where_no_notes_can_be_left_nothing_fails(self, path: Path, lock: LockFile, log: RecordingLog) -> None:
        lock.leave("notes\n")
        assert (lock.notes(), path.exists()) == ("", False)
        path.parent.mkdir(parents=True)
        path.symlink_to("/etc/hostname")
        lock.leave("notes\n")
        assert lock.notes() is None
        assert len(log.shown("debug")) == 2
        assert log.shown("warning") == []

    def test_more_than_a_host_has_is_not_left(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        with lock.held(clock.deadline(0.1)):
            lock.leave("notes\n")
            lock.leave("x" * (1 << 18))
            assert lock.notes() == ""
        assert path.stat().st_size == 0

    def test_the_originals_path_is_the_default(self, clock: SystemClock, log: RecordingLog) -> None:
        assert LockFile("", clock, log).path == DEFAULT_PATH == "/var/run/calico/ipam.lock"

    def test_it_excludes_another_process_that_uses_flock(
        self, path: Path, lock: LockFile, clock: SystemClock, log: RecordingLog
    ) -> None:
        """L03: an outsider holds the lock for longer than we want to wait."""
        path.parent.mkdir(parents=True)
        holder = subprocess.Popen(
            ["flock", "--exclusive", str(path), "sh", "-c", "echo held; read _"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with lock.held(clock.deadline(0.2)) as really:
                assert not really
            assert log.shown("warning") == [f"The lock is held by others for too long, going on without it path={path}"]
            timer = threading.Timer(0.1, lambda: holder.stdin and holder.stdin.close())
            timer.start()
            with lock.held(clock.deadline(20)) as really:
                assert really
            timer.join()

    def test_our_lock_excludes_another_process(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        attempt = ["flock", "--nonblock", str(path), "true"]
        with lock.held(clock.deadline(1)):
            assert subprocess.run(attempt, check=False).returncode == 1
        assert subprocess.run(attempt, check=False).returncode == 0

    def test_a_child_without_exec_does_not_keep_it(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        with lock.held(clock.deadline(1)):
            ready, go = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(go)
                os.read(ready, 1)
                os._exit(0)
            os.close(ready)
        try:
            assert subprocess.run(["flock", "--nonblock", str(path), "true"], check=False).returncode == 0
        finally:
            os.close(go)
            os.waitpid(child, 0)

    def test_it_dies_with_its_holder(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from adapters.linux.clock import SystemClock\n"
            "from adapters.linux.lock_file import LockFile\n"
            "clock = SystemClock()\n"
            "with LockFile(sys.argv[2], clock, None).held(clock.deadline(1)) as really:\n"
            "    print(really, flush=True); sys.stdin.read()\n"
        )
        command = [sys.executable, "-ISBc", program, str(ROOT), str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"True\n"
            holder.kill()
        with lock.held(clock.deadline(1)) as really:
            assert really
        assert path.exists()

    @pytest.mark.usefixtures("umask")
    def test_modes_do_not_depend_on_the_umask(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        with lock.held(clock.deadline(1)) as really:
            assert really
        assert [mode(each) for each in (path, path.parent, path.parent.parent)] == [0o600, 0o755, 0o755]

    def test_the_file_stays_and_is_not_emptied(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        path.parent.mkdir(parents=True)
        path.write_text("kept")
        with lock.held(clock.deadline(1)):
            pass
        assert path.read_text() == "kept"

    @pytest.mark.parametrize("path", ["/proc/no/such/lock", "/dev/null/x", "nul\0"])
    def test_a_lock_that_cannot_be_had_lets_the_call_go_on(
        self, path: str, clock: SystemClock, log: RecordingLog
    ) -> None:
        with LockFile(path, clock, log).held(clock.deadline(1), strict=True) as really:
            assert really is False
        assert len(log.shown("warning")) == 1

    def test_an_interrupted_wait_leaves_no_descriptor(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        class Impatient(SystemClock):
            def sleep(self, seconds: float) -> None:
                raise KeyboardInterrupt

        before = len(os.listdir("/proc/self/fd"))
        with lock.held(clock.deadline(1)):
            impatient = LockFile(str(path), Impatient(), RecordingLog())
            with pytest.raises(KeyboardInterrupt), impatient.held(clock.deadline(1)):
                pass
        assert len(os.listdir("/proc/self/fd")) == before

    def test_children_do_not_inherit_it(self, path: Path, lock: LockFile, clock: SystemClock) -> None:
        with lock.held(clock.deadline(1)):
            inheritable = [
                fd
                for fd in os.listdir("/proc/self/fd")
                if os.path.realpath(f"/proc/self/fd/{fd}") == str(path)
                and not fcntl.fcntl(int(fd), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
            ]
        assert inheritable == []


class TestNodeFiles(NodeContract):
    @pytest.fixture
    def node(self) -> NodeFiles:
        return NodeFiles()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "place")

    def test_the_host_name_is_the_kernels(self, node: NodeFiles) -> None:
        assert node.host_name() == os.uname().nodename

    @pytest.mark.usefixtures("umask")
    def test_modes_do_not_depend_on_the_umask(self, node: NodeFiles, tmp_path: Path) -> None:
        node.write(str(tmp_path / "a" / "b" / "f"), "text")
        modes = [mode(tmp_path / each) for each in ("a", "a/b", "a/b/f")]
        assert modes == [0o755, 0o755, 0o600]

    def test_a_replaced_file_is_never_seen_half_written(self, node: NodeFiles, tmp_path: Path) -> None:
        path = tmp_path / "f"
        node.write(str(path), "old")
        with path.open() as reader:
            node.write(str(path), "new")
            assert reader.read() == "old"
        assert os.listdir(tmp_path) == ["f"]

    def test_a_link_is_read_through_and_replaced(self, node: NodeFiles, tmp_path: Path) -> None:
        target, link = tmp_path / "target", tmp_path / "link"
        target.write_text("target's")
        link.symlink_to(target)
        assert node.read(str(link)) == "target's"
        node.write(str(link), "link's")
        assert (target.read_text(), link.read_text()) == ("target's", "link's")

    def test_a_temporary_file_left_by_a_killed_process_is_no_obstacle(self, node: NodeFiles, tmp_path: Path) -> None:
        (tmp_path / f".tortie-{os.getpid()}").symlink_to("/etc/passwd")
        node.write(str(tmp_path / "f"), "text")
        assert os.listdir(tmp_path) == ["f"]

    def test_undecodable_bytes_are_replaced(self, node: NodeFiles, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"a\xffb")
        assert node.read(str(tmp_path / "f")) == "a\ufffdb"

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda path: path.mkdir(), "read {}: is a directory"),
            (lambda path: path.symlink_to(path), "open {}: too many levels of symbolic links"),
        ],
    )
    def test_what_is_no_file_is_refused_in_gos_words(
        self, node: NodeFiles, tmp_path: Path, make: object, text: str
    ) -> None:
        path = tmp_path / "f"
        assert callable(make)
        make(path)
        with pytest.raises(Refused) as refused:
            node.read(str(path))
        assert str(refused.value) == text.format(path)

    def test_a_path_with_a_nul_is_an_invalid_argument(self, node: NodeFiles) -> None:
        assert not node.exists("a\0")
        with pytest.raises(Refused, match="invalid argument"):
            node.read("a\0")
        for change in (lambda: node.write("a\0", ""), lambda: node.remove("a\0")):
            with pytest.raises(Unavailable, match="invalid argument"):
                change()

    def test_a_pipe_does_not_block_the_reader(self, node: NodeFiles, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        assert node.read(str(tmp_path / "fifo")) == ""

    def test_an_endless_device_is_refused(self, node: NodeFiles) -> None:
        with pytest.raises(Refused, match="file too large"):
            node.read("/dev/zero")

    def test_a_full_disk_is_unavailable_and_keeps_the_old_file(self, node: NodeFiles, tmp_path: Path) -> None:
        """C15."""
        import resource

        path = tmp_path / "f"
        node.write(str(path), "old")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            with pytest.raises(Unavailable, match=r"f: file too large"):
                node.write(str(path), "x" * 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["f"]

    def test_where_nothing_can_be_written_the_path_is_named(self, node: NodeFiles) -> None:
        with pytest.raises(Unavailable, match=r"^open /proc/no/f: no such file or directory$"):
            node.write("/proc/no/f", "x")

    def test_a_file_below_a_file_is_not_missing_but_refused(self, node: NodeFiles, tmp_path: Path) -> None:
        (tmp_path / "f").write_text("")
        with pytest.raises(Refused, match="not a directory"):
            node.read(f"{tmp_path}/f/g")
        with pytest.raises(Missing):
            node.read(f"{tmp_path}/g")
