"""Durations and events on a machine that may be busy.

    at_best(2, lambda: connect(url))              the quickest of some tries takes less than two seconds
    until(lambda: path.exists(), "the file")      waits for what happens in its own time, and no longer than a minute

A machine that is busy makes some tries slow, a fault makes all of them slow; so it is the quickest that is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 5
LONGEST = 60.0  # seconds for anything to happen that does happen


def at_best(seconds: float, attempt: Callable[[], object], tries: int = TRIES) -> None:
    """One of the tries, each of which must succeed, takes less than that; nothing is tried again once one has."""
    took = []
    for _ in range(tries):
        began = time.monotonic()
        attempt()
        took.append(time.monotonic() - began)
        if took[-1] < seconds:
            return
    raise AssertionError(f"none of {tries} tries took less than {seconds} s: {took}")


def until(happened: Callable[[], object], what: object = "it", seconds: float = LONGEST) -> None:
    """`what` is for the message; called if it is a function."""
    ends = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > ends:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what() if callable(what) else what}")
        time.sleep(0.01)
