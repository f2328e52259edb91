"""A host for the demo: this one, or where it has no default route a network namespace that has.

The host answers for the containers' gateway by proxy ARP, which the kernel does only for what it has a route to. A host
without a default route is left as it is: the demo starts again in a network namespace that goes with its process.
"""

from __future__ import annotations

import os
import subprocess
import sys

_IN_NAMESPACE = "--in-network-namespace"
_UPLINK = (  # an address and a default route, as hosts have them; the link leads nowhere
    "link set lo up",
    "link add uplink type veth peer name upstream",
    "address add 192.0.2.2/24 dev uplink",
    "link set upstream up",
    "link set uplink up",
    "route add default via 192.0.2.1 dev uplink",
)


def is_namespace() -> bool:
    """Whether this process is the one that was started again."""
    return sys.argv[1:] == [_IN_NAMESPACE]


def settle(program: str) -> str:
    """Give the program a host with a default route; what is in the way of that, or "". Starts it again if need be."""
    if is_namespace():
        faults = [_ip(words) for words in _UPLINK]
        return next((fault for fault in faults if fault), "")
    shown = subprocess.run(["ip", "-4", "route", "show", "default"], check=False, capture_output=True, text=True)
    if shown.stdout.strip():
        return ""
    print("  This host has no default route, so a network namespace stands for it.", flush=True)
    try:
        os.execvp("unshare", ["unshare", "--net", sys.executable, os.path.realpath(program), _IN_NAMESPACE])  # noqa: S606 - found as every program of the demo
    except OSError as error:
        return f"this host has no default route (`ip route add default …`), and there is no `unshare`: {error.strerror}"


def _ip(words: str) -> str:
    """What `ip` says against it."""
    return subprocess.run(["ip", *words.split()], check=False, capture_output=True, text=True).stderr.strip()
