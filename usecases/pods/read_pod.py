"""What a pod is to get, read from the orchestrator before anything is allocated.

Only `policy.type: k8s` asks the orchestrator; any other policy takes nothing but the pod's name from the call.

Invariant: reading changes nothing, and every annotation that cannot be honoured is refused here.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, INVALID_CONFIG, CniError
from domain.cni.plugin_conf import OWN_IPAM
from domain.resource import NO_LABELS, Metadata
from domain.value import Value
from domain.workload.annotations import (
    FLOATING_IPS,
    KEEP_ADDRESSES,
    MIRROR,
    BadAnnotation,
    FixedAddresses,
    PoolWishes,
    fixed_addresses,
    floating_nats,
    pool_wishes,
)
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.endpoint_rules import with_forced_labels
from domain.workload.identity import endpoint_name, host_interface_name
from domain.workload.pod_endpoint import pod_endpoint
from ports.datastore import IPPools
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.netconf import KeepAs
    from domain.workload.identity import Identity
    from domain.workload.pod import Namespace, Pod
    from ports.runtime import Runtime
    from usecases.calls.call import Call

NO_WISHES = PoolWishes()
NO_ANNOTATIONS: Mapping[str, str] = NO_LABELS


class PodSubject(Value):
    """`endpoint` is without addresses and devices yet. `annotations` are the pod's, `fixed` the addresses and
    `pools` the pools that it asks for. `keep_as` is the name that its addresses are to stay with.
    """

    endpoint: WorkloadEndpoint
    annotations: Mapping[str, str] = NO_ANNOTATIONS
    fixed: FixedAddresses | None = None
    pools: PoolWishes = NO_WISHES
    keep_as: KeepAs | None = None


def expect_pod(call: Call, runtime: Runtime, identity: Identity) -> None:
    """Before the first question of an ADD: what it reads next of its pod may come along. Nothing is refused here."""
    try:
        if call.netconf.policy.is_kubernetes:
            runtime.cluster.expect(identity.namespace, identity.pod)
    except PortError as error:
        runtime.log.debug("Nothing is read ahead", error=error)


def read_pod(call: Call, runtime: Runtime, identity: Identity) -> PodSubject:
    """`Missing` when there is no such pod; CniError for what cannot be honoured."""
    if not call.netconf.policy.is_kubernetes:
        return PodSubject(_complete(call, identity, WorkloadEndpoint(Metadata(""), profiles=(call.netconf.name,))))
    namespace = runtime.cluster.namespace(identity.namespace, call.deadline)
    pod = runtime.cluster.pod(identity.namespace, identity.pod, call.deadline)
    _require_same_pod(call, pod)
    _require_same_node(call, identity, pod)
    try:
        endpoint = _complete(call, identity, pod_endpoint(pod, call.request.interface_prefixes))
        fixed = fixed_addresses(pod.annotations, call.netconf.ipam.type, no_ipam_allowed=call.netconf.ip_addrs_no_ipam)
        _check_floating(call, pod)
    except ValueError as error:
        raise CniError(INTERNAL, str(error)) from error
    keep_as = None if fixed else _keep_as(call, runtime, pod)
    return PodSubject(endpoint, pod.annotations, fixed, _read_pools(call, runtime, namespace, pod), keep_as)


def _complete(call: Call, identity: Identity, derived: WorkloadEndpoint) -> WorkloadEndpoint:
    """The endpoint with what the call says, and without what only a finished ADD knows."""
    metadata = derived.metadata.replace(
        name=endpoint_name(identity), namespace=identity.namespace, uid="", created="", annotations=NO_ANNOTATIONS
    )
    return with_forced_labels(
        derived.replace(
            metadata=metadata,
            orchestrator=identity.orchestrator,
            node=identity.node,
            container_id=identity.container_id,
            pod=identity.pod,
            endpoint=identity.endpoint,
            ip_networks=(),
            ip_nats=(),
            interface_name=host_interface_name(identity, call.request.interface_prefixes),
        )
    )


def _require_same_pod(call: Call, pod: Pod) -> None:
    """A runtime that is late with the sandbox of a pod that is gone must not take its namesake off the network.

    The two share the host's device. Of a static pod the API server has a mirror, with another uid.
    """
    uid = call.args.pod_uid
    if uid and pod.uid and uid != pod.uid and MIRROR not in pod.annotations:
        raise CniError(
            INTERNAL, f"pod {pod.namespace}/{pod.name} is another one by now: its uid is {pod.uid}, not {uid}"
        )


def _require_same_node(call: Call, identity: Identity, pod: Pod) -> None:
    """Addresses that carry the name of another node are taken for leaked, and freed under the pod.

    Other datastores may know the node by a name of their own.
    """
    if pod.node and pod.node != identity.node and call.netconf.datastore_type == "kubernetes":
        raise CniError(
            INVALID_CONFIG,
            f'the plugin\'s node name is "{identity.node}" but pod {pod.namespace}/{pod.name} is on node "{pod.node}"',
            "set nodename in the network configuration, or the file it is read from, to the node's name",
        )


def _read_pools(call: Call, runtime: Runtime, namespace: Namespace, pod: Pod) -> PoolWishes:
    """A list of pools that cannot be read is a mistake in the pod, and says what could stand there."""
    if call.netconf.ipam.type != OWN_IPAM:
        return NO_WISHES
    try:
        return pool_wishes(pod.annotations, namespace.annotations)
    except BadAnnotation as error:
        where = f"annotation {error.key} of pod {pod.namespace}/{pod.name} or its namespace is {error.raw}"
        known = ", ".join([pool.record.metadata.name for pool in runtime.datastore.list(IPPools(), call.deadline)])
        raise CniError(INVALID_CONFIG, str(error), f"{where}; IP pools: {known or 'none'}") from error


def _keep_as(call: Call, runtime: Runtime, pod: Pod) -> KeepAs | None:
    """An administrator allows it, in the configuration; without that a pod's wish is only told."""
    settings = call.netconf.ipam.keep_addresses if call.netconf.ipam.type == OWN_IPAM else None
    if settings is None:
        if pod.annotations.get(KEEP_ADDRESSES, "false") != "false":
            runtime.log.warning("Addresses are not kept: the network configuration has no ipam.keep_addresses")
        return None
    from domain.workload.kept_wish import require_sense, wished_name  # few networks keep addresses

    try:
        require_sense(settings)
        return wished_name(pod, settings)
    except ValueError as error:
        raise CniError(INVALID_CONFIG, str(error)) from error


def _check_floating(call: Call, pod: Pod) -> None:
    """Whether it is allowed and can be read; what it becomes depends on the addresses."""
    floating = pod.annotations.get(FLOATING_IPS, "")
    if not floating:
        return
    if not call.netconf.floating_ips:
        raise BadAnnotation(FLOATING_IPS, floating, "requested feature is not enabled: floating_ips")
    floating_nats(floating, ())
