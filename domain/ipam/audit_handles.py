"""Compare what handles count with what blocks hold for them.

A death between two writes leaves a handle that counts too much, which nobody can see from the handle alone; one that
counts too little is worse, since a DEL would miss an address.

Invariant: pure; of a count and a block that differ the block is right.
"""

from __future__ import annotations

from domain.ipam.block import WINDOWS_HANDLE
from domain.ipam.inventory import COLLECT, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Handle
    from domain.ipam.inventory import Inventory

ORPHAN = "handle-orphan"
TOO_MUCH, TOO_LITTLE = "handle-counts-too-much", "handle-counts-too-little"
MISSING = "handle-missing"


def plain(handle: str) -> str:
    r"""A handle without the `\r…` that old versions left at its end."""
    return handle.partition("\r")[0]


def held_by_handle(inventory: Inventory) -> dict[str, dict[Cidr, int]]:
    """How many addresses the blocks hold for each handle. Windows' own reservations have no handle record."""
    found: dict[str, dict[Cidr, int]] = {}
    for cidr, (block, _) in inventory.blocks.items():
        for index in block.allocations:
            holder = block.attributes[index].holder if index is not None else None
            if holder and holder.lower() != WINDOWS_HANDLE:
                counts = found.setdefault(holder, {})
                counts[cidr] = counts.get(cidr, 0) + 1
    return found


def handle_findings(inventory: Inventory) -> Iterator[Finding]:
    held = held_by_handle(inventory)
    for name, (handle, revision) in inventory.handles.items():
        mine = held.pop(plain(name), {})
        unknown = [cidr for cidr in handle.blocks if cidr in inventory.unreadable.blocks]
        if mine or unknown:
            counted = {cidr: count for cidr, count in handle.blocks.items() if cidr not in unknown}
            yield from _miscounts(name, counted, mine, revision)
        else:
            yield _orphan(name, handle, revision)
    for name, counts in held.items():
        if name not in inventory.unreadable.handles:
            yield Finding(
                MISSING,
                name,
                f"{_shown(counts)}, but there is no handle record, so that the container's DEL may miss it",
                f"{COLLECT}, which writes the record",
                repairable=True,
                handle=name,
                holder={"handle": name},
                mark="none",
            )


def _orphan(name: str, handle: Handle, revision: str) -> Finding:
    counts = f"counts {_shown(handle.blocks)}" if handle.blocks else "counts nothing"
    return Finding(
        ORPHAN,
        name,
        f"it {counts}, but no block has an address for it",
        f"{COLLECT}, which deletes it",
        repairable=True,
        handle=name,
        holder={"handle": name},
        mark=revision,
    )


def _miscounts(name: str, counted: Mapping[Cidr, int], held: Mapping[Cidr, int], revision: str) -> Iterator[Finding]:
    for cidr in sorted({*counted, *held}, key=lambda one: (one.version, one.first, one.length)):
        count, real = counted.get(cidr, 0), held.get(cidr, 0)
        if count == real and count > 0:
            continue
        more = count > real or count == real == 0
        yield Finding(
            TOO_MUCH if more else TOO_LITTLE,
            name,
            f"it counts {count} in {cidr}, which holds {real} for it",
            f"{COLLECT}, which corrects the count",
            repairable=True,
            block=cidr,
            handle=name,
            holder={"handle": name},
            mark=revision,
        )


def _shown(counts: Mapping[Cidr, int]) -> str:
    """`2 in 10.0.0.0/26 and 1 in fd00::/122`."""
    return " and ".join([f"{count} in {cidr}" for cidr, count in counts.items()])
