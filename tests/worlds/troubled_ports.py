"""The ports as one call sees them that is cut short somewhere, or disturbed: by a lost reply, its death, or a rival.

Calls run one after the other and a rival's inside of another's, so a run is the same every time and needs no threads
(tests/worlds/scheduler.py interleaves several).
"""

from __future__ import annotations

from ports.datastore import BlockKey, Datastore
from ports.errors import Unavailable
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED, Died


class Outside:
    """The ports as one call sees them: `fate` befalls its port call number `at`, before `rival_at` comes the rival."""

    def __init__(self, world, fate: int, at: int, rival, rival_at: int) -> None:
        self._fate, self._at, self._rival, self._rival_at = fate, at, rival, rival_at
        self.calls = 0
        self.dead = False
        self.disturbed = False
        self.faulted = False
        self.writes = 0  # since the rival's call
        self.store = _Store(self, world.store)
        self.cluster = _Cluster(self, world.cluster)

    def step(self, verb):
        if self.dead:
            raise Died
        self.calls += 1
        if self.calls == self._rival_at and self._rival is not None:
            self.disturbed = True
            self._rival()
            self.writes = 0
        fate = self._fate if self.calls == self._at else PROCEED
        self.faulted = self.faulted or fate != PROCEED
        self.disturbed = self.disturbed or self.faulted
        self.dead = fate in (DIE_BEFORE, DIE_AFTER)
        if fate == DIE_BEFORE:
            raise Died
        answer = verb()
        if fate == DIE_AFTER:
            raise Died
        if fate == LOSE_REPLY:
            raise Unavailable("connection reset by peer")
        return answer


class _Store(Datastore):
    def __init__(self, outside: Outside, store: Datastore) -> None:
        self._outside, self._store = outside, store

    def fetch(self, *needs, deadline):
        return self._outside.step(lambda: self._store.fetch(*needs, deadline=deadline))

    def unreadable(self, deadline, listing=None):
        return self._outside.step(lambda: self._store.unreadable(deadline, listing))

    def create(self, key, record, deadline):
        return self._outside.step(lambda: self._store.create(key, record, deadline))

    def update(self, key, record, replaces, deadline):
        self._outside.writes += isinstance(key, BlockKey)
        return self._outside.step(lambda: self._store.update(key, record, replaces, deadline))

    def delete(self, key, replaces, deadline):
        self._outside.step(lambda: self._store.delete(key, replaces, deadline))


class _Cluster:
    def __init__(self, outside: Outside, cluster) -> None:
        self._outside, self._cluster = outside, cluster

    def __getattr__(self, verb):
        return lambda *about: self._outside.step(lambda: getattr(self._cluster, verb)(*about))
