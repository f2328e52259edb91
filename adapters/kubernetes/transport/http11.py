"""HTTP/1.1 as a client of one server needs it: a request as octets, an answer from octets. No input or output here.

`http.client` costs more to load than an ADD; what it does beyond this is not needed.

Invariant: an answer is complete or an error; what follows it on the connection is left for the next one. Whatever
comes, no more than `MOST` octets of an answer are kept.
"""

from __future__ import annotations

from adapters.kubernetes.transport.seam import HttpAnswer
from adapters.wire.faults import Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST = 1 << 28
"""Octets of one answer's body."""

_LONGEST_HEAD = 1 << 20
_MOST_HEADERS = 1000
_MOST_REMARKS = 100
_WITHOUT_BODY = (204, 304)
TOO_LARGE = f"an answer of more than {MOST >> 20} MiB"


class CutOff(Fault):
    """The connection ended before the answer did."""


class Garbled(Fault):
    """What came is no HTTP."""


class TooLarge(Fault):
    """More came than any answer has."""


class LineBreak(ValueError):
    """What would be more than one line in a request stands where one is meant."""


def request_octets(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """ValueError for what would be more than one line in a line."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers]]
    if body or method not in ("GET", "HEAD", "DELETE"):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\r") != len(lines) - 1 or head.count("\n") != len(lines) - 1:
        raise LineBreak("a line break in a request's line or header")
    return head.encode("utf-8", "replace") + b"\r\n\r\n" + body


class Reader:
    """Answers, one after the other. `receive` gives the next octets, b"" at the end of the connection."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._held = bytearray()

    def answer(self, method: str) -> tuple[HttpAnswer, bool]:
        """The answer to a request of that method, and whether another may follow on the connection."""
        for _ in range(_MOST_REMARKS):
            status, version, headers = self._head()
            if not 100 <= status < 200:  # else a remark that precedes the answer
                break
        else:
            raise Garbled("remarks without end come in place of an answer")
        keep = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        if method == "HEAD" or status in _WITHOUT_BODY or (method == "CONNECT" and status < 300):
            return HttpAnswer(status, b"", headers), keep
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return HttpAnswer(status, self._chunks(), headers), keep
        if "content-length" in headers:
            return HttpAnswer(status, self._exactly(_number(headers["content-length"], 10)), headers), keep
        return HttpAnswer(status, self._rest(), headers), False

    def unread(self) -> bytes:
        """What came behind the last answer."""
        return bytes(self._held)

    def _head(self) -> tuple[int, str, dict[str, str]]:
        lines = self._until(b"\r\n\r\n", _LONGEST_HEAD).decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        status = rest.partition(" ")[0]  # three digits; what follows is for people
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (status.isascii() and status.isdigit() and len(status) == 3):
            raise Garbled("what answers there does not speak HTTP")
        if len(lines) > _MOST_HEADERS:
            raise Garbled(f"the answer has more than {_MOST_HEADERS} headers")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return int(status), version, headers

    def _chunks(self) -> bytearray:
        body = bytearray()
        while size := _number(self._until(b"\r\n", _LONGEST_HEAD).partition(b";")[0].decode("latin-1"), 16):
            body += self._exactly(size, most=MOST - len(body))
            if self._exactly(2) != b"\r\n":
                raise Garbled("a piece of the answer has not the length that it says")
        for _ in range(_MOST_HEADERS):
            if not self._until(b"\r\n", _LONGEST_HEAD):
                return body
        raise Garbled(f"the answer has more than {_MOST_HEADERS} trailing headers")

    def _until(self, mark: bytes, most: int) -> bytes:
        """What stands before a mark; the mark is taken away, too."""
        searched = 0
        while (at := self._held.find(mark, searched)) < 0:
            searched = max(0, len(self._held) - len(mark) + 1)
            if len(self._held) > most:
                raise Garbled("a line of the answer has no end")
            if self._held and not b"HTTP/1.".startswith(self._held[:7]) and mark == b"\r\n\r\n":
                raise Garbled("what answers there does not speak HTTP")
            self._more()
        found = bytes(self._held[:at])
        del self._held[: at + len(mark)]
        return found

    def _exactly(self, length: int, most: int = MOST) -> bytearray:
        if length > most:
            raise TooLarge(TOO_LARGE)
        while len(self._held) < length:
            self._more()
        if len(self._held) == length:  # as of most answers: no second copy of what may be large
            found, self._held = self._held, bytearray()
            return found
        found = self._held[:length]
        del self._held[:length]
        return found

    def _rest(self) -> bytearray:
        while octets := self._receive():
            self._held += octets
            if len(self._held) > MOST:
                raise TooLarge(TOO_LARGE)
        found, self._held = self._held, bytearray()
        return found

    def _more(self) -> None:
        octets = self._receive()
        if not octets:
            raise CutOff("the server ended the connection before its answer was complete")
        self._held += octets


def _number(text: str, base: int) -> int:
    digits = text.strip(" \t")
    allowed = "0123456789abcdefABCDEF"[: 10 if base == 10 else 22]
    if not digits or len(digits) > 16 or any(one not in allowed for one in digits):
        raise Garbled("a length in the answer is no number")
    return int(digits, base)
