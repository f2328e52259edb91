"""Header fields of HTTP/2 as octets and back (RFC 7541).

What we send is written in the plainest form that there is, without Huffman's code and without a memory. What comes is
read in every form.

Invariant: pure. Whatever octets come, reading ends, with fields or with ValueError.
"""

from __future__ import annotations

from adapters.wire.hpack_tables import CODE_LENGTHS, END_OF_STRING, STATIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Field: TypeAlias = tuple[bytes, bytes]
    """Name in small letters, value."""

TABLE_SIZE = 4096  # octets that the other side may have us remember
_ENTRY_OVERHEAD = 32
_INDEXED, _REMEMBERED, _RESIZED, _NEVER_INDEXED = 0x80, 0x40, 0x20, 0x10
_HUFFMAN = 0x80
_MOST_SHIFT = 28  # no length or index of ours has more bits


class BadHeaderBlock(ValueError):
    """Octets that are no header block."""


def encode(fields: Iterable[Field], secrets: Iterable[Field] = ()) -> bytes:
    """`secrets` are marked so that no proxy puts them into a table either."""
    places = _places or _fill_places()
    octets = bytearray()
    for field in fields:
        index = places.get(field, 0)
        octets += _integer(index, 7, _INDEXED) if index else _literal(field, places.get(field[0], 0), 0)
    for field in secrets:
        octets += _literal(field, places.get(field[0], 0), _NEVER_INDEXED)
    return bytes(octets)


_places: dict[Field | bytes, int] = {}  # indices of fields, and the first one of each name; filled when first needed


def _fill_places() -> dict[Field | bytes, int]:
    for index, field in enumerate(STATIC, 1):
        _places[field] = index
        _places.setdefault(field[0], index)
    return _places


def _literal(field: Field, index: int, form: int) -> bytes:
    """`index` is that of a field of the same name; 0 if there is none."""
    name, value = field
    return _integer(index, 4, form) + (b"" if index else _string(name)) + _string(value)


def _string(text: bytes) -> bytes:
    return _integer(len(text), 7, 0) + text


def _integer(number: int, bits: int, form: int) -> bytes:
    """In the low bits of an octet of that form, and as many more octets as it takes."""
    most = (1 << bits) - 1
    if number < most:
        return bytes((form | number,))
    octets = [form | most]
    number -= most
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes((*octets, number))


class Decoder:
    """Reads the blocks of one connection, in order, and remembers what they say is to be remembered."""

    def __init__(self) -> None:
        self._remembered: list[Field] = []  # the latest first
        self._size = 0
        self._limit = TABLE_SIZE

    def decode(self, block: bytes) -> list[Field]:
        """ValueError for what is no such block; the connection cannot go on then."""
        fields: list[Field] = []
        place = 0
        try:
            while place < len(block):
                form = block[place]
                if form & 0xE0 == _RESIZED and not fields:
                    place = self._resize(block, place)
                elif form & 0xE0 == _RESIZED:
                    raise BadHeaderBlock("a new size of the header table in the middle of a block")
                elif form & _INDEXED:
                    index, place = _read_integer(block, place, 7)
                    fields.append(self._entry(index))
                else:
                    field, place = self._read_literal(block, place)
                    fields.append(field)
        except IndexError:
            raise BadHeaderBlock("a header block is cut off") from None
        return fields

    def _read_literal(self, block: bytes, place: int) -> tuple[Field, int]:
        remembered = bool(block[place] & _REMEMBERED)
        index, place = _read_integer(block, place, 6 if remembered else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, place = _read_string(block, place)
        value, place = _read_string(block, place)
        if remembered:
            self._remember((name, value))
        return (name, value), place

    def _resize(self, block: bytes, place: int) -> int:
        self._limit, place = _read_integer(block, place, 5)
        if self._limit > TABLE_SIZE:
            raise BadHeaderBlock("a header table larger than allowed")
        self._forget()
        return place

    def _entry(self, index: int) -> Field:
        if not 0 < index <= len(STATIC) + len(self._remembered):
            raise BadHeaderBlock("a header field of no table")
        return STATIC[index - 1] if index <= len(STATIC) else self._remembered[index - len(STATIC) - 1]

    def _remember(self, field: Field) -> None:
        self._remembered.insert(0, field)
        self._size += len(field[0]) + len(field[1]) + _ENTRY_OVERHEAD
        self._forget()

    def _forget(self) -> None:
        while self._size > self._limit:
            name, value = self._remembered.pop()
            self._size -= len(name) + len(value) + _ENTRY_OVERHEAD


def _read_integer(block: bytes, place: int, bits: int) -> tuple[int, int]:
    """The number, and the place behind it. IndexError where the block ends too early."""
    most = (1 << bits) - 1
    number = block[place] & most
    place += 1
    if number < most:
        return number, place
    for shift in range(0, _MOST_SHIFT, 7):
        octet = block[place]
        place += 1
        number += (octet & 127) << shift
        if octet < 128:
            return number, place
    raise BadHeaderBlock("a number too large")


def _read_string(block: bytes, place: int) -> tuple[bytes, int]:
    coded = block[place] & _HUFFMAN
    size, place = _read_integer(block, place, 7)
    text = block[place : place + size]
    if len(text) < size:
        raise IndexError
    return (_decode_huffman(text) if coded else text), place + size


_symbols: dict[int, int] = {}  # by code with a 1 before it; filled when the first text needs it


def _decode_huffman(coded: bytes) -> bytes:
    symbols = _symbols or _fill_symbols()
    text = bytearray()
    code = 1
    for octet in coded:
        for shift in (7, 6, 5, 4, 3, 2, 1, 0):
            code = code << 1 | (octet >> shift & 1)
            symbol = symbols.get(code)
            if symbol is not None:
                if symbol == END_OF_STRING:
                    raise BadHeaderBlock("a coded text with its end inside")
                text.append(symbol)
                code = 1
    if code > 255 or code & (code + 1):  # up to seven bits of the end's code, which is all ones
        raise BadHeaderBlock("a coded text that ends in the middle")
    return bytes(text)


def _fill_symbols() -> dict[int, int]:
    code, length = -1, 0
    for symbol in sorted(range(len(CODE_LENGTHS)), key=CODE_LENGTHS.__getitem__):
        code = (code + 1) << (CODE_LENGTHS[symbol] - length)
        length = CODE_LENGTHS[symbol]
        _symbols[code | 1 << length] = symbol
    return _symbols
