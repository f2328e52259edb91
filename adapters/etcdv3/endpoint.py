"""Where an etcd server listens, as the comma-separated list of a configuration says it.

As in the original the first one decides for all whether there is TLS, one that cannot be reached does no harm while
another can, and a user name counts for nothing; whoever wrote such a list is told what to write instead.

Invariant: all endpoints of one list are reached in the same way, and no warning or error shows what may be a password.
"""

from __future__ import annotations

from domain.value import Value
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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


def parse_endpoints(text: str, warn: Callable[[str], None] | None = None) -> tuple[Endpoint, ...]:
    """`http://a:2379,http://b:2379`; spaces and empty items are left out. BadConfiguration if no item can be used.

    `warn` is told what was taken otherwise than it is written.
    """
    found: list[Endpoint] = []
    faults: list[BadConfiguration] = []
    told: list[str] = []
    items = [item.strip() for item in text.split(",") if item.strip()]
    for item in items:
        try:
            found.append(_parse(item))
        except BadConfiguration as error:
            faults.append(error)
    if faults and not found:
        raise faults[0]
    told += [f"{fault}; going on with the other endpoints" for fault in faults]
    if any("@" in _authority(item) for item in items):
        told.append(
            "etcd_endpoints holds a user name, which counts for nothing; "
            "remove it, and set ETCD_USERNAME and ETCD_PASSWORD where etcd asks who comes"
        )
    secure = bool(items) and _scheme(items[0]) != "http"
    if any(endpoint.secure != secure for endpoint in found):
        first = "https" if secure else "http"
        told.append(
            f"etcd_endpoints mixes http and https, and the first decides for all: {first}; write it before each of them"
        )
    for one in told if warn else ():
        warn(one)  # type: ignore[misc]  # it is there
    return tuple([endpoint.replace(secure=secure) for endpoint in found])


def _scheme(item: str) -> str:
    """Without one TLS is meant, as in the original."""
    scheme, separator, _ = item.partition("://")
    return scheme.lower() if separator else "https"


def _authority(item: str) -> str:
    """A path is of no use and is ignored."""
    return item.rpartition("://")[2].partition("/")[0]


def _parse(item: str) -> Endpoint:
    scheme, authority = _scheme(item), _authority(item).rpartition("@")[2]
    host, _, port = authority.rpartition(":")
    if scheme not in ("http", "https"):
        raise BadConfiguration(f"etcd endpoint {item.rpartition('@')[2]!r} must begin with http:// or https://")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536) or not _is_host(host):
        shown = f"{item.partition('://')[0]}://{authority}" if "://" in item else authority
        raise BadConfiguration(f"etcd endpoint {shown!r} is not of the form {scheme}://HOST:PORT")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port), scheme == "https")


def _is_host(text: str) -> bool:
    """Not empty, and with brackets exactly if it has colons."""
    bracketed = text.startswith("[") and text.endswith("]")
    inside = text[1:-1] if bracketed else text
    return bool(inside) and (":" in inside) == bracketed and not set(inside) & set("[] \t\0")
