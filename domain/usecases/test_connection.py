"""`calico -t`: can the datastore be reached, and does Calico say that it is ready?"""

from __future__ import annotations

from domain.usecases.steps.cluster_ready import cluster_information, require_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.deadline import Deadline
    from ports.runtime import Runtime

ANSWER = 2.0  # seconds


def test_connection(netconf: NetConf, runtime: Runtime, deadline: Deadline) -> None:
    """Returns if so; raises what ADD would raise otherwise."""
    del netconf  # the runtime was opened from it; Kubernetes access will be tried from it as well
    first = deadline.sooner(runtime.clock.monotonic(), ANSWER)
    require_ready(cluster_information(runtime.datastore, first))
