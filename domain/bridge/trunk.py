"""`vlanTrunk`: single VLANs and ranges of them, as one sorted list.

Invariant: every number that leaves here is a VLAN that a port can be a tagged member of, and is named once.
"""

from __future__ import annotations

from domain.value import Value

FIRST, LAST = 1, 4094


class BadTrunk(ValueError):
    """`str()` is the text for the user."""


class TrunkItem(Value):
    """One member of the list, as the configuration has it; None for what it does not say."""

    min_id: int | None = None
    max_id: int | None = None
    id: int | None = None


def trunk_vlans(items: tuple[TrunkItem, ...]) -> tuple[int, ...]:
    """All VLANs of the list. BadTrunk if one is no VLAN."""
    wanted: set[int] = set()
    for item in items:
        wanted.update(_range(item))
        if item.id is not None:
            if not _is_vlan(item.id):
                raise BadTrunk("incorrect trunk id parameter")
            wanted.add(item.id)
    return tuple(sorted(wanted))


def _range(item: TrunkItem) -> range:
    if item.min_id is None and item.max_id is None:
        return range(0)
    if item.min_id is None:
        raise BadTrunk("minID and maxID should be configured simultaneously, minID is missing")
    if item.max_id is None:
        raise BadTrunk("minID and maxID should be configured simultaneously, maxID is missing")
    if not _is_vlan(item.min_id):
        raise BadTrunk("incorrect trunk minID parameter")
    if not _is_vlan(item.max_id):
        raise BadTrunk("incorrect trunk maxID parameter")
    if item.max_id < item.min_id:
        raise BadTrunk("minID is greater than maxID in trunk parameter")
    return range(item.min_id, item.max_id + 1)


def _is_vlan(number: int) -> bool:
    return FIRST <= number <= LAST
