"""`calico -t`: can the datastore be reached, and does Calico say that it is ready?

Invariant: nothing is changed.
"""

from __future__ import annotations

from ports.errors import Expired, Unavailable
from usecases.calls.cluster_ready import cluster_information, require_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.clock import Deadline
    from ports.runtime import Runtime

ANSWER = 2.0  # seconds
# The original's words: who calls `-t` may compare them. Whom we waited for is in the log.
_EXPIRED = "error getting ClusterInformation: context deadline exceeded"


def check_connection(netconf: NetConf, runtime: Runtime, deadline: Deadline) -> None:
    """Returns if so; raises what ADD would raise otherwise."""
    del netconf  # the runtime was opened from it; Kubernetes access will be tried from it as well
    first = deadline.sooner(runtime.clock.monotonic(), ANSWER)
    try:
        stored = cluster_information(runtime.datastore, first)
    except Unavailable as error:
        if not isinstance(error.__cause__, Expired):
            raise
        runtime.log.error("The datastore has not answered in time", error=error)
        raise Unavailable(_EXPIRED) from error
    require_ready(stored)
