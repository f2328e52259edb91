"""A host as a container runtime and its operator see it: executables, namespaces, a datastore file, the kernel.

Every test gets a network namespace of its own that plays the host's, so that nothing outside it changes, whatever is
in there is the test's, and "nothing is left" can be asked of the whole of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.plugin.kernel import NUMBERS, Namespace
from integration.plugin.store import NODE, Records, Store
from patience import TRIES

PLUGINS = Path("/usr/lib/cni")  # where Debian has the CNI project's own plugins
LONGEST_CALL = 60.0
# What the calls of this run shall work with, said to each of them that says nothing else.
TRANSPORT = {name: os.environ[name] for name in ("TORTIE_TRANSPORT",) if name in os.environ}


@dataclass(frozen=True)
class Answer:
    """How a call ended. `exit` is negative when a signal ended it."""

    exit: int
    stdout: str
    stderr: str

    def result(self) -> dict[str, Any]:
        """The result of a call that must have succeeded."""
        assert self.exit == 0, self
        answer: dict[str, Any] = json.loads(self.stdout)
        return answer

    def silent(self) -> None:
        """It must have succeeded without a word on stdout."""
        assert (self.exit, self.stdout) == (0, ""), self

    def error(self, code: int, *parts: str) -> dict[str, Any]:
        """The error of a call that must have failed: exit 1 and exactly one JSON object with that code on stdout.

        Each of `parts` must be in its message or details.
        """
        assert self.exit == 1, self
        error: dict[str, Any] = json.loads(self.stdout)
        assert set(error) <= {"code", "msg", "details"}, self
        assert error["code"] == code, self
        assert error["msg"], self
        for part in parts:
            assert part in f"{error['msg']}\n{error.get('details', '')}", self
        return error


class Container:
    """What a runtime knows of a container: its id and its network namespace (the path; it need not exist)."""

    def __init__(self, identity: str, netns: Namespace | str, ifname: str = "eth0") -> None:
        self.identity = identity
        self.space = netns if isinstance(netns, Namespace) else None
        self.netns = netns.path if isinstance(netns, Namespace) else netns
        self.ifname = ifname

    @property
    def inside(self) -> Namespace:
        assert self.space is not None
        return self.space

    @property
    def host_name(self) -> str:
        """The name that the device's host end gets."""
        return f"cali{self.identity[:11]}"


