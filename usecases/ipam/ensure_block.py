"""See to it that a node has a block, before anything is assigned from it.

Windows needs to know a node's range when it makes the node's network, which comes before the first container. It is
kept for that: on Linux nobody calls it.

Invariant: a node that has a block in a usable pool gets no other one, however full it is; no address is taken.
"""

from __future__ import annotations

from usecases.ipam.allocation_terms import read_surroundings, terms_for, versions_of
from usecases.ipam.block_supply import BlockSupply, give_up_deselected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.request import AssignRequest
    from usecases.ipam.work import Work


def ensure_block(work: Work, request: AssignRequest) -> Mapping[int, Cidr]:
    """A block of the node for each IP version with a count above 0; how many blocks it may own does not matter.

    A version is missing from the answer if the pools have no place left. IpamError as for an assignment.
    """
    found = read_surroundings(work, request)
    blocks: dict[int, Cidr] = {}
    for terms in [terms_for(version, found) for version in versions_of(request)]:
        give_up_deselected(work, terms)
        block = BlockSupply(work, terms, limited=False).next(least=0)
        if block is not None:
            blocks[terms.version] = block.record.cidr
    return blocks
