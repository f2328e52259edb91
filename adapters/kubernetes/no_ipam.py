"""A cluster whose addresses come from its nodes' pod CIDRs: with USE_POD_CIDR the original keeps no IPAM records.

What would be assigned all the same could collide with what the nodes give out.

Invariant: nothing is read or written.
"""

from __future__ import annotations

from adapters.kubernetes.objects import Family
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    HandleKey,
    Handles,
    Key,
)
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ports.clock import Deadline
    from ports.datastore import Need

IPAM_RECORDS = (AllocationConfigKey, BlockKey, Blocks, AffinityKey, Affinities, HandleKey, Handles)
_ADVICE = (
    'USE_POD_CIDR is true, so addresses come from the nodes\' pod CIDRs: set "ipam" to '
    '{"type": "host-local", "subnet": "usePodCidr"}, or unset USE_POD_CIDR to have calico-ipam assign them'
)


class NoIpam(Family):
    def requests(self, need: Need[Any], deadline: Deadline) -> NoReturn:  # noqa: ARG002 - refused before it asks
        operation = "Get" if isinstance(need, Key) else "List"
        raise Refused(f"operation {operation} is not supported on {need}", details=_ADVICE)

    def answer(self, need: Need[Any], found: object, deadline: Deadline) -> NoReturn:  # noqa: ARG002 - as above
        raise AssertionError(need)
