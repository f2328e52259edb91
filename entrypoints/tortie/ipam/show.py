"""`tortie ipam show`: how full pools and blocks are, what is borrowed, what the settings are.

The table is calicoctl's; below each line is a picture of what it says, and beside it what the columns leave out.

Invariant: no line is wider than the screen, unless it is too narrow for a table at all.
"""

from __future__ import annotations

from domain.cni.go_quote import printable
from domain.ipam.block import HOST
from domain.ipam.utilisation import is_borrowed, utilisation
from domain.json_text import dumps
from domain.value import Value
from entrypoints.tortie.answer import Answer, Screen, aligned, folded, left_out, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.arguments import add_json, ip_address
from entrypoints.tortie.ipam.bars import LEGEND, block_bar, coloured, pool_bar
from entrypoints.tortie.ipam.show_address import show_address
from usecases.check_ipam import take_inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from domain.ipam.inventory import Inventory
    from domain.ipam.utilisation import BlockUse, PoolUse, Space, Utilisation
    from domain.json_text import Json
    from entrypoints.tortie.session import Session

_HEADINGS = ["GROUPING", "CIDR", "IPS TOTAL", "IPS IN USE", "IPS FREE"]
_NUMBERS = (2, 3, 4)
_INDENT = " " * (len(_HEADINGS[0]) + 2)
_LEGIBLE = 1 << 63  # larger numbers are shown as powers of two
_CELLS = 64  # one an address in blocks of the usual size


class Line(Value):
    """One line of the table, with a printable `note` on what the columns leave out."""

    grouping: str
    cidr: str
    total: str
    space: Space
    note: str
    use: BlockUse | PoolUse


def _add_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--blocks", "--show-blocks", action="store_true", help="each block, too")
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument("--ip", metavar="IP", type=ip_address, help="who has this address")
    subject.add_argument("--show-borrowed", "--borrowed", action="store_true", help="addresses used on other nodes")
    subject.add_argument("--show-configuration", "--configuration", action="store_true", help="the settings")
    parser.add_argument("--node", metavar="NODE", default="", help="only what this node owns or holds")


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 when something is left out since it cannot be read."""
    inventory = take_inventory(session.work())
    notes = left_out([(unreadable.record, unreadable.fault) for unreadable in inventory.unreadable.records])
    return Answer(_shown(inventory, options, session), 1 if notes else 0, notes)


def _shown(inventory: Inventory, options: Namespace, session: Session) -> str:
    if options.ip:
        return show_address(inventory, options.ip, as_json=options.output == "json")
    if options.show_configuration:
        return _configuration(inventory, as_json=options.output == "json")
    if options.show_borrowed:
        return _borrowed(inventory, options.node, as_json=options.output == "json")
    use = _utilisation(inventory)
    if options.node:
        return _of_node(inventory, use, options, session.screen)
    if options.output == "json":
        pools: list[Json] = [_pool_json(pool, blocks=options.blocks) for pool in use.pools]
        return _json({"pools": pools, "blocksOutsidePools": [_block_json(block) for block in use.strays]})
    lines = [
        line
        for pool in use.pools
        for line in (_pool_line(pool), *[_block_line(block) for block in pool.blocks if options.blocks])
    ]
    lines += [_block_line(block, "in no pool") for block in use.strays]
    return _drawn(lines, session.screen) if lines else "There is no IP pool; `tortie init --pool CIDR` makes one.\n"


def _utilisation(inventory: Inventory) -> Utilisation:
    blocks = [block for block, _ in inventory.blocks.values()]
    cooldown = inventory.config.cooldown_seconds
    return utilisation(inventory.pools, blocks, inventory.reservations, inventory.now, cooldown)


def _json(document: Json) -> str:
    return dumps(document, indent=2) + "\n"


# --- lines ------------------------------------------------------------------------------------------------------------


def _pool_line(pool: PoolUse) -> Line:
    words = [pool.name, f"{len(pool.blocks)} of {_large(pool.places)} blocks", *_rest(pool.space)]
    if not pool.enabled:
        words.insert(1, "disabled")
    return Line("IP Pool", str(pool.cidr), _large(pool.cidr.size), pool.space, printable(", ".join(words)), pool)


def _block_line(block: BlockUse, *words: str) -> Line:
    words = (block.owner or "no owner", *words, *_rest(block.space))
    return Line("Block", str(block.cidr), _large(block.cidr.size), block.space, printable(", ".join(words)), block)


def _rest(space: Space) -> list[str]:
    """What the columns do not say."""
    counts = (("borrowed", space.borrowed), ("cooling down", space.cooling), ("reserved", space.reserved))
    return [f"{_large(count)} {word}" for word, count in counts if count]


def _large(number: int) -> str:
    """Digits while they can be read, then a power of two."""
    if number < _LEGIBLE:
        return str(number)
    power = number.bit_length() - 1
    return f"2^{power}" if number == 1 << power else f"over 2^{power}"


def _share(part: int, total: int) -> str:
    """`5 (8%)`; what is neither nothing nor all is never shown as 0 or 100%."""
    percent = round(100 * part / total)
    shown = "<1" if part and not percent else ">99" if percent == 100 and part < total else str(percent)
    return f"{_large(part)} ({shown}%)"


def _drawn(lines: list[Line], screen: Screen) -> str:
    rows = [
        [
            line.grouping,
            line.cidr,
            line.total,
            _share(line.space.in_use, line.space.total),
            _share(line.space.free, line.space.total),
        ]
        for line in lines
    ]
    head, *body = aligned([_HEADINGS, *rows], _NUMBERS)
    drawn = [head]
    for line, text in zip(lines, body):
        drawn += [text, *_picture(line, screen)]
    return "\n".join([*drawn, "", *folded(LEGEND, screen.width, "")]) + "\n"


def _picture(line: Line, screen: Screen) -> list[str]:
    """The bar with its note beside it where there is room, else below."""
    room = max(screen.width - len(_INDENT) - 2, 8)
    bar = _bar(line, min(_CELLS, _power_below(room)))
    if len(bar) + 2 + len(line.note) <= room:
        return [f"{_INDENT}{_framed(bar, screen)}  {line.note}"]
    return [f"{_INDENT}{_framed(bar, screen)}", *folded(line.note, screen.width, _INDENT)]


def _power_below(room: int) -> int:
    return 1 << (room.bit_length() - 1)


def _bar(line: Line, cells: int) -> str:
    return pool_bar(line.use, cells) if line.grouping == "IP Pool" else block_bar(line.use, cells)  # type: ignore[arg-type]  # the grouping says which it is


def _framed(bar: str, screen: Screen) -> str:
    return f"[{coloured(bar) if screen.colour else bar}]"


# --- one node ---------------------------------------------------------------------------------------------------------


def _of_node(inventory: Inventory, use: Utilisation, options: Namespace, screen: Screen) -> str:
    """The blocks that are the node's or hold addresses for it."""
    node: str = options.node
    held = _held_by_node(inventory, node)
    blocks = [
        block
        for block in (*[block for pool in use.pools for block in pool.blocks], *use.strays)
        if block.owner == f"{HOST}:{node}" or held.get(str(block.cidr))
    ]
    own = [block for block in blocks if block.owner == f"{HOST}:{node}"]
    total = sum(held.values())
    borrowed = total - sum(held.get(str(block.cidr), 0) for block in own)
    if options.output == "json":
        shown: list[Json] = [{**_block_json(block), "heldByNode": held.get(str(block.cidr), 0)} for block in blocks]
        return _json({"node": node, "inUse": total, "borrowed": borrowed, "blocks": shown})
    known = "" if node in inventory.nodes else " There is no such node."
    summary = f"Node {node} holds {_count(total, 'address', 'addresses')}, {borrowed} of them borrowed; "
    summary += f"{_count(len(own), 'block', 'blocks')} of its own.{known}"
    lines = [
        _block_line(block) if block in own else _block_line(block, f"{held[str(block.cidr)]} of them for {node}")
        for block in blocks
    ]
    return people([summary]) + ("\n" + _drawn(lines, screen) if lines else "")


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _held_by_node(inventory: Inventory, node: str) -> dict[str, int]:
    """How many addresses each block holds for the node."""
    counts: dict[str, int] = {}
    for cidr, (block, _) in inventory.blocks.items():
        holders = [block.holder(ordinal) for ordinal in range(cidr.size)]
        number = sum(
            1 for holder in holders if holder and not holder.released_at and holder.secondary.get("node") == node
        )
        if number:
            counts[str(cidr)] = number
    return counts


