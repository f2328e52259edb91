"""What it takes to reach etcd, read from settings as the original names them: endpoints, certificates, the rest.

As in the original the first endpoint decides for all whether there is TLS, one that cannot be reached does no harm
while another can, and a user name counts for nothing; whoever wrote such a list is told what to write instead.

Certificates and keys come from files or inline. An installer leaves settings empty that it has nothing for, so empty
means absent. A file that is missing, unreadable or not what its setting says is named at once: seen from a connection
it would be a time-out. Where no endpoint is reached with TLS an authority's file has no use, and the original does not
look what is in it.

Invariant: settings that exist are complete: files have been read and look like PEM of the right kind, there is no
certificate without its key, and there is exactly one way to find the servers, the same for all of them. No warning or
error shows what may be a password.
"""

from __future__ import annotations

from adapters.etcdv3.transport import EtcdTls
from adapters.regular_file import read_regular
from domain.value import Value
from ports.errors import BadConfiguration, NoWay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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


_CA, _CERT, _KEY = "ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"
_INLINE = ("etcdCACert", "etcdCert", "etcdKey")
_VERSIONS = {"": False, "1.2": False, "1.3": True}


def read_tls(
    setting: Callable[[str], str], inline: Mapping[str, str], unused: Callable[[str], None] | None = None
) -> EtcdTls:
    """As `settings.read_settings` does. BadConfiguration names the setting and the file.

    `unused`: no endpoint is reached with TLS; it is told of an authority that could not be used anyway.
    """
    paths = {name: setting(name).strip() for name in (_CA, _CERT, _KEY)}
    if any(inline.values()):
        if any(paths.values()):
            raise BadConfiguration("cannot mix inline certificate-key and certificate / key files")
        shown = dict(zip(_INLINE, _INLINE))
        pems = [inline.get(name, "").encode() for name in _INLINE]
    else:
        shown = {name: f"{name.lower()} {path}" for name, path in paths.items()}
        told = {_CA: unused}
        pems = [_read(shown[name], path, told.get(name)) if path else b"" for name, path in paths.items()]
    ca, cert, key = pems
    tls = EtcdTls(ca, cert, key, only_newest=_only_newest(setting("TLS_MIN_VERSION").strip()))
    _check(tls, tuple([name if name in _INLINE else name.lower() for name in shown]), tuple(shown.values()))
    return tls


def _only_newest(version: str) -> bool:
    if version not in _VERSIONS:
        raise BadConfiguration(f"TLS_MIN_VERSION {version!r} is neither 1.2 nor 1.3")
    return _VERSIONS[version]


def _read(shown: str, path: str, unused: Callable[[str], None] | None) -> bytes:
    try:
        text = read_regular(path)
    except OSError as error:
        raise BadConfiguration(f"{shown}: {error.strerror}") from None
    if unused and not _is_pem(text, b"CERTIFICATE"):
        unused(f"{shown}: no certificate in PEM format in it; remove the setting, as etcd is reached without TLS")
        return b""
    if not text.strip():
        raise BadConfiguration(f"{shown}: the file is empty")
    return text


def _is_pem(text: bytes, word: bytes) -> bool:
    return b"-----BEGIN " in text and word + b"-----" in text


def _check(tls: EtcdTls, names: tuple[str, ...], shown: tuple[str, ...]) -> None:
    """`names` of the three settings, and how errors call them."""
    if bool(tls.cert) != bool(tls.key):
        given, absent = (names[1], names[2]) if tls.cert else (names[2], names[1])
        raise BadConfiguration(f"{given} is set but {absent} is not; a client certificate needs both")
    for pem, word, what in (
        (tls.ca, b"CERTIFICATE", shown[0]),
        (tls.cert, b"CERTIFICATE", shown[1]),
        (tls.key, b"PRIVATE KEY", shown[2]),
    ):
        if pem and not _is_pem(pem, word):
            raise BadConfiguration(f"{what}: no {word.decode().lower()} in PEM format in it")


_WHERE = (
    'set "etcd_endpoints" in the network configuration, or ETCD_ENDPOINTS in the environment, to a list such as '
    "http://10.0.0.1:2379,http://10.0.0.2:2379"
)


class EtcdSettings(Value):
    """`discovery` is the domain whose SRV records name the endpoints, when none are given.

    `user` and `password` are both empty or both set.
    """

    endpoints: tuple[Endpoint, ...] = ()
    discovery: str = ""
    user: str = ""
    password: str = ""
    tls: EtcdTls = EtcdTls()

    def __repr__(self) -> str:
        return f"EtcdSettings({self})"  # not the password

    def __str__(self) -> str:
        if self.discovery:
            return f"the etcd of SRV domain {self.discovery}"
        return f"etcd {','.join([str(endpoint) for endpoint in self.endpoints])}"


def read_settings(
    setting: Callable[[str], str], inline: Mapping[str, str], warn: Callable[[str], None] = lambda _text: None
) -> EtcdSettings:
    """`setting` gives the value of a name such as ETCD_ENDPOINTS, "" when it is not set. An empty value is none.

    Certificates come `inline` (etcdCACert, etcdCert, etcdKey) only from a configuration file. `warn` is told what is
    taken otherwise than it is written. BadConfiguration, or NoWay with the original's words.
    """
    endpoints = parse_endpoints(setting("ETCD_ENDPOINTS"), warn)
    discovery = setting("ETCD_DISCOVERY_SRV").strip()
    if endpoints and discovery:
        raise NoWay(
            'multiple discovery or bootstrap options specified, use either "etcdEndpoints" or "etcdDiscoverySrv"'
        )
    if not endpoints and not discovery:
        raise NoWay("no etcd endpoints specified", details=_WHERE)
    user, password = setting("ETCD_USERNAME"), setting("ETCD_PASSWORD")
    if not (user and password):
        user = password = ""
    plain = bool(endpoints) and not endpoints[0].secure
    return EtcdSettings(endpoints, discovery, user, password, read_tls(setting, inline, warn if plain else None))
