"""What still makes sense of a damaged block, so that mending it takes no address from anybody the text still names.

Each member is judged by itself, unless the whole describes another block. An ordinal counts as held if its index leads
to an attribute that can be read; every other ordinal is free. The result is a block like any other.

Invariant: nothing is salvaged that the text does not say.
"""

from __future__ import annotations

from adapters.records.ipam import read_attribute
from adapters.records.members import Members
from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Block
from domain.json_text import parse
from domain.moment import parse_rfc3339
from ports.datastore import BlockKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.json_text import Json
    from ports.datastore import Key

LARGEST = 1 << 12  # addresses of a block; larger ones no pool has, but anybody can write such a key
_LAST_SEQUENCE = 2**63 - 1


def salvaged_text(key: Key[Any], text: str) -> Block | None:
    """Of the text under a key; None for other records than blocks."""
    if not isinstance(key, BlockKey):
        return None
    try:
        value = parse(text)
    except ValueError:
        value = None
    return salvaged(key, value, "affinity_claim_time")


def salvaged(key: Key[Any], value: Json, claim_time: str) -> Block | None:
    """Of what should be the members of a block; `claim_time` is the spelling of that one."""
    if not isinstance(key, BlockKey) or key.cidr.size > LARGEST:
        return None
    members = value if isinstance(value, dict) and not _is_of_another(value.get("cidr"), key.cidr) else {}
    attributes = [_attribute(item) for item in _list(members.get("attributes"))]
    held: dict[int, Attribute] = {}
    for ordinal, index in enumerate(_list(members.get("allocations"))[: key.cidr.size]):
        if type(index) is int and 0 <= index < len(attributes):
            attribute = attributes[index]
            if attribute is not None:
                held[ordinal] = attribute
    affinity, claimed_at = members.get("affinity"), members.get(claim_time)
    return _block(key.cidr, held).replace(
        affinity=affinity if isinstance(affinity, str) else None,
        claimed_at=claimed_at if _is_time(claimed_at) else None,
        sequence=_sequence(members.get("sequenceNumber")),
        sequences=_sequences(members.get("sequenceNumberForAllocation"), held),
    )


def _is_of_another(text: Json, cidr: Cidr) -> bool:
    try:
        return isinstance(text, str) and Cidr.parse_lenient(text).network != cidr
    except ValueError:
        return False


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _attribute(value: Json) -> Attribute | None:
    try:
        return read_attribute(Members(value))
    except ValueError:
        return None


def _block(cidr: Cidr, held: dict[int, Attribute]) -> Block:
    block = Block(cidr, None, None, (None,) * cidr.size, tuple(range(cidr.size)), (), 0, {})
    for ordinal, attribute in held.items():
        block = block.take((ordinal,), attribute)
    return block


def _is_time(value: Json) -> bool:
    try:
        return isinstance(value, str) and parse_rfc3339(value) is not None
    except ValueError:
        return False


def _sequence(value: Json) -> int:
    return value if type(value) is int and 0 <= value < _LAST_SEQUENCE else 0


def _sequences(value: Json, held: dict[int, Attribute]) -> dict[int, int]:
    known = value if isinstance(value, dict) else {}
    return {ordinal: _sequence(known.get(str(ordinal))) for ordinal in held}
