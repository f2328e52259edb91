"""The self-contained executable begins with its modules loaded, and yet is the process that was started.

Two programs are made as the executable is, of one module that tells what a process knows of itself: one with a
snapshot, one without. Started alike, they tell the same.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGING = Path(__file__).resolve().parents[3] / "packaging" / "executable"
BUILD = """
import dist, pathlib, sys
stage, sources, snapshot = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
linked = dist.compile_all(dist.runtime(dist.here()), stage, sources)
if snapshot == "snapshot":
    dist.load_ahead(linked, stage)
"""
LOADED = """
import os
BY = os.getpid()
class Loaded:
    pass
TOGETHER = Loaded(), [Loaded.__name__], {"an": b"object"}
def often(times):
    for _ in range(times):
        Loaded()
"""
MAIN = """
import _signal, _weakref, gc, io, os, sys, threading, time
import entrypoints.loaded

def about(stream):
    if stream is None:
        return None
    return stream.fileno(), stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.newlines

def descriptors():
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        yield number

def known():
    streams = [about(getattr(sys, name)) for name in ("stdin", "stdout", "stderr", "__stdout__")]
    handlers = [str(_signal.getsignal(number)) for number in range(1, 32)]
    thread = threading.current_thread()
    return {
        "arguments": sys.argv,
        "all arguments": sys.orig_argv,
        "environment": dict(os.environ),
        "as octets": sorted(map(str, os.environb.items())),
        "a variable": os.getenv("NAMED"),
        "streams": streams,
        "handlers": [text.partition(" at 0x")[0] for text in handlers],
        "thread": [thread is threading.main_thread(), thread.ident == threading.get_ident()],
        "garbage": [gc.isenabled(), gc.get_threshold()],
        "descriptors": list(descriptors()),
        "path": [sys.path, sys.executable, sys.prefix],
        "time": [time.localtime(0)[3], time.strftime("%Z", time.localtime(0))],
        "meta path": [str(one) for one in sys.meta_path],
    }

def in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(threading.get_ident() != thread.ident))
    thread.start()
    thread.join()
    return found

