"""`tortie ipam show --show-borrowed` and `--show-configuration`: addresses used on other nodes, and the settings.

Invariant: nothing is changed.
"""

from __future__ import annotations

from domain.ipam.utilisation import is_borrowed
from domain.json_text import dumps
from entrypoints.tortie.answer import aligned, people
from entrypoints.tortie.output import Row, Sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
