"""Where an etcd server listens, as the comma-separated list of a configuration says it.

Invariant: all endpoints of one list are reached in the same way, with TLS or without; the original lets the first one
decide for all, which ends in a time-out that names no reason.
"""

from __future__ import annotations

from domain.value import Value
from ports.errors import BadConfiguration


class Endpoint(Value):
    """`host` is a name or an address, IPv6 without brackets."""

    host: str
    port: int
    secure: bool

    @property
    def host_text(self) -> str:
        """The host as it stands before a port: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host_text}:{self.port}"


def parse_endpoints(text: str) -> tuple[Endpoint, ...]:
    """`http://a:2379,http://b:2379`; spaces and empty items are left out. BadConfiguration names the faulty item."""
    found = tuple([_parse(item.strip()) for item in text.split(",") if item.strip()])
    if len({endpoint.secure for endpoint in found}) > 1:
        raise BadConfiguration(
            f"etcd_endpoints {text!r} mixes http and https; use one of them for all endpoints of the list"
        )
    return found


def _parse(item: str) -> Endpoint:
    """Without a scheme TLS is meant, as in the original. A path is of no use and is ignored."""
    scheme, separator, rest = item.partition("://")
    if not separator:
        scheme, rest = "https", item
    authority = rest.partition("/")[0]
    if "@" in authority:  # what is before it may be a password, so the item is not shown
        raise BadConfiguration("etcd_endpoints holds a user name; ETCD_USERNAME and ETCD_PASSWORD are the place for it")
    host, _, port = authority.rpartition(":")
    if scheme not in ("http", "https"):
        raise BadConfiguration(f"etcd endpoint {item!r} must begin with http:// or https://")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) or not _is_host(host):
        raise BadConfiguration(f"etcd endpoint {item!r} is not of the form {scheme}://HOST:PORT")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port), scheme == "https")


def _is_host(text: str) -> bool:
    """Not empty, and with brackets exactly if it has colons."""
    bracketed = text.startswith("[") and text.endswith("]")
    inside = text[1:-1] if bracketed else text
    return bool(inside) and (":" in inside) == bracketed and not set(inside) & set("[] \t\0")
