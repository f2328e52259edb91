"""Run several use cases at once in every order: one baton, passed at each datastore call.

Each call of a use case is a `Process` in a thread of its own, but only the one that holds the baton runs. At every
datastore call the schedule says who goes on, and what befalls the caller: nothing, its answer is lost although the
write happened, or it dies there and then. A dead process has no further effect whatever its code still tries.

Whoever holds the baton draws who is next, so nothing has to be switched where that is himself. Threads are kept for
later runs.

Invariant: the same choices give the same run, step by step.
"""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from domain.ipam.block import CONFIRMED, Affinity
from ports.datastore import Affinities, AffinityKey, Datastore, Stored
from ports.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ports.clock import Deadline
    from ports.datastore import Change, Key, Need, Revision

PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER = range(4)
FATE_WORDS = ("ok", "reply lost", "dies before", "dies after")


class Died(BaseException):
    """`kill -9`: not even undo runs, since every port call of a dead process raises this again."""


class Process:
    """One call. `result` or `error` tell how it ended; `dead` that it was killed."""

    def __init__(self, name: str, body: Callable[[Datastore], Any]) -> None:
        self.name = name
        self.body = body
        self.result: Any = None
        self.error: BaseException | None = None
        self.dead = False
        self.fate = PROCEED  # of its next datastore call
        self.finished = False
        self.go = closed_gate()


class Schedule:
    """`choose(n)` gives a number below n; `fate()` one of the four fates; `check` runs after every step.

    All three are called by whichever thread has the baton.
    """

    def __init__(
        self, store: Datastore, choose: Callable[[int], int], fate: Callable[[], int], check: Callable[[], None]
    ) -> None:
        self._store = store
        self._choose = choose
        self._fate = fate
        self._check = check
        self._over = closed_gate()
        self._failure: BaseException | None = None
        self._processes: list[Process] = []
        self._living = 0
        self.steps = 0
        self.versions: dict[Key[Any], list[Stored[Any]]] = {}  # each record as it was written, time after time
        self.trace: list[str] = []

    def run(self, processes: list[Process]) -> None:
        """Until all have ended. What `check` raises ends the run and is raised here."""
        self._processes, self._living = processes, len(processes)
        for process in processes:
            _thread_for(lambda process=process: self._live(process))
        if processes:
            self._next().go.release()
            self._over.acquire()
        if self._failure is not None:
            raise self._failure

    def _next(self) -> Process:
        waiting = [process for process in self._processes if not process.finished]
        chosen = waiting[self._choose(len(waiting))]
        chosen.fate = self._fate()
        return chosen

    def _after_step(self) -> Process | None:
        """Who goes on; None if the run is over."""
        self.steps += 1
        if self._failure is None:
            try:
                self._check()
                return self._next() if self._living else None
            except BaseException as error:  # noqa: BLE001 - raised by `run`
                self._failure = error
        for process in self._processes:
            process.dead = process.dead or not process.finished
        return next((process for process in self._processes if not process.finished), None)

    def _live(self, process: Process) -> None:
        process.go.acquire()
        try:
            if not process.dead:
                process.result = process.body(_Observed(self._store, self, process))
        except BaseException as error:  # noqa: BLE001 - kept for the test to look at
            process.error = error
        process.finished = True
        self._living -= 1
        chosen = self._after_step()
        (self._over if chosen is None else chosen.go).release()

    def step(self, process: Process, what: str, verb: Callable[[], Any]) -> Any:
        """One datastore call of a process: hand over the baton, then meet a fate."""
        if process.dead:
            raise Died
        chosen = self._after_step()
        if chosen is not process:
            assert chosen is not None  # this one has not finished
            chosen.go.release()
            process.go.acquire()
        fate = DIE_BEFORE if process.dead else process.fate
        self.trace.append(f"{process.name}: {what} [{FATE_WORDS[fate]}]")
        if fate == DIE_BEFORE:
            process.dead = True
            raise Died
        try:
            answer = verb()
        finally:
            if fate == DIE_AFTER:
                process.dead = True
        if fate == DIE_AFTER:
            raise Died
        if fate == LOSE_REPLY:
            raise Unavailable("connection reset by peer")
        return answer


class _Observed(Datastore):
    """The shared store as one process sees it."""

    def __init__(self, store: Datastore, schedule: Schedule, process: Process) -> None:
        self.lists_in_one_go = store.lists_in_one_go
        self.brings_along, self.writes_together = store.brings_along, store.writes_together
        self._store = store
        self._schedule = schedule
        self._process = process

    def _do(self, what: str, verb: Callable[[], Any]) -> Any:
        return self._schedule.step(self._process, what, verb)

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        return self._do(f"fetch {', '.join(map(str, needs))}", lambda: self._store.fetch(*needs, deadline=deadline))

    def unreadable(self, deadline: Deadline, listing: Any = None) -> tuple[Any, ...]:
        return self._do("unreadable", lambda: self._store.unreadable(deadline, listing))

    def remembered(self, need: Need[Any]) -> Any:
        """Where notes are left: how the record was at any time, whichever; that changes from step to step."""
        if self.lists_in_one_go:
            return None
        if isinstance(need, Affinities):
            keys = [key for key in self._schedule.versions if isinstance(key, AffinityKey) and key.owner == need.owner]
            return tuple(
                [Stored(key, Affinity(CONFIRMED), "") for key in keys if need.version in (None, key.cidr.version)]
            )
        versions = self._schedule.versions.get(need, [])
        return versions[self._schedule.steps % len(versions)] if versions and self._schedule.steps % 3 else None

    def _kept(self, stored: Stored[Any]) -> Stored[Any]:
        self._schedule.versions.setdefault(stored.key, []).append(stored)
        return stored

    def create(self, key: Key[Any], record: Any, deadline: Deadline) -> Stored[Any]:
        return self._do(f"create {key}", lambda: self._kept(self._store.create(key, record, deadline)))

    def update(self, key: Key[Any], record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:
        return self._do(f"update {key}", lambda: self._kept(self._store.update(key, record, replaces, deadline)))

    def delete(self, key: Key[Any], replaces: Revision | None, deadline: Deadline) -> None:
        self._do(f"delete {key}", lambda: self._store.delete(key, replaces, deadline))

    def write(self, changes: Sequence[Change], deadline: Deadline) -> tuple[Stored[Any] | None, ...]:
        what = f"write {', '.join([str(change.key) for change in changes])}"
        return self._do(what, lambda: self._store.write(changes, deadline))


def closed_gate() -> Any:
    """A lock that whoever acquires it waits at until another thread releases it."""
    gate = allocate_lock()
    gate.acquire()
    return gate


class _Worker:
    """A thread that runs one body after the other."""

    def __init__(self) -> None:
        self.body: Callable[[], None] | None = None
        self.ready = closed_gate()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self.ready.acquire()
            assert self.body is not None
            body, self.body = self.body, None
            body()
            _idle.append(self)


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads stay behind


def _thread_for(body: Callable[[], None]) -> None:
    worker = _idle.pop() if _idle else _Worker()
    worker.body = body
    worker.ready.release()
