"""Answers of name servers, as octets: the ones to take, the ones to leave."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.etcdv3.discovery import _question, _Unanswered, name_servers, parse_answer
from ports.errors import BadConfiguration, Unavailable

NAME = "_etcd-client._tcp.example"


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(data, *, type=33, owner=b"\xc0\x0c"):
    return owner + type.to_bytes(2, "big") + b"\0\1\0\0\0\x3c" + len(data).to_bytes(2, "big") + data


def srv(priority, weight, port, host):
    numbers = b"".join(number.to_bytes(2, "big") for number in (priority, weight, port))
    return record(numbers + (host if isinstance(host, bytes) else encoded(host)))


def answer(question, *records, code=0):
    flags = (0x8180 | code).to_bytes(2, "big")
    return (
        question[:2]
        + flags
        + b"\0\1"
        + len(records).to_bytes(2, "big")
        + b"\0\0\0\0"
        + question[12:]
        + b"".join(records)
    )


@pytest.fixture
def question():
    return _question(NAME)


def test_records_give_priority_weight_port_and_host(question):
    found = parse_answer(answer(question, srv(1, 2, 2379, "a.example"), srv(3, 4, 2380, "b.example")), question)
    assert found == [(1, 2, 2379, "a.example"), (3, 4, 2380, "b.example")]


def test_names_may_point_to_earlier_ones(question):
    place = question.index(b"\x07example")
    host = b"\1a" + bytes([0xC0, place])
    assert parse_answer(answer(question, srv(1, 1, 1, host)), question) == [(1, 1, 1, "a.example")]


def test_records_of_other_types_are_left_out(question):
    assert parse_answer(answer(question, record(encoded("x"), type=5), srv(1, 1, 1, "a")), question) == [(1, 1, 1, "a")]


def test_a_name_that_is_not_there_has_no_records(question):
    assert parse_answer(answer(question, code=3), question) == []


def test_an_answer_to_another_question_is_not_taken(question):
    other = _question("_etcd-client._tcp.elsewhere")
    with pytest.raises(_Unanswered, match="another question"):
        parse_answer(question[:2] + answer(other, srv(1, 1, 1, "evil"))[2:], question)


def test_a_server_that_fails_says_so(question):
    with pytest.raises(_Unanswered, match="code 2"):
        parse_answer(answer(question, code=2), question)


def test_a_name_that_points_to_itself_ends(question):
    place = len(question) + 12 + 6
    host = bytes([0xC0 | place >> 8, place & 0xFF])
    with pytest.raises(_Unanswered, match="malformed"):
        parse_answer(answer(question, srv(1, 1, 1, host)), question)


@given(st.data())
def test_whatever_arrives_is_an_answer_or_none(data):
    question = _question(NAME)
    whole = answer(question, srv(1, 2, 3, "a.example"), srv(1, 2, 3, b"\1b\xc0\x0c"))
    kept = data.draw(st.integers(0, len(whole)))
    damaged = bytearray(whole[:kept] + data.draw(st.binary(max_size=20)))
    for place in data.draw(st.lists(st.integers(len(question), max(len(question), len(damaged) - 1)), max_size=4)):
        if place < len(damaged):
            damaged[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(_Unanswered):
        assert isinstance(parse_answer(bytes(damaged), question), list)


@pytest.mark.parametrize("name", ["", "a..b", "a" * 64, ".".join(["a" * 60] * 5)])
def test_what_is_no_domain_is_named(name):
    with pytest.raises(BadConfiguration, match="is not the name of a domain"):
        _question(name)


def test_name_servers_are_those_of_the_resolver(tmp_path):
    path = tmp_path / "resolv.conf"
    path.write_text("# c\nsearch example\nnameserver 10.0.0.1\nnameserver fd00::1\noptions ndots:2\nnameserver\n")
    assert name_servers(str(path)) == [("10.0.0.1", 53), ("fd00::1", 53)]
    path.write_text(f"nameserver 10.0.0.1#5353\nnameserver 10.0.0.2#²\nnameserver 10.0.0.3#{'1' * 5000}\n")
    assert name_servers(str(path)) == [("10.0.0.1", 5353), ("10.0.0.2", 53), ("10.0.0.3", 53)]
    path.write_text("")
    assert name_servers(str(path)) == [("127.0.0.1", 53)]
    assert name_servers(str(tmp_path / "absent")) == [("127.0.0.1", 53)]
    with pytest.raises(Unavailable, match="Is a directory"):
        name_servers(str(tmp_path))
