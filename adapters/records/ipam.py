"""IPAM's own records ↔ JSON text: settings, affinities, handles and blocks. Every ADD and DEL reads and writes them, so
this is the hot path.

There are two records of settings, the allocation config and the v3 resource. They have different spellings, and
nothing keeps them equal. Of an affinity the owner and the block are in the key alone, of a handle its ID.

Invariant: text that decodes describes a block in which no ordinal can be given out twice: its allocations and its
queue of free ordinals share nothing, stay inside the block, and name existing attributes. In the allocation config
every member that is false, 0 or unset is left out, so a stored `{}` switches automatic blocks off; in the v3 resource
the two booleans are always there. Old spellings of an affinity (no text at all, no state, `deleted` as a string) are
read, never written. A handle's blocks are written under their canonical CIDR, in the order of that text.
"""

from __future__ import annotations

from adapters.records.members import BadMember, Members, expect, labels_text, object_text
from adapters.records.resources import encode_resource, open_resource
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Attribute, Block, Handle
from domain.ipam.pools import AllocationConfig, IPAMConfiguration
from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.json_text import Json
    from domain.resource import Metadata


def encode_allocation_config(config: AllocationConfig) -> str:
    known: list[tuple[str, str]] = []
    if config.strict_affinity:
        known.append(("strict_affinity", "true"))
    if config.auto_allocate_blocks:
        known.append(("auto_allocate_blocks", "true"))
    return object_text([*known, *_limits(config)], config.unknown)


def _limits(config: AllocationConfig | IPAMConfiguration) -> list[tuple[str, str]]:
    known: list[tuple[str, str]] = []
    if config.max_blocks_per_host:
        known.append(("maxBlocksPerHost", str(config.max_blocks_per_host)))
    if config.kubevirt_persistence is not None:
        known.append(("kubeVirtVMAddressPersistence", dumps(config.kubevirt_persistence)))
    if config.cooldown_seconds:
        known.append(("ipCooldownSeconds", str(config.cooldown_seconds)))
    return known


def decode_allocation_config(text: str) -> AllocationConfig:
    members = Members.of_text(text)
    return AllocationConfig(
        strict_affinity=members.flag("strict_affinity"),
        auto_allocate_blocks=members.flag("auto_allocate_blocks"),
        max_blocks_per_host=members.number("maxBlocksPerHost"),
        kubevirt_persistence=members.optional_text("kubeVirtVMAddressPersistence"),
        cooldown_seconds=members.number("ipCooldownSeconds"),
        unknown=members.rest(),
    )


def encode_ipam_configuration(config: IPAMConfiguration) -> str:
    spec = object_text(settings_members(config), config.spec_unknown)
    return encode_resource("IPAMConfiguration", config.metadata, spec, unknown=config.unknown)


def settings_members(config: AllocationConfig | IPAMConfiguration) -> list[tuple[str, str]]:
    """The settings as a resource spells them."""
    return [
        ("strictAffinity", "true" if config.strict_affinity else "false"),
        ("autoAllocateBlocks", "true" if config.auto_allocate_blocks else "false"),
        *_limits(config),
    ]


def decode_ipam_configuration(text: str) -> IPAMConfiguration:
    return read_ipam_configuration(*open_resource(text))


def read_ipam_configuration(members: Members, metadata: Metadata) -> IPAMConfiguration:
    """The resource that the members besides the metadata describe."""
    spec = members.inner("spec")
    return IPAMConfiguration(
        metadata=metadata,
        strict_affinity=spec.flag("strictAffinity"),
        auto_allocate_blocks=spec.flag("autoAllocateBlocks"),
        max_blocks_per_host=spec.number("maxBlocksPerHost"),
        kubevirt_persistence=spec.optional_text("kubeVirtVMAddressPersistence"),
        cooldown_seconds=spec.number("ipCooldownSeconds"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )


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
        raise BadMember("deleted must be a boolean")
    if deleted not in _DELETED:
        raise BadMember(f"deleted must be a boolean, not {dumps(deleted)}")
    return Affinity(members.text("state"), _DELETED[deleted], members.rest())


def encode_handle(handle: Handle) -> str:
    return object_text(handle_members(handle), handle.unknown)


def handle_members(handle: Handle) -> list[tuple[str, str]]:
    counts = sorted([(str(cidr), count) for cidr, count in handle.blocks.items()])
    return [
        ("block", object_text([(cidr, str(count)) for cidr, count in counts])),
        ("deleted", "true" if handle.deleted else "false"),
    ]


def decode_handle(text: str) -> Handle:
    return read_handle(Members.of_text(text))


def read_handle(members: Members) -> Handle:
    """The handle that a record's members describe."""
    blocks: dict[Cidr, int] = {}
    found = members.take("block")
    if not isinstance(found, (dict, type(None))):
        raise BadMember("block must be an object")
    for cidr, count in (found or {}).items():
        expect(count, int, f"block.{cidr}")
        blocks[Cidr.parse_lenient(cidr).network] = count  # type: ignore[assignment]  # `expect` checked the type
    return Handle(blocks, members.flag("deleted"), members.rest())


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
        raise BadMember("sequenceNumberForAllocation must be an object")
    for ordinal, sequence in value.items():
        if not (ordinal.isascii() and ordinal.isdigit()):
            raise BadMember(f"sequenceNumberForAllocation has the key {ordinal!r}, which is no ordinal")
        expect(sequence, int, f"sequenceNumberForAllocation.{ordinal}")
        found[int(ordinal)] = sequence  # type: ignore[assignment]  # `expect` has just said that it is an int
    return found


def _allocations(items: list[Json], size: int, attributes: int) -> tuple[int | None, ...]:
    if len(items) != size:
        raise BadMember(f"allocations has {len(items)} entries in a block of {size}")
    for ordinal, index in enumerate(items):
        if index is not None:
            expect(index, int, f"allocations[{ordinal}]")
            if not 0 <= index < attributes:  # type: ignore[operator]  # `expect` has just said that it is an int
                raise BadMember(f"allocations[{ordinal}] is {index}, but there are {attributes} attributes")
    return tuple(items)  # type: ignore[arg-type]  # the loop has just checked every item


def _unallocated(items: list[Json], allocations: tuple[int | None, ...]) -> tuple[int, ...]:
    seen: set[int] = set()
    for ordinal in items:
        if type(ordinal) is not int:
            raise BadMember(f"unallocated lists {dumps(ordinal)}, which is no ordinal")
        if not 0 <= ordinal < len(allocations):
            raise BadMember(f"unallocated lists ordinal {ordinal} outside of the block")
        if allocations[ordinal] is not None:
            raise BadMember(f"unallocated lists ordinal {ordinal}, which is in use")
        if ordinal in seen:
            raise BadMember(f"unallocated lists ordinal {ordinal} twice")
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
