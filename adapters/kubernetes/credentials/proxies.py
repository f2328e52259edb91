"""Which proxy stands between us and a server: the kubeconfig's, else the environment's, in Go's reading of it.

HTTPS_PROXY or HTTP_PROXY says which, NO_PROXY which hosts need none. A name in capitals comes before one in small
letters. This machine itself is never asked through a proxy of the environment.

Invariant: of a proxy's URL nothing that may be a password gets into an error.
"""

from __future__ import annotations

from adapters.kubernetes.transport.server import Server, parse_proxy
from domain.ipam.address import Address, Cidr
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def choose_proxy(url: str, server: Server, environment: Mapping[str, str]) -> Server | None:
    """`url` is the kubeconfig's `proxy-url`, which holds for every server. None: no proxy."""
    if url:
        return _parse(url, "proxy-url")
    name = "HTTPS_PROXY" if server.secure else "HTTP_PROXY"
    if name == "HTTP_PROXY" and environment.get("REQUEST_METHOD"):
        return None  # a web server would have set it from a request's header
    url = _either(environment, name)
    if not url or _bypassed(server, _either(environment, "NO_PROXY")):
        return None
    return _parse(url, name)


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower(), "")


def _parse(url: str, name: str) -> Server:
    try:
        return parse_proxy(url)
    except ValueError as error:
        raise BadConfiguration(f"the proxy that {name} names cannot be used: {error}") from None


def _bypassed(server: Server, rules: str) -> bool:
    host = server.host.lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or (address and _is_loopback(address)):
        return True
    items = [item.strip().lower() for item in rules.split(",")]
    return any(_matches(item, host, server.port, address) for item in items if item)


def _address(text: str) -> Address | None:
    try:
        return Address.parse(text)
    except ValueError:
        return None


def _is_loopback(address: Address) -> bool:
    return any(address in Cidr.parse(net) for net in ("127.0.0.0/8", "::1/128"))


def _matches(item: str, host: str, port: int, address: Address | None) -> bool:
    """One item of NO_PROXY: `*`, a CIDR, an address, a domain (with its subdomains; `.domain`: without itself)."""
    if item == "*":
        return True
    if "/" in item:
        try:
            return address is not None and address in Cidr.parse(item).network
        except ValueError:
            return False
    name, _, number = item.rpartition(":")
    if name and number.isascii() and number.isdigit() and (name.endswith("]") or ":" not in name):
        if number.lstrip("0") != str(port):
            return False
        item = name
    item = item.removeprefix("[").removesuffix("]")
    if address:
        return _address(item) == address
    item = item.removeprefix("*")
    return host.endswith(item) if item.startswith(".") else host == item or host.endswith(f".{item}")