def in_a_child():
    child = os.fork()
    if child == 0:
        os._exit(0 if bytearray(100_000) and entrypoints.loaded.BY else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def code_that_has_run(times):
    entrypoints.loaded.often(times)
    return entrypoints.loaded.often.__code__._co_code_adaptive

def ends():
    new, found = entrypoints.loaded.Loaded(), []
    watched = _weakref.ref(new, found.append)
    del new
    return found == [watched]

def main():
    code = entrypoints.loaded.often.__code__._co_code_adaptive
    wanted = known()
    wanted["code that has run is changed"] = code_that_has_run(100) != code
    wanted["what is not counted"] = [sys.getrefcount(one) >> 32 > 0 for one in entrypoints.loaded.TOGETHER]
    wanted["what is new ends"] = ends()
    wanted["in a thread"], wanted["in a child"] = in_a_thread(), in_a_child()
    wanted["who has loaded the module"] = entrypoints.loaded.BY == os.getpid()
    wanted["one string's hash"] = hash("a string")
    wanted["memory"] = len([bytes(1000) for _ in range(20_000)]) + len(bytes(9 << 20))
    import json
    with open(os.environ.get("ANSWER", "/dev/stderr"), "w") as answer:
        json.dump(wanted, answer)
    return 7
"""
Tell = Callable[..., Any]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """With a snapshot, and without."""
    folder = tmp_path_factory.mktemp("snapshot")
    sources = folder / "sources" / "entrypoints"
    sources.mkdir(parents=True)
    (sources / "__init__.py").write_text("")
    (sources / "main.py").write_text(MAIN)
    (sources / "loaded.py").write_text(LOADED)
    for kind in ("snapshot", "none"):
        (folder / kind).mkdir()
        words = [sys.executable, "-c", BUILD, folder / kind, sources.parent, kind]
        subprocess.run(words, env={**os.environ, "PYTHONPATH": str(PACKAGING)}, check=True)
    return {kind: folder / kind / "calico" for kind in ("snapshot", "none")}


@pytest.fixture
def tell(programs: dict[str, Path], tmp_path: Path) -> Tell:
    """What a process tells that is started so, with a snapshot; the other one must tell the same."""

    def one(kind: str, prepare: Callable[[], None] | None, environment: dict[bytes, bytes], stdin: int) -> Any:
        answer = tmp_path / "answer"
        done = subprocess.run(
            ["./calico", "one", b"t\xffwo", ""],
            executable=programs[kind],
            env={b"ANSWER": bytes(answer), **environment},
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            check=False,
            preexec_fn=prepare,
            timeout=60,
        )
        assert done.returncode == 7
        return json.loads(answer.read_text())

    def both(prepare: Callable[[], None] | None = None, stdin: int = -3, **environment: bytes) -> Any:
        named = {name.encode(): value for name, value in environment.items()}
        told, other = (one(kind, prepare, named, stdin) for kind in ("snapshot", "none"))
        assert not told.pop("who has loaded the module")
        assert other.pop("who has loaded the module")
        assert told.pop("what is not counted") == [True, True, True]
        assert other.pop("what is not counted") == [False, False, False]
        assert told.pop("one string's hash") == one("snapshot", prepare, named, stdin)["one string's hash"]
        assert other.pop("one string's hash") != told.get("one string's hash")
        assert told == other
        return told

    return both


def test_it_has_its_own_arguments_and_environment(tell: Tell) -> None:
    told = tell(NAMED=b"a=b", EMPTY=b"", ODD=b"\xfe", PYTHONPATH=b"/nowhere", TZ=b"UTC-5")
    assert told["arguments"] == ["./calico", "one", "t\udcffwo", ""]
    assert told["a variable"] == "a=b"
    assert told["environment"].keys() == {"ANSWER", "NAMED", "EMPTY", "ODD", "PYTHONPATH", "TZ"}
    assert told["time"][0] == 5
    assert told["in a thread"] == [False]
    assert told["in a child"] == 0
    assert told["what is new ends"]


def test_code_that_runs_often_is_made_faster_unless_it_is_a_plugins(tell: Tell) -> None:
    assert tell()["code that has run is changed"]


def test_a_plugins_code_stays_as_it_is_in_the_file(programs: dict[str, Path], tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    environment = {"ANSWER": str(answer), "CNI_COMMAND": "ADD"}
    subprocess.run([programs["snapshot"]], env=environment, check=False, timeout=60)
    assert not json.loads(answer.read_text())["code that has run is changed"]


def test_its_descriptors_are_those_it_was_given(tell: Tell) -> None:
    told = tell(lambda: os.close(0))
    assert told["streams"][0] is None
    assert told["streams"][1][0] == 1
    assert told["descriptors"] == []


def test_what_the_parent_ignores_it_ignores(tell: Tell) -> None:
    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)

    usual, ignoring = tell()["handlers"], tell(ignore)["handlers"]
    changed = [number for number in range(1, 32) if usual[number - 1] != ignoring[number - 1]]
    assert changed == [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1]


def test_a_directory_as_standard_input_is_nobodys_fault(programs: dict[str, Path], tmp_path: Path) -> None:
    """Without a snapshot the interpreter refuses to start; with one, whoever reads it is told."""
    directory = os.open(tmp_path, os.O_RDONLY)
    answer = tmp_path / "answer"
    environment = {"ANSWER": str(answer)}
    done = subprocess.run([programs["snapshot"]], env=environment, stdin=directory, check=False, timeout=60)
    os.close(directory)
    assert done.returncode == 7
    assert json.loads(answer.read_text())["streams"][0] is None


def test_the_executable_has_a_snapshot(executable: Path) -> None:
    content = (executable / "calico").read_bytes()
    assert content.count(b"tortie snapshot\0\2\0\0\0") == 1


def test_a_call_copies_little_of_it(executable: Path) -> None:
    """Counting who uses an object would be enough to copy the page that it is in: a megabyte and more."""
    names = ("CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
    environment = dict(zip(names, ("ADD", "a", "/var/run/netns/none", "eth0", "/nowhere"), strict=True))
    words = [executable / "calico"]
    call = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert call.stdin
    with call:
        call.stdin.write(b"{")
        limit = time.monotonic() + 60
        while any(fcntl.ioctl(call.stdin, termios.FIONREAD, bytes(4))):  # it has not read that yet
            assert time.monotonic() < limit
            time.sleep(0.01)
        memory = Path(f"/proc/{call.pid}/smaps").read_text()
        call.stdin.close()
    _, snapshot = memory.split("\n200000000-", 1)
    copied = next(line for line in snapshot.splitlines() if line.startswith("Anonymous:"))
    assert int(copied.split()[1]) < 512
