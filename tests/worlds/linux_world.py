"""This machine's kernel as a place for tests: namespaces and devices whose names carry our process id.

Invariant: leaving the world removes everything that was made in it, by name, also after a failure; file descriptors
that a test left open fail it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from itertools import count

from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.netlink.transports import load_lean, load_pyroute2
from adapters.memory.log import RecordingLog
from contracts.dataplane import World
from domain.ipam.address import Cidr
from ports.clock import Clock

TRANSPORTS = {"lean": load_lean, "library": load_pyroute2}

_numbers = count(1)


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
        self._namespaces: list[str] = []
        self._names: list[str] = []
        self.clock = RealClock()
        self.log = RecordingLog()
        self.dataplane = LinuxDataplane(self.clock, self.log, TRANSPORTS[transport])

    def __enter__(self):
        if os.geteuid() != 0:
            raise RuntimeError("this test makes network namespaces and needs root")
        self._open = sorted(os.listdir("/proc/self/fd"))
        return self

    def __exit__(self, *_error) -> None:
        still_open = sorted(os.listdir("/proc/self/fd"))
        for path in self._namespaces:
            subprocess.run(["ip", "netns", "delete", os.path.basename(path)], check=False, capture_output=True)
        for name in self._names:
            subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)
        assert still_open == self._open

    def make_namespace(self) -> str:
        name = self.new_name()
        self._namespaces.append(f"/var/run/netns/{name}")
        subprocess.run(["ip", "netns", "add", name], check=True)
        # It takes IPv4 forwarding from the machine, which may forward or may have begun to meanwhile.
        self.inside(self._namespaces[-1], "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")
        return self._namespaces[-1]

    def make_file(self) -> str:
        path = self._folder / "plain"
        path.touch()
        return str(path)

    def new_name(self) -> str:
        self._names.append(f"tdp{os.getpid()}x{next(_numbers)}")
        return self._names[-1]

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
