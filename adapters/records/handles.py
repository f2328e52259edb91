"""Handles ↔ JSON text: `{"block":{"172.16.178.160/29":1},"deleted":false}`. The handle's ID is in the key alone.

Invariant: blocks are written under their canonical CIDR, in the order of that text.
"""

from __future__ import annotations

from adapters.records.members import Fault, Members, expect, object_text
from domain.ipam.address import Cidr
from domain.ipam.handle import Handle


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
        raise Fault("block must be an object")
    for cidr, count in (found or {}).items():
        expect(count, int, f"block.{cidr}")
        blocks[Cidr.parse_lenient(cidr).network] = count  # type: ignore[assignment]  # `expect` checked the type
    return Handle(blocks, members.flag("deleted"), members.rest())
