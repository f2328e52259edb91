"""TLS on the C module alone: loading `ssl` costs as much as the rest of a call.

What the `ssl` module would do is done here: a least version, the server's name or address checked against its
certificate (never against the common name, as in Go), the system's authorities where none are given, and errors in
words. Certificates and keys come from memory. OpenSSL takes a client's only by path, so they go through a file that is
in memory, too.

Invariant: no key is ever written to a file system; an unverified server is talked to only if that was asked for.
"""

from __future__ import annotations

import _ssl
import os

from adapters.regular_file import open_regular
from adapters.wire.faults import Fault, Untrusted
from adapters.wire.sockets import Stream
from adapters.wire.waiting import FOREVER, READABLE, WRITABLE
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.wire.waiting import Work

SYSTEM_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_TLS_1_2, _TLS_1_3 = 0x0303, 0x0304
_EXPIRED, _NOT_YET_VALID, _OTHER_HOST, _OTHER_ADDRESS = 10, 9, 62, 64
_SERVERS = {
    _EXPIRED: "certificate problem: the server's certificate has expired",
    _NOT_YET_VALID: "certificate problem: the server's certificate is not valid yet",
    _OTHER_HOST: "certificate problem: the server's certificate is not for this host name",
    _OTHER_ADDRESS: "certificate problem: the server's certificate is not for this host name",
}
_UNKNOWN_AUTHORITY = "certificate problem: the server's certificate is not signed by the given authority"
_UNFIT = "certificate problem: authority, client certificate or key cannot be used together"
_PLAIN = "the server does not speak TLS there; is http meant instead of https?"
_FOR_SERVERS = "1.3.6.1.5.5.7.3.1"  # serverAuth, among the uses of a certificate
_NO_AGREEMENT = "no agreement on a version or a cipher of TLS"
_CLIENTS = "certificate problem: the server does not accept the client's certificate, or wants one"
_FAULTS = (  # a part of the library's name for it, and what an operator has to know
    ("WRONG_VERSION_NUMBER", _PLAIN),
    ("HTTP_REQUEST", _PLAIN),
    ("PACKET_LENGTH", _PLAIN),
    ("RECORD_LAYER_FAILURE", _PLAIN),
    ("ALERT_PROTOCOL_VERSION", _NO_AGREEMENT),
    ("UNSUPPORTED_PROTOCOL", _NO_AGREEMENT),
    ("HANDSHAKE_FAILURE", _NO_AGREEMENT),
    ("INSUFFICIENT_SECURITY", _NO_AGREEMENT),
    ("NO_APPLICATION_PROTOCOL", _NO_AGREEMENT),
    ("ALERT_UNKNOWN_CA", _CLIENTS),
    ("ALERT_DECRYPT_ERROR", _CLIENTS),
    ("ALERT_ACCESS_DENIED", _CLIENTS),
    ("CERTIFICATE", _CLIENTS),
)


class TlsSettings(Value):
    """`ca`, `cert` and `key` are PEM; without `ca` the system's authorities count.

    `protocols` are offered by ALPN, the dearest first, such as b"h2".
    """

    ca: bytes = b""
    cert: bytes = b""
    key: bytes = b""
    only_newest: bool = False
    """TLS 1.3 at least; else 1.2 at least."""
    verified: bool = True
    """Whether the server's certificate and name are looked at."""
    protocols: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return "TlsSettings(…)"  # not the key


class TlsStream(Stream):
    """Octets in both directions, nobody else's. `alpn` is the protocol that was agreed on, or None."""

    def __init__(self, plain: Stream, session: Any) -> None:
        super().__init__(plain.connection)
        self._session = session
        self.alpn: str | None = session.selected_alpn_protocol()

    def send(self, octets: bytes | bytearray) -> Work[None]:
        left = memoryview(octets)
        while left:
            try:
                left = left[self._session.write(left) :]
            except (_ssl.SSLWantReadError, _ssl.SSLWantWriteError) as error:
                yield _wait(self, error)
            except OSError as error:
                raise self._last_word() or _broken(error) from error

    def _last_word(self) -> Fault | None:
        """The other side may have said why before it ended the connection."""
        try:
            while self._session.read(65536):
                pass
        except (_ssl.SSLWantReadError, _ssl.SSLEOFError, _ssl.SSLZeroReturnError):
            return None
        except OSError as error:
            return _broken(error)
        return None

    def receive(self, limit: int = 65536) -> Work[bytes]:
        """A refusal of the client's certificate arrives here in TLS 1.3, as `Untrusted`."""
        while True:
            if not self._session.pending():
                yield ((self.connection.fileno(), READABLE),), FOREVER
            try:
                octets: bytes = self._session.read(limit)
            except (_ssl.SSLWantReadError, _ssl.SSLWantWriteError) as error:
                yield _wait(self, error)
            except (_ssl.SSLEOFError, _ssl.SSLZeroReturnError):
                return b""
            except OSError as error:
                raise _broken(error) from error
            else:
                return octets


