"""ADD of a pod whose addresses are to stay with a name: those that are kept for it, and new ones for what it lacks.

All of the pod's addresses are kept, or none, so that its DEL has one handle to look at. Where they cannot be, the pod
gets ordinary ones, and the log says why: to keep an address is worth having, and no reason not to start.

Two pods of one name that start at once may each be given an address of their own. The one that no pod comes back for
goes when its time is over.

Invariant: of a call that ends with ordinary addresses nothing is left with the name.
"""

from __future__ import annotations

from domain.cni.netconf import KeepAddresses, KeepAs
from domain.ipam.errors import IpamError, NoPool
from domain.ipam.kept import LONGEST_HANDLE, KeptName, in_use, is_over, kept_in, last_node
from domain.workload.identity import host_interface_name
from ports.datastore import Blocks
from ports.errors import Damaged
from usecases.calls.safeguards import Undo
from usecases.ipam.allocation_terms import read_surroundings, terms_for, versions_of
from usecases.ipam.free_addresses import free_unfinished
from usecases.ipam.unused_kept import give_up_kept
from usecases.ipam.work import Work
from usecases.pods.kept_addresses import KeptAddresses, NotKept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from domain.ipam.address import Cidr
    from domain.ipam.request import Allocation, AssignRequest
    from domain.workload.identity import Identity
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.ipam.allocation_terms import Terms

    Assign: TypeAlias = Callable[[AssignRequest, Undo], tuple[Allocation, ...]]


class Keeping:
    """One call's. `request` is for all of the pod's addresses, with the pools that it may draw from."""

    def __init__(self, call: Call, runtime: Runtime, identity: Identity, request: AssignRequest) -> None:
        keep_as = call.netconf.ipam.keep_as or KeepAs()
        self._settings = call.netconf.ipam.keep_addresses or KeepAddresses()
        self._name = KeptName(identity.namespace, keep_as.name)
        said = in_use(self._name, identity.container_id, keep_as.pod_uid, keep_as.owner, self._settings.seconds)
        secondary = {**request.secondary, **said}
        self._request = request.replace(handle=self._name.handle(call.netconf.name), secondary=secondary)
        self._interface = host_interface_name(identity, call.request.interface_prefixes)
        self._runtime = runtime
        self._work = Work.on(runtime, call.deadline)

    def allocations(self, undo: Undo, assign: Assign) -> tuple[Allocation, ...] | None:
        """None, and a line in the log, if the pod is to get ordinary addresses."""
        own = Undo(self._runtime.clock, self._runtime.log)
        undo.register(f"what was taken of {self._name}", lambda _deadline: own.run())
        try:
            return self._allocations(own, assign)
        except (NotKept, Damaged) as error:
            self._work.log.warning("The pod's addresses are not kept", kept_as=self._name, why=error)
            own.run()
            return None

    def _allocations(self, own: Undo, assign: Assign) -> tuple[Allocation, ...]:
        work, request = self._work, self._request
        if len(request.handle) > LONGEST_HANDLE:
            raise NotKept(f"a handle can have {LONGEST_HANDLE} characters, and this would have {len(request.handle)}")
        kept = KeptAddresses(work, self._runtime.cluster, request, own, self._interface)
        terms = self._terms()
        found = kept.claim(terms)
        missing = [version for version in terms if all(one.block.version != version for one in found)]
        if missing:
            wanted = self._new({version: terms[version] for version in missing})
            own.register(
                "an unfinished assignment", lambda deadline: free_unfinished(work.until(deadline), request, kept.before)
            )
            try:
                found += assign(wanted, own)
            except IpamError as error:
                raise NotKept(str(error)) from error
        return tuple(sorted(found, key=lambda allocation: allocation.block.version))

    def _terms(self) -> dict[int, Terms]:
        """By IP version. A request that no pool serves is refused as any other is."""
        surroundings = read_surroundings(self._work, self._request, may_lag=True)
        terms: dict[int, Terms] = {}
        for version in versions_of(self._request):
            try:
                terms[version] = terms_for(version, surroundings)
            except IpamError as error:
                if not (isinstance(error, NoPool) and self._request.optional_families):
                    raise NotKept(str(error)) from error
        if not terms:
            raise NotKept("no IP version is asked for that a pool serves")
        return terms

    def _new(self, terms: dict[int, Terms]) -> AssignRequest:
        """What to ask for that the name has none of."""
        pools = {version: self._pools_with_room(each) for version, each in terms.items()}
        return self._request.replace(
            counts=dict.fromkeys(terms, 1),
            pools={**self._request.pools, **{version: cidrs for version, cidrs in pools.items() if cidrs}},
        )

    def _pools_with_room(self, terms: Terms) -> tuple[Cidr, ...]:
        """Those to draw from, () for all that serve the pod. NotKept if none may have another kept address.

        Calls that count at the same time do not see each other's.
        """
        now = self._work.clock.now()
        listed = self._work.datastore.list(Blocks(terms.version), self._work.deadline)
        blocks = [stored.record for stored in listed]
        give_up_kept(self._work, blocks)
        kept = [
            (block.cidr, last_node(holder))
            for block in blocks
            for _, holder in kept_in(block)
            if not is_over(holder, now)
        ]
        node, limit = self._request.owner.name, self._settings.max_per_node
        on_node = sum(1 for _, where in kept if where == node)
        if limit and on_node >= limit:
            raise NotKept(f"node {node} has {on_node} kept IPv{terms.version} addresses, and max_per_node is {limit}")
        percent, usable = self._settings.max_pool_percent, terms.choice.usable
        roomy = [
            pool.cidr
            for pool in usable
            if pool.cidr is not None
            and sum(1 for cidr, _ in kept if cidr in pool.cidr) < pool.cidr.size * percent // 100
        ]
        if not roomy:
            names = ", ".join([pool.metadata.name for pool in usable])
            raise NotKept(f"kept addresses are {percent} % of {names}, which is what max_pool_percent allows")
        return tuple(roomy) if len(roomy) < len(usable) else ()
