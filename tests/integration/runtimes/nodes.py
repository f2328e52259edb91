"""Nodes: machines within this one, on a network of their own.

    with Rack() as rack:
        node = rack.add_node("node-a")        its own processes, links, mounts, name, control groups
        node.run("ip", "route"); daemon = node.start("containerd", "--config", path)
        node.halt(); node.boot()              what is on its disk stays

The test's own thread is on the rack's network meanwhile, and so is what it starts: an etcd on the rack's address is in
reach of all nodes, and nothing is on the machine's network.

Invariant: leaving the rack leaves nothing, also after a failure or a SIGKILL but for a folder in /dev/shm and empty
control groups, both named after our process.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Self

from integration.runtimes.node_init import hierarchies

GATEWAY4, GATEWAY6 = "172.31.255.1", "fd31:ff::1"
LONGEST = 60.0
_NEWNET = 0x40000000
_INIT = Path(__file__).with_name("node_init.py")
_LIBC = ctypes.CDLL(None, use_errno=True)
_numbers = count(1)


def await_that(true: Callable[[], Any], what: str, seconds: float = LONGEST) -> Any:
    """What `true` gives once it is not false. `TimeoutError` after so many seconds."""
    ends = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > ends:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)
    return found


def answer_of(url: str) -> str:
    """The page there, once somebody listens: a container that has started may not have come so far."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def read() -> str:
        with suppress(OSError), opener.open(url, timeout=10) as reply:
            return str(reply.read().decode().strip())
        return ""

    return str(await_that(read, f"{url} answers"))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _mac(number: int) -> str:
    return f"02:fd:31:ff:00:{number:02x}"


