"""The memory datastore for thousands of runs: what is stored under a key is decoded once for all of them.

Invariant: same answers as the memory datastore, since records are values, and the text and its revision decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.memory.datastore import MemoryDatastore
from adapters.records.codec import decode, key_text, listed_beside, listing_prefix, matches, parse_key
from adapters.records.members import BadRecord
from ports.datastore import Key, ProfileKey, Profiles, Stored

if TYPE_CHECKING:
    from ports.clock import Deadline
    from ports.datastore import Need

_MOST = 100_000
_BAD = object()
_stored: dict[tuple[str, str, int], Any] = {}
_addresses: dict[Key[Any], str] = {}


class RememberingDatastore(MemoryDatastore):
    def _answer(self, need: Need[Any], deadline: Deadline) -> Any:
        if isinstance(need, (ProfileKey, Profiles)):
            return super()._answer(need, deadline)  # one of them is not stored
        self.expire(deadline)
        lags = self.lag is not None and getattr(need, "may_lag", False)
        texts = self.lag[0] if self.lag is not None and lags else self._texts
        if isinstance(need, Key):
            address = _address(need)
            found = _at(address, *texts[address]) if address in texts else None
            return super()._answer(need, deadline) if found is _BAD else found
        prefix, beside = listing_prefix(need), listed_beside(need)
        within = sorted([address for address in texts if address.startswith(prefix) or address in beside])
        listed = [_at(address, *texts[address]) for address in within]
        return tuple([one for one in listed if one not in (None, _BAD) and matches(need, one.key)])


def _address(key: Key[Any]) -> str:
    if key not in _addresses:
        _make_room(_addresses)
        _addresses[key] = key_text(key)
    return _addresses[key]


def _at(address: str, text: str, revision: int) -> Any:
    """The record as it is answered; None if its kind is unknown, `_BAD` if it cannot be used."""
    name = (address, text, revision)
    if name not in _stored:
        _make_room(_stored)
        _stored[name] = _decoded(address, text, revision)
    return _stored[name]


def _decoded(address: str, text: str, revision: int) -> Any:
    key = parse_key(address)
    try:
        return None if key is None else Stored(key, decode(key, text), str(revision))
    except BadRecord:
        return _BAD


def _make_room(cache: dict[Any, Any]) -> None:
    if len(cache) >= _MOST:
        cache.clear()
