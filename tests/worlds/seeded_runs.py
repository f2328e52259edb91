"""Runs by seed in several processes, with the same outcome however many there are.

Seeds are handed out in shares, and answers are looked at in the order of seeds: so the counts are the same, and a
failure is that of the first seed that fails.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE = 64  # seeds
_TOLD_EVERY = 10.0  # seconds


class Failed(Exception):
    """A run that broke an invariant. Text: `seed 7: what is wrong`."""


def run_share(run: Callable[[int], Counter[str]], seeds: range) -> tuple[Counter[str], str]:
    """What was seen in these runs, and the failure that ended them early, if any."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen.update(run(seed))
        except AssertionError as error:
            return seen, f"seed {seed}: {error}"
    return seen, ""


def run_seeds(run: Callable[[int], Counter[str]], seeds: range, workers: int) -> Counter[str]:
    """What all runs saw together. Raises Failed."""
    shares = [(run, seeds[at : at + SHARE]) for at in range(0, len(seeds), SHARE)]
    if workers == 1 or len(shares) == 1:
        return _gathered(map(_share, shares), len(seeds))
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return _gathered(pool.imap(_share, shares), len(seeds))


def processors() -> int:
    return len(os.sched_getaffinity(0))


def _share(share: tuple[Callable[[int], Counter[str]], range]) -> tuple[Counter[str], str]:
    return run_share(*share)


def _gathered(outcomes, wanted: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    began = told = time.monotonic()
    for number, (counts, failure) in enumerate(outcomes, 1):
        if failure:
            raise Failed(failure)
        seen.update(counts)
        now = time.monotonic()
        if now - told > _TOLD_EVERY:
            told, done = now, min(number * SHARE, wanted)
            print(f"{done} of {wanted}, {done / (now - began):.0f} a second", file=sys.stderr, flush=True)
    return seen
