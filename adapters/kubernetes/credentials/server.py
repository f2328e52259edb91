"""Where a kube-apiserver listens, and which proxy stands between us and it: the kubeconfig's, else the environment's,
in Go's reading of it.

HTTPS_PROXY or HTTP_PROXY says which, NO_PROXY which hosts need none. A name in capitals comes before one in small
letters. This machine itself is never asked through a proxy of the environment.

Invariant: a user name or password in a URL goes into `Server.user` and nowhere else; no error and no `str()` shows it.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.value import Value
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PORTS = {"http": 80, "https": 443}
SOCKS = {"socks5": 1080, "socks5h": 1080}
_USED_IN_HOSTS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%:")
_HEX = frozenset("0123456789abcdefABCDEF")


class BadServerUrl(ValueError):
    """A URL by which no server or proxy can be reached. The text does not show it."""


class Server(Value):
    """`host` is a name or an address, IPv6 without brackets. `prefix` is "" or a path that begins with `/` and does
    not end with one, as it goes into a request line. `user` is `name:password`, unescaped, or "".
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""
    user: str = ""

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def is_socks(self) -> bool:
        """Of a proxy: it passes octets on, and reads none of them."""
        return self.scheme in SOCKS

    @property
    def authority(self) -> str:
        """`host[:port]` as a `Host` header has it."""
        return self.host_text if self.port == {**PORTS, **SOCKS}[self.scheme] else self.place

    @property
    def place(self) -> str:
        """`host:port`, as CONNECT has it."""
        return f"{self.host_text}:{self.port}"

    @property
    def host_text(self) -> str:
        """The host as it stands before a port: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"

    def __repr__(self) -> str:
        return f"Server({self})"  # not the password


def parse_proxy(text: str) -> Server:
    """As `parse_server`; a proxy may speak SOCKS, too."""
    meant, separator, rest = text.strip().partition("://")
    if not separator or meant.lower() not in SOCKS:
        return parse_server(text, scheme="http")
    found = parse_server(f"http://{rest}")
    port = SOCKS[meant.lower()] if found.port == PORTS["http"] and not _names_port(rest) else found.port
    return found.replace(scheme=meant.lower(), port=port)


def _names_port(rest: str) -> bool:
    return bool(_split_port(rest.partition("/")[0].rpartition("@")[2])[1])


def parse_server(text: str, *, scheme: str = "") -> Server:
    """`scheme` is meant when the text has none. ValueError says what is wrong, without the text."""
    meant, separator, rest = text.strip().partition("://")
    if not separator:
        meant, rest = scheme, text.strip()
    if meant.lower() not in PORTS:
        raise BadServerUrl("it must begin with https:// or http://")
    rest = rest.partition("#")[0].partition("?")[0]
    place, slash, path = rest.partition("/")
    user, _, authority = place.rpartition("@")
    host, port = _split_port(authority)
    if not host or not _USED_IN_HOSTS.issuperset(host):
        raise BadServerUrl("it has no host name or address")
    if port and not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        raise BadServerUrl("its port is not a number from 1 to 65535")
    default = PORTS[meant.lower()]
    return Server(meant.lower(), host, int(port or default), _escaped(slash + path).rstrip("/"), unescaped(user))


def _split_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, bracket, tail = authority[1:].partition("]")
        if not bracket or not _stands_in_brackets(host) or (tail and not tail.startswith(":")):
            raise BadServerUrl("the brackets of its address are wrong")
        return host.replace("%25", "%"), tail[1:]
    host, _, port = authority.partition(":")
    return host, port


def _stands_in_brackets(host: str) -> bool:
    """An IPv6 address; and an IPv4 one, since Calico's installers have long written `https://[10.96.0.1]:443`."""
    return ":" in host or (host.count(".") == 3 and host.replace(".", "").isdecimal() and host.isascii())


def _escaped(path: str) -> str:
    """What a request line can hold; escapes that are there stay."""
    return "".join(
        [chr(octet) if 0x21 <= octet < 0x7F else f"%{octet:02X}" for octet in path.encode("utf-8", "replace")]
    )


def unescaped(text: str) -> str:
    """`%40` becomes `@`; a percent sign that begins no escape stays."""
    first, *parts = text.split("%")
    octets = first.encode("utf-8", "replace")
    for part in parts:
        if len(part) >= 2 and _HEX.issuperset(part[:2]):
            octets += bytes([int(part[:2], 16)]) + part[2:].encode("utf-8", "replace")
        else:
            octets += b"%" + part.encode("utf-8", "replace")
    return octets.decode("utf-8", "replace")


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
