"""Certificates and keys for etcd: from files or inline, checked before anything is connected.

An installer leaves settings empty that it has nothing for, so empty means absent. A file that is missing, unreadable
or not what its setting says is named at once: seen from a connection it would be a time-out.

Where no endpoint is reached with TLS an authority's file has no use, and the original does not look what is in it.

Invariant: what is returned looks like PEM of the right kind, and there is no certificate without its key.
"""

from __future__ import annotations

from adapters.etcdv3.transport import Tls
from adapters.regular_file import read_regular
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CA, _CERT, _KEY = "ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"
_INLINE = ("etcdCACert", "etcdCert", "etcdKey")
_VERSIONS = {"": False, "1.2": False, "1.3": True}


def read_tls(
    setting: Callable[[str], str], inline: Mapping[str, str], unused: Callable[[str], None] | None = None
) -> Tls:
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
    tls = Tls(ca, cert, key, only_newest=_only_newest(setting("TLS_MIN_VERSION").strip()))
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


def _check(tls: Tls, names: tuple[str, ...], shown: tuple[str, ...]) -> None:
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
