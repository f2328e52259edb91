"""Messages as octets, compared with those of the protobuf library, and octets that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.etcdv3 import messages
from adapters.etcdv3.etcd_api_pb2 import AuthenticateRequest, AuthenticateResponse, TxnRequest, TxnResponse
from adapters.wire.protobuf import delimited, fields, integer, message, number, octets, signed, text

octets_of = st.binary(max_size=300)
revision = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63 - 1, -1, -(2**63)])
def test_numbers_survive(value):
    assert [(field, signed(item)) for field, item in fields(number(5, value, present=True))] == [(5, value)]


def test_defaults_are_not_written_unless_they_have_to_be_present():
    assert (number(1, 0), octets(1, b""), text(1, "")) == (b"", b"", b"")
    assert (number(1, 0, present=True), octets(2, b"", present=True), message(3)) == (
        b"\x08\x00",
        b"\x12\x00",
        b"\x1a\x00",
    )


def test_fields_of_a_fixed_size_are_passed_over():
    """Not taken for texts: a library, too, keeps them apart from the members of that number."""
    assert [(field, bytes(value)) for field, value in fields(b"\x0d1234\x0a\x01a\x1112345678")] == [(1, b"a")]


@pytest.mark.parametrize(
    ("octets", "fault"),
    [
        (b"\x00\x00", "without a number"),
        (b"\x0b", "unknown kind"),
        (b"\x0a\x05abc", "cut off"),
        (b"\x0d123", "cut off"),
        (b"\x08", "cut off"),
        (b"\x08\xff", "cut off"),
        (b"\x08" + b"\xff" * 11, "too large"),
    ],
)
def test_what_is_no_message_is_told(octets, fault):
    with pytest.raises(ValueError, match=fault):
        list(fields(octets))


def test_a_field_of_another_kind_than_meant_is_told():
    with pytest.raises(ValueError, match="should be a number"):
        integer(memoryview(b"1"))
    with pytest.raises(ValueError, match="should not be a number"):
        delimited(1)


@given(octets_of)
def test_whatever_comes_reading_ends(source):
    try:
        size = sum(1 for _ in fields(source))
    except ValueError:
        return
    assert size <= len(source)


@given(octets_of, octets_of, octets_of, revision)
def test_requests_are_those_of_the_library(key, end, value, at):
    for written, meant in (
        (
            messages.transaction((), (messages.get(key, end), messages.get(value))),
            {"success": [{"request_range": {"key": key, "range_end": end}}, {"request_range": {"key": value}}]},
        ),
        (
            messages.transaction((messages.absent(key),), (messages.put(key, value),), (messages.get(key),)),
            {
                "compare": [{"key": key, "target": 0, "version": 0}],
                "success": [{"request_put": {"key": key, "value": value}}],
                "failure": [{"request_range": {"key": key}}],
            },
        ),
        (
            messages.transaction((messages.unchanged(key, at),), (messages.delete(key),)),
            {
                "compare": [{"key": key, "target": 2, "mod_revision": at}],
                "success": [{"request_delete_range": {"key": key}}],
            },
        ),
    ):
        assert TxnRequest.FromString(written) == TxnRequest(**meant)
        assert written == TxnRequest(**meant).SerializeToString(deterministic=True)


@given(st.text(max_size=20), st.text(max_size=20))
def test_credentials_and_tokens_are_those_of_the_library(user, password):
    meant = AuthenticateRequest(name=user, password=password)
    assert messages.credentials(user, password) == meant.SerializeToString(deterministic=True)
    assert messages.read_token(AuthenticateResponse(token=user).SerializeToString()) == user


rows = st.lists(st.tuples(octets_of, octets_of, revision), max_size=4)


@given(st.booleans(), revision, st.lists(rows, max_size=4), st.integers(0, 2**63 - 1))
def test_answers_of_the_library_are_read(succeeded, at, ranges, deleted):
    responses = [
        {"response_range": {"kvs": [{"key": key, "value": value, "mod_revision": row} for key, value, row in one]}}
        for one in ranges
    ]
    answer = TxnResponse(
        header={"revision": at},
        succeeded=succeeded,
        responses=[*responses, {"response_delete_range": {"deleted": deleted}}],
    )
    done = messages.read_done(answer.SerializeToString())
    assert (done.succeeded, done.revision, done.deleted) == (succeeded, at, deleted)
    assert list(done.rows) == ranges


@given(octets_of)
def test_whatever_answer_comes_reading_it_ends(source):
    for read in (messages.read_done, messages.read_token):
        try:
            read(source)
        except ValueError:
            continue
