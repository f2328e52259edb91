"""`ipam split`: put several pools in one pool's place, while no call allocates.

The children come first and the pool goes last. Whatever dies in between leaves every address in some pool, and the same
command again goes on from there.

Invariant: blocks, handles and addresses are not touched; without `force` nothing is written while allocation goes on.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.pool_rules import check_pool
from domain.ipam.pool_split import children
from ports.datastore import Blocks, ClusterInformationKey, IPPoolKey, IPPools, Stored
from ports.errors import AlreadyExists, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.pools import Pool
    from ports.clock import Deadline
    from ports.datastore import Datastore


class NotLocked(IpamError):
    """Calls would allocate meanwhile."""


def require_locked(datastore: Datastore, deadline: Deadline) -> None:
    """NotLocked while calls may allocate. What only an ADD would lack (ClusterInformation) is no reason to refuse."""
    stored = datastore.get(ClusterInformationKey("default"), deadline)
    if stored is not None and stored.record.datastore_ready:
        raise NotLocked(
            "the datastore is not locked; run `tortie datastore migrate lock` first, and unlock it afterwards"
        )


def named_pool(datastore: Datastore, name: str, cidr: Cidr | None, deadline: Deadline) -> Stored[Pool]:
    """The pool of that name, or else of that range. Missing if there is none."""
    for stored in datastore.list(IPPools(), deadline):
        if name and stored.record.metadata.name == name and cidr in (None, stored.record.cidr):
            return stored
        if not name and stored.record.cidr == cidr:
            return stored
    raise Missing(f"IPPool({name or cidr})")


def split_pool(datastore: Datastore, pool: Stored[Pool], number: int, deadline: Deadline) -> tuple[Pool, ...]:
    """The pools that there are instead. BadPool if it cannot be split so."""
    blocks = [stored.record.cidr for stored in datastore.list(Blocks(), deadline)]
    wanted = children(pool.record, number, blocks)
    for child in wanted:
        check_pool(child)
    for child in wanted:
        _write(datastore, child, deadline)
    datastore.delete(pool.key, pool.revision, deadline)
    return wanted


def _write(datastore: Datastore, child: Pool, deadline: Deadline) -> None:
    """Of an earlier run that was interrupted the child may be there."""
    key = IPPoolKey(child.metadata.name)
    try:
        datastore.create(key, child, deadline)
    except AlreadyExists:
        stored = datastore.get(key, deadline)
        if stored is None or stored.record.cidr != child.cidr:
            raise
