"""host-local's reservations become Calico's: what each file turns into, foreseen or done.

Addresses of one block are recorded together, and their files removed before the next block's turn.

Invariant: a file is removed only after its address is recorded for its container, or no pod has it. Foreseeing changes
nothing.
"""

from __future__ import annotations

from domain.ipam.block import HOST, Owner, new_block
from domain.ipam.errors import IpamError
from domain.ipam.pool_reasons import outside
from domain.ipam.pools import AllocationConfig, enabled_pools, pool_of, require_block_size
from domain.ipam.upgrade import LOCK, Left, Placement, ReservationFile, fates
from domain.value import Value
from ports.datastore import AllocationConfigKey, BlockKey, IPPools
from ports.errors import Refused, Unavailable
from usecases.ipam.take_over import place_in, take_over
from usecases.ipam.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from domain.ipam.address import Address, Cidr
    from domain.ipam.pools import Pool
    from domain.ipam.upgrade import Fates, Move, Placed
    from ports.runtime import UpgradeRuntime

STEP = 60.0  # seconds for one step, such as writing a block
_AT_ONCE = 256  # addresses that a block is written for
_REPORT = 2.0  # seconds between two lines about how far it is


class Outcome(Value):
    """Names of files: `moved` now, recorded `before`, `stale`; and what is `left`, with the reasons."""

    moved: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """Of addresses that are in Calico's IPAM then."""
        return (*self.moved, *self.before)

    @property
    def in_vain(self) -> bool:
        """Whether there is nothing but what cannot be moved."""
        return bool(self.left) and not (self.recorded or self.stale)


class Terms(Value):
    """What the datastore says about every address."""

    config: AllocationConfig
    pools: tuple[Pool, ...]

    def block_of(self, address: Address) -> Cidr:
        """IpamError says why the address cannot be recorded."""
        pool = pool_of(enabled_pools(self.pools, address.version), address)
        if pool is None:
            why = f"{address} is in no enabled IP pool ({outside(self.pools, address)})"
            raise IpamError(f"{why}; make a pool that has it, or delete its pod")
        require_block_size(pool)
        return address.host_cidr.replace(length=pool.block_length).network


def work_step(runtime: UpgradeRuntime) -> Work:
    """With the time that one step has."""
    return Work(runtime.datastore, runtime.clock, runtime.log, runtime.clock.deadline(STEP))


def read_terms(work: Work) -> Terms:
    config, pools = work.datastore.fetch(AllocationConfigKey(), IPPools(), deadline=work.deadline)
    return Terms(config.record if config else AllocationConfig(), tuple([one.record for one in pools]))


class Reservations:
    """Those of one node."""

    def __init__(self, runtime: UpgradeRuntime, node: str) -> None:
        self._runtime = runtime
        self._node = node
        self._owner = Owner(HOST, node)
        self._told_at = runtime.clock.monotonic()

    def foresee(self) -> Outcome:
        """What would become of them now. Nothing is waited for."""
        work = work_step(self._runtime)
        terms = read_terms(work)

        def place(cidr: Cidr, placements: Sequence[Placement]) -> Placed:
            stored = work.datastore.get(BlockKey(cidr), work.deadline)
            block = stored.record if stored else new_block(cidr, self._owner, None, 0)
            return place_in(work, block, self._owner, placements, terms.config)

        return self._each(self._fates(work), terms, place, lambda _names: {})

    def move(self) -> Outcome:
        """Under host-local's lock."""
        work = work_step(self._runtime)
        terms, found = read_terms(work), self._fates(work)
        self._runtime.log.info("Reservations of host-local", move=len(found.moves), stale=len(found.stale))

        def place(cidr: Cidr, placements: Sequence[Placement]) -> Placed:
            placed = take_over(work_step(self._runtime), self._owner, cidr, placements, terms.config)
            recorded.append(len(placed.taken) + len(placed.had))
            self._tell(sum(recorded), len(found.moves))
            return placed

        recorded: list[int] = []
        self._runtime.doing(f"moved 0 of {len(found.moves)} reservations")
        return self._each(found, terms, place, self._remove)

    def _fates(self, work: Work) -> Fates:
        pods = self._runtime.cluster.pods_on(self._node, work.deadline)
        return fates([self._file(name) for name in self._runtime.reservations.names() if name != LOCK], pods)

    def _file(self, name: str) -> ReservationFile:
        try:
            return ReservationFile(name, self._runtime.reservations.read(name))
        except Refused as error:
            return ReservationFile(name, fault=str(error))

    def _remove(self, names: Iterable[str]) -> Mapping[str, str]:
        """Those that stay, and why. The next ones may go all the same."""
        stuck = {}
        for name in names:
            try:
                self._runtime.reservations.remove(name)
            except Unavailable as error:
                stuck[name] = str(error)
        return stuck

    def _each(
        self,
        found: Fates,
        terms: Terms,
        place: Callable[[Cidr, Sequence[Placement]], Placed],
        remove: Callable[[Iterable[str]], Mapping[str, str]],
    ) -> Outcome:
        """`place` records addresses of one block; then `remove` gets their names, and gives those that stay."""
        blocks, forgotten, left = _by_block(found.moves, terms)
        stale = (*found.stale, *forgotten)
        stuck = dict(remove(stale))
        moved: list[str] = []
        before: list[str] = []
        for cidr, moves in blocks:
            placed = place(cidr, [Placement(one.address, one.attribute(self._node), one.name) for one in moves])
            now, earlier = [one.name for one in placed.taken], [one.name for one in placed.had]
            stuck |= remove([*now, *earlier])
            moved += now
            before += earlier
            left += [Left(one.name, f"{one.address} cannot be recorded: {why}") for one, why in placed.refused]
        left += [Left(name, f"its file is of no use any more, and stays: {why}") for name, why in stuck.items()]
        moved, before, gone = ([name for name in names if name not in stuck] for names in (moved, before, stale))
        return Outcome(tuple(moved), tuple(before), tuple(gone), (*found.left, *left))

    def _tell(self, done: int, of: int) -> None:
        self._runtime.doing(f"moved {done} of {of} reservations")
        now = self._runtime.clock.monotonic()
        if now - self._told_at >= _REPORT:
            self._told_at = now
            self._runtime.log.info("Moving reservations", done=done, of=of)


def _by_block(moves: Iterable[Move], terms: Terms) -> tuple[list[tuple[Cidr, list[Move]]], list[str], list[Left]]:
    """Some moves of each block together; names that are forgotten; and what is in no pool.

    As in the original a pod's second address outside of all pools is left out: Calico never had it.
    """
    blocks: dict[Cidr, list[Move]] = {}
    forgotten: list[str] = []
    left: list[Left] = []
    for move in moves:
        try:
            blocks.setdefault(terms.block_of(move.address), []).append(move)
        except IpamError as error:
            if move.main:
                left.append(Left(move.name, str(error)))
            else:
                forgotten.append(move.name)
    pieces = [
        (cidr, those[start : start + _AT_ONCE])
        for cidr, those in blocks.items()
        for start in range(0, len(those), _AT_ONCE)
    ]
    return pieces, forgotten, left
