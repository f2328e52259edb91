"""A handle: how many addresses a container holds in each block; an index that leads a DEL to the right blocks.

Invariant kept by the order of writes (increment before the block write, decrement after): a handle counts at least
what the blocks hold for it. It may count too much after a crash; the blocks are the truth.
"""

from __future__ import annotations

from domain.ipam.address import Cidr
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MACHINE_MARK = ".vmi."  # in the handle of every virtual machine, which its containers share


class Handle(Value):
    """`blocks` maps a block's canonical CIDR to a count of at least one."""

    blocks: Mapping[Cidr, int]
    deleted: bool = False
    unknown: tuple[tuple[str, str], ...] = ()
