"""ADD of the IPAM plugin: addresses for one container.

Invariant: on any error, and when the answer cannot be delivered, the caller's undo frees what was taken here.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.netconf import BOTH_OFF
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import V4, V6, Cidr
from domain.ipam.block import HOST, HostReservedAttr, Owner
from domain.ipam.errors import IpamError
from domain.ipam.request import AssignRequest
from domain.moment import go_string
from domain.workload.identity import KUBERNETES, endpoint_name, identify
from ports.datastore import HandleKey, IPPools
from ports.errors import Conflict, PortError, Unavailable
from usecases.calls.safeguards import host_lock, refuse_own_namespace
from usecases.calls.this_node import node_name
from usecases.ipam.allocation_terms import needs_of, read_ahead, remembered_affinities
from usecases.ipam.auto_assign import auto_assign
from usecases.ipam.free_addresses import free_unfinished
from usecases.ipam.work import Work, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.pools import Pool
    from domain.ipam.request import Allocation
    from domain.workload.identity import Identity
    from domain.workload.kubevirt import VirtualMachine
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo
    from usecases.pods.machine_addresses import MachineAddresses

FRESH = 1.0  # seconds for which what was read ahead of the host's lock will do


def assign_addresses(call: Call, runtime: Runtime, undo: Undo) -> Result:
    """The addresses with their blocks' masks (one asked for, or held before: /32 or /128), and one route for each.

    The target of a live migration is given no routes: the traffic stays with the source until the machine is there.
    """
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    endpoint_name(identity)
    assignment = _Assignment(call, runtime, identity, undo)
    machine = _machine(call, runtime, identity) if identity.is_named_as_launcher else None
    try:
        return assignment.for_pod_or_container() if machine is None else assignment.for_machine(machine)
    except IpamError as error:
        if runtime.datastore.left_out:
            from usecases.ipam.sound_records import blame_left_out

            blame_left_out(runtime.datastore, error)
        raise


def expect_assignment(call: Call, runtime: Runtime) -> None:
    """What an assignment reads before it takes the host's lock may come along with earlier questions of the call."""
    if call.args.ip is not None or not _reads_ahead(runtime):
        return
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    request = _request(call, runtime, identity)
    if not runtime.datastore.lists_in_one_go:
        request = request.replace(on_known_node=_goes_by_pods(call, identity))
    if any(request.counts.values()):
        known = remembered_affinities(Work.on(runtime, call.deadline), request) is not None
        runtime.datastore.expect(*needs_of(request, may_lag=True, own=not known))


def _reads_ahead(runtime: Runtime) -> bool:
    """Whether something is read before the lock. Where lists are dear, a host's first call reads all there is now,
    under it.
    """
    if runtime.datastore.lists_in_one_go:
        return runtime.datastore.brings_along
    from usecases.calls.last_calls import recall

    return recall(runtime) != ""


def _machine(call: Call, runtime: Runtime, identity: Identity) -> VirtualMachine | None:
    """Few pods need what this loads."""
    from usecases.pods.find_machine import machine_to_keep

    return machine_to_keep(call, runtime, Work.on(runtime, call.deadline), identity)


