"""`tortie ipam show`: how full pools and blocks are, what is borrowed, what the settings are.

The table is calicoctl's; below each line is a picture of what it says, and beside it what the columns leave out.

Invariant: no line is wider than the screen; where a row of the table does not fit, its cells stand below each other.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.cni.go_quote import printable
from domain.ipam.block import HOST
from domain.ipam.utilisation import PoolUse, utilisation
from domain.value import Value
from entrypoints.tortie.answer import Answer, Screen, aligned, folded, left_out, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.arguments import ip_address
from entrypoints.tortie.ipam.bars import LEGEND, block_bar, coloured, pool_bar
from entrypoints.tortie.ipam.show_address import address_sheet
from entrypoints.tortie.ipam.show_more import borrowed_sheet, configuration_sheet, kept_sheet
from entrypoints.tortie.ipam.space import SPACE_HEADINGS, block_json, block_row, large, pool_json, pool_row, share
from entrypoints.tortie.output import COLUMNS, WIDE, Row, Sheet, add_output, shown
from entrypoints.tortie.watch import PAUSE, watch
from usecases.check_ipam import take_inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from domain.ipam.inventory import Inventory
    from domain.ipam.utilisation import BlockUse, Space, Utilisation
    from domain.json_text import Json
    from entrypoints.tortie.session import Session

_HEADINGS = ["GROUPING", "CIDR", "IPS TOTAL", "IPS IN USE", "IPS FREE"]
_NUMBERS = (2, 3, 4)
_INDENT = " " * (len(_HEADINGS[0]) + 2)
_SHORTEST, _LONGEST = 0.2, 3600  # seconds between two looks
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
    add_output(parser)
    parser.add_argument("--blocks", "--show-blocks", action="store_true", help="each block, too")
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument("--ip", metavar="IP", type=ip_address, help="who has this address")
    subject.add_argument("--show-borrowed", "--borrowed", action="store_true", help="addresses used on other nodes")
    subject.add_argument("--kept", action="store_true", help="addresses that stay with a name")
    subject.add_argument("--show-configuration", "--configuration", action="store_true", help="the settings")
    parser.add_argument("--node", metavar="NODE", default="", help="only what this node owns or holds")
    parser.add_argument(
        "-w",
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=_seconds,
        const=PAUSE,
        help=f"again and again, until Ctrl-C (default: every {PAUSE:g})",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from {_SHORTEST:g} to {_LONGEST}")
    return seconds


def _objection(options: Namespace) -> str:
    if options.watch and options.output.name not in ("", WIDE, COLUMNS):
        return "--watch is for people; ask for one answer without it, or leave out -o"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 when something is left out since it cannot be read."""
    if options.watch:
        return watch(session, lambda: _looked(options, session), options.watch)
    inventory = take_inventory(session.work())
    notes = left_out([(unreadable.record, unreadable.fault) for unreadable in inventory.unreadable.records])
    return Answer(_shown(inventory, options, session), 1 if notes else 0, notes)


def _looked(options: Namespace, session: Session) -> str:
    inventory = take_inventory(session.work())
    notes = left_out([(unreadable.record, unreadable.fault) for unreadable in inventory.unreadable.records])
    return _shown(inventory, options, session) + people(notes)


def _shown(inventory: Inventory, options: Namespace, session: Session) -> str:
    return shown(options.output, _sheet(inventory, options, session.screen))


def _sheet(inventory: Inventory, options: Namespace, screen: Screen) -> Sheet:
    if options.ip:
        return address_sheet(inventory, options.ip)
    if options.show_configuration:
        return configuration_sheet(inventory)
    if options.show_borrowed:
        return borrowed_sheet(inventory, options.node)
    if options.kept:
        return kept_sheet(inventory, options.node)
    use = _utilisation(inventory)
    if options.node:
        return _of_node(inventory, use, options, screen)
    lines = [
        line
        for pool in use.pools
        for line in (_pool_line(pool), *[_block_line(block) for block in pool.blocks if options.blocks])
    ]
    lines += [_block_line(block, "in no pool") for block in use.strays]
    pools: list[Json] = [pool_json(pool, blocks=options.blocks) for pool in use.pools]
    document: Json = {"pools": pools, "blocksOutsidePools": [block_json(block) for block in use.strays]}
    none = "There is no IP pool; `tortie init --pool CIDR` makes one.\n"
    return Sheet(document, SPACE_HEADINGS, _rows(lines), lambda: _drawn(lines, screen) if lines else none)


def _rows(lines: list[Line]) -> tuple[Row, ...]:
    return tuple([pool_row(line.use) if isinstance(line.use, PoolUse) else block_row(line.use) for line in lines])


