"""The figures of one run, and what the goals say to them. Nothing here runs a program.

Invariant: candidates of one `Results` took turns, so that their medians may be divided by one another.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from process import Sample

FLOOR, EXECUTABLE, BUNDLE, LIBRARY = "floor", "executable", "bundle", "library"
_MOST_GROWTH = 1.25  # what still is flat: medians of few calls on a machine with other work differ as much


class Case(NamedTuple):
    """What was called, such as `ADD` on `etcd`; `store` is "" for what needs none."""

    verb: str
    store: str = ""


class Burst(NamedTuple):
    """Seconds for that many calls."""

    store: str
    subject: str
    verb: str
    calls: int
    at_once: int
    seconds: float


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

    def note(self, case: Case, subject: str, sample: Sample) -> None:
        self.samples.setdefault(case, {}).setdefault(subject, []).append(sample)

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
                for store, most in (("etcd", 8), ("kubernetes", 12))
                for verb in ("ADD", "DEL")
            ),
            self._peak(),
            *(self._burst(store) for store in ("etcd", "kubernetes")),
            *self._flat(),
        ]

    def _version(self) -> Verdict:
        goal, case = "VERSION at most 15 ms longer than a bare static process", Case("VERSION")
        own, bare = self.median(case, EXECUTABLE), self.median(case, FLOOR)
        if own is None or bare is None:
            return Verdict(goal, "", None)
        return Verdict(goal, f"{own - bare:.1f} ms", own - bare <= 15)

    def _to_floor(self, case: Case, most: int) -> Verdict:
        goal = f"{case.verb} on {case.store} with the executable at most {most} × the floor"
        ratio = self.ratio(case, EXECUTABLE, FLOOR)
        return Verdict(goal, f"{ratio:.1f} ×" if ratio else "", ratio <= most if ratio else None)

    def _peak(self) -> Verdict:
        peaks = [one.peak for subjects in self.samples.values() for one in subjects.get(EXECUTABLE, [])]
        measured = f"{max(peaks):.1f} MiB" if peaks else ""
        return Verdict("peak resident memory below 25 MiB", measured, max(peaks) < 25 if peaks else None)

    def _burst(self, store: str) -> Verdict:
        goal = f"ADDs on {store}, 16 at a time, at least 5 × faster than library transports one at a time"
        each = {
            (one.subject, one.at_once): one.seconds / one.calls
            for one in self.bursts
            if (one.store, one.verb) == (store, "ADD")
        }
        slow, fast = each.get((LIBRARY, 1)), each.get((EXECUTABLE, 16))
        if not slow or not fast:
            return Verdict(goal, "", None)
        return Verdict(goal, f"{slow / fast:.1f} ×, and no error", slow / fast >= 5)

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
