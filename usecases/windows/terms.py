"""What the dataplane of a Windows node has to know of the cluster: its pools.

What a container sends to another one must not be given the host's address, so the ranges of all pools are exceptions
from that; and whether it is given one at all says the pool that the container's address is from. The blocks of that
pool also tell the subnet of an address that came by itself.

Invariant: nothing is written.
"""

from __future__ import annotations

from domain.cni.result import Dns
from domain.ipam.address import BITS, Cidr
from domain.windows.conf import read_windows_conf
from ports.datastore import IPPools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.pools import Pool
    from domain.workload.attachment import Attachment
    from ports.runtime import Runtime
    from usecases.calls.call import Call

POOLS_BUDGET = 10.0  # seconds


def with_pools(call: Call, runtime: Runtime, attachment: Attachment) -> Attachment:
    """The attachment with what the pools say, its addresses in their blocks."""
    deadline = call.deadline.sooner(runtime.clock.monotonic(), POOLS_BUDGET)
    pools = [stored.record for stored in runtime.datastore.list(IPPools(), deadline)]
    home = _pool_of(attachment.addresses[0], pools)
    return attachment.replace(
        addresses=tuple([_in_block(cidr, _pool_of(cidr, pools)) for cidr in attachment.addresses]),
        nat_outgoing=home.nat_outgoing if home is not None else True,
        nat_exceptions=tuple([pool.cidr for pool in pools if pool.cidr is not None]),
    )


def _pool_of(cidr: Cidr, pools: Iterable[Pool]) -> Pool | None:
    return next((pool for pool in pools if pool.cidr is not None and cidr.address in pool.cidr), None)


def _in_block(cidr: Cidr, pool: Pool | None) -> Cidr:
    """An address that was asked for by itself comes alone; an endpoint of Windows needs its subnet."""
    if pool is None or cidr.length < BITS[cidr.version]:
        return cidr
    return cidr.replace(length=pool.block_length)


def answered_dns(call: Call) -> Dns:
    """The name servers that the container is given."""
    return read_windows_conf(call.netconf).dns
