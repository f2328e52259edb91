"""The figures of one run, and what the goals say to them. Nothing here runs a program.

Invariant: candidates of one `Results` took turns, so that their medians may be divided by one another.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

from process import Ended, Sample

FLOOR, EXECUTABLE, BUNDLE, LIBRARY, PEER = "floor", "executable", "bundle", "library", "peer"
_MOST_GROWTH = 1.25  # what still is flat: medians of few calls on a machine with other work differ as much


class Case(NamedTuple):
    """What was called, such as `ADD` on `etcd`; `store` is "" for what needs none."""

    verb: str
    store: str = ""


class Burst(NamedTuple):
    """Seconds for that many calls, of which so many failed: by their exit code, or as ADDs without a good answer.

    `busy`: the share of the machine's processors that was in use meanwhile, by servers and the kernel as well; 0 if
    nobody knows.
    """

    store: str
    subject: str
    verb: str
    calls: int
    at_once: int
    seconds: float
    failed: int = 0
    busy: float = 0.0


def failures(verb: str, ended: Iterable[Ended]) -> list[Ended]:
    """Those that failed; of ADDs also those that printed no address, or one that another got."""
    failed, given = [], set()
    for one in ended:
        address = _address(one.printed) if verb == "ADD" else ""
        if one.status or address is None or address in given:
            failed.append(one)
        elif address:
            given.add(address)
    return failed


def _address(printed: str) -> str | None:
    """That of a CNI result; None if it is none, or something stands beside it."""
    try:
        return str(json.loads(printed)["ips"][0]["address"])
    except (ValueError, LookupError, TypeError):
        return None


class Growth(NamedTuple):
    """Median milliseconds of an ADD and a DEL, and of the floor's at the same time, with so many more of `what`."""

    store: str
    what: str
    more: int
    add: float
    delete: float
    floor_add: float
    floor_delete: float

    @property
    def both(self) -> float:
        return self.add + self.delete


class Verdict(NamedTuple):
    goal: str
    measured: str
    met: bool | None

    def __str__(self) -> str:
        word = {True: "met", False: "NOT MET", None: "not measured"}[self.met]
        return f"{word:<13} {self.goal}" + (f": {self.measured}" if self.measured else "")


class Results:
    def __init__(self) -> None:
        self.samples: dict[Case, dict[str, list[Sample]]] = {}
        self.bursts: list[Burst] = []
        self.growth: list[Growth] = []
        self.failed: dict[tuple[Case, str], int] = {}  # calls alone that are in no sample

    def note(self, case: Case, subject: str, sample: Sample) -> None:
        self.samples.setdefault(case, {}).setdefault(subject, []).append(sample)

    def fail(self, case: Case, subject: str) -> None:
        self.failed[case, subject] = self.failed.get((case, subject), 0) + 1

    def median(self, case: Case, subject: str) -> float | None:
        """Milliseconds of wall time."""
        taken = self.samples.get(case, {}).get(subject)
        return statistics.median(one.wall for one in taken) if taken else None

    def ratio(self, case: Case, subject: str, other: str) -> float | None:
        """How many times as long the first takes."""
        above, below = self.median(case, subject), self.median(case, other)
        return above / below if above and below else None

    def rows(self) -> list[dict[str, Any]]:
        """One for each case and subject, medians unless it says otherwise."""
        rows = []
        for case, subjects in self.samples.items():
            for subject, taken in subjects.items():
                walls = [one.wall for one in taken]
                row: dict[str, Any] = {"store": case.store, "verb": case.verb, "subject": subject, "calls": len(taken)}
                row["wall_ms"] = statistics.median(walls)
                row["wall_ms_p90"] = statistics.quantiles(walls, n=10)[-1] if len(walls) > 1 else walls[0]
                row["processor_ms"] = statistics.median(one.processor for one in taken)
                row["peak_mib"] = max(one.peak for one in taken)
                for other in (FLOOR, EXECUTABLE, BUNDLE, LIBRARY):
                    if (ratio := self.ratio(case, subject, other)) and other != subject:
                        row[f"times_{other}"] = ratio
                rows.append(row)
        return rows

    def verdicts(self) -> list[Verdict]:
        return [
            self._version(),
            *(
                self._to_floor(Case(verb, store), most)
                for store, most in (("sqlite", 2.5), ("etcd", 3), ("kubernetes", 6))
                for verb in ("ADD", "DEL")
            ),
            self._peak(),
            *(self._burst(store, most) for store, most in (("etcd", 2), ("kubernetes", 3))),
            self._no_failure(),
            *self._flat(),
        ]

    def _version(self) -> Verdict:
        goal, case = "VERSION at most 3 ms longer than a bare static process", Case("VERSION")
        own, bare = self.median(case, EXECUTABLE), self.median(case, FLOOR)
        if own is None or bare is None:
            return Verdict(goal, "", None)
        return Verdict(goal, f"{own - bare:.1f} ms", own - bare <= 3)

    def _to_floor(self, case: Case, most: float) -> Verdict:
        goal = f"{case.verb} on {case.store} with the executable at most {most:g} × the floor"
        ratio = self.ratio(case, EXECUTABLE, FLOOR)
        return Verdict(goal, f"{ratio:.1f} ×" if ratio else "", ratio <= most if ratio else None)

    def _peak(self) -> Verdict:
        peaks = [one.peak for subjects in self.samples.values() for one in subjects.get(EXECUTABLE, [])]
        measured = f"{max(peaks):.1f} MiB" if peaks else ""
        return Verdict("peak resident memory below 25 MiB", measured, max(peaks) < 25 if peaks else None)

    def _burst(self, store: str, least: float) -> Verdict:
        """With what the processors allow: who uses 60 % of them alone gets no further than 1.7 times as far."""
        goal = f"ADDs a second on {store}, 16 at a time, at least {least:g} × as many as one at a time"
        each = {
            one.at_once: one for one in self.bursts if (one.store, one.verb, one.subject) == (store, "ADD", EXECUTABLE)
        }
        alone, together = each.get(1), each.get(16)
        if not alone or not together:
            return Verdict(goal, "", None)
        ratio = alone.seconds / alone.calls / (together.seconds / together.calls)
        bound = f" of some {1 / alone.busy:.1f}" if alone.busy else ""
        return Verdict(goal, f"{ratio:.1f} ×{bound}", ratio >= least)

    def _no_failure(self) -> Verdict:
        own = [one for one in self.bursts if one.subject in {EXECUTABLE, BUNDLE, LIBRARY}]
        failed = sum(one.failed for one in own)
        measured = f"{failed} of {sum(one.calls for one in own)}" if own else ""
        return Verdict(
            "no call of ours fails in a burst, and no address is given twice", measured, not failed if own else None
        )

    def _flat(self) -> list[Verdict]:
        curves: dict[tuple[str, str], list[Growth]] = {}
        for one in self.growth:
            curves.setdefault((one.store, one.what), []).append(one)
        return [
            Verdict(
                f"ADD and DEL on {store} cost no more with {last.more} {what}",
                f"{last.both / first.both:.2f} × of what it is with {first.more}",
                last.both / first.both <= _MOST_GROWTH,
            )
            for (store, what), points in curves.items()
            for first, last in [(points[0], points[-1])]
        ]
