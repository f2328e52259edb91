"""Runs by seed in several processes, with the same outcome however many there are.

Seeds are handed out in shares, and answers are looked at in the order of seeds: so the counts are the same, and a
failure is that of the first seed that fails.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
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
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"))
    try:
        return _gathered(pool.map(_share, shares), len(seeds))
    finally:
        pool.shutdown(cancel_futures=True)  # by word and not by a signal, which they might ignore


def processors() -> int:
    return len(os.sched_getaffinity(0))


def command(about: str, run: Callable[[int], Counter[str]], what: str) -> int:
    """A program that makes such runs, and its exit code. It is 1 when a run breaks an invariant, whose seed is told."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; run N uses seed+N")
    parser.add_argument("--workers", type=int, default=processors(), help="processes; the outcome is the same")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        seen = run_seeds(run, range(options.seed, options.seed + options.runs), options.workers)
    except Failed as failure:
        print(failure)
        return 1
    took = time.monotonic() - began
    print(f"{options.runs} {what} in {took:.1f} s ({options.runs / took:.0f} a second)")
    for name, count in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:>12} {name}")
    return 0


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
