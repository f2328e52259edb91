"""This machine's kernel as a place for tests: namespaces whose names carry our process id, one of which is the host's.

Tests of several processes give out the same addresses, and a host has one route to each; so the test's thread, and what
it starts, is on a host of its own.

Invariant: leaving the world removes everything that was made in it, also after a failure; file descriptors that a test
left open fail it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import ExitStack
from itertools import count

from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.namespaces import CLONE_NEWNET, open_namespace
from adapters.linux.netlink.transports import load_lean, load_pyroute2
from adapters.linux.node_files import OWN_NAMESPACE
from adapters.linux.process.system_calls import setns
from adapters.memory.log import RecordingLog
from contracts.dataplane import World
from domain.ipam.address import Cidr
from ports.clock import Clock

TRANSPORTS = {"lean": load_lean, "library": load_pyroute2}

_numbers = count(1)
_UPLINK = (  # an address and a default route, as hosts have them: without it none answers for the containers' gateway
    "link set lo up",
    "link add uplink type veth peer name upstream",
    "address add 192.0.2.2/24 dev uplink",
    "link set upstream up",
    "link set uplink up",
    "route add default via 192.0.2.1 dev uplink",
)


class RealClock(Clock):
    def now(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class LinuxWorld(World):
    def __init__(self, folder, transport: str = "lean") -> None:
        self._folder = folder
        self._undo = ExitStack()
        self.clock = RealClock()
        self.log = RecordingLog()
        self.dataplane = LinuxDataplane(self.clock, self.log, TRANSPORTS[transport])

    def __enter__(self):
        if os.geteuid() != 0:
            raise RuntimeError("this test makes network namespaces and needs root")
        with ExitStack() as undo:
            self._enter_host(undo)
            self._undo = undo.pop_all()
        self._open = set(os.listdir("/proc/self/fd"))
        return self

    def __exit__(self, *_error) -> None:
        opened = set(os.listdir("/proc/self/fd")) - self._open  # what earlier tests forgot may be closed meanwhile
        self._undo.close()
        assert not opened

    def _enter_host(self, undo: ExitStack) -> None:
        """Not by way of `Inside`, which withholds signals until it has come back."""
        host = self._add_namespace(undo)
        for path in (OWN_NAMESPACE, host):
            descriptor = open_namespace(path)
            undo.callback(os.close, descriptor)
            if path == OWN_NAMESPACE:
                undo.callback(setns, descriptor, CLONE_NEWNET)
        setns(descriptor, CLONE_NEWNET)
        for words in _UPLINK:
            self.ip("", *words.split())

    def make_namespace(self) -> str:
        path = self._add_namespace(self._undo)
        # It takes IPv4 forwarding from the machine, which may forward or may have begun to meanwhile.
        self.inside(path, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")
        return path

    def _add_namespace(self, undo: ExitStack) -> str:
        name = self.new_name()
        undo.callback(subprocess.run, ["ip", "netns", "delete", name], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "add", name], check=True)
        return f"/var/run/netns/{name}"

    def make_file(self) -> str:
        path = self._folder / "plain"
        path.touch()
        return str(path)

    def new_name(self) -> str:
        return f"tdp{os.getpid()}x{next(_numbers)}"

    def make_link(self, netns: str, name: str) -> None:
        """A bridge: not every kernel has the dummy device."""
        self.ip(netns, "link", "add", name, "type", "bridge")
        self.ip(netns, "link", "set", name, "up")

    def make_pair(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        there = ["netns", os.path.basename(other[0])] if other[0] else []
        self.ip(one[0], "link", "add", one[1], "type", "veth", "peer", "name", other[1], *there)

    def make_route(self, netns: str, name: str, destination: Cidr) -> None:
        self.ip(netns, "route", "add", str(destination), "dev", name)

    def ip(self, netns: str, *arguments: str) -> str:
        """What `ip` prints for that namespace ("" for the host's)."""
        where = ["-n", os.path.basename(netns)] if netns else []
        return subprocess.run(["ip", *where, *arguments], check=True, capture_output=True, text=True).stdout

    def show(self, netns: str, *arguments: str):
        """The same as JSON."""
        return json.loads(self.ip(netns, "-j", "-d", *arguments) or "[]")

    def inside(self, netns: str, *command: str) -> str:
        """What a command prints when run in that namespace."""
        line = ["ip", "netns", "exec", os.path.basename(netns), *command]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout

    def setting(self, netns: str, path: str) -> str:
        """The value of a file below /proc/sys/net."""
        if netns:
            return self.inside(netns, "cat", f"/proc/sys/net/{path}").strip()
        with open(f"/proc/sys/net/{path}") as file:
            return file.read().strip()