class Host:
    """One host. `call` is what a runtime does; the rest looks at what came of it."""

    def __init__(self, binaries: Path, folder: Path, undo: ExitStack) -> None:
        self.bin = binaries
        self.folder = folder
        self.undo = undo
        self.net = Namespace("host", undo)
        self._own_devices = self.net.names()  # lo, and what some kernels put into every namespace
        self.database = folder / "datastore.db"
        self.store: Records = Store(self.database)
        self.ipam: dict[str, Any] = {"type": "calico-ipam"}
        self.log = folder / "cni.log"

    @staticmethod
    def tool(name: str) -> Path:
        """Where a program of the system is."""
        found = shutil.which(name)
        assert found, name
        return Path(found)

    def use_host_local(self, subnet: str = "10.0.0.0/8") -> None:
        self.ipam = {"type": "host-local", "subnet": subnet, "dataDir": str(self.folder / "networks")}

    def reservations(self) -> set[str]:
        """Addresses that host-local holds."""
        files = (self.folder / "networks").glob("*/*")
        return {file.name for file in files if file.name != "lock" and not file.name.startswith("last_reserved")}

    def container(self, letter: str = "a", identity: str = "") -> Container:
        return Container(identity or letter * 3 + f"{next(NUMBERS):08d}" + "0" * 53, Namespace(letter, self.undo))

    def netconf(self, **more: Any) -> dict[str, Any]:
        """A value of None leaves the key out."""
        whole = {
            "cniVersion": "0.3.1",
            "name": "net1",
            "type": "calico",
            **self.store.settings,
            "nodename": NODE,
            "nodename_file_optional": True,
            "log_file_path": str(self.log),
            "ipam_lock_file": str(self.folder / "ipam.lock"),
            "ipam": self.ipam,
        } | more
        return {key: value for key, value in whole.items() if value is not None}

    def environment(self, verb: str, container: Container, **more: str | None) -> dict[str, str]:
        """All that a runtime's plugin call gets; None leaves a variable out."""
        whole: dict[str, str | None] = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": container.identity,
            "CNI_NETNS": container.netns,
            "CNI_IFNAME": container.ifname,
            "CNI_PATH": f"{self.bin}:{PLUGINS}",
            **more,
        }
        return {key: value for key, value in whole.items() if value is not None}

    def start(
        self,
        environment: dict[str, str],
        *arguments: str,
        program: str | Path = "calico",
        through: str = "",
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Start an executable in the host's namespace, as a runtime would; it is killed if the test ends before it.

        `through` is shell text that ends in `exec "$@"`: it prepares the process that becomes the executable.
        """
        path = program if isinstance(program, Path) else self.bin / program
        words = ["/usr/bin/nsenter", f"--net={self.net.path}", "--"]
        words += ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", through, "sh"] if through else []
        words += [str(path), *arguments]
        options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        process = subprocess.Popen(words, env=TRANSPORT | environment, **options)
        self.undo.callback(stop, process)
        return process

    def raw(self, environment: dict[str, str], stdin: str | bytes, *arguments: str, **options: Any) -> Answer:
        process = self.start(environment, *arguments, **options)
        given = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = process.communicate(given, timeout=LONGEST_CALL)
        return Answer(process.returncode, (out or b"").decode(), (err or b"").decode())

    def call(
        self,
        verb: str,
        container: Container,
        program: str = "calico",
        cni_args: str | None = None,
        through: str = "",
        **more: Any,
    ) -> Answer:
        """`more` is for the configuration."""
        environment = self.environment(verb, container, CNI_ARGS=cni_args)
        return self.raw(environment, json.dumps(self.netconf(**more)), program=program, through=through)

    def connection_test(self, netconf: str, tries: int = TRIES) -> Answer:
        """The first that succeeds, of some: each has two seconds for the datastore, whatever else the machine does."""
        for _ in range(tries):
            answer = self.raw({"CNI_COMMAND": "VERSION"}, netconf, "-t")
            if answer.exit == 0:
                break
        return answer

    def add(self, container: Container, **more: Any) -> Answer:
        return self.call("ADD", container, **more)

    def delete(self, container: Container, **more: Any) -> Answer:
        return self.call("DEL", container, **more)

    def await_end_of(self, container: Container) -> None:
        """The kernel ends a namespace, and with it the devices' other ends, when it finds the time."""
        limit = time.monotonic() + LONGEST_CALL
        while container.host_name in self.devices():
            assert time.monotonic() < limit, container.host_name
            time.sleep(0.02)

    def devices(self) -> set[str]:
        """The links that have appeared since the host is there."""
        return self.net.names() - self._own_devices

    def left(self) -> dict[str, Any]:
        """What calls have left: devices, routes, records of endpoints and addresses, holders of the lock."""
        found = {
            "devices": self.devices(),
            # The kernel adds the link-local one of a device in its own time.
            "routes": [
                route
                for family in (4, 6)
                for route in self.net.routes(family)
                if route.get("dev") != "lo" and route["dst"] != "fe80::/64"
            ],
            "endpoints": set(self.store.endpoints()) if self.store.exists() else set(),
            "handles": set(self.store.handles()) if self.store.exists() else set(),
            "allocated": self.store.allocated() if self.store.exists() else {},
            "reservations": self.reservations(),
            "lock": self._lock_holders(),
        }
        return {name: value for name, value in found.items() if value}

    def _lock_holders(self) -> list[str]:
        return ["somebody"] if is_held(self.folder / "ipam.lock") else []


def is_held(lock: Path) -> bool:
    """Whether somebody holds the lock file: found out by taking it, since an inode's number in /proc/locks may be that
    of a file elsewhere.
    """
    if not lock.is_file():
        return False
    with lock.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that a test has started, and let go of its pipes."""
    if process.poll() is None:
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()
