"""Network namespaces of a test's own, and questions to the kernel about them, asked with the usual tools.

Invariant: all names carry this process's id, and removal is registered before a namespace is made.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

NUMBERS = itertools.count(1)


def succeed(*command: str | Path, given: str = "") -> str:
    """Run a tool that must work; what it wrote to stdout."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(words)}: {done.returncode} {done.stdout}{done.stderr}"
    return done.stdout


def remove_orphans() -> None:
    """Namespaces of test runs that were killed and could not remove them."""
    for path in Path("/var/run/netns").glob("tortie-[0-9]*-*"):
        if not Path(f"/proc/{path.name.split('-')[1]}").exists():
            subprocess.run(["ip", "netns", "del", path.name], check=False, capture_output=True)


class Namespace:
    """A network namespace with a name, and questions to the kernel about it."""

    def __init__(self, what: str, undo: ExitStack) -> None:
        self.name = f"tortie-{os.getpid()}-{next(NUMBERS)}-{what}"
        self.path = f"/var/run/netns/{self.name}"
        undo.callback(self.remove)
        succeed("ip", "netns", "add", self.name)
        # A new namespace takes IPv4 forwarding from the machine, which may forward or may have begun to meanwhile.
        settings = "ip link set lo up && echo 0 > /proc/sys/net/ipv4/ip_forward"
        succeed("ip", "netns", "exec", self.name, "sh", "-c", settings)

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)

    def ip(self, *words: str) -> None:
        succeed("ip", "-n", self.name, *words)

    def show(self, *words: str) -> list[dict[str, Any]]:
        """What `ip -j -d` says here."""
        shown: list[dict[str, Any]] = json.loads(succeed("ip", "-n", self.name, "-j", "-d", *words) or "[]")
        return [entry for entry in shown if entry]

    def names(self) -> set[str]:
        return {link["ifname"] for link in self.show("link", "show")}

    def link(self, name: str) -> dict[str, Any]:
        return self.show("link", "show", "dev", name)[0]

    def addresses(self, name: str, scope: str = "global") -> list[str]:
        infos = self.show("addr", "show", "dev", name)[0]["addr_info"]
        return [f"{info['local']}/{info['prefixlen']}" for info in infos if info["scope"] == scope]

    def routes(self, family: int = 4, *words: str) -> list[dict[str, Any]]:
        return self.show(f"-{family}", "route", "show", "table", "main", *words)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A tool inside."""
        inside = ["nsenter", f"--net={self.path}", "--", *command]
        done = subprocess.run(inside, capture_output=True, text=True, check=False, timeout=60)
        assert not check or done.returncode == 0, done
        return done

    def ping_once(self, target: str) -> None:
        """One packet, before which it is asked once who has the address: no second try, and time enough for a machine
        that is busy.
        """
        once = 'for one in /proc/sys/net/ipv[46]/neigh/*; do echo 1 >"$one/mcast_solicit"; '
        once += 'echo 10000 >"$one/retrans_time_ms"; done'
        self.run("sh", "-c", once)
        self.run("ping", "-c", "1", "-W", "10", target)

    def sysctl(self, key: str) -> str | None:
        """The value of /proc/sys/net/<key> here, or None where the kernel has no such file."""
        return self.sysctls(key)[key]

    def sysctls(self, *keys: str) -> dict[str, str | None]:
        script = 'for key; do cat "/proc/sys/net/$key" 2>/dev/null || echo missing; done'
        values = self.run("sh", "-c", script, "sh", *keys).stdout.splitlines()
        return {key: None if value == "missing" else value for key, value in zip(keys, values, strict=True)}

    def set_sysctl(self, key: str, value: str) -> None:
        self.run("sh", "-c", f"echo {value} > /proc/sys/net/{key}")
