"""Pictures of pools and blocks: one character an address, or a bucket of them, from the lowest address up.

    #  in use    b  borrowed    ~  cooling down    x  reserved    .  free    +  some of a bucket    blank  no block yet

Invariant: a bar is as long as it was asked to be, and a bucket is drawn as full only if nothing in it is free.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Cidr, covers
from domain.ipam.utilisation import BORROWED, COOLING, FREE, RESERVED, USED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.utilisation import BlockUse, PoolUse

SIGNS = {FREE: ".", USED: "#", BORROWED: "b", COOLING: "~", RESERVED: "x"}
SOME, NOTHING = "+", " "
LEGEND = "# in use  + some in use  b borrowed  ~ cooling down  x reserved  . free  blank: no block"
_COLOURS = {"#": "31", "+": "33", "b": "35", "~": "36", "x": "34", ".": "32"}  # red means that there is nothing left
_BUSY = (USED, BORROWED, COOLING, RESERVED)


def block_bar(use: BlockUse, cells: int) -> str:
    """At most as many cells as the block has addresses."""
    size = len(use.states)
    step = max(size // cells, 1)
    return "".join(
        [_sign([use.states[at : at + step].count(state) for state in range(5)], 0) for at in range(0, size, step)]
    )


def pool_bar(use: PoolUse, cells: int) -> str:
    """Each cell is a power of two of addresses, so blocks lie in one cell, or cells in one block."""
    cells = min(cells, use.cidr.size)
    length = use.cidr.length + cells.bit_length() - 1
    step = 1 << (BITS[use.cidr.version] - length)
    counts: dict[int, list[int]] = {}
    for block in use.blocks:
        states, place = block.states, block.cidr.first - use.cidr.first
        for at in range(0, len(states), step):
            part = states[at : at + step]
            cell = counts.setdefault((place + at) // step, [0] * 5)
            for state in range(5):
                cell[state] += part.count(state)
    bar = []
    for number in range(cells):
        if number in counts:
            bar.append(_sign(counts[number], step - sum(counts[number])))
        else:
            cell_range = Cidr(use.cidr.version, use.cidr.first + number * step, length)
            bar.append(SIGNS[RESERVED] if covers(use.reserved, cell_range) else NOTHING)
    return "".join(bar)


def _sign(counts: list[int], outside: int) -> str:
    """The character for a bucket: how many addresses are in each state, and how many in no block."""
    busy = max(_BUSY, key=lambda state: counts[state])
    if not counts[busy]:
        return SIGNS[FREE]
    if not counts[FREE] and not outside:
        return SIGNS[busy]
    if counts[USED] or counts[BORROWED]:
        return SOME
    return SIGNS[FREE]


def coloured(bar: str) -> str:
    """The same with terminal colours, a run of equal characters at a time."""
    parts: list[str] = []
    for sign, run in _runs(bar):
        colour = _COLOURS.get(sign)
        parts.append(f"\x1b[{colour}m{run}\x1b[0m" if colour else run)
    return "".join(parts)


def _runs(bar: str) -> Iterable[tuple[str, str]]:
    start = 0
    for at in range(1, len(bar) + 1):
        if at == len(bar) or bar[at] != bar[start]:
            yield bar[start], bar[start:at]
            start = at
