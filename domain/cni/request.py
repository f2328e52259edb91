"""What a runtime asks for: the CNI environment variables, checked in the CNI library's order.

Invariant: a `Request` that `read_request` returned has well-formed names; nothing later checks them again.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.value import Value


class CniArgs(Value):
    """CNI_ARGS as far as we know its keys. `ip` is the address asked for, None without one."""

    ip: Address | None = None
    pod_name: str = ""
    pod_namespace: str = ""
    infra_container_id: str = ""
    test_namespace: str = ""


class Request(Value):
    """One call. `args` is the text of CNI_ARGS as the runtime gave it; `path` CNI_PATH split; `netns` "" if absent."""

    command: str
    container_id: str
    netns: str
    ifname: str
    args: str
    path: tuple[str, ...]
