"""Run several use cases at once in every order: one baton, passed at each datastore call.

Each call of a use case is a `Process` in a thread of its own, but only the one that holds the baton runs. At every
datastore call the schedule says who goes on, and what befalls the caller: nothing, its answer is lost although the
write happened, or it dies there and then. A dead process has no further effect whatever its code still tries.

Invariant: the same choices give the same run, step by step.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ports.datastore import Datastore
from ports.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ports.datastore import Key, Need, Revision, Stored
    from ports.deadline import Deadline

PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER = range(4)


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
        self.go = threading.Semaphore(0)
        self.thread: threading.Thread | None = None


class Schedule:
    """`choose(n)` gives a number below n; `fate()` one of the four fates; `check` runs after every step."""

    def __init__(
        self, store: Datastore, choose: Callable[[int], int], fate: Callable[[], int], check: Callable[[], None]
    ) -> None:
        self._store = store
        self._choose = choose
        self._fate = fate
        self._check = check
        self._turn = threading.Semaphore(0)
        self.steps = 0
        self.trace: list[str] = []

    def run(self, processes: list[Process]) -> None:
        """Until all have ended. What `check` raises ends the run and is raised here."""
        for process in processes:
            process.thread = threading.Thread(target=self._live, args=(process,), daemon=True)
            process.thread.start()
        try:
            while waiting := [process for process in processes if not process.finished]:
                process = waiting[self._choose(len(waiting))]
                process.fate = self._fate()
                process.go.release()
                self._turn.acquire()
                self.steps += 1
                self._check()
        finally:
            for process in processes:
                process.dead = process.dead or not process.finished
                process.go.release()
            for process in processes:
                process.thread.join()

    def _live(self, process: Process) -> None:
        process.go.acquire()
        try:
            if not process.dead:
                process.result = process.body(_Observed(self._store, self, process))
        except BaseException as error:  # noqa: BLE001 - kept for the test to look at
            process.error = error
        process.finished = True
        self._turn.release()

    def step(self, process: Process, what: str, verb: Callable[[], Any]) -> Any:
        """One datastore call of a process: hand over the baton, then meet a fate."""
        if process.dead:
            raise Died
        self._turn.release()
        process.go.acquire()
        fate = DIE_BEFORE if process.dead else process.fate
        self.trace.append(f"{process.name}: {what} [{('ok', 'reply lost', 'dies before', 'dies after')[fate]}]")
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
        self._store = store
        self._schedule = schedule
        self._process = process

    def _do(self, what: str, verb: Callable[[], Any]) -> Any:
        return self._schedule.step(self._process, what, verb)

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        return self._do(f"fetch {', '.join(map(str, needs))}", lambda: self._store.fetch(*needs, deadline=deadline))

    def unreadable(self, deadline: Deadline, listing: Any = None) -> tuple[Any, ...]:
        return self._do("unreadable", lambda: self._store.unreadable(deadline, listing))

    def create(self, key: Key[Any], record: Any, deadline: Deadline) -> Stored[Any]:
        return self._do(f"create {key}", lambda: self._store.create(key, record, deadline))

    def update(self, key: Key[Any], record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:
        return self._do(f"update {key}", lambda: self._store.update(key, record, replaces, deadline))

    def delete(self, key: Key[Any], replaces: Revision | None, deadline: Deadline) -> None:
        self._do(f"delete {key}", lambda: self._store.delete(key, replaces, deadline))