def _utilisation(inventory: Inventory) -> Utilisation:
    blocks = [block for block, _ in inventory.blocks.values()]
    cooldown = inventory.config.cooldown_seconds
    return utilisation(inventory.pools, blocks, inventory.reservations, inventory.now, cooldown)


# --- lines ------------------------------------------------------------------------------------------------------------


def _pool_line(pool: PoolUse) -> Line:
    words = [pool.name, f"{len(pool.blocks)} of {large(pool.places)} blocks", *_rest(pool.space)]
    if not pool.enabled:
        words.insert(1, "disabled")
    return Line("IP Pool", str(pool.cidr), large(pool.cidr.size), pool.space, printable(", ".join(words)), pool)


def _block_line(block: BlockUse, *words: str) -> Line:
    words = (block.owner or "no owner", *words, *_rest(block.space))
    return Line("Block", str(block.cidr), large(block.cidr.size), block.space, printable(", ".join(words)), block)


def _rest(space: Space) -> list[str]:
    """What the columns do not say."""
    counts = (("borrowed", space.borrowed), ("cooling down", space.cooling), ("reserved", space.reserved))
    return [f"{large(count)} {word}" for word, count in counts if count]


def _drawn(lines: list[Line], screen: Screen) -> str:
    rows = [
        [
            line.grouping,
            line.cidr,
            line.total,
            share(line.space.in_use, line.space.total),
            share(line.space.free, line.space.total),
        ]
        for line in lines
    ]
    head, *body = aligned([_HEADINGS, *rows], _NUMBERS)
    drawn = [head]
    for line, text in zip(lines, body):
        drawn += [text, *_picture(line, screen)]
    if max(map(len, (head, *body))) > screen.width:
        drawn = [text for line in lines for text in _narrow(line, screen)]
    return "\n".join([*drawn, "", *folded(LEGEND, screen.width, "")]) + "\n"


def _picture(line: Line, screen: Screen) -> list[str]:
    """The bar with its note beside it where there is room, else below."""
    room = max(screen.width - len(_INDENT) - 2, 8)
    bar = _bar(line, min(_CELLS, _power_below(room)))
    if len(bar) + 2 + len(line.note) <= room:
        return [f"{_INDENT}{_framed(bar, screen)}  {line.note}"]
    return [f"{_INDENT}{_framed(bar, screen)}", *folded(line.note, screen.width, _INDENT)]


def _narrow(line: Line, screen: Screen) -> list[str]:
    """The same below each other, where a row does not fit."""
    space = line.space
    bar = _bar(line, min(_CELLS, _power_below(max(screen.width - 4, 8))))
    words = [f"{share(space.in_use, space.total)} of {line.total} in use", f"{share(space.free, space.total)} free"]
    return [
        *folded(f"{line.grouping}  {line.cidr}", screen.width, ""),
        f"  {_framed(bar, screen)}",
        *folded(", ".join(words), screen.width, "  "),
        *folded(line.note, screen.width, "  "),
    ]


def _power_below(room: int) -> int:
    return 1 << (room.bit_length() - 1)


def _bar(line: Line, cells: int) -> str:
    return pool_bar(line.use, cells) if line.grouping == "IP Pool" else block_bar(line.use, cells)  # type: ignore[arg-type]  # the grouping says which it is


def _framed(bar: str, screen: Screen) -> str:
    return f"[{coloured(bar) if screen.colour else bar}]"


# --- one node ---------------------------------------------------------------------------------------------------------


def _of_node(inventory: Inventory, use: Utilisation, options: Namespace, screen: Screen) -> Sheet:
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
    items: list[Json] = [{**block_json(block), "heldByNode": held.get(str(block.cidr), 0)} for block in blocks]
    document: Json = {"node": node, "inUse": total, "borrowed": borrowed, "blocks": items}
    known = "" if node in inventory.nodes else " There is no such node."
    summary = f"Node {node} holds {_count(total, 'address', 'addresses')}, {borrowed} of them borrowed; "
    summary += f"{_count(len(own), 'block', 'blocks')} of its own.{known}"
    lines = [
        _block_line(block) if block in own else _block_line(block, f"{held[str(block.cidr)]} of them for {node}")
        for block in blocks
    ]
    text = people([summary]) + ("\n" + _drawn(lines, screen) if lines else "")
    return Sheet(document, SPACE_HEADINGS, _rows(lines), lambda: text)


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


COMMAND = Command(
    "show",
    "Show how full IP pools and blocks are, and who has an address.",
    _run,
    _add_arguments,
    _objection,
    examples="""\
tortie ipam show --blocks
tortie ipam show --ip 10.244.0.7                  who has it
tortie ipam show --node n1 -o wide                what one node owns or holds, in one line each
tortie ipam show --show-borrowed
tortie ipam show --watch                          until Ctrl-C, in place
tortie ipam show -o custom-columns=CIDR,"IPS FREE\"""",
)
