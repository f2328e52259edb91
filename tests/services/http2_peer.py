"""The frames of HTTP/2 as a test writes and reads them, for either side.

frame(HEADERS, END_HEADERS, 1, block)      one frame
read_frames(octets)                        [(kind, flags, stream, payload), …] of whole frames
Played(octets, …)                          a stream that gives these pieces to a client, then ends or hangs
"""

from __future__ import annotations

from adapters.wire.hpack import encode

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE = 0, 1, 2, 3, 4, 5
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
OK = ((b":status", b"200"), (b"content-type", b"application/grpc"))


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")


def settings(**values: int) -> bytes:
    """`initial_window_size=…, max_frame_size=…`."""
    names = {"header_table_size": 1, "max_concurrent_streams": 3, "initial_window_size": 4, "max_frame_size": 5}
    return frame(SETTINGS, 0, 0, b"".join(number(names[name], 2) + number(value) for name, value in values.items()))


def headers(stream: int, fields=OK, flags: int = END_HEADERS) -> bytes:
    return frame(HEADERS, flags, stream, encode(fields))


def trailers(stream: int, status: int = 0, message: bytes = b"") -> bytes:
    fields = [(b"grpc-status", b"%d" % status), *([(b"grpc-message", message)] if message else [])]
    return headers(stream, fields, END_HEADERS | END_STREAM)


def refusal(stream: int, status: int, message: bytes = b"", http: bytes = b"200") -> bytes:
    """An answer that is nothing but a status."""
    fields = [(b":status", http), (b"grpc-status", b"%d" % status), (b"grpc-message", message)]
    return headers(stream, fields, END_HEADERS | END_STREAM)


def enveloped(message: bytes, flag: int = 0) -> bytes:
    """As gRPC puts it into a body."""
    return bytes((flag,)) + number(len(message)) + message


def answer(stream: int, message: bytes) -> bytes:
    return headers(stream) + frame(DATA, 0, stream, enveloped(message)) + trailers(stream)


def read_frames(octets: bytes) -> list[tuple[int, int, int, bytes]]:
    octets = octets.removeprefix(PREFACE)
    found = []
    while octets:
        size = int.from_bytes(octets[:3], "big")
        assert len(octets) >= 9 + size, "a frame is cut off"
        found.append((octets[3], octets[4], int.from_bytes(octets[5:9], "big"), octets[9 : 9 + size]))
        octets = octets[9 + size :]
    return found


class Played:
    """Like `adapters.wire.sockets.Stream`, without a socket: gives the pieces, then the end."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.sent = b""
        self.closed = 0

    def send(self, octets):
        self.sent += octets
        return
        yield

    def receive(self, limit: int = 65536):
        assert limit
        return self.pieces.pop(0) if self.pieces else b""
        yield

    def close(self) -> None:
        self.closed += 1
