"""Work that waits for descriptors: alone, against rivals, and past its time. Moments in the past need no sleep."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from adapters.wire.faults import AllFailed, Fault, TimedOut, Untrusted
from adapters.wire.waiting import FOREVER, READABLE, drive, race


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


class Runner:
    """Work on a descriptor that notes what becomes of it."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    @contextmanager
    def running(self):
        self.log.append(f"{self.name} begins")
        try:
            yield
        finally:
            self.log.append(f"{self.name} is closed")

    def reading(self, descriptor: int):
        with self.running():
            while True:
                here = yield ((descriptor, READABLE),), FOREVER
                if here:
                    return f"{self.name} read {os.read(descriptor, 9)!r}"

    def failing(self, fault: Exception):
        with self.running():
            yield (), 0.0
            raise fault

    def arriving(self):
        with self.running():
            yield (), 0.0
            return f"{self.name} arrived"


@pytest.fixture
def log() -> list[str]:
    return []


def test_work_is_resumed_with_what_is_ready(pipe, log):
    os.write(pipe[1], b"here")
    assert drive(Runner(log, "a").reading(pipe[0]), FOREVER) == "a read b'here'"
    assert log == ["a begins", "a is closed"]


def test_work_that_has_nothing_to_wait_for_is_done_at_once():
    def work():
        return 7
        yield

    assert drive(work(), 0.0) == 7


def test_past_its_moment_work_is_closed_and_told(pipe, log):
    with pytest.raises(TimedOut):
        drive(Runner(log, "a").reading(pipe[0]), 0.0)
    assert log == ["a begins", "a is closed"]


def test_an_error_of_the_work_is_its_drivers(log):
    with pytest.raises(Untrusted):
        drive(Runner(log, "a").failing(Untrusted("no")), FOREVER)
    assert log == ["a begins", "a is closed"]


def test_the_first_that_arrives_wins_and_the_others_are_closed(pipe, log):
    os.write(pipe[1], b"here")
    rivals = [Runner(log, "slow").reading(pipe[0]), Runner(log, "late").arriving()]
    assert drive(race(rivals, head_start=60.0), FOREVER) == "slow read b'here'"
    assert log == ["slow begins", "slow is closed"]


def test_a_rival_begins_when_the_one_before_has_had_its_start(pipe, log):
    rivals = [Runner(log, "mute").reading(pipe[0]), Runner(log, "second").arriving()]
    assert drive(race(rivals, head_start=0.0), FOREVER) == "second arrived"
    assert log == ["mute begins", "second begins", "second is closed", "mute is closed"]


def test_a_rival_begins_at_once_when_those_before_have_failed(log):
    rivals = [Runner(log, "broken").failing(Fault("no")), Runner(log, "second").arriving()]
    assert drive(race(rivals, head_start=3600.0), FOREVER) == "second arrived"
    assert log == ["broken begins", "broken is closed", "second begins", "second is closed"]


def test_when_all_have_failed_each_ones_reason_is_told_in_their_order(log):
    first, second = Fault("one"), Untrusted("two")
    rivals = [Runner(log, "a").failing(first), Runner(log, "b").failing(second)]
    with pytest.raises(AllFailed, match=r"^one; two$") as caught:
        drive(race(rivals, head_start=0.0), FOREVER)
    assert caught.value.faults == [first, second]


def test_an_error_that_is_no_fault_ends_the_race_and_closes_all(pipe, log):
    class Stopped(BaseException):
        pass

    rivals = [Runner(log, "mute").reading(pipe[0]), Runner(log, "b").failing(Stopped())]
    with pytest.raises(Stopped):
        drive(race(rivals, head_start=0.0), FOREVER)
    assert log[-1] == "mute is closed"


def test_a_race_past_its_moment_closes_all(pipe, log):
    rivals = [Runner(log, name).reading(pipe[0]) for name in "ab"]
    with pytest.raises(TimedOut):
        drive(race(rivals, head_start=0.0), 0.0)
    assert log == ["a begins", "b begins", "a is closed", "b is closed"]


def test_a_race_can_be_part_of_work(log):
    def work():
        first = yield from race([Runner(log, "a").arriving()], head_start=1.0)
        second = yield from race([Runner(log, "b").arriving()], head_start=1.0)
        return first, second

    assert drive(work(), FOREVER) == ("a arrived", "b arrived")
