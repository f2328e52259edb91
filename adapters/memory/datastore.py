"""The datastore over a dict: what unit tests run on, and the shortest complete description of the port.

Texts are stored, not records, so a test sees exactly what would be on disk. Revisions count up from 1 over all writes,
as etcd's do, so a run is the same every time.

Invariant: same answers as every other adapter of the port (tests/contracts/datastore.py); the hooks change when and
whether a verb happens, never what it means.
"""

from __future__ import annotations

from _thread import get_ident

from adapters.records.codec import key_text, parse_key
from adapters.records.text_store import TextStore
from ports.errors import AlreadyExists, Conflict, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from adapters.records.text_store import Row, Span
    from ports.clock import Clock, Deadline
    from ports.datastore import Change, Key, Need, Revision

    Hook: TypeAlias = Callable[[str, Need[Any]], None]
    Snapshot: TypeAlias = tuple[dict[str, tuple[str, int]], int]


def _nothing(_verb: str, _need: Need[Any]) -> None:
    """What happens around a verb unless a test says otherwise."""


def numbered_uids() -> Callable[[], str]:
    """UUIDs that are the same in every run: the last digits count."""
    made: list[str] = []

    def next_uid() -> str:
        made.append(f"00000000-0000-4000-8000-{len(made) + 1:012x}")
        return made[-1]

    return next_uid


class MemoryDatastore(TextStore):
    """Hooks, each called with the verb (fetch, create, update, delete or write) and the key or listing it is about:

    `before` runs first: raise to make the store fail, or write to it to be a rival that comes between.
    `after` runs when the verb has happened: raise to lose its answer.
    Verbs that a hook itself uses call no hooks and are not counted. `calls` counts how often each verb was asked for.
    `lag` is what listings that may lag are answered from (None: from what is there now). `writes_together` may be set.
    """

    def __init__(self, clock: Clock, new_uid: Callable[[], str] | None = None) -> None:
        super().__init__("the datastore", clock, new_uid or numbered_uids())
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self.lag: Snapshot | None = None
        self.calls: dict[str, int] = {}
        self._in_hook: set[int] = set()  # threads; a scheduler may switch threads inside a hook
        self._texts: dict[str, tuple[str, int]] = {}
        self._revision = 0

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        self._count("fetch")
        for need in needs:
            self._run(self.before, "fetch", need)
        found = tuple([self._answer(need, deadline) for need in needs])
        for need in needs:
            self._run(self.after, "fetch", need)
        return found

    def _answer(self, need: Need[Any], deadline: Deadline) -> Any:
        now = self._texts
        if self.lag is not None and getattr(need, "may_lag", False):
            self._texts = self.lag[0]
        try:
            return super().fetch(need, deadline=deadline)[0]
        finally:
            self._texts = now

    def read(self, spans: Sequence[Span], deadline: Deadline) -> list[list[Row]]:
        self.expire(deadline)
        return [self._rows(span) for span in spans]

    def insert(self, key: Key[Any], row: tuple[str, str], deadline: Deadline) -> Revision:
        self._begin("create", key, deadline)
        address, text = row
        if address in self._texts:
            raise AlreadyExists(key)
        return self._write("create", key, address, text)

    def swap(self, key: Key[Any], row: tuple[str, str], replaces: Revision, deadline: Deadline) -> Revision:
        self._begin("update", key, deadline)
        address, text = row
        self._check(key, address, replaces)
        return self._write("update", key, address, text)

    def remove(self, key: Key[Any], address: str, replaces: Revision | None, deadline: Deadline) -> None:
        self._begin("delete", key, deadline)
        self._check(key, address, replaces)
        self._revision += 1
        del self._texts[address]
        self._run(self.after, "delete", key)

    def swap_all(
        self, changes: Sequence[Change], rows: Sequence[tuple[str, str | None]], deadline: Deadline
    ) -> Revision:
        self._count("write")
        for change in changes:
            self._run(self.before, "write", change.key)
        self.expire(deadline)
        for change, (address, _) in zip(changes, rows):
            if change.replaces is not None:
                self._check(change.key, address, change.replaces)
            elif address in self._texts:
                raise AlreadyExists(change.key)
        self._revision += 1
        for address, text in rows:
            if text is None:
                del self._texts[address]
            else:
                self._texts[address] = (text, self._revision)
        revision = str(self._revision)
        for change in changes:
            self._run(self.after, "write", change.key)
        return revision

    def records_text(self) -> dict[str, str]:
        """Everything stored, as etcd would hold it: key text → value text, in key order."""
        return {address: self._texts[address][0] for address in sorted(self._texts)}

    def load(self, records: Mapping[str, str]) -> None:
        """Put texts as they are, corrupt ones too: key text → value text."""
        for address, text in records.items():
            self._revision += 1
            self._texts[address] = (text, self._revision)

    def revision_of(self, key: Key[Any]) -> Revision | None:
        """The revision that is current now; no hook runs."""
        found = self._texts.get(key_text(key))
        return None if found is None else str(found[1])

    def keys(self) -> list[Key[Any]]:
        """The keys of everything stored whose kind we know, in key order."""
        known = [parse_key(address) for address in sorted(self._texts)]
        return [key for key in known if key is not None]

    def snapshot(self) -> Snapshot:
        """All contents as of now, for `restore`."""
        return dict(self._texts), self._revision

    def restore(self, snapshot: Snapshot) -> None:
        texts, self._revision = snapshot
        self._texts = dict(texts)

    def _rows(self, span: Span) -> list[Row]:
        if not span.is_prefix:
            found = self._texts.get(span.start)
            return [] if found is None else [(span.start, found[0], str(found[1]))]
        addresses = sorted([address for address in self._texts if address.startswith(span.start)])
        return [(address, self._texts[address][0], str(self._texts[address][1])) for address in addresses]

    def _check(self, key: Key[Any], address: str, replaces: Revision | None) -> None:
        found = self._texts.get(address)
        if found is None:
            raise Missing(key)
        if replaces is not None and replaces != str(found[1]):
            raise Conflict(key)

    def _begin(self, verb: str, key: Key[Any], deadline: Deadline) -> None:
        self._count(verb)
        self._run(self.before, verb, key)
        self.expire(deadline)

    def _write(self, verb: str, key: Key[Any], address: str, text: str) -> Revision:
        self._revision += 1
        self._texts[address] = (text, self._revision)
        revision = str(self._revision)
        self._run(self.after, verb, key)
        return revision

    def _count(self, verb: str) -> None:
        if get_ident() not in self._in_hook:
            self.calls[verb] = self.calls.get(verb, 0) + 1

    def _run(self, hook: Hook, verb: str, need: Need[Any]) -> None:
        me = get_ident()
        if hook is _nothing or me in self._in_hook:
            return
        self._in_hook.add(me)
        try:
            hook(verb, need)
        finally:
            self._in_hook.discard(me)
