"""The client's side of HTTP/2 (RFC 9113), one exchange after the other; octets in, octets out.

There is no socket in here: what came is given to `feed`, what is to be sent is taken by `take`. Server push, priorities
and upgrades are not for us and are declined or left unread.

Invariant: never is more sent than the other side's windows hold, nor more kept than `MOST`; whatever comes, reading
goes on, or ends with `Fault`.
"""

from __future__ import annotations

from adapters.wire.faults import Fault
from adapters.wire.hpack import Decoder, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.wire.hpack import Field

MOST = 1 << 28  # octets of one answer
NO_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 7, 8, 11

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PUSH_PROMISE = 0, 1, 3, 4, 5
_PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_ENABLE_PUSH, _INITIAL_WINDOW_SIZE, _MAX_FRAME_SIZE = 2, 4, 5
_DEFAULT_WINDOW, _LARGEST_WINDOW = 65535, 2**31 - 1
_DEFAULT_FRAME, _LARGEST_FRAME = 16384, 2**24 - 1
_WINDOW = 1 << 30  # octets that the other side may send before it hears of us
_CREDIT_AFTER = 1 << 20  # octets that we wait for before it does
_LONGEST_REASON = 500  # octets of a server's own text that are passed on
_LONGEST_BLOCK = 1 << 18  # octets of one block of header fields
_NOT_HTTP2 = "the server does not speak HTTP/2 there; is https meant instead of http?"


class Exchange:
    """One request and what has come of it so far.

    `fields` are the answer's, once they are here; `trailers` those behind its body, or the very same where there is
    neither body nor end behind them. `ended`: nothing more will come, because the answer is complete, or because the
    server has given it up with the HTTP/2 error `code`. `untouched`: it says that it has done nothing.
    """

    def __init__(self, number: int, body: bytes, window: int) -> None:
        self.number = number
        self.fields: list[Field] | None = None
        self.trailers: list[Field] = []
        self.body = bytearray()
        self.ended = False
        self.code: int | None = None
        self.untouched = False
        self.unsent = memoryview(body)
        self.window = window


