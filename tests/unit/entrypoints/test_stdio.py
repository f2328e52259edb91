"""Streams whose other end does nothing: nothing waits for it without limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from descriptors import replaced
from domain.cni.errors import CniError
from entrypoints.logs import CallLog
from entrypoints.stdio import MOST_STDIN, Patience, read_stdin, send, write


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        os.close(end)


def fill(writer: int) -> None:
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)


def test_an_input_that_does_not_end_is_waited_for_until_the_deadline(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.write(writer, b'{"name": "net1"}')
    with replaced(0, os.dup(reader)), pytest.raises(CniError, match="the end of standard input") as caught:
        read_stdin(0)
    assert caught.value.code == 11


def test_endless_input_is_refused_at_its_limit() -> None:
    with replaced(0, os.open("/dev/zero", os.O_RDONLY)), pytest.raises(CniError, match=f"than {MOST_STDIN} bytes"):
        read_stdin(60)


@pytest.mark.parametrize("text", ["short", "long" * 100_000])
def test_an_answer_that_nobody_takes_is_given_up(pipe: tuple[int, int], text: str) -> None:
    reader, writer = pipe
    fill(writer)
    assert not write(writer, text.encode(), Patience(0))
    os.read(reader, 1 << 20)
    with replaced(1, os.dup(writer)):
        assert send("now there is room")


def test_a_log_that_nobody_reads_stops_nobody(pipe: tuple[int, int]) -> None:
    """All lines together wait for a second at the most."""
    _, writer = pipe
    fill(writer)
    log = CallLog("x", writer)
    log.patience = Patience(0)
    for _ in range(100):
        log.error("hello")
