"""Find the endpoint a container already has, whichever interface name it was made under.

ADD adopts it, CHECK compares with it and DEL deletes it: all three look in this one way, so none leaves behind what
another made.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.workload.names import full_name, name_matches, name_prefix
from ports.datastore import WorkloadEndpointKey, WorkloadEndpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.datastore import Stored


def endpoints_like(identity: Identity) -> WorkloadEndpoints:
    """The listing in which the container's endpoint stands, if it has one."""
    try:
        return WorkloadEndpoints(identity.namespace, name_prefix(identity.replace(endpoint="")))
    except ValueError as error:
        raise CniError(INTERNAL, f"error constructing WorkloadEndpoint prefix: {error}") from error


def matching(identity: Identity, endpoints: tuple[Stored[WorkloadEndpoint], ...]) -> Stored[WorkloadEndpoint] | None:
    """The first endpoint of the same container; the prefix alone also finds look-alikes (`pod-1` for `pod`)."""
    anonymous = identity.replace(endpoint="")
    return next((one for one in endpoints if name_matches(anonymous, one.record.metadata.name)), None)


def endpoint_name(identity: Identity) -> str:
    try:
        return full_name(identity)
    except ValueError as error:
        raise CniError(INTERNAL, f"error constructing WorkloadEndpoint name: {error}") from error


def endpoint_key(identity: Identity) -> WorkloadEndpointKey:
    """The key of the endpoint that is exactly this interface's."""
    return WorkloadEndpointKey(identity.namespace, endpoint_name(identity))