class Http2:
    """The state of one connection."""

    def __init__(self) -> None:
        settings = _setting(_ENABLE_PUSH, 0) + _setting(_INITIAL_WINDOW_SIZE, _WINDOW)
        self._out = bytearray(_PREFACE + _frame(_SETTINGS, 0, 0, settings))
        self._out += _frame(_WINDOW_UPDATE, 0, 0, (_WINDOW - _DEFAULT_WINDOW).to_bytes(4, "big"))
        self._in = bytearray()
        self._decoder = Decoder()
        self._settled = False
        self._exchange = Exchange(-1, b"", 0)
        self._block: tuple[int, bool, bytearray] | None = None
        self._window = self._initial_window = _DEFAULT_WINDOW
        self._frame_size = _DEFAULT_FRAME
        self._uncredited = 0
        self.leaving = ""
        """Why the server takes no more requests on this connection, if it does not."""

    def begin(self, fields: Sequence[Field], body: bytes, secrets: Sequence[Field] = ()) -> Exchange:
        """The one before must have ended. The body is not empty."""
        exchange = self._exchange = Exchange(self._exchange.number + 2, body, self._initial_window)
        block = encode(fields, secrets)
        flags, first, rest = _END_HEADERS, block, b""
        if len(block) > self._frame_size:
            flags, first, rest = 0, block[: self._frame_size], block[self._frame_size :]
        self._out += _frame(_HEADERS, flags, exchange.number, first)
        while rest:
            piece, rest = rest[: self._frame_size], rest[self._frame_size :]
            self._out += _frame(_CONTINUATION, 0 if rest else _END_HEADERS, exchange.number, piece)
        self._send_body()
        return exchange

    def take(self) -> bytes:
        """What is to be sent now."""
        out, self._out = bytes(self._out), bytearray()
        return out

    def feed(self, octets: bytes) -> None:
        """`Fault` if the connection is of no use any more."""
        self._in += octets
        if not self._settled and not _may_be_settings(self._in):
            raise Fault(_NOT_HTTP2)
        place = 0
        while len(self._in) - place >= 9:
            size = int.from_bytes(self._in[place : place + 3], "big")
            if size > _DEFAULT_FRAME:
                raise Fault("HTTP/2: a frame that is too large")
            if len(self._in) - place < 9 + size:
                break
            header, payload = self._in[place : place + 9], bytes(self._in[place + 9 : place + 9 + size])
            place += 9 + size
            self._read(header[3], header[4], int.from_bytes(header[5:9], "big") & _LARGEST_WINDOW, payload)
        del self._in[:place]

    def _read(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Frames of a kind that nobody knows are left unread."""
        if (self._block is not None) is not (kind == _CONTINUATION):
            raise Fault("HTTP/2: a header block that is not whole")
        reader = self._READERS.get(kind)
        if reader is not None:
            reader(self, flags, stream, payload)

    def _read_data(self, flags: int, stream: int, payload: bytes) -> None:
        exchange = self._exchange
        if stream == exchange.number and not exchange.ended:
            if exchange.fields is None:
                raise Fault("HTTP/2: a body before its header")
            exchange.body += _unpadded(flags, payload)
            if len(exchange.body) > MOST:
                raise Fault("HTTP/2: an answer that is too large")
            if flags & _END_STREAM:
                self._end()
        self._uncredited += len(payload)
        if self._uncredited >= _CREDIT_AFTER:
            credit = self._uncredited.to_bytes(4, "big")
            self._out += _frame(_WINDOW_UPDATE, 0, 0, credit)
            if not exchange.ended:
                self._out += _frame(_WINDOW_UPDATE, 0, exchange.number, credit)
            self._uncredited = 0

    def _read_headers(self, flags: int, stream: int, payload: bytes) -> None:
        text = _unpadded(flags, payload)
        block = bytearray(text[5:] if flags & _PRIORITY else text)
        self._continue_block(flags, (stream, bool(flags & _END_STREAM), block))

    def _read_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._block is None or stream != self._block[0]:
            raise Fault("HTTP/2: a header block that is not whole")
        self._block[2].extend(payload)
        self._continue_block(flags, self._block)

    def _continue_block(self, flags: int, block: tuple[int, bool, bytearray]) -> None:
        if len(block[2]) > _LONGEST_BLOCK:
            raise Fault("HTTP/2: a header that is too large")
        self._block = None if flags & _END_HEADERS else block
        if self._block is None:
            self._read_block(*block)

    def _read_block(self, stream: int, ends: bool, block: bytearray) -> None:
        """Blocks of exchanges that nobody waits for change the decoder's memory, too."""
        try:
            fields = self._decoder.decode(bytes(block))
        except ValueError as error:
            raise Fault(f"HTTP/2: {error}") from error
        exchange = self._exchange
        if stream != exchange.number or exchange.ended:
            return
        if exchange.fields is None and not ends and _is_interim(fields):
            return
        if exchange.fields is None:
            exchange.fields = fields
        if ends:
            exchange.trailers = fields
            self._end()

    def _end(self, *, untouched: bool = False) -> None:
        exchange = self._exchange
        exchange.ended, exchange.untouched = True, untouched
        if exchange.unsent and exchange.code is None:  # the server has answered before it heard everything
            self._out += _frame(_RST_STREAM, 0, exchange.number, CANCEL.to_bytes(4, "big"))
        exchange.unsent = memoryview(b"")

    def _read_settings(self, flags: int, _stream: int, payload: bytes) -> None:
        self._settled = True
        if flags & _ACK:
            return
        if len(payload) % 6:
            raise Fault("HTTP/2: settings of the wrong size")
        for place in range(0, len(payload), 6):
            name = int.from_bytes(payload[place : place + 2], "big")
            value = int.from_bytes(payload[place + 2 : place + 6], "big")
            if name == _INITIAL_WINDOW_SIZE:
                self._exchange.window += value - self._initial_window
                self._initial_window = value
            elif name == _MAX_FRAME_SIZE:
                self._frame_size = min(max(value, _DEFAULT_FRAME), _LARGEST_FRAME)
        self._out += _frame(_SETTINGS, _ACK, 0, b"")
        self._require_windows()
        self._send_body()

    def _read_ping(self, flags: int, _stream: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise Fault("HTTP/2: a ping of the wrong size")
        if not flags & _ACK:
            self._out += _frame(_PING, _ACK, 0, payload)

    def _read_reset(self, _flags: int, stream: int, payload: bytes) -> None:
        if stream == self._exchange.number and not self._exchange.ended:
            self._exchange.code = int.from_bytes(payload[:4], "big")
            self._end(untouched=self._exchange.code == REFUSED_STREAM)

    def _read_push(self, _flags: int, _stream: int, _payload: bytes) -> None:
        raise Fault("HTTP/2: a push that was declined")

    def _read_goaway(self, _flags: int, _stream: int, payload: bytes) -> None:
        """An exchange that the server has begun to look at goes on."""
        last = int.from_bytes(payload[:4], "big") & _LARGEST_WINDOW
        reason = payload[8:_LONGEST_REASON].decode("utf-8", "replace").strip()
        self.leaving = f"the server ends the connection{': ' + reason if reason.isprintable() and reason else ''}"
        if last < self._exchange.number and not self._exchange.ended:
            self._exchange.code = int.from_bytes(payload[4:8], "big")
            self._end(untouched=True)

    def _read_window(self, _flags: int, stream: int, payload: bytes) -> None:
        more = int.from_bytes(payload[:4], "big") & _LARGEST_WINDOW
        if stream == 0:
            self._window += more
        elif stream == self._exchange.number:
            self._exchange.window += more
        self._require_windows()
        self._send_body()

    def _require_windows(self) -> None:
        if max(self._window, self._exchange.window, self._initial_window) > _LARGEST_WINDOW:
            raise Fault("HTTP/2: a window that is too large")

    def _send_body(self) -> None:
        """As much as the windows hold. The last piece ends the request."""
        exchange = self._exchange
        while exchange.unsent:
            size = min(len(exchange.unsent), self._window, exchange.window, self._frame_size)
            if size <= 0:
                return
            piece, exchange.unsent = exchange.unsent[:size], exchange.unsent[size:]
            self._window -= size
            exchange.window -= size
            self._out += _frame(_DATA, 0 if exchange.unsent else _END_STREAM, exchange.number, bytes(piece))

    _READERS = {
        _DATA: _read_data,
        _HEADERS: _read_headers,
        _RST_STREAM: _read_reset,
        _SETTINGS: _read_settings,
        _PUSH_PROMISE: _read_push,
        _PING: _read_ping,
        _GOAWAY: _read_goaway,
        _WINDOW_UPDATE: _read_window,
        _CONTINUATION: _read_continuation,
    }


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _setting(name: int, value: int) -> bytes:
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def _may_be_settings(octets: bytearray) -> bool:
    """Whether these can be the first of a connection."""
    return len(octets) < 5 or (octets[3] == _SETTINGS and octets[4] == 0 and octets[0] == 0)


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & _PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Fault("HTTP/2: a frame with more padding than octets")
    return payload[1 : len(payload) - payload[0]]


def _is_interim(fields: list[Field]) -> bool:
    """Whether a header announces that the real one is still to come (status 1xx)."""
    return any(name == b":status" and value.startswith(b"1") for name, value in fields)
