"""However many processes share the seeds, the outcome is the same."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from worlds.seeded_runs import SHARE, Failed, run_seeds
from worlds.simulate import counted_run

SEEDS = range(5, 5 + 3 * SHARE)


def fails_now_and_then(seed: int) -> Counter[str]:
    assert seed not in (SHARE + 9, SHARE + 7, 3 * SHARE), "broken"
    return Counter({"runs": 1, f"digit {seed % 10}": 1})


def ignored(_seed: int) -> Counter[str]:
    return Counter({"ignored": signal.getsignal(signal.SIGTERM) is signal.SIG_IGN})


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_first_seed_that_fails_is_told(workers):
    with pytest.raises(Failed, match=f"^seed {SHARE + 7}: broken"):
        run_seeds(fails_now_and_then, SEEDS, workers)


def test_processes_end_although_the_one_that_made_them_ignores_the_signal_for_it():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # put back by tests/conftest.py
    assert run_seeds(ignored, range(2 * SHARE), 2) == {"ignored": 2 * SHARE}


def test_counts_are_the_same_whoever_ran_what():
    seeds = range(SHARE + 20)
    alone, together = run_seeds(counted_run, seeds, 1), run_seeds(counted_run, seeds, 2)
    assert alone == together
    assert alone["ADD: NoneType"] > 0


def test_a_run_is_the_same_whatever_ran_before():
    """Seeds share their starts, so one alone must find the same."""
    first = [counted_run(seed) for seed in (17, 18, 19, 400)]
    assert [counted_run(seed) for seed in (400, 19, 17, 18)] == [first[3], first[2], first[0], first[1]]
