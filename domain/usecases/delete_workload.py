"""DEL of the network plugin: take back everything a container has (spec: cni-plugin 6).

Addresses first, then the endpoint, then the device: whatever fails, the later steps are still tried, so that a
repeated DEL has less to do. An unreachable datastore leaves only the records for later: the device goes at once.

Invariant: DEL of a container that has nothing, or of one that is half gone, succeeds.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_CONFIG, CniError
from domain.ipam.errors import IpamError
from domain.usecases.steps.cluster_ready import cluster_information, require_ready
from domain.usecases.steps.find_endpoint import endpoint_name, endpoints_like, matching
from domain.usecases.steps.node_name import node_name, require_nodename_file
from domain.usecases.steps.own_namespace import refuse_own_namespace
from domain.workload.identity import KUBERNETES, NO_KUBERNETES, identify
from ports.errors import Missing, PortError, Unavailable
from ports.ipam_plugin import IpamCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.usecases.call import Call
    from domain.workload.identity import Identity
    from ports.deadline import Deadline
    from ports.runtime import Runtime

FIRST_ANSWER = 8.0  # seconds that a datastore has for its first answer, so that an outage is told within ten
DEVICE_SHARE = 2.0  # seconds that the device's removal has, however late it is


def delete_workload(call: Call, runtime: Runtime) -> None:
    """Tries everything; then raises what failed: the endpoint's failure before the device's before IPAM's."""
    require_nodename_file(call.netconf, runtime.node)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    if identity.orchestrator == KUBERNETES:
        raise CniError(INVALID_CONFIG, NO_KUBERNETES)
    refuse_own_namespace(call.request, runtime)
    try:
        first = call.deadline.sooner(runtime.clock.monotonic(), FIRST_ANSWER)
        require_ready(cluster_information(runtime.datastore, first))
    except Unavailable:
        _attempt(runtime, "remove the device", lambda: _disconnect(call, runtime))
        raise
    endpoint_name(identity)
    addresses = _attempt(runtime, "release the addresses", lambda: _release(call, runtime))
    endpoint = _attempt(runtime, "delete the endpoint", lambda: _delete_endpoint(identity, runtime, call.deadline))
    device = _attempt(runtime, "remove the device", lambda: _disconnect(call, runtime))
    failure = endpoint or device or addresses
    if failure is not None:
        raise failure


def _attempt(runtime: Runtime, what: str, step: Callable[[], None]) -> Exception | None:
    try:
        step()
    except (PortError, CniError, IpamError) as error:
        runtime.log.error("DEL could not " + what, error=error)
        return error
    return None


def _release(call: Call, runtime: Runtime) -> None:
    runtime.ipam_plugin.delete(IpamCall(call.request, call.netconf, call.netconf_text), call.deadline)


def _delete_endpoint(identity: Identity, runtime: Runtime, deadline: Deadline) -> None:
    stored = matching(identity, runtime.datastore.list(endpoints_like(identity), deadline))
    if stored is None:
        return
    try:
        runtime.datastore.delete(stored.key, None, deadline)
    except Missing:
        runtime.log.debug("The endpoint is gone already", endpoint=stored.key)


def _disconnect(call: Call, runtime: Runtime) -> None:
    """Others may have used up the call's time; the device still gets some."""
    own = runtime.clock.deadline(DEVICE_SHARE)
    deadline = own if own.at > call.deadline.at else call.deadline
    runtime.dataplane.disconnect(call.request.netns, call.request.ifname, deadline)