# --- what is borrowed, and the settings -------------------------------------------------------------------------------


def _borrowed(inventory: Inventory, node: str, *, as_json: bool) -> str:
    rows = [row for row in _loans(inventory) if node in ("", row[1])]
    headings = ["IP", "BORROWING-NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED-TO"]
    if as_json:
        names = ("ip", "borrowingNode", "block", "blockOwner", "type", "allocatedTo")
        return _json({"borrowed": [dict(zip(names, row)) for row in rows]})
    return people(aligned([headings, *rows]) if rows else ["No address is borrowed."])


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


def _configuration(inventory: Inventory, *, as_json: bool) -> str:
    config, resource = inventory.config, inventory.configuration
    persistence = (resource.kubevirt_persistence if resource else None) or "Enabled"
    values: dict[str, Json] = {
        "StrictAffinity": config.strict_affinity,
        "AutoAllocateBlocks": config.auto_allocate_blocks,
        "MaxBlocksPerHost": config.max_blocks_per_host,
        "KubeVirtVMAddressPersistence": persistence,
        "IPCooldownSeconds": config.cooldown_seconds,
    }
    if as_json:
        return _json(values)
    rows = [[name, str(value).lower() if isinstance(value, bool) else str(value)] for name, value in values.items()]
    return people(aligned([["PROPERTY", "VALUE"], *rows]))


# --- JSON -------------------------------------------------------------------------------------------------------------


def _space_json(space: Space) -> dict[str, Json]:
    return {
        "total": space.total,
        "inUse": space.in_use,
        "borrowed": space.borrowed,
        "cooling": space.cooling,
        "reserved": space.reserved,
        "free": space.free,
    }


def _block_json(block: BlockUse) -> dict[str, Json]:
    return {"cidr": str(block.cidr), "affinity": block.owner, **_space_json(block.space)}


def _pool_json(pool: PoolUse, *, blocks: bool) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "name": pool.name,
        "cidr": str(pool.cidr),
        "enabled": pool.enabled,
        **_space_json(pool.space),
        "blockCount": len(pool.blocks),
        "blockPlaces": pool.places,
    }
    return {**shown, "blocks": [_block_json(block) for block in pool.blocks]} if blocks else shown


COMMAND = Command("show", "Show how full IP pools and blocks are, and who has an address.", _run, _add_arguments)
