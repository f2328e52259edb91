#!/usr/bin/env python3
"""`make bench`: what a plugin call costs as a whole process, beside a floor and beside other implementations.

    cold       VERSION, IPAM ADD and DEL, ADD and DEL on each datastore, each call alone
    bursts     100 sandboxes, one and 16 at a time
    growth     an ADD and a DEL in ever larger clusters
    bridge     my-custom-cni beside the CNI project's own bridge

Candidates are the executable of `make dist` (if it is there), the bundle of `make build` with lean and with library
transports, PEER, and always the floor (see floor.py). They take turns, so that a busy machine slows all of them
alike: compare ratios. Nothing is asserted; the report says which of the goals are met.

All happens in a network namespace made for it, with servers of its own. It needs root and a C compiler.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from bridge import bridges
from page import write as write_page
from process import Call, CallFailed, Sample, Starter, burst, in_use, processors
from report import machine, write
from results import BUNDLE, EXECUTABLE, FLOOR, LIBRARY, PEER, Burst, Case, Growth, Results, failures
from world import (
    GROUP,
    Sandbox,
    Store,
    Subject,
    bare_interpreter,
    enter_network,
    etcd_store,
    find_servers,
    kubernetes_store,
    memory_folder,
    sandboxes,
    sqlite_store,
)
from world import (
    LIBRARY as LIBRARY_SETTING,
)

PARTS = ("cold", "bursts", "growth", "bridge")
AT_ONCE = (1, 16)
SANDBOXES = 100
POINTS = {"pods": (0, 250, 1000)}  # a node may own 20 blocks of 64 addresses
OTHER_POINTS = (0, 1000, 5000)


class Bench:
    """One run: the candidates, the datastores, and what has been found so far."""

    def __init__(self, asked: argparse.Namespace, folder: Path, undo: ExitStack) -> None:
        self.asked, self.folder, self.undo = asked, folder, undo
        self.starter = Starter(folder)
        self.results = Results()
        self.subjects = list(_subjects(asked))
        self.own = self.subjects[0]  # the executable, else the bundle
        self.count = 20 if asked.quick else SANDBOXES
        self.places = undo.enter_context(sandboxes(self.count))
        self.kubernetes: Any = None
        from floor import Floor  # after world has made the product's modules known

        self.floors = [Floor(self.starter.path, folder).calls(*place) for place in self.places]

    def stores(self, found: list[str]) -> list[Store]:
        stores = [sqlite_store(self.folder, self.own.folder)]
        if "etcd" in found:
            stores.append(etcd_store(self.folder, self.own.folder, self.undo)[0])
        if "kubernetes" in found:
            store, self.kubernetes = kubernetes_store(self.folder, self.count, self.undo)
            stores.append(store)
        return stores

    def compare_floor(self, store: Store) -> None:
        """SystemExit if the floor leaves another state of the kernel than an ADD."""
        from floor import state

        found = []
        own = {verb: store.call(self.own, verb, self.places[0]) for verb in ("ADD", "DEL")}
        for calls in (own, self.floors[0]):
            self.starter.run(calls["ADD"])
            found.append(state(self.places[0].netns))
            self.starter.run(calls["DEL"])
        if differing := {what: (one, found[1][what]) for what, one in found[0].items() if one != found[1][what]}:
            raise SystemExit(f"the floor does not do what an ADD does: {differing}")

    def note(self, case: Case, subject: str, call: Call) -> None:
        try:
            self.results.note(case, subject, self.starter.run(call))
        except CallFailed as failed:
            if subject != PEER:
                raise
            self.results.fail(case, subject)
            print(f"  {failed}"[:500], flush=True)

    # Each call alone

    def cold(self, stores: list[Store]) -> None:
        for turn in range(-1, self.asked.rounds):  # the first time is not counted: it claims blocks and fills caches
            if turn == 0:
                self.results.samples.clear()
                self.results.failed.clear()
            bare = bare_interpreter()
            if bare:
                self.note(Case("VERSION"), "interpreter", bare)
            self.note(Case("VERSION"), FLOOR, Call([self.starter.path], {}))
            present = [one for one in self.subjects if turn % one.every == 0 or turn < 0]
            present = present[turn % len(present) :] + present[: turn % len(present)]
            for subject in present:
                self.note(Case("VERSION"), subject.name, subject.version())
            for store in stores:
                for verb, call in self.floors[0].items():
                    self.note(Case(verb, store.name), FLOOR, call)
                for subject in present:
                    self._attach(store, subject, turn + 1)

    def _attach(self, store: Store, subject: Subject, turn: int) -> None:
        if not _has(subject, store):
            return
        place = self.places[turn % len(self.places)]
        for verb in ("ADD", "DEL"):
            self.note(Case(verb, store.name), subject.name, store.call(subject, verb, place, turn=turn))
        for verb in ("ADD", "DEL"):
            call = store.call(subject, verb, place, "calico-ipam", turn)
            self.note(Case(f"IPAM {verb}", store.name), subject.name, call)

    # Many at a time

    def bursts(self, stores: list[Store]) -> None:
        for at_once in AT_ONCE:
            for verb in ("ADD", "DEL"):
                self._burst("", FLOOR, verb, [one[verb] for one in self.floors], at_once)
        for store in stores:
            for subject in self.subjects:
                if subject.name == LIBRARY and store.name != "sqlite":  # only its time for one is asked for, and long
                    self._add_all(store, subject, self.places[: self.count // 4], 1)
                elif subject.name != LIBRARY and _has(subject, store):
                    for at_once in AT_ONCE:
                        self._add_all(store, subject, self.places, at_once)

    def _add_all(self, store: Store, subject: Subject, places: list[Sandbox], at_once: int) -> None:
        turn = 90000 + at_once
        calls = [store.call(subject, "ADD", place, turn=turn) for place in places]
        self._burst(store.name, subject.name, "ADD", calls, at_once)
        calls = [store.call(subject, "DEL", place, turn=turn) for place in places]
        self._burst(store.name, subject.name, "DEL", calls, at_once)

    def _burst(self, store: str, subject: str, verb: str, calls: list[Call], at_once: int) -> None:
        before = processors()
        seconds, ended = burst(calls, at_once)
        busy = in_use(before, processors())
        failed = failures(verb if store else "", ended)  # the floor answers nothing
        self.results.bursts.append(Burst(store, subject, verb, len(calls), at_once, seconds, len(failed), busy))
        if failed:
            first = f"{failed[0].status}: {failed[0].printed[:500]}"
            print(
                f"  {verb} {store} {subject}: {len(failed)} of {len(calls)} failed, the first with {first}", flush=True
            )

    # Larger clusters

    def growth(self, stores: list[Store]) -> None:
        from growth import KINDS, fill_etcd, fill_sqlite

        rounds, most = max(3, self.asked.rounds // 3), 2 if self.asked.quick else 3
        for kind in KINDS:
            points = POINTS.get(kind, OTHER_POINTS)[:most]
            grown = {}
            for count in points:
                name = f"{kind}{count}"
                grown[count] = sqlite_store(self.folder, self.own.folder, name)
                fill_sqlite(str(self.folder / f"{name}.db"), kind, count)
            self._compare(kind, grown, rounds)
            if any(store.name == "etcd" for store in stores):
                with ExitStack() as undo:
                    grown = {}
                    for count in points:
                        grown[count], server = etcd_store(self.folder, self.own.folder, undo)
                        fill_etcd(server, kind, count)
                    self._compare(kind, grown, rounds)
        if self.kubernetes is not None:
            from integration.kubefaults.crowd import Crowd  # type: ignore[import-not-found]  # in tests

            with Crowd(self.kubernetes, GROUP) as crowd:
                for before, count in pairwise(
                    (-1, *OTHER_POINTS[:most])
                ):  # one server: one after the other, beside the floor
                    if before >= 0:
                        crowd.fill(count)
                    self._compare("blocks", {count: stores[-1]}, rounds)

    def _compare(self, kind: str, grown: dict[int, Store], rounds: int) -> None:
        samples: dict[int, dict[str, list[Sample]]] = {count: {} for count in grown}
        for turn in range(rounds + 1):
            for count, store in grown.items():
                calls = {verb: store.call(self.own, verb, self.places[0], turn=50000 + turn) for verb in ("ADD", "DEL")}
                calls |= {f"floor {verb}": call for verb, call in self.floors[0].items()}
                for name, call in calls.items():
                    sample = self.starter.run(call)
                    if turn > 0:
                        samples[count].setdefault(name, []).append(sample)
        for count, taken in samples.items():
            add, delete, *floor = (statistics.median(one.wall for one in values) for values in taken.values())
            self.results.growth.append(Growth(grown[count].name, kind, count, add, delete, *floor))


def _subjects(asked: argparse.Namespace) -> Iterator[Subject]:
    if asked.executable and (asked.executable / "calico").exists():
        yield Subject(EXECUTABLE, asked.executable.resolve())
    yield Subject(BUNDLE, asked.bin.resolve())
    yield Subject(LIBRARY, asked.bin.resolve(), LIBRARY_SETTING, every=asked.seldom)
    if asked.peer:
        yield Subject(PEER, asked.peer.resolve())


def _has(subject: Subject, store: Store) -> bool:
    """Nobody else has our embedded datastore."""
    return subject.name != PEER or store.name != "sqlite"


def run(asked: argparse.Namespace) -> None:
    about = machine()
    found = find_servers()
    enter_network()
    with memory_folder() as folder, ExitStack() as undo:
        bench = Bench(asked, folder, undo)
        print(f"{asked.rounds} rounds of {', '.join(one.name for one in bench.subjects)} and the floor", flush=True)
        stores = bench.stores([one for one in found if one in asked.stores.split(",")])
        bench.compare_floor(stores[0])
        bridge: dict[str, list[Sample]] = {}
        try:
            for part in PARTS[:3]:
                if part in asked.only.split(","):
                    began = time.monotonic()
                    getattr(bench, part)(stores)
                    print(f"  {part}: {time.monotonic() - began:.0f} s", flush=True)
            if "bridge" in asked.only.split(","):
                bridge = bridges(bench.starter, bench.own.folder, bench.places, asked.rounds)
        finally:  # what there is, also of a run that was ended early
            about |= {"rounds": asked.rounds, "load_after": list(os.getloadavg())}
            write(bench.results, bridge, about, asked.output)
            if asked.page:
                write_page(asked.output / "results.json", asked.page)
                print(f"{asked.page}: benchmarks.md and its charts")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the plugins.")
    parser.add_argument("--bin", type=Path, required=True, help="the bundle")
    parser.add_argument("--executable", type=Path, help="folder of `make dist`; left out if it is not built")
    parser.add_argument("--peer", type=Path, help="folder with another implementation's calico and calico-ipam")
    parser.add_argument("--rounds", type=int, default=0, help="calls of each kind (50; with --quick 5)")
    parser.add_argument("--seldom", type=int, default=5, help="library transports take part in one of so many rounds")
    parser.add_argument("--quick", action="store_true", help="few rounds, small bursts, small clusters")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--stores", default="sqlite,etcd,kubernetes")
    parser.add_argument("--page", type=Path, help="folder of documents, for benchmarks.md and its charts")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    asked = parser.parse_args()
    asked.rounds = asked.rounds or (5 if asked.quick else 50)
    if os.geteuid() != 0:
        raise SystemExit("`make bench` NEEDS ROOT: it makes network namespaces. Nothing was run.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # so that servers and namespaces go, too
    run(asked)


if __name__ == "__main__":
    main()