class _Assignment:
    """One call's."""

    def __init__(self, call: Call, runtime: Runtime, identity: Identity, undo: Undo) -> None:
        self._call = call
        self._runtime = runtime
        self._identity = identity
        self._undo = undo
        self._work = Work.on(runtime, call.deadline)
        self._request = _request(call, runtime, identity)

    def for_pod_or_container(self) -> Result:
        kept = self._kept() if self._call.netconf.ipam.keep_as is not None and self._call.args.ip is None else None
        return _result(self._for_container() if kept is None else kept)

    def _kept(self) -> tuple[Cidr, ...] | None:
        """What stays with the pod's name; None if nothing does. Few pods need what this loads."""
        from usecases.pods.keep_addresses import Keeping

        keeping = Keeping(self._call, self._runtime, self._identity, self._aimed(self._request))
        found = keeping.allocations(self._undo, self._draw)
        return None if found is None else tuple([allocation.answer for allocation in found])

    def _for_container(self) -> tuple[Cidr, ...]:
        work, request = self._work, self._request
        self._undo.register("an unfinished assignment", lambda deadline: free_unfinished(work.until(deadline), request))
        return tuple([self._answer(allocation) for allocation in self._assign(request)])

    def for_machine(self, machine: VirtualMachine) -> Result:
        """What the machine has, and what it lacks. A target of its migration can only have the former."""
        from usecases.pods.find_machine import handle_of
        from usecases.pods.machine_addresses import MachineAddresses

        work, undo = self._work, self._undo
        request = self._request.replace(
            handle=handle_of(self._call, machine),
            secondary={**self._request.secondary, **machine.attributes},
            max_per_handle=1,
        )
        held = MachineAddresses(work, request, undo, is_target=bool(machine.migration))
        undo.register(
            "an unfinished assignment", lambda deadline: free_unfinished(work.until(deadline), request, held.before)
        )
        if machine.migration:
            return _result(tuple([allocation.alone for allocation in held.own(self._version)])).replace(routes=())
        # `Conflict`: another pod's DEL has just freed what was there
        allocations = until_won(HandleKey(request.handle), lambda: self._complete(held, request), Conflict)
        return _result(tuple([self._answer(allocation) for allocation in allocations]))

    @property
    def _version(self) -> int | None:
        """The IP version of an address that is asked for."""
        return None if self._call.args.ip is None else self._call.args.ip.version

    def _answer(self, allocation: Allocation) -> Cidr:
        return allocation.answer if self._call.args.ip is None else allocation.alone

    def _complete(self, held: MachineAddresses, request: AssignRequest) -> tuple[Allocation, ...]:
        """The machine's addresses, IPv4 first, and new ones of the versions that it has none of."""
        found = held.own(self._version)
        wanted = request.counts if self._version is None else {self._version: 1}
        missing = {version: count for version, count in wanted.items() if not _of_version(found, version)}
        if found and not any(missing.values()):
            self._tell_if_other(found)
            return found
        new = self._assign(request.replace(counts=missing))
        for allocation in new:
            if allocation.held_before:
                held.own_adopted(allocation)
        return tuple(sorted([*found, *new], key=lambda allocation: allocation.block.version))

    def _tell_if_other(self, found: tuple[Allocation, ...]) -> None:
        wanted = self._call.args.ip
        if wanted is not None and all(allocation.address != wanted for allocation in found):
            has = ", ".join([str(allocation.address) for allocation in found])
            self._work.log.warning("A virtual machine keeps its address, not the one asked for", has=has, asked=wanted)

    def _assign(self, request: AssignRequest) -> tuple[Allocation, ...]:
        """New addresses: the one that is asked for, or one of each IP version that is wanted."""
        call, runtime, work = self._call, self._runtime, self._work
        if call.args.ip is not None:
            from usecases.ipam.assign_specific import assign_specific, upgrade_host  # few calls ask for an address

            with host_lock(call, runtime):
                upgrade_host(work, runtime.node, request.owner)
                allocation = assign_specific(work, request, call.args.ip, self._undo)
            return (allocation,)
        if not any(request.counts.values()):
            work.log.warning(BOTH_OFF)
            return ()
        return self._draw(self._aimed(request), self._undo)

    def _aimed(self, request: AssignRequest) -> AssignRequest:
        """The request with what decides from where it is served."""
        return request.replace(
            pools=_pools(self._call, self._work),
            namespace_labels=_namespace_labels(self._call, self._runtime, self._identity),
            on_known_node=_is_on_known_node(self._call, self._runtime, self._identity),
            busy=tuple([address.host_cidr for address in self._runtime.node.addresses()]),
        )

    def _draw(self, request: AssignRequest, undo: Undo) -> tuple[Allocation, ...]:
        """One address of each IP version that is wanted."""
        call, runtime, work = self._call, self._runtime, self._work
        began, found = runtime.clock.monotonic(), read_ahead(work, request) if _reads_ahead(runtime) else None
        with host_lock(call, runtime):
            if found is not None and runtime.clock.monotonic() - began > FRESH:
                found = read_ahead(work, request)
            families = auto_assign(work, request, undo, found)
        for family in families:
            if family.shortfall:
                from usecases.ipam.explain_shortage import explain_shortage  # few calls are refused

                text = f"failed to request IPv{family.version} addresses: {family.shortfall}"
                raise IpamError(text, details=explain_shortage(work, request, family.version))
        return tuple([allocation for family in families for allocation in family.allocations])


