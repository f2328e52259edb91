"""ADD of the IPAM plugin: addresses for one container (spec: ipam 3, 4).

Invariant: on any error, and when the answer cannot be delivered, the caller's undo frees what was taken here.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, INVALID_CONFIG, CniError
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import V4, V6, Cidr
from domain.ipam.affinity import HOST, Owner
from domain.ipam.errors import IpamError
from domain.ipam.request import AssignRequest
from domain.moment import go_string
from domain.usecases.steps.assign_specific import assign_specific
from domain.usecases.steps.auto_assign import auto_assign
from domain.usecases.steps.find_endpoint import endpoint_name
from domain.usecases.steps.free_addresses import free_unfinished
from domain.usecases.steps.host_lock import host_lock
from domain.usecases.steps.node_name import node_name
from domain.usecases.steps.own_namespace import refuse_own_namespace
from domain.usecases.steps.upgrade_host import upgrade_host
from domain.usecases.steps.work import Work
from domain.workload.identity import KUBERNETES, identify
from ports.datastore import IPPools
from ports.errors import PortError, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.usecases.call import Call
    from domain.usecases.undo import Undo
    from domain.workload.identity import Identity
    from ports.runtime import Runtime


def assign_addresses(call: Call, runtime: Runtime, undo: Undo) -> Result:
    """The addresses with their blocks' masks (one asked for, or held before: /32 or /128), and one route for each."""
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    endpoint_name(identity)
    work = Work.on(runtime, call.deadline)
    request = _request(call, runtime, identity)
    undo.register("an unfinished assignment", lambda deadline: free_unfinished(work.until(deadline), request))
    if call.args.ip is not None:
        with host_lock(call, runtime):
            upgrade_host(work, runtime.node, request.owner)
            taken = assign_specific(work, request, call.args.ip, undo)
        return _result((taken.alone,))
    if not any(request.counts.values()):
        raise CniError(INVALID_CONFIG, "ipam.assign_ipv4 and ipam.assign_ipv6 are both off: there is nothing to assign")
    request = request.replace(
        pools=_pools(call, work),
        namespace_labels=_namespace_labels(call, runtime, identity),
        busy=tuple([address.host_cidr for address in runtime.node.addresses()]),
    )
    with host_lock(call, runtime):
        families = auto_assign(work, request, undo)
    for family in families:
        if family.shortfall:
            raise IpamError(f"failed to request IPv{family.version} addresses: {family.shortfall}")
    return _result(tuple([taken.answer for family in families for taken in family.taken]))


def _result(addresses: tuple[Cidr, ...]) -> Result:
    return Result(
        ips=tuple([ResultIp(address) for address in addresses]),
        routes=tuple([ResultRoute(address) for address in addresses]),
    )


def _request(call: Call, runtime: Runtime, identity: Identity) -> AssignRequest:
    secondary = {"node": identity.node, "timestamp": go_string(runtime.clock.now())}
    if identity.orchestrator == KUBERNETES:
        secondary = {"namespace": identity.namespace, "node": identity.node, "pod": identity.pod, **secondary}
    return AssignRequest(
        Owner(HOST, identity.node),
        f"{call.netconf.name}.{call.request.container_id}",
        secondary,
        {V4: int(_wanted(call, "assign_ipv4", default=True)), V6: int(_wanted(call, "assign_ipv6", default=False))},
        max_blocks=1 if call.netconf.windows_use_single_network else 0,
        optional_families=call.netconf.ipam.optional_families,
    )


def _wanted(call: Call, name: str, *, default: bool) -> bool:
    """One of the two flags, which are texts. The original takes every text but the one it looks for as the default."""
    text = getattr(call.netconf.ipam, name)
    if not text:
        return default
    if text not in ("true", "false"):
        raise CniError(INVALID_CONFIG, f'ipam.{name} must be "true" or "false", not "{text}"')
    return bool(text == "true")


def _pools(call: Call, work: Work) -> Mapping[int, tuple[Cidr, ...]]:
    """The pools that the configuration asks for, by range or by name."""
    wanted = {V4: call.netconf.ipam.ipv4_pools, V6: call.netconf.ipam.ipv6_pools}
    if not any(wanted.values()):
        return {}
    known = {
        stored.record.metadata.name: stored.record.cidr_text for stored in work.datastore.list(IPPools(), work.deadline)
    }
    return {version: tuple([_pool(text, version, known) for text in texts]) for version, texts in wanted.items()}


def _pool(text: str, version: int, known: Mapping[str, str]) -> Cidr:
    try:
        cidr = Cidr.parse(text)
    except ValueError:
        try:
            cidr = Cidr.parse(known.get(text, text))
        except ValueError as error:
            raise IpamError(f'error parsing pool "{text}": {error}') from None
    if cidr.version != version:
        raise IpamError(f'"{cidr.network.address}" isn\'t a IPv{version} address')
    return cidr.network


def _namespace_labels(call: Call, runtime: Runtime, identity: Identity) -> Mapping[str, str] | None:
    """Labels of the workload's namespace, where a cluster is configured that knows it."""
    if not call.netconf.kubernetes.kubeconfig and call.netconf.policy.type != KUBERNETES:
        return None
    try:
        return runtime.cluster.namespace(identity.namespace, call.deadline).labels
    except Unavailable:
        raise
    except PortError as error:
        raise CniError(INTERNAL, f"failed to get namespace {identity.namespace}: {error}") from error
