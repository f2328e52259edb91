"""A readiness gate's URL, read as the original reads it.

Go's `url.ParseRequestURI` accepts an absolute URI or an absolute path. Only `http` and `https` can ever be fetched;
the others are accepted here and simply never become ready.

Invariant: `shown` never gives away a password.
"""

from __future__ import annotations

from domain.cni.go_quote import go_quoted
from domain.value import Value

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SCHEME = _LETTERS | frozenset("0123456789+-.")
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")
_HOST = _LETTERS | frozenset("0123456789-._~!$&'()*+,;=:%")
_USER = _LETTERS | frozenset("0123456789-._:~!$&'()*+,;=%@")
_FRAGMENT = ord("#")  # has no meaning in a request, so it is sent as a character of the path
_PORTS = {"http": 80, "https": 443}


class BadGateUrl(ValueError):
    """`str()` is Go's reason."""


class GateUrl(Value):
    """`port` is the scheme's when the text has none, 0 without a scheme that we know. `host` has no brackets.

    `target` is path and query, as they go into a request line; `user` is `name:password`, unescaped, or "".
    """

    scheme: str
    host: str
    port: int
    target: str
    user: str = ""

    @property
    def fetchable(self) -> bool:
        return self.scheme in _PORTS and self.host != ""

    @property
    def authority(self) -> str:
        """`host[:port]` as a `Host` header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS.get(self.scheme, 0) else f"{host}:{self.port}"


def parse_gate_url(text: str) -> GateUrl:
    """BadGateUrl `parse "<text>": <why>`, in Go's words, when it is neither an absolute URI nor an absolute path."""
    try:
        return _parsed(text)
    except ValueError as error:
        raise BadGateUrl(f"parse {go_quoted(shown(text))}: {error}") from None


def resolve_redirect(base: GateUrl, location: str) -> GateUrl:
    """Where a redirect leads to: another URL, a path on the same host, or a path beside the present one."""
    location = location.partition("#")[0]
    scheme, rest = _split_scheme(location)
    if scheme:
        return _parsed(location)
    if rest.startswith("//"):
        return _parsed(f"{base.scheme}:{rest}")
    if not rest.startswith("/"):
        path = base.target.partition("?")[0]
        rest = path + rest if rest[:1] in ("", "?") else path.rpartition("/")[0] + "/" + rest
    _refuse_controls(rest)
    return base.replace(target=_target(rest))


def shown(text: str) -> str:
    """The URL as it may be logged: a password is replaced."""
    scheme, separator, rest = text.partition("//")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not at:
        return text
    name, colon, _password = user.partition(":")
    return f"{scheme}{separator}{name}{':xxxxx' if colon else ''}@{host}{slash}{path}"


def _parsed(text: str) -> GateUrl:
    _refuse_controls(text)
    if not text:
        raise BadGateUrl("empty url")
    scheme, rest = _split_scheme(text)
    if not rest.startswith("/"):
        if scheme or text == "*":
            return GateUrl(scheme, "", 0, rest)
        raise BadGateUrl("invalid URI for request")
    if rest.startswith("///") or not rest.startswith("//"):
        return GateUrl(scheme, "", 0, _target(rest))
    place, mark, query = rest[2:].partition("?")
    authority, _, path = place.partition("/")
    user, _, host_and_port = authority.rpartition("@")
    if not _USER.issuperset(user):
        raise BadGateUrl("net/url: invalid userinfo")
    host, port = _host_and_port(host_and_port)
    target = _target(f"/{path}{mark}{query}")
    return GateUrl(scheme, host, int(port or _PORTS.get(scheme, 0)), target, _unescaped(user))


def _split_scheme(text: str) -> tuple[str, str]:
    """(scheme in lower case, the rest); no scheme when the text before the first colon cannot be one."""
    for place, character in enumerate(text):
        if character == ":":
            if place == 0:
                raise BadGateUrl("missing protocol scheme")
            return text[:place].lower(), text[place + 1 :]
        if character not in (_LETTERS if place == 0 else _SCHEME):
            break
    return "", text


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, tail = text[1:].partition("]")
        if not bracket:
            raise BadGateUrl("missing ']' in host")
        host = host.replace("%25", "%")  # the zone of a link-local address
    else:
        host, colon, port = text.partition(":")
        tail = colon + port
    digits = tail[1:]
    if tail and not (tail[0] == ":" and _DIGITS.issuperset(digits)):
        raise BadGateUrl(f"invalid port {go_quoted(tail)} after host")
    for character in host:
        if character not in _HOST:
            raise BadGateUrl(f"invalid character {go_quoted(character)} in host name")
    return host, digits


def _target(text: str) -> str:
    """Path and query as a request line can hold them. BadGateUrl for a bad escape in the path."""
    path = text.partition("?")[0]
    _unescaped(path)
    data = text.encode("utf-8", "replace")
    return "".join([chr(byte) if 0x21 <= byte < 0x7F and byte != _FRAGMENT else f"%{byte:02X}" for byte in data])


def _unescaped(text: str) -> str:
    """BadGateUrl for a percent sign that begins no escape."""
    first, *escaped = text.split("%")
    data = first.encode("utf-8", "replace")
    for part in escaped:
        if len(part) < 2 or not _HEX.issuperset(part[:2]):
            raise BadGateUrl(f"invalid URL escape {go_quoted('%' + part[:2])}")
        data += bytes([int(part[:2], 16)]) + part[2:].encode("utf-8", "replace")
    return data.decode("utf-8", "replace")


def _refuse_controls(text: str) -> None:
    if any(character < " " or character == "\x7f" for character in text):
        raise BadGateUrl("net/url: invalid control character in URL")
