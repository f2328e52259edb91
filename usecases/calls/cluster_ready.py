"""Refuse to work while Calico says that it is not ready, or while something the configuration names is not.

Invariant: these checks come before every allocation and every change.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from ports.datastore import ClusterInformationKey
from ports.errors import BadConfiguration, Damaged, Missing, PortError, Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from domain.cluster import ClusterInformation
    from ports.clock import Deadline
    from ports.datastore import Datastore, Listing, Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call

    R = TypeVar("R")

CLUSTER = ClusterInformationKey("default")
GATE_BUDGET = 30.0  # seconds for one readiness gate


def cluster_information(datastore: Datastore, deadline: Deadline) -> Stored[ClusterInformation] | None:
    """The cluster's record. The original's prefix says what was asked of a failing datastore."""
    try:
        return datastore.get(CLUSTER, deadline)
    except BadConfiguration:
        raise
    except Unavailable as error:
        raise Unavailable(f"error getting ClusterInformation: {error}") from error
    except Damaged as error:
        raise Damaged(f"error getting ClusterInformation: {error}") from error
    except PortError as error:
        raise Refused(f"error getting ClusterInformation: {error}") from error


def cluster_and(
    datastore: Datastore, listing: Listing[R], deadline: Deadline
) -> tuple[Stored[ClusterInformation] | None, tuple[Stored[R], ...] | None]:
    """The same, and in one go what else will be needed; None for that if one of the two cannot be read."""
    try:
        return datastore.fetch(CLUSTER, listing, deadline=deadline)
    except Unavailable as error:
        raise Unavailable(f"error getting ClusterInformation: {error}") from error
    except PortError:
        return cluster_information(datastore, deadline), None


def require_ready(stored: Stored[ClusterInformation] | None) -> None:
    """An absent `datastoreReady` counts as not ready."""
    if stored is None:
        raise CniError(INTERNAL, f"error getting ClusterInformation: {Missing(CLUSTER)}")
    if not stored.record.datastore_ready:
        raise CniError(INTERNAL, "Calico is currently not ready to process requests")


def pass_gates(call: Call, runtime: Runtime) -> Deadline:
    """Wait for every readiness gate in order. The waiting is added to the call's deadline."""
    started = runtime.clock.monotonic()
    for url in call.netconf.readiness_gates:
        runtime.log.debug("Waiting for readiness gate", url=url)
        runtime.readiness.gate(url, runtime.clock.deadline(GATE_BUDGET))
    waited = runtime.clock.monotonic() - started
    return call.deadline.replace(at=call.deadline.at + waited)
