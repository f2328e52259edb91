"""Everything that says who has which address, as read at one time, and what an audit of it may find.

Invariant: a finding's `identity` is the same in two looks exactly when nobody has touched the record in between, so
what is found twice, some time apart, is left over and not merely in the making.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.ipam.block import Block, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation, Pool
from domain.value import Value
from domain.workload.endpoint import WorkloadEndpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROBLEM, LEAK, INFO = "problem", "leak", "info"
COLLECT = "run `tortie ipam gc --yes`"
NOBODY: Mapping[str, str] = {}


class Claim(Value):
    """An affinity record. `state` is as in the record; "" counts as confirmed."""

    owner: Owner
    cidr: Cidr
    state: str
    revision: str


class DamagedRecord(Value):
    """A record that is there and cannot be used: its name as operators know it, and what is wrong.

    At most one of the last four says which of IPAM's own records it is.
    """

    record: str
    fault: str
    revision: str = ""
    block: Cidr | None = None
    handle: str = ""
    claim: tuple[Owner, Cidr] | None = None
    settings: bool = False


class Unreadable(Value):
    """All records that are there and cannot be used, and what the audit must not conclude from their absence."""

    records: tuple[DamagedRecord, ...] = ()
    blocks: frozenset[Cidr] = frozenset()
    handles: frozenset[str] = frozenset()
    claims: frozenset[tuple[Owner, Cidr]] = frozenset()
    nodes: frozenset[str] = frozenset()
    endpoints: bool = False


class Inventory(Value):
    """`blocks` and `handles` map to (record, revision). `nodes` are the names of those that exist.

    `now` is in nanoseconds since the epoch. `configuration` is the v3 resource of the settings, if there is one.
    `host_routes` are the addresses that the machine has a route for by themselves, each with its interface.
    `machines` says of handles of virtual machines whether there is such a machine, where that is known.
    """

    now: int
    blocks: Mapping[Cidr, tuple[Block, str]] = {}
    handles: Mapping[str, tuple[Handle, str]] = {}
    claims: tuple[Claim, ...] = ()
    pools: tuple[Pool, ...] = ()
    reservations: tuple[IPReservation, ...] = ()
    endpoints: tuple[WorkloadEndpoint, ...] = ()
    nodes: frozenset[str] = frozenset()
    config: AllocationConfig = AllocationConfig()
    configuration: IPAMConfiguration | None = None
    unreadable: Unreadable = Unreadable()
    machines: Mapping[str, bool] = {}
    host_routes: tuple[tuple[Address, str], ...] = ()


class Finding(Value):
    """`kind` is a word that stays the same between versions; `subject` the address, block, handle or record meant.

    `reason` says what is the matter, `advice` what to do. `holder` says who has it: handle, node, pod, namespace,
    container, endpoint. `repairable`: garbage collection can put it right. The typed fields after it say what to act
    on; `mark` is the revision, or the sequence number of an address, that it was found at.
    """

    kind: str
    subject: str
    reason: str
    advice: str
    level: str = PROBLEM
    holder: Mapping[str, str] = NOBODY
    repairable: bool = False
    address: Address | None = None
    block: Cidr | None = None
    handle: str = ""
    owner: Owner | None = None
    mark: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Of a leaked address also its handle: numbers start anew in a block that was made anew."""
        return (self.kind, self.subject, self.handle, self.mark)