def make_context(settings: TlsSettings, kind: Any = _ssl._SSLContext) -> Any:
    """What `start_tls` takes; it may serve several connections. `Untrusted` for material that cannot be used.

    `kind` may be `ssl.SSLContext`, for a library that wants one.
    """
    context: Any = kind(_ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _TLS_1_3 if settings.only_newest else _TLS_1_2
    context._host_flags |= _ssl.HOSTFLAG_NEVER_CHECK_SUBJECT
    if not settings.verified:
        context.check_hostname = False
        context.verify_mode = _ssl.CERT_NONE
    elif settings.ca:
        # As in Go, whatever is given is an authority, be it the server's own certificate or an intermediate one.
        context.verify_flags |= _ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(context, settings.ca)
    else:
        _trust_system(context)
    if settings.cert:
        _show(context, settings.cert, settings.key)
    if settings.protocols:
        context._set_alpn_protocols(b"".join([bytes([len(name)]) + name for name in settings.protocols]))
    return context


def start_tls(plain: Stream, context: Any, host: str) -> Work[TlsStream]:
    """`host` is the name or address that the certificate must be for. On errors the stream is closed."""
    try:
        session = context._wrap_socket(plain.connection, False, host)
        while True:
            try:
                session.do_handshake()
            except (_ssl.SSLWantReadError, _ssl.SSLWantWriteError) as error:
                yield _wait(plain, error)
            else:
                return TlsStream(plain, session)
    except (OSError, ValueError, TypeError) as error:  # the latter two: a host name that is none
        plain.close()
        raise tls_fault(error) from error
    except BaseException:
        plain.close()
        raise


def _wait(stream: Stream, error: OSError) -> tuple[tuple[tuple[int, int]], float]:
    events = READABLE if isinstance(error, _ssl.SSLWantReadError) else WRITABLE
    return ((stream.connection.fileno(), events),), FOREVER


def _trust(context: Any, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))
    except (OSError, ValueError) as error:
        raise Untrusted(f"{_UNFIT} ({_name(error)})") from error


def _trust_system(context: Any) -> None:
    """The first bundle there is. Without any, every server is refused, which says why."""
    if hasattr(_ssl, "enum_certificates"):  # on Windows, which keeps them in a store
        for authority, encoding, uses in _ssl.enum_certificates("ROOT"):
            if encoding == "x509_asn" and (uses is True or _FOR_SERVERS in uses):
                context.load_verify_locations(cadata=authority)
    for path in (os.environ.get("SSL_CERT_FILE", ""), *SYSTEM_AUTHORITIES):
        try:
            os.close(open_regular(path))  # OpenSSL would wait for a pipe, and read a device without end
            context.load_verify_locations(path)
        except OSError:
            continue
        return


def _show(context: Any, cert: bytes, key: bytes) -> None:
    """Both in one file in memory, which has a path as long as it is open."""
    if not hasattr(os, "memfd_create"):
        _show_by_file(context, cert + b"\n" + key)
        return
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        left = memoryview(cert + b"\n" + key)
        while left:
            left = left[os.write(descriptor, left) :]
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", None, _no_password)
    except FileNotFoundError:
        raise Untrusted("a client certificate can only be used where /proc is mounted") from None
    except (OSError, ValueError) as error:
        raise Untrusted(f"{_UNFIT} ({_name(error)})") from error
    finally:
        os.close(descriptor)


def _show_by_file(context: Any, both: bytes) -> None:
    """On Windows, in a folder that is only our own user's (Python makes it so since 3.13)."""
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="tortie-") as folder:
            path = os.path.join(folder, "certificate")
            with open(path, "xb") as file:
                file.write(both)
            context.load_cert_chain(path, None, _no_password)
    except (OSError, ValueError) as error:
        raise Untrusted(f"{_UNFIT} ({_name(error)})") from error


def _no_password() -> str:
    """Without this OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted")


def tls_fault(error: Exception) -> Fault:
    """Why there is no session. `Untrusted`, unless the connection just broke."""
    name = _name(error)
    if isinstance(error, _ssl.SSLCertVerificationError):
        return Untrusted(f"{_SERVERS.get(error.verify_code, _UNKNOWN_AUTHORITY)} ({error.verify_message})")
    for part, fault in _FAULTS:
        if part in name:
            return Untrusted(f"{fault} ({name})")
    return Fault(f"TLS handshake failed: {name}")


def _broken(error: OSError) -> Fault:
    """Why a session ended. The server may have looked at the client's certificate only now."""
    name = _name(error)
    if "ALERT" in name:
        return tls_fault(error)
    return Fault(f"the connection broke: {name}")


def _name(error: Exception) -> str:
    """OpenSSL's short name, such as WRONG_VERSION_NUMBER, or the system's words."""
    if isinstance(error, _ssl.SSLEOFError | _ssl.SSLZeroReturnError):
        return "the other side ended it"
    if isinstance(error, _ssl.SSLError):
        return error.reason or str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
