"""Find the endpoint a container already has, whichever interface name it was made under.

ADD adopts it, CHECK compares with it and DEL deletes it: all three look in this one way, so none leaves behind what
another made.

A container whose names no record can have has no record, since its ADD was refused. The node's name is the exception:
it comes from this machine's settings, which may have been other ones at ADD. A DEL then still takes back what goes by
the container alone, the device and the addresses.

Invariant: the three verbs find the same record or none.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.workload.identity import (
    InvalidField,
    endpoint_name,
    is_storable,
    name_matches,
    name_prefix,
    names_fault,
    require_storable,
)
from ports.datastore import WorkloadEndpointKey, WorkloadEndpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.datastore import Stored
    from ports.log import Log

_ANY_NODE = "node"


def endpoints_like(identity: Identity) -> WorkloadEndpoints:
    """The listing in which the container's endpoint stands, if it has one."""
    try:
        require_storable(identity)
        return WorkloadEndpoints(identity.namespace, name_prefix(identity.replace(endpoint="")))
    except InvalidField as error:
        raise CniError(INTERNAL, f"error constructing WorkloadEndpoint prefix: {error}") from error


def matching(identity: Identity, endpoints: tuple[Stored[WorkloadEndpoint], ...]) -> Stored[WorkloadEndpoint] | None:
    """The first endpoint of the same container; the prefix alone also finds look-alikes (`pod-1` for `pod`)."""
    anonymous = identity.replace(endpoint="")
    return next((stored for stored in endpoints if name_matches(anonymous, stored.record.metadata.name)), None)


def endpoint_key(identity: Identity) -> WorkloadEndpointKey:
    """The key of the endpoint that is exactly this interface's."""
    return WorkloadEndpointKey(identity.namespace, endpoint_name(identity))


def was_never_ours(identity: Identity, log: Log) -> bool:
    """Whether every ADD with these names was refused, whatever this machine was called: then a DEL has no work."""
    fault: object = names_fault(identity.replace(node=_ANY_NODE))
    if fault is None and not is_storable(identity.namespace):
        fault = f"namespace {identity.namespace!a}"
    if fault is not None:
        log.warning("Nothing to delete: no ADD can have succeeded with these names", fault=fault)
    return fault is not None
