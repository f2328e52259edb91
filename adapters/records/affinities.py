"""Affinities ↔ JSON text: `{"state":"confirmed","deleted":false}`. Who owns which block is in the key alone.

Invariant: old spellings (no text at all, no state, `deleted` as a string) are read, never written.
"""

from __future__ import annotations

from adapters.records.members import Fault, Members, object_text
from domain.ipam.affinity import Affinity
from domain.json_text import dumps

_DELETED = {None: False, False: False, True: True, "": False, "false": False, "true": True}


def encode_affinity(affinity: Affinity) -> str:
    known = [("state", dumps(affinity.state)), ("deleted", "true" if affinity.deleted else "false")]
    return object_text(known, affinity.unknown)


def decode_affinity(text: str) -> Affinity:
    """An empty text (very old data) is an empty object."""
    return read_affinity(Members.of_text(text or "{}"))


def read_affinity(members: Members) -> Affinity:
    """The affinity that a record's members describe."""
    deleted = members.take("deleted")
    if isinstance(deleted, (dict, list, int, float)) and not isinstance(deleted, bool):
        raise Fault("deleted must be a boolean")
    if deleted not in _DELETED:
        raise Fault(f"deleted must be a boolean, not {dumps(deleted)}")
    return Affinity(members.text("state"), _DELETED[deleted], members.rest())
