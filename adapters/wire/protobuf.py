"""The wire format of Protocol Buffers, as much of it as messages of numbers, texts and messages need.

Invariant: pure. Defaults (0, false, empty) are not written, as proto3 has it; whatever octets come, reading ends, with
fields or with ValueError.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Octets: TypeAlias = bytes | memoryview

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_WRAP = 1 << 64


class BadMessage(ValueError):
    """Octets that are no message, or not the one that is meant."""


def number(field: int, value: int, *, present: bool = False) -> bytes:
    """A field of an integer or boolean type; not of those that zigzag or have a fixed size.

    One of a oneof or of a repetition is `present` even as its default.
    """
    return _varint(field << 3) + _varint(value % _WRAP) if value or present else b""


def octets(field: int, value: bytes, *, present: bool = False) -> bytes:
    """A field of bytes, string or message type."""
    return _varint(field << 3 | _DELIMITED) + _varint(len(value)) + value if value or present else b""


def text(field: int, value: str) -> bytes:
    """ValueError for what is not Unicode."""
    return octets(field, value.encode())


def message(field: int, *parts: bytes) -> bytes:
    return octets(field, b"".join(parts), present=True)


def _varint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def fields(source: Octets) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field, in order: an int for integers, else the octets. ValueError at the faulty one.

    Fields of a fixed size are passed over, as a library passes over what a message does not have: none of ours has any.
    """
    view = memoryview(source)
    place, end = 0, len(view)
    while place < end:
        tag, place = _read_varint(view, place)
        kind = tag & 7
        if not 0 < tag >> 3 < 1 << 29:
            raise BadMessage("a field without a number")
        if kind == _VARINT:
            value, place = _read_varint(view, place)
            yield tag >> 3, value
            continue
        if kind == _DELIMITED:
            size, place = _read_varint(view, place)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise BadMessage("a field of an unknown kind")
        if size > end - place:
            raise BadMessage("a message that is cut off")
        if kind == _DELIMITED:
            yield tag >> 3, view[place : place + size]
        place += size


def signed(value: int | memoryview) -> int:
    """An int64 or int32 field as read. ValueError for one that is no integer."""
    unsigned = integer(value)
    return unsigned - _WRAP if unsigned >> 63 else unsigned


def integer(value: int | memoryview) -> int:
    """ValueError for a field that is no integer."""
    if isinstance(value, int):
        return value
    raise BadMessage("a field that should be a number")


def delimited(value: int | memoryview) -> memoryview:
    """ValueError for a field that has no octets."""
    if isinstance(value, int):
        raise BadMessage("a field that should not be a number")
    return value


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = 0
    try:
        for shift in range(0, 70, 7):
            octet = view[place]
            place += 1
            value |= (octet & 127) << shift
            if octet < 128:
                return value % _WRAP, place
    except IndexError:
        raise BadMessage("a message that is cut off") from None
    raise BadMessage("a number too large")
