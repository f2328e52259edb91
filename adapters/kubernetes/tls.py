"""TLS as every transport to a kube-apiserver wants it, on whatever context it has: `ssl`'s or the C module's own.

Version 1.2 or newer, HTTP/1.1, and a certificate that chains to a given authority (or is one: Go takes a server's own
certificate for an authority, so we do, too) and names the host; a common name does not count. OpenSSL does the checks.

Invariant: keys are never written to a disk, and nobody is asked for a passphrase.
"""

from __future__ import annotations

import _ssl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.settings import Tls

_SYSTEM_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_…
_UNKNOWN_ISSUER = (18, 19, 20, 21)
_OTHER_HOST = (62, 64)
_BROKEN = (_ssl.SSLEOFError, _ssl.SSLZeroReturnError, _ssl.SSLSyscallError)
_BROKEN_REASONS = ("BAD_RECORD_MAC", "DECRYPT", "INTERNAL_ERROR", "UNEXPECTED_EOF")
_FAULTS = (  # a part of OpenSSL's reason, and what an operator has to know
    ("CERTIFICATE_VERIFY_FAILED", "certificate problem: the server's certificate cannot be verified"),
    ("UNKNOWN_CA", "certificate problem: the server does not accept the client's certificate"),
    ("CERTIFICATE", "certificate problem: the server does not accept the client's certificate, or wants one"),
    ("ACCESS_DENIED", "certificate problem: the server does not accept the client's certificate"),
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS there; is http meant instead of https?"),
    ("RECORD_LAYER_FAILURE", "the server does not speak TLS there; is http meant instead of https?"),
    ("HTTP_REQUEST", "the server does not speak TLS there; is http meant instead of https?"),
    ("PROTOCOL", "no agreement on a version or a cipher of TLS"),
    ("HANDSHAKE_FAILURE", "no agreement on a version or a cipher of TLS"),
    ("CIPHER", "no agreement on a version or a cipher of TLS"),
    ("SECURITY", "no agreement on a version or a cipher of TLS"),
)


def configure(context: Any, tls: Tls) -> None:
    """Of an `_ssl._SSLContext`. ValueError says which certificate or key cannot be used."""
    context.minimum_version = _ssl.PROTO_TLSv1_2
    context.options |= _ssl.OP_NO_COMPRESSION
    context._host_flags |= _ssl.HOSTFLAG_NEVER_CHECK_SUBJECT
    context._set_alpn_protocols(b"\x08http/1.1")
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = _ssl.CERT_NONE
    else:
        context.verify_flags |= _ssl.VERIFY_X509_PARTIAL_CHAIN
        _load_authorities(context, tls.ca)
    if tls.cert:
        _load_identity(context, tls)


def is_fault(error: BaseException) -> bool:
    """Whether the two sides cannot talk, as against a connection that broke."""
    if not isinstance(error, _ssl.SSLError) or isinstance(error, _BROKEN):
        return False
    reason = error.reason or ""
    return not any(part in reason for part in _BROKEN_REASONS)


def explain(error: Any) -> str:
    """What an operator has to know of an error for which `is_fault` holds."""
    code = getattr(error, "verify_code", 0)
    if code in (_EXPIRED, _NOT_YET):
        when = "has expired" if code == _EXPIRED else "is not valid yet"
        return f"certificate problem: a certificate of the server {when}"
    if code in _UNKNOWN_ISSUER:
        return "certificate problem: the server's certificate is not signed by the given authority"
    if code in _OTHER_HOST:
        return "certificate problem: the server's certificate is not for this host name"
    reason = error.reason or ""
    for part, fault in _FAULTS:
        if part in reason:
            return f"{fault} ({getattr(error, 'verify_message', '') or reason.lower().replace('_', ' ')})"
    return f"TLS failed ({reason.lower().replace('_', ' ') or error})"


def _load_authorities(context: Any, ca: bytes) -> None:
    if ca:
        try:
            context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))
        except _ssl.SSLError as error:
            raise ValueError(f"the certificate authority cannot be read ({error.reason})") from None
        return
    context.set_default_verify_paths()
    if context.cert_store_stats()["x509"]:
        return
    for path in _SYSTEM_AUTHORITIES:  # not where this OpenSSL was told to look when it was built
        try:
            context.load_verify_locations(path)
        except OSError:
            continue
        return


def _load_identity(context: Any, tls: Tls) -> None:
    """OpenSSL reads certificate and key from files only, so they get one in memory."""
    handle = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        os.write(handle, tls.cert + b"\n" + tls.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}", password=_no_passphrase)
    except _ssl.SSLError as error:
        why = "do not belong together" if "MISMATCH" in (error.reason or "") else "cannot be read"
        raise ValueError(f"certificate problem: the client's certificate and key {why} ({error.reason})") from None
    finally:
        os.close(handle)


def _no_passphrase() -> str:
    return ""
