"""Containers connected by the Host Networking Service of a Windows machine: the `Dataplane` port over HNS.

What to do is planned in domain/windows/plan, how is in `steps`; here is only which container, one call at a time, and
in what words the refusals leave.

Invariant: everything is done under the mutex that the original's calls hold; namespaces are only used; a failed
`connect` leaves no endpoint of the container behind; `disconnect` touches the container's endpoint alone.
"""

from __future__ import annotations

from adapters.windows import documents
from adapters.windows.objects import Objects
from adapters.windows.seam import ENDPOINT, NAMESPACE, HnsError, HnsMissing
from adapters.windows.steps import Steps
from domain.windows.names import endpoint_name, is_dockershim, joins_sandbox
from domain.windows.plan import plan_for
from ports.dataplane import Connected, Dataplane
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.windows.host_interfaces import HostInterfaces
    from adapters.windows.mutex import Mutex
    from adapters.windows.seam import Document, Hns
    from domain.windows.conf import WindowsConf
    from domain.windows.steps import Step
    from domain.workload.attachment import Attachment
    from ports.clock import Clock, Deadline
    from ports.log import Log


class Host:
    """What a Windows machine offers: HNS, the interfaces of the host, and the mutex over both."""

    def __init__(self, hns: Hns, interfaces: HostInterfaces, mutex: Mutex, clock: Clock, log: Log) -> None:
        self.hns = hns
        self.interfaces = interfaces
        self.mutex = mutex
        self.clock = clock
        self.log = log


class WindowsDataplane(Dataplane):
    """For one call: `conf` and `container_id` are its own."""

    def __init__(self, host: Host, conf: WindowsConf, container_id: str) -> None:
        self._host = host
        self._conf = conf
        self._container_id = container_id
        self._objects = Objects(host.hns)

    def examine(
        self,
        netns: str,
        ifname: str,  # noqa: ARG002 - an endpoint takes the place of the container's earlier one
        deadline: Deadline,
        host_name: str = "",  # noqa: ARG002 - as above
        *,
        replace_host_link: bool = False,  # noqa: ARG002 - as above
    ) -> None:
        """Dockershim's containers have no namespace to look at."""
        self._check_time(deadline, netns)
        if is_dockershim(netns):
            return
        try:
            self._host.hns.query(NAMESPACE, netns, documents.query())
        except HnsError as error:
            raise Refused(f'failed to open network namespace "{netns}": {error}') from error

    def connect(self, attachment: Attachment, deadline: Deadline) -> Connected:
        self._check_time(deadline, attachment.netns)
        plan = plan_for(self._conf, attachment, self._container_id)
        host = self._host
        steps = Steps(host.hns, host.interfaces, host.clock, host.log, deadline)
        try:
            with host.mutex.held(deadline):
                for step in plan:
                    self._take(steps, step)
        except BaseException:
            steps.undo()
            raise
        return Connected(attachment.host_name, steps.mac, attachment.addresses)

    def _take(self, steps: Steps, step: Step) -> None:
        steps.check_time(f"the Host Networking Service (next: {step.action})")
        try:
            steps.doings[type(step.action)](step.action)
        except (HnsError, Refused) as error:
            raise Refused(f"{step.failure}{error}") from error

    def disconnect(self, netns: str, ifname: str, deadline: Deadline) -> None:  # noqa: ARG002 - endpoints go by container
        """By name, also without a namespace: the service keeps an endpoint whose namespace is gone."""
        self._check_time(deadline, netns)
        name = endpoint_name(self._container_id, netns, self._conf.name)
        try:
            if is_dockershim(netns):
                self._disconnect_older(netns, name)
            else:
                for endpoint in self._objects.newer_endpoints(name):
                    self._disconnect_newer(endpoint)
        except HnsMissing:
            return
        except HnsError as error:
            raise Refused(f'failed to clean up the endpoint "{name}": {error}') from error

    def _disconnect_older(self, netns: str, name: str) -> None:
        """A sandbox's endpoint goes with the sandbox; its other containers only leave it."""
        found = self._objects.older_endpoint(name)
        if found is None:
            return
        path = f"/endpoints/{documents.identity(found)}"
        if joins_sandbox(netns):
            self._host.hns.call(
                "POST", f"{path}/detach", {"ContainerId": self._container_id, "SystemType": "Container"}
            )
        else:
            self._host.hns.call("DELETE", path)

    def _disconnect_newer(self, endpoint: Document) -> None:
        namespace, own = documents.text(endpoint, "HostComputeNamespace"), documents.identity(endpoint)
        if namespace not in ("", documents.NO_NAMESPACE):
            try:
                self._host.hns.modify(NAMESPACE, namespace, documents.endpoint_change("Remove", own))
            except HnsError as error:  # deleting it takes it out as well
                self._host.log.warning("Cannot take the endpoint out of its namespace", error=error)
        self._host.hns.delete(ENDPOINT, own)

    def look(self, netns: str, name: str, deadline: Deadline) -> None:  # noqa: ARG002 - there is no device to be seen
        """An endpoint is no device that a host could show."""
        return

    def _check_time(self, deadline: Deadline, netns: str) -> None:
        if deadline.passed(self._host.clock.monotonic()):
            raise Expired(f"network namespace {netns}")
