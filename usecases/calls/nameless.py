"""DEL of a container whose names no record can have: no ADD of it can have succeeded, so nothing of it is stored.

The node's name is the exception. It comes from this machine's settings, which may have been other ones at ADD; what
goes by the container alone, the device and the addresses, is still taken back then.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from usecases.pods.find_endpoint import endpoint_name, is_storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.identity import Identity
    from ports.log import Log

_ANY_NODE = "node"


def names_fault(identity: Identity) -> CniError | None:
    """Why the identity can have no endpoint, None if it can."""
    try:
        endpoint_name(identity)
    except CniError as error:
        return error
    return None


def was_never_ours(identity: Identity, log: Log) -> bool:
    """Whether there is nothing to delete since no ADD can have succeeded, whatever this machine was called."""
    fault: object = names_fault(identity.replace(node=_ANY_NODE))
    if fault is None and not is_storable(identity.namespace):
        fault = f"namespace {identity.namespace!a}"
    if fault is not None:
        log.warning("Nothing to delete: no ADD can have succeeded with these names", fault=fault)
    return fault is not None
