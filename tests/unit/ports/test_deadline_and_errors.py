"""Deadlines never move, and every error of a port reads as the original's does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ports.deadline import Deadline
from ports.errors import AlreadyExists, Conflict, Expired, Missing, PortError, Refused, Unauthorized, Unavailable

MOMENTS = st.floats(-1e9, 1e9)
BUDGETS = st.floats(0, 1e6)


@given(MOMENTS, MOMENTS)
def test_what_is_left_is_never_negative_and_gone_when_the_deadline_has_passed(at: float, now: float) -> None:
    deadline = Deadline(at)
    assert deadline.left(now) >= 0
    assert deadline.passed(now) == (deadline.left(now) == 0)


@given(MOMENTS, MOMENTS, BUDGETS)
def test_a_part_of_a_call_never_ends_after_the_whole(at: float, now: float, budget: float) -> None:
    part = Deadline(at).sooner(now, budget)
    assert part.at <= at
    assert part.at <= now + budget


def test_errors_read_as_the_originals() -> None:
    texts = {
        Conflict("K"): "update conflict: K",
        AlreadyExists("K"): "resource already exists: K",
        AlreadyExists("K", "why"): "resource already exists: K with error: why",
        Missing("K"): "resource does not exist: K",
        Missing("K", "why"): "resource does not exist: K with error: why",
        Unauthorized("why"): "connection is unauthorized: why",
        Expired("etcd"): "deadline exceeded while waiting for etcd",
    }
    assert {error: str(error) for error in texts} == texts


def test_whoever_catches_unavailable_catches_expired_too() -> None:
    assert isinstance(Expired("x"), Unavailable)
    assert isinstance(Refused("x"), PortError)
    assert (Refused("x").code, Refused("x").details) == (999, "")
