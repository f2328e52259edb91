"""Header fields as octets: the examples of RFC 7541's appendix C, round trips, and octets that mean nothing."""

from __future__ import annotations

from fractions import Fraction

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.hpack import TABLE_SIZE, Decoder, encode
from adapters.wire.hpack_tables import CODE_LENGTHS, STATIC

FIRST = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
SECOND = [*FIRST, (b"cache-control", b"no-cache")]
THIRD = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":path", b"/index.html"),
    (b":authority", b"www.example.com"),
    (b"custom-key", b"custom-value"),
]
ONE_FIELD = {  # C.2
    "400a637573746f6d2d6b65790d637573746f6d2d686561646572": (b"custom-key", b"custom-header"),
    "040c2f73616d706c652f70617468": (b":path", b"/sample/path"),
    "100870617373776f726406736563726574": (b"password", b"secret"),
    "82": (b":method", b"GET"),
}
REQUESTS = {  # C.3 and C.4: the same three without and with Huffman's code
    "plain": (
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ),
    "coded": (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
}
octets = st.binary(max_size=60)
field = st.tuples(
    st.one_of(st.sampled_from([name for name, _ in STATIC]), octets), st.one_of(octets, st.just(b"x" * 300))
)


@pytest.mark.parametrize(("block", "meant"), ONE_FIELD.items())
def test_fields_of_each_form_are_read(block, meant):
    assert Decoder().decode(bytes.fromhex(block)) == [meant]


@pytest.mark.parametrize("form", REQUESTS)
def test_what_an_earlier_block_said_is_remembered(form):
    decoder = Decoder()
    assert [decoder.decode(bytes.fromhex(block)) for block in REQUESTS[form]] == [FIRST, SECOND, THIRD]


def test_the_oldest_are_forgotten_where_there_is_room_for_few():
    """As in C.5, where the table has 256 octets: the fourth field of the first answer has pushed none out."""
    decoder = Decoder()
    decoder.decode(bytes.fromhex("3fe101"))  # a size of 256
    date = "4d6f6e2c203231204f637420323031332032303a31333a323120474d54"
    place = "68747470733a2f2f7777772e6578616d706c652e636f6d"
    answers = f"480333303258077072697661746561 1d{date}6e17{place}", "4803333037c1c0bf"
    first, second = [decoder.decode(bytes.fromhex(answer)) for answer in answers]
    assert [value for _, value in first] == [
        *(b"302", b"private", b"Mon, 21 Oct 2013 20:13:21 GMT", b"https://www.example.com")
    ]
    assert second == [(b":status", b"307"), *first[1:]]
    with pytest.raises(ValueError, match="of no table"):
        decoder.decode(b"\xc2")  # the fifth back: `:status 302` is gone


def test_the_code_is_complete_and_so_reads_every_string_of_bits():
    assert sum(Fraction(1, 1 << length) for length in CODE_LENGTHS) == 1
    assert len(CODE_LENGTHS) == 257
    assert len(STATIC) == 61


@given(st.lists(field, max_size=6), st.lists(field, max_size=2))
def test_what_is_written_is_read(fields, secrets):
    assert Decoder().decode(encode(fields, secrets)) == fields + secrets


@given(st.lists(field, max_size=6), st.lists(field, max_size=2))
def test_what_is_written_the_library_reads(fields, secrets):
    decoder = hpack.Decoder(max_header_list_size=1 << 24)
    assert decoder.decode(encode(fields, secrets), raw=True) == fields + secrets


@given(st.lists(st.lists(field, max_size=6), max_size=4), st.booleans())
def test_what_the_library_writes_is_read(blocks, huffman):
    """It remembers fields from one block to the next, and uses Huffman's code."""
    encoder, decoder = hpack.Encoder(), Decoder()
    for fields in blocks:
        assert decoder.decode(encoder.encode(fields, huffman=huffman)) == fields


def test_secrets_are_marked_to_be_in_no_table():
    assert encode((), [(b"token", b"abc")]) == b"\x10\x05token\x03abc"


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("80", "of no table"),
        ("ff9f00", "of no table"),
        ("3fe21f", "larger than allowed"),
        ("8220", "in the middle of a block"),
        ("ffffffffffff", "too large"),
        ("40", "cut off"),
        ("400a6375", "cut off"),
        ("0085ffffffffff00", "its end inside"),
        ("0082fefe00", "ends in the middle"),
        ("0081ff00", "ends in the middle"),
    ],
)
def test_what_is_no_block_is_told(block, fault):
    with pytest.raises(ValueError, match=fault):
        Decoder().decode(bytes.fromhex(block))


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_whatever_comes_reading_ends(blocks):
    decoder = Decoder()
    for block in blocks:
        try:
            decoder.decode(block)
        except ValueError:
            return
        assert decoder._size <= TABLE_SIZE
