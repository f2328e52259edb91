"""`tortie ipam show --ip`: whose an address is, down to the endpoint, and if nobody's, whether it can be given out.

Invariant: nothing is changed.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import Holders
from domain.ipam.kept import is_unused
from domain.ipam.pools import pool_of, reserved_cidrs
from domain.moment import SECOND, parse_rfc3339, rfc3339
from entrypoints.tortie.answer import people
from entrypoints.tortie.output import Row, Sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address
    from domain.ipam.block import Attribute, Block
    from domain.ipam.inventory import Inventory
    from domain.json_text import Json


def address_sheet(inventory: Inventory, address: Address) -> Sheet:
    facts = _facts(inventory, address)
    cells = {name.upper(): _text(value) for name, value in facts.items() if name != "attributes"}
    row = Row(f"ip/{address}", cells, facts)
    return Sheet(facts, tuple(cells), (row,), lambda: _lines(address, facts))


def _lines(address: Address, facts: dict[str, Json]) -> str:
    lines = [f"IP {address} {_STATES[str(facts['state'])]}"]
    attributes = facts.get("attributes")
    lines += [f"  {_LABELS[name]:<13}{_text(value)}" for name in _LABELS if (value := facts.get(name))]
    if isinstance(attributes, dict):
        lines += ["Attributes:", *[f"  {name}: {value}" for name, value in attributes.items()]]
    return people(lines)


_STATES = {
    "inUse": "is in use",
    "kept": "is kept for a name, and no pod has it",
    "cooldown": "is not assigned; it was released and is cooling down",
    "reserved": "is not assigned; it is reserved, so only a request for it by name gets it",
    "free": "is not assigned",
    "unknown": "is not assigned; it is in no IP pool",
}
_LABELS = {
    "handle": "Handle",
    "sequence": "Sequence",
    "endpoints": "Endpoint",
    "block": "Block",
    "affinity": "Affinity",
    "pool": "Pool",
    "reservations": "Reserved by",
    "releasedAt": "Released",
    "freeAfter": "Free after",
}


def _text(value: Json) -> str:
    return ", ".join([str(item) for item in value]) if isinstance(value, list) else str(value)


def _facts(inventory: Inventory, address: Address) -> dict[str, Json]:
    place = Holders(inventory.blocks).of(address)
    pool = pool_of(inventory.pools, address)
    endpoints = [endpoint for endpoint in inventory.endpoints if address in endpoint.addresses]
    reservations = [
        reservation.metadata.name
        for reservation in inventory.reservations
        if any(address in cidr for cidr in reserved_cidrs([reservation], address.version))
    ]
    facts: dict[str, Json] = {
        "ip": str(address),
        "state": "unknown" if pool is None and place is None else "reserved" if reservations else "free",
        "endpoints": [f"{endpoint.metadata.namespace}/{endpoint.metadata.name}" for endpoint in endpoints],
        "pool": f"{pool.metadata.name} ({pool.cidr_text})" if pool else "",
        "reservations": list(reservations),
    }
    return {**facts, **_of_block(inventory, *place)} if place else facts


def _of_block(inventory: Inventory, block: Block, ordinal: int, holder: Attribute | None) -> dict[str, Json]:
    facts: dict[str, Json] = {"block": str(block.cidr), "affinity": block.affinity or "none"}
    if holder is None:
        return facts
    if holder.released_at is None:
        return {
            "state": "kept" if is_unused(holder) else "inUse",
            "handle": holder.holder or "",
            **facts,
            "sequence": block.sequences.get(ordinal),
            "attributes": {**holder.secondary},
        }
    over = parse_rfc3339(holder.released_at) + inventory.config.cooldown_seconds * SECOND
    if over < inventory.now:
        return facts
    return {"state": "cooldown", **facts, "releasedAt": holder.released_at, "freeAfter": rfc3339(over)}
