"""Room in pools and blocks, as numbers and words for every form of `tortie ipam show`.

Invariant: 0% means none and 100% all; a share between the two is shown as <1% to >99%.
"""

from __future__ import annotations

from entrypoints.tortie.output import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.utilisation import BlockUse, PoolUse, Space
    from domain.json_text import Json

SPACE_HEADINGS = (
    *("GROUPING", "NAME", "CIDR", "IPS TOTAL", "IPS IN USE", "IPS FREE"),
    *("BORROWED", "COOLING", "RESERVED", "BLOCKS", "OWNER"),
)
_LEGIBLE = 1 << 63  # larger numbers are shown as powers of two


def large(number: int) -> str:
    """Digits while they can be read, then a power of two."""
    if number < _LEGIBLE:
        return str(number)
    power = number.bit_length() - 1
    return f"2^{power}" if number == 1 << power else f"over 2^{power}"


def share(part: int, total: int) -> str:
    """`5 (8%)`; 0% means none and 100% all."""
    percent = round(100 * part / total)
    shown = "<1" if part and not percent else ">99" if percent == 100 and part < total else str(percent)
    return f"{large(part)} ({shown}%)"


def _space_json(space: Space) -> dict[str, Json]:
    return {
        "total": space.total,
        "inUse": space.in_use,
        "borrowed": space.borrowed,
        "cooling": space.cooling,
        "reserved": space.reserved,
        "free": space.free,
    }


def block_json(block: BlockUse) -> dict[str, Json]:
    return {"cidr": str(block.cidr), "affinity": block.owner, **_space_json(block.space)}


def pool_json(pool: PoolUse, *, blocks: bool) -> dict[str, Json]:
    about: dict[str, Json] = {
        "name": pool.name,
        "cidr": str(pool.cidr),
        "enabled": pool.enabled,
        **_space_json(pool.space),
        "blockCount": len(pool.blocks),
        "blockPlaces": pool.places,
    }
    return {**about, "blocks": [block_json(block) for block in pool.blocks]} if blocks else about


def pool_row(pool: PoolUse) -> Row:
    blocks = f"{len(pool.blocks)} of {large(pool.places)}"
    cells = {"GROUPING": "IP Pool", "NAME": pool.name, "BLOCKS": blocks, **_cells(pool)}
    return Row(f"ippool/{pool.name}", cells, pool_json(pool, blocks=False))


def block_row(block: BlockUse) -> Row:
    cells = {"GROUPING": "Block", "OWNER": block.owner or "", **_cells(block)}
    return Row(f"ipamblock/{block.cidr}", cells, block_json(block))


def _cells(use: PoolUse | BlockUse) -> dict[str, str]:
    space = use.space
    return {
        "CIDR": str(use.cidr),
        "IPS TOTAL": large(use.cidr.size),
        "IPS IN USE": share(space.in_use, space.total),
        "IPS FREE": share(space.free, space.total),
        "BORROWED": large(space.borrowed),
        "COOLING": large(space.cooling),
        "RESERVED": large(space.reserved),
    }
