"""Blocks ↔ JSON text (spec: datastore C.3). Every ADD and DEL reads and writes one, so this is the hot path.

Invariant: text that decodes describes a block in which no ordinal can be given out twice: its allocations and its
queue of free ordinals share nothing, stay inside the block, and name existing attributes.
"""

from __future__ import annotations

from adapters.records.members import Fault, Members, expect, labels_text, object_text
from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Block
from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.json_text import Json


def _encode_attribute(attribute: Attribute) -> str:
    known: list[tuple[str, str]] = []
    if attribute.handle is not None:
        known.append(("handle_id", dumps(attribute.handle)))
    if attribute.secondary:
        known.append(("secondary", labels_text(attribute.secondary)))
    if attribute.alternate:
        known.append(("alternateOwnerAttrs", labels_text(attribute.alternate)))
    if attribute.released_at is not None:
        known.append(("releasedAt", dumps(attribute.released_at)))
    return object_text(known, attribute.unknown)


def read_attribute(members: Members) -> Attribute:
    """Who holds an ordinal, as a record's members describe it."""
    return Attribute(
        handle=members.optional_text("handle_id"),
        secondary=members.labels("secondary"),
        alternate=members.optional_labels("alternateOwnerAttrs") or None,
        released_at=members.optional_time("releasedAt"),
        unknown=members.rest(),
    )


def attributes_text(block: Block) -> str:
    return "[" + ",".join([_encode_attribute(one) for one in block.attributes]) + "]"


def _attributes_or_null(block: Block) -> str:
    """`null` on a block that nothing was ever taken from, as the original's unset list; else a list, `[]` included."""
    if not block.attributes and block.unallocated == tuple(range(block.cidr.size)):
        return "null"
    return attributes_text(block)


def _encode_sequences(sequences: Mapping[int, int]) -> str:
    texts = sorted([(str(ordinal), sequence) for ordinal, sequence in sequences.items()])  # Go sorts keys as text
    return "{" + ",".join([f'"{ordinal}":{sequence}' for ordinal, sequence in texts]) + "}"


def encode_block(block: Block) -> str:
    """The text exactly as the original writes it."""
    known = [
        ("cidr", f'"{block.cidr.network}"'),
        ("affinity", dumps(block.affinity)),
    ]
    if block.claimed_at is not None:
        known.append(("affinity_claim_time", dumps(block.claimed_at)))
    return object_text([*known, *block_members(block, _attributes_or_null(block))], block.unknown)


def block_members(block: Block, attributes: str) -> list[tuple[str, str]]:
    """The members that every datastore spells alike; `attributes` is their JSON text."""
    return [
        ("allocations", "[" + ",".join(["null" if one is None else str(one) for one in block.allocations]) + "]"),
        ("unallocated", "[" + ",".join([str(one) for one in block.unallocated]) + "]"),
        ("attributes", attributes),
        ("sequenceNumber", str(block.sequence)),
        ("sequenceNumberForAllocation", _encode_sequences(block.sequences)),
        ("deleted", "true" if block.deleted else "false"),
    ]


def _decode_sequences(members: Members) -> dict[int, int]:
    found: dict[int, int] = {}
    value = members.take("sequenceNumberForAllocation")
    if value is None:
        return found
    if not isinstance(value, dict):
        raise Fault("sequenceNumberForAllocation must be an object")
    for ordinal, sequence in value.items():
        if not (ordinal.isascii() and ordinal.isdigit()):
            raise Fault(f"sequenceNumberForAllocation has the key {ordinal!r}, which is no ordinal")
        expect(sequence, int, f"sequenceNumberForAllocation.{ordinal}")
        found[int(ordinal)] = sequence  # type: ignore[assignment]  # `expect` has just said that it is an int
    return found


def _allocations(items: list[Json], size: int, attributes: int) -> tuple[int | None, ...]:
    if len(items) != size:
        raise Fault(f"allocations has {len(items)} entries in a block of {size}")
    for ordinal, index in enumerate(items):
        if index is not None:
            expect(index, int, f"allocations[{ordinal}]")
            if not 0 <= index < attributes:  # type: ignore[operator]  # `expect` has just said that it is an int
                raise Fault(f"allocations[{ordinal}] is {index}, but there are {attributes} attributes")
    return tuple(items)  # type: ignore[arg-type]  # the loop has just checked every item


def _unallocated(items: list[Json], allocations: tuple[int | None, ...]) -> tuple[int, ...]:
    seen: set[int] = set()
    for ordinal in items:
        if type(ordinal) is not int:
            raise Fault(f"unallocated lists {dumps(ordinal)}, which is no ordinal")
        if not 0 <= ordinal < len(allocations):
            raise Fault(f"unallocated lists ordinal {ordinal} outside of the block")
        if allocations[ordinal] is not None:
            raise Fault(f"unallocated lists ordinal {ordinal}, which is in use")
        if ordinal in seen:
            raise Fault(f"unallocated lists ordinal {ordinal} twice")
        seen.add(ordinal)
    return tuple(items)  # type: ignore[arg-type]  # the loop has just checked every item


def decode_block(text: str) -> Block:
    """ValueError with the fault for a record that must not be allocated from."""
    return read_block(Members.of_text(text), "affinity_claim_time")


def read_block(members: Members, claim_time: str) -> Block:
    """The block that a record's members describe; `claim_time` is the spelling of that member."""
    cidr = Cidr.parse_lenient(members.text("cidr")).network
    attributes = tuple([read_attribute(one) for one in members.objects("attributes")])
    allocations = _allocations(members.items("allocations"), cidr.size, len(attributes))
    return Block(
        cidr=cidr,
        affinity=members.optional_text("affinity"),
        claimed_at=members.optional_time(claim_time),
        allocations=allocations,
        unallocated=_unallocated(members.items("unallocated"), allocations),
        attributes=attributes,
        sequence=members.number("sequenceNumber"),
        sequences=_decode_sequences(members),
        deleted=members.flag("deleted"),
        unknown=members.rest(),
    )
