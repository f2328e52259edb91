"""The records shared by all nodes: typed keys, six verbs, compare-and-swap on one record at a time.

Not every technology has transactions over several records (upstream uses none), so every order of writes must leave
states that any reader recovers from. Where there are some, a seventh verb, `write`, spares a round trip and the state
in between. A revision names one version of one record; `update` and `delete` that name it happen only if the record is
still at it.

Invariant, kept by every adapter (tests/integration/contracts): what `create` or `update` returned is what `get` gives
until somebody writes again, and of two writes that name the same revision one fails with `Conflict`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.cluster import ClusterInformation, Node
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, Affinity, Block, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation, Pool
from domain.value import Value
from domain.workload.endpoint import Profile, WorkloadEndpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Generic, TypeAlias, TypeVar, overload

    from ports.clock import Deadline

    R = TypeVar("R")
    A = TypeVar("A")
    A1 = TypeVar("A1")
    A2 = TypeVar("A2")
    A3 = TypeVar("A3")
    A4 = TypeVar("A4")
    A5 = TypeVar("A5")
    A6 = TypeVar("A6")

    class Need(Value, Generic[A]):
        """Something to read: answered with an A."""

    Revision: TypeAlias = str
else:  # plugins do without `typing`, which is slow to load, so what is generic is spelt twice: for checkers, and to run
    R = A = None

    def overload(function):
        return function

    class Need(Value):
        def __class_getitem__(cls, _item):
            return cls


if TYPE_CHECKING:

    class Stored(Value, Generic[R]):
        """A record as read: where, what, and at which revision."""

        key: Key[R]
        record: R
        revision: Revision

    class Key(Need[Stored[R] | None], Generic[R]):
        """Names one record; answered with it, or None."""

    class Listing(Need[tuple[Stored[R], ...]], Generic[R]):
        """Names a set of records; answered with them in key order."""

else:

    class Stored(Value):
        key: Key
        record: object
        revision: str

        def __class_getitem__(cls, _item):
            return cls

    class Key(Need):
        pass

    class Listing(Need):
        pass


class BlockKey(Key[Block]):
    cidr: Cidr

    def __str__(self) -> str:
        return f"BlockKey(cidr={self.cidr})"


class AffinityKey(Key[Affinity]):
    owner: Owner
    cidr: Cidr

    def __str__(self) -> str:
        return f"BlockAffinityKey(cidr={self.cidr}, host={self.owner.name}, affinityType={self.owner.kind})"

    @staticmethod
    def of(stored: Stored[Affinity]) -> AffinityKey:
        """Whose affinity was read, and to which block."""
        key = stored.key
        assert isinstance(key, AffinityKey)  # noqa: S101 - no other key names an affinity
        return key


class HandleKey(Key[Handle]):
    handle: str

    def __str__(self) -> str:
        return f"IPAMHandleKey(id={self.handle})"

    @staticmethod
    def of(stored: Stored[Handle]) -> HandleKey:
        """Which handle was read."""
        key = stored.key
        assert isinstance(key, HandleKey)  # noqa: S101 - no other key names a handle
        return key


class AllocationConfigKey(Key[AllocationConfig]):
    def __str__(self) -> str:
        return "IPAMConfigKey()"


class _Named(Value):
    """Keys of v3 resources print as `Kind(name)`."""

    name: str

    def __str__(self) -> str:
        return f"{type(self).__name__.removesuffix('Key')}({self.name})"


class IPAMConfigurationKey(_Named, Key[IPAMConfiguration]):
    pass


class ClusterInformationKey(_Named, Key[ClusterInformation]):
    pass


class NodeKey(_Named, Key[Node]):
    pass


class IPPoolKey(_Named, Key[Pool]):
    pass


class IPReservationKey(_Named, Key[IPReservation]):
    pass


class ProfileKey(_Named, Key[Profile]):
    pass


class WorkloadEndpointKey(Key[WorkloadEndpoint]):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"WorkloadEndpoint({self.namespace}/{self.name})"


class Blocks(Listing[Block]):
    """All blocks of one IP version, or of both; or (`around`) those that overlap one range, whatever their size."""

    version: int | None = None
    around: Cidr | None = None


class Affinities(Listing[Affinity]):
    """Affinities of one owner (or of all owners of that kind: name ""), of one IP version or both.

    With `to` only those to one block.

    `may_lag`, of this and other listings: an answer that was true a moment ago will do, if it is cheaper. A caller that
    misses something in it lists again before it refuses a call or makes a record.
    """

    owner: Owner
    version: int | None = None
    may_lag: bool = False
    to: Cidr | None = None


def affinities_of_all(version: int | None = None, to: Cidr | None = None) -> tuple[Affinities, Affinities]:
    """What to fetch for the affinities of every owner: of nodes, and of others."""
    return Affinities(Owner(HOST, ""), version, to=to), Affinities(Owner(VIRTUAL, ""), version, to=to)


class Handles(Listing[Handle]):
    pass


class IPPools(Listing[Pool]):
    may_lag: bool = False


class IPReservations(Listing[IPReservation]):
    may_lag: bool = False


class IPAMConfigurations(Listing[IPAMConfiguration]):
    pass


class ClusterInformations(Listing[ClusterInformation]):
    pass


class Nodes(Listing[Node]):
    pass


class Profiles(Listing[Profile]):
    pass


class WorkloadEndpoints(Listing[WorkloadEndpoint]):
    """Endpoints of one namespace (or of all: ""), whose names begin with the prefix; or those of one node alone."""

    namespace: str = ""
    name_prefix: str = ""
    node: str = ""


class BadText(Value):
    """A record that is there but cannot be used. `fault` says what is wrong with it.

    `text` is all that is stored; over its `revision` it can be replaced or deleted. `salvage` is a block of what
    makes sense of a damaged one.
    """

    key: Key[Any]
    fault: str
    text: str = ""
    revision: str = ""
    salvage: Block | None = None


class Change(Value):
    """What is to become of one record: `record` over what is at that revision (None: nothing is), or no record."""

    key: Key[Any]
    record: object | None
    replaces: Revision | None


class Datastore(ABC):
    """All verbs may raise `Unavailable` (`Expired` past the deadline) and `Unauthorized`."""

    lists_in_one_go = True
    """Whether a listing of any length takes one round trip and is of now.

    Where it takes more, callers look first where they expect a record to be, then go by a listing that lags, and ask
    for all there is now only if that is not enough.
    """

    brings_along = False
    """Whether what a call expects comes along with what it asks: it then asks less often."""

    writes_together = False
    """Whether there is `write`."""

    left_out: tuple[BadText, ...] = ()
    """What listings of this process have left out so far because it does not parse."""

    def expect(self, *needs: Need[Any]) -> None:
        """These are going to be fetched within a moment: what else is fetched before may bring them along.

        Their answers are then from that moment. Whatever is wrong with one shows when it is fetched.
        """

    def recall(self, notes: str) -> None:  # noqa: ARG002 - an adapter that gains nothing by it does nothing
        """Go by the notes of an earlier call on this host, instead of by those before; "" for none.

        Whatever they say, nothing is lost by it.
        """
        return

    def notes(self) -> str:
        """For a later call on this host: what this one, and those that it has notes of, know. "" if that is nothing."""
        return ""

    def remembered(self, need: Need[A]) -> A | None:  # noqa: ARG002 - as above
        """What the notes say that the answer was. By now it may be another one.

        So a record may only be written over its revision, and is read if that fails; and an affinity is a lead.
        """
        return None

    @overload
    def fetch(self, a: Need[A1], /, *, deadline: Deadline) -> tuple[A1]: ...
    @overload
    def fetch(self, a: Need[A1], b: Need[A2], /, *, deadline: Deadline) -> tuple[A1, A2]: ...
    @overload
    def fetch(self, a: Need[A1], b: Need[A2], c: Need[A3], /, *, deadline: Deadline) -> tuple[A1, A2, A3]: ...
    @overload
    def fetch(
        self, a: Need[A1], b: Need[A2], c: Need[A3], d: Need[A4], /, *, deadline: Deadline
    ) -> tuple[A1, A2, A3, A4]: ...
    @overload
    def fetch(
        self, a: Need[A1], b: Need[A2], c: Need[A3], d: Need[A4], e: Need[A5], /, *, deadline: Deadline
    ) -> tuple[A1, A2, A3, A4, A5]: ...
    @overload
    def fetch(
        self, a: Need[A1], b: Need[A2], c: Need[A3], d: Need[A4], e: Need[A5], f: Need[A6], /, *, deadline: Deadline
    ) -> tuple[A1, A2, A3, A4, A5, A6]: ...
    @abstractmethod
    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        """Answer any mix of keys and listings, in order, as cheaply as the technology allows.

        The answers need not be from one instant.
        """

    def get(self, key: Key[R], deadline: Deadline) -> Stored[R] | None:
        """One record, or None."""
        return self.fetch(key, deadline=deadline)[0]

    def list(self, listing: Listing[R], deadline: Deadline) -> tuple[Stored[R], ...]:
        """The records of a listing, in key order. Records that do not parse are left out."""
        return self.fetch(listing, deadline=deadline)[0]

    @abstractmethod
    def unreadable(self, deadline: Deadline, listing: Listing[Any] | None = None) -> tuple[BadText, ...]:
        """The records that a listing leaves out because they do not parse, in key order.

        Without one those of all listings; that reads everything there is.
        """

    def upgrade_affinities(self, owner: Owner, deadline: Deadline) -> None:
        """Rewrite an owner's affinities that an old version stored in another form. Most technologies have none."""

    @abstractmethod
    def create(self, key: Key[R], record: R, deadline: Deadline) -> Stored[R]:
        """Write a record that must not exist, else `AlreadyExists`. Fills uid and creation time of v3 resources."""

    @abstractmethod
    def update(self, key: Key[R], record: R, replaces: Revision, deadline: Deadline) -> Stored[R]:
        """Replace the record at that revision; `Conflict` if it has another, `Missing` if it is gone."""

    @abstractmethod
    def delete(self, key: Key[R], replaces: Revision | None, deadline: Deadline) -> None:
        """Delete the record at that revision (None: at any); `Conflict`, `Missing` as above."""

    def write(self, changes: Sequence[Change], deadline: Deadline) -> tuple[Stored[Any] | None, ...]:
        """All of it or nothing, of different records; what is then stored.

        The error is that of a change that cannot be made: `AlreadyExists`, `Conflict`, `Missing`.
        """
        raise NotImplementedError
