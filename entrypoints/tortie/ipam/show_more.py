"""`tortie ipam show --show-borrowed`, `--kept`, `--show-configuration`: addresses used on other nodes, those that stay
with a name, and the settings.

Invariant: nothing is changed.
"""

from __future__ import annotations

from domain.ipam.kept import KEPT_AS, KEPT_OWNER, KEPT_UNTIL, is_over, is_unused, kept_in, last_node
from domain.ipam.utilisation import is_borrowed
from domain.json_text import dumps
from entrypoints.tortie.answer import aligned, people
from entrypoints.tortie.output import Row, Sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Address
    from domain.ipam.block import Attribute
    from domain.ipam.inventory import Inventory
    from domain.json_text import Json

_HEADINGS = ("IP", "BORROWING-NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED-TO")
_MEMBERS = ("ip", "borrowingNode", "block", "blockOwner", "type", "allocatedTo")


def borrowed_sheet(inventory: Inventory, node: str) -> Sheet:
    """Of one node, or with "" of all."""
    loans = [loan for loan in _loans(inventory) if node in ("", loan[1])]
    rows = [Row(f"ip/{loan[0]}", dict(zip(_HEADINGS, loan)), {**dict(zip(_MEMBERS, loan))}) for loan in loans]

    def text() -> str:
        return people(aligned([_HEADINGS, *loans]) if loans else ["No address is borrowed."])

    return Sheet({"borrowed": [row.document for row in rows]}, _HEADINGS, tuple(rows), text)


def _loans(inventory: Inventory) -> Iterable[list[str]]:
    for cidr, (block, _) in inventory.blocks.items():
        for ordinal in range(cidr.size):
            holder = block.holder(ordinal)
            if holder is None or not is_borrowed(block, holder):
                continue
            about = holder.secondary
            pod = f"{about.get('namespace', '')}/{about['pod']}" if about.get("pod") else holder.holder or ""
            kind = about.get("type") or ("pod" if about.get("pod") else "container")
            owner = (block.affinity or "").partition(":")[2]
            yield [str(cidr.at(ordinal)), about.get("node", ""), str(cidr), owner, kind, pod]


_KEPT_HEADINGS = ("NAME", "IP", "POD", "NODE", "KEPT UNTIL", "OWNER")
_KEPT_MEMBERS = ("name", "ip", "pod", "node", "keptUntil", "owner")


def kept_sheet(inventory: Inventory, node: str) -> Sheet:
    """Of one node, or with "" of all, by name. `NODE` of one that no pod has is where it was last."""
    found = [
        (block.cidr.at(ordinal), holder) for block, _ in inventory.blocks.values() for ordinal, holder in kept_in(block)
    ]
    found = [one for one in found if node in ("", last_node(one[1]))]
    found.sort(key=lambda one: (one[1].secondary[KEPT_AS], one[0].version, one[0].number))
    rows = [_kept_row(address, holder, inventory.now) for address, holder in found]

    def text() -> str:
        cells = [[row.cells[heading] for heading in _KEPT_HEADINGS] for row in rows]
        return people(aligned([_KEPT_HEADINGS, *cells]) if cells else ["No address is kept for a name."])

    return Sheet({"kept": [row.document for row in rows]}, _KEPT_HEADINGS, tuple(rows), text)


def _kept_row(address: Address, holder: Attribute, now: int) -> Row:
    about = holder.secondary
    pod = f"{about.get('namespace', '')}/{about['pod']}" if about.get("pod") else ""
    until = about.get(KEPT_UNTIL, "")
    owner = about.get(KEPT_OWNER, "")
    document: dict[str, Json] = {
        **dict(zip(_KEPT_MEMBERS, (about[KEPT_AS], str(address), pod, last_node(holder), until, owner))),
        "handle": holder.holder or "",
        "unused": is_unused(holder),
        "over": is_over(holder, now),
    }
    shown = "over" if document["over"] else f"{until[:19]} UTC" if until else ""
    cells = (about[KEPT_AS], str(address), pod, last_node(holder), shown, owner.partition(" ")[0])
    return Row(f"ip/{address}", dict(zip(_KEPT_HEADINGS, cells)), document)


def configuration_sheet(inventory: Inventory) -> Sheet:
    config, resource = inventory.config, inventory.configuration
    persistence = (resource.kubevirt_persistence if resource else None) or "Enabled"
    values: dict[str, Json] = {
        "StrictAffinity": config.strict_affinity,
        "AutoAllocateBlocks": config.auto_allocate_blocks,
        "MaxBlocksPerHost": config.max_blocks_per_host,
        "KubeVirtVMAddressPersistence": persistence,
        "IPCooldownSeconds": config.cooldown_seconds,
    }
    shown = {name: value if isinstance(value, str) else dumps(value) for name, value in values.items()}
    rows = tuple([Row(f"setting/{name}", _setting(name, text), values) for name, text in shown.items()])

    def text() -> str:
        return people(aligned([["PROPERTY", "VALUE"], *[[name, value] for name, value in shown.items()]]))

    return Sheet(values, ("PROPERTY", "VALUE"), rows, text)


def _setting(name: str, value: str) -> dict[str, str]:
    return {"PROPERTY": name, "VALUE": value}
