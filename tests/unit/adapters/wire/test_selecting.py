"""The stand-in for `select.poll` says of sockets what `poll` itself says."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from adapters.wire import selecting

LONG = 10_000  # milliseconds


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def both(descriptor: int, events: int, milliseconds: float) -> list[list[tuple[int, int]]]:
    answers = []
    for kind in (select.poll, selecting.poll):
        waiting = kind()
        waiting.register(descriptor, events)
        answers.append(waiting.poll(milliseconds))
    return answers


class TestLikePoll:
    def test_nothing_to_read(self, pair: tuple[socket.socket, socket.socket]) -> None:
        assert both(pair[0].fileno(), selecting.POLLIN, 0) == [[], []]

    def test_something_to_read_and_room_to_write(self, pair: tuple[socket.socket, socket.socket]) -> None:
        pair[1].send(b"x")
        events = selecting.POLLIN | selecting.POLLOUT
        theirs, ours = both(pair[0].fileno(), events, LONG)
        assert ours == theirs == [(pair[0].fileno(), events)]

    def test_the_end_is_something_to_read(self, pair: tuple[socket.socket, socket.socket]) -> None:
        pair[1].shutdown(socket.SHUT_WR)
        theirs, ours = both(pair[0].fileno(), selecting.POLLIN, LONG)
        assert ours == theirs == [(pair[0].fileno(), selecting.POLLIN)]

    def test_nothing_is_waited_for(self) -> None:
        assert selecting.poll().poll(1) == []
