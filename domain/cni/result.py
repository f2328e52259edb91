"""The answer to an ADD, in one internal form, read and written in every CNI version's shape (spec: cni-plugin 10).

Invariant: what `result_text` writes for a version, `parse_result` reads back, but for what that version cannot say.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.value import Value


class ResultInterface(Value):
    """`mtu` 0, `mac` "" and `sandbox` "" are left out of the answer."""

    name: str
    mac: str = ""
    mtu: int = 0
    sandbox: str = ""


class ResultIp(Value):
    """`address` keeps its host bits and mask; `interface` is an index into `interfaces`."""

    address: Cidr
    interface: int | None = None
    gateway: Address | None = None


class ResultRoute(Value):
    """`dst` keeps its host bits."""

    dst: Cidr
    gateway: Address | None = None


class Dns(Value):
    nameservers: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Result(Value):
    interfaces: tuple[ResultInterface, ...] = ()
    ips: tuple[ResultIp, ...] = ()
    routes: tuple[ResultRoute, ...] = ()
    dns: Dns = Dns()