class Rack:
    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            raise RuntimeError("nodes are made of namespaces, which needs root")
        self._undo = ExitStack()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix=f"tortie-rack-{os.getpid()}-", dir=memory))
        self._undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._undo.callback(os.close, before)
        if _LIBC.unshare(_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network namespace")
        self._undo.callback(_LIBC.setns, before, _NEWNET)
        ip("link", "set", "lo", "up")
        # Of its own accord a bridge has the least of its ports' addresses, which changes as nodes come and go.
        ip("link", "add", "rack0", "address", _mac(1), "type", "bridge")
        ip("addr", "add", f"{GATEWAY4}/24", "dev", "rack0")
        ip("addr", "add", f"{GATEWAY6}/64", "dev", "rack0", "nodad")
        ip("link", "set", "rack0", "up")
        self.nodes: list[Node] = []
        return self

    def __exit__(self, *_exc: object) -> None:
        for node in self.nodes:
            self._undo.callback(node.halt)
        self._undo.close()

    def add_node(self, name: str) -> Node:
        node = Node(self.folder / name, name, len(self.nodes) + 11)
        self.nodes.append(node)
        node.boot()
        return node


class Process:
    """One that runs in a node. `nsenter` waits beside it, in the tests' own namespaces."""

    def __init__(self, node: Node, words: list[str], log: Path, environment: dict[str, str]) -> None:
        self.words, self.log_path = words, log
        with log.open("ab") as output:
            self._outer = subprocess.Popen(
                node.entered(words), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    @cached_property
    def pid(self) -> int:
        """As the test sees it."""
        return int(await_that(lambda: next(children(self._outer.pid), 0), f"{self.words[0]} runs"))

    @property
    def is_alive(self) -> bool:
        return self._outer.poll() is None

    def send(self, number: int) -> None:
        """`nsenter` stops with what it waits for, and has to be told to go on, too."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if number == signal.SIGCONT:
                self._outer.send_signal(number)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.is_alive:
            self.send(number)
            self.await_end()

    def await_end(self) -> None:
        """Once it, or its node, has been told to end. `nsenter` may be about to stop until it hears of that."""

        def ended() -> bool:
            self._outer.send_signal(signal.SIGCONT)
            return self._outer.poll() is not None

        await_that(ended, f"{self.words[0]} ends")

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def await_ready(self, ready: Callable[[], Any], seconds: float = LONGEST) -> None:
        def looks() -> Any:
            if not self.is_alive:
                raise RuntimeError(f"{self.words[0]} has ended:\n{self.log()[-3000:]}")
            return ready()

        try:
            await_that(looks, f"{self.words[0]} is ready", seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log()[-3000:]}") from None


class Node:
    """`folder` has its disk. Addresses: 172.31.255.N, fd31:ff::N."""

    def __init__(self, folder: Path, name: str, number: int) -> None:
        self.folder, self.name = folder, name
        self.address4, self.address6 = f"172.31.255.{number}", f"fd31:ff::{number}"
        self._mac = _mac(number)  # as a network card: others know it still after a restart
        self._group = f"tortie-{os.getpid()}-{name}"
        self._init: subprocess.Popen[str] | None = None
        self._started: list[Process] = []
        self.pid = 0
        folder.mkdir()

    def boot(self) -> None:
        words = [sys.executable, "-I", str(_INIT), self.name, str(self.folder / "disk"), self._group]
        self._init = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._init.stdout is not None
        assert self._init.stderr is not None
        self.pid = int(self._init.stdout.readline())
        if self._init.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self.name} has not come up: {self._init.stderr.read()}")
        port = f"rack{next(_numbers)}p"
        pair = ["type", "veth", "peer", "name", "eth0", "address", self._mac, "netns", str(self.pid)]
        ip("link", "add", port, *pair)
        ip("link", "set", port, "master", "rack0", "up")
        for words in (
            ["addr", "add", f"{self.address4}/24", "dev", "eth0"],
            ["addr", "add", f"{self.address6}/64", "dev", "eth0", "nodad"],
            ["link", "set", "eth0", "up"],
            ["route", "add", "default", "via", GATEWAY4],
            ["-6", "route", "add", "default", "via", GATEWAY6],
        ):
            self.run("ip", *words)

    @property
    def is_up(self) -> bool:
        return self._init is not None

    def halt(self) -> None:
        """As when the power fails: every process ends at once, and what is in memory is gone."""
        if self._init is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        while self._started:  # who holds on to one of its processes holds on to the node
            self._started.pop().await_end()
        self._init.wait(30)
        for stream in (self._init.stdout, self._init.stderr):
            if stream:
                stream.close()
        self._init = None
        for place, _, _ in hierarchies():
            await_that(lambda at=place / self._group: removed(at), f"{place}/{self._group} is empty")

    def entered(self, words: list[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--", *words]

    def start(self, *words: str, log: str = "", **environment: str) -> Process:
        path = self.folder / f"{log or Path(words[0]).name}.log"
        self._started.append(Process(self, list(words), path, {"PATH": os.environ["PATH"]} | environment))
        return self._started[-1]

    def call(self, *words: str, stdin: str = "", seconds: float = 120, **environment: str) -> Any:
        """The completed process, whatever its exit code."""
        return subprocess.run(
            self.entered(list(words)),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={"PATH": os.environ["PATH"]} | environment,
        )

    def run(self, *words: str, stdin: str = "", seconds: float = 120, **environment: str) -> str:
        """What it prints. `RuntimeError` with what it said if it fails."""
        done = self.call(*words, stdin=stdin, seconds=seconds, **environment)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return str(done.stdout)

    def show(self, *words: str) -> Any:
        """What `ip` answers, as JSON."""
        return json.loads(self.run("ip", "-j", *words) or "[]")

    def disk(self, path: str) -> Path:
        """Where the tests find what the node wrote at that path below /etc, /opt or /var."""
        return self.folder / "disk" / path.removeprefix("/")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """On its disk, by the node itself: overlays do not like others to write below them."""
        self.run("sh", "-c", f'mkdir -p "$(dirname "{path}")" && cat >"{path}" && chmod {mode:o} "{path}"', stdin=text)

    def processes(self) -> list[int]:
        """Those of the node, the first one apart, as the test sees them."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for one in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.readlink(one / "ns/pid") == mine and int(one.name) != self.pid:
                    found.append(int(one.name))
        return found


def children(pid: int) -> Iterator[int]:
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((one / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                yield int(one.name)


def removed(group: Path) -> bool:
    """Whether the group and those below it are gone; they can go once the last process has."""
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
    return not group.exists()
