"""Where a kube-apiserver, or a proxy before it, listens, as a kubeconfig or a variable says it.

Invariant: a user name or password in the text goes into `Server.user` and nowhere else; `str()` does not show it.
"""

from __future__ import annotations

from domain.value import Value

PORTS = {"http": 80, "https": 443}
SOCKS = {"socks5": 1080, "socks5h": 1080}
_USED_IN_HOSTS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%:")
_HEX = frozenset("0123456789abcdefABCDEF")


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
        raise ValueError("it must begin with https:// or http://")
    rest = rest.partition("#")[0].partition("?")[0]
    place, slash, path = rest.partition("/")
    user, _, authority = place.rpartition("@")
    host, port = _split_port(authority)
    if not host or not _USED_IN_HOSTS.issuperset(host):
        raise ValueError("it has no host name or address")
    if port and not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        raise ValueError("its port is not a number from 1 to 65535")
    default = PORTS[meant.lower()]
    return Server(meant.lower(), host, int(port or default), _escaped(slash + path).rstrip("/"), unescaped(user))


def _split_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, bracket, tail = authority[1:].partition("]")
        if not bracket or not _stands_in_brackets(host) or (tail and not tail.startswith(":")):
            raise ValueError("the brackets of its address are wrong")
        return host.replace("%25", "%"), tail[1:]
    host, _, port = authority.partition(":")
    return host, port


def _stands_in_brackets(host: str) -> bool:
    """IPv6; and IPv4, which Calico's own installers of many years have written so: `https://[10.96.0.1]:443`."""
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