def _of_version(allocations: tuple[Allocation, ...], version: int) -> bool:
    return any(allocation.block.version == version for allocation in allocations)


def _result(addresses: tuple[Cidr, ...]) -> Result:
    return Result(
        ips=tuple([ResultIp(address) for address in addresses]),
        routes=tuple([ResultRoute(address) for address in addresses]),
    )


def _request(call: Call, runtime: Runtime, identity: Identity) -> AssignRequest:
    ipam = call.netconf.ipam
    secondary = {"node": identity.node, "timestamp": go_string(runtime.clock.now())}
    if identity.orchestrator == KUBERNETES:
        secondary = {"namespace": identity.namespace, "node": identity.node, "pod": identity.pod, **secondary}
    request = AssignRequest(
        Owner(HOST, identity.node),
        f"{call.netconf.name}.{call.request.container_id}",
        secondary,
        {V4: int(ipam.assign_ipv4 != "false"), V6: int(ipam.assign_ipv6 == "true")},
        max_blocks=1 if call.netconf.windows_use_single_network else 0,
        optional_families=ipam.optional_families,
    )
    return _on_windows(request) if runtime.on_windows else request


def _on_windows(request: AssignRequest) -> AssignRequest:
    """The network, its gateway, the host and the broadcast address are no container's."""
    return request.replace(on_windows=True, host_reserved={V4: HostReservedAttr(3, 1, note="windows host rsvd")})


def _pools(call: Call, work: Work) -> Mapping[int, tuple[Cidr, ...]]:
    """The pools that the configuration asks for, by range or by name."""
    wanted = {V4: call.netconf.ipam.ipv4_pools, V6: call.netconf.ipam.ipv6_pools}
    if not any(wanted.values()):
        return {}
    known = {stored.record.metadata.name: stored.record for stored in work.datastore.list(IPPools(), work.deadline)}
    return {version: tuple([_pool(text, version, known) for text in texts]) for version, texts in wanted.items()}


def _pool(text: str, version: int, known: Mapping[str, Pool]) -> Cidr:
    try:
        cidr = Cidr.parse(text)
    except ValueError:
        try:
            cidr = Cidr.parse(known[text].cidr_text if text in known else text)
        except ValueError as error:
            from domain.ipam.pool_reasons import those_there_are

            there = those_there_are(known.values(), version)
            raise IpamError(f'error parsing pool "{text}": {error}', details=there) from None
    if cidr.version != version:
        where = f'"{text}" is IPv{cidr.version}: it belongs into ipv{cidr.version}_pools'
        raise IpamError(f'"{cidr.network.address}" isn\'t a IPv{version} address', details=where)
    return cidr.network


def _goes_by_pods(call: Call, identity: Identity) -> bool:
    return identity.orchestrator == KUBERNETES and call.netconf.policy.is_kubernetes


def _is_on_known_node(call: Call, runtime: Runtime, identity: Identity) -> bool:
    """Whether the cluster has a pod on this node, and so the node. Asked where a record less is a request less."""
    if runtime.datastore.lists_in_one_go or not _goes_by_pods(call, identity):
        return False
    try:
        pod = runtime.cluster.pod(identity.namespace, identity.pod, call.deadline)
    except PortError:
        return False
    return pod.node == identity.node


def _namespace_labels(call: Call, runtime: Runtime, identity: Identity) -> Mapping[str, str] | None:
    """Labels of the workload's namespace, where a cluster is configured that knows it."""
    if not call.netconf.kubernetes.kubeconfig and not call.netconf.policy.is_kubernetes:
        return None
    try:
        return runtime.cluster.namespace(identity.namespace, call.deadline).labels
    except Unavailable:
        raise
    except PortError as error:
        raise CniError(INTERNAL, f"failed to get namespace {identity.namespace}: {error}") from error
