"""What every DEL has in common: each step is tried whatever the others do, and the device goes however late it is."""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.ipam.errors import IpamError
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.usecases.call import Call
    from ports.deadline import Deadline
    from ports.runtime import Runtime

FIRST_ANSWER = 8.0  # seconds that a datastore has for its first answer, so that an outage is told within ten
DEVICE_SHARE = 2.0  # seconds that the device's removal has, however late it is


def attempt(runtime: Runtime, what: str, step: Callable[[], None]) -> Exception | None:
    """The step's failure, logged."""
    try:
        step()
    except (PortError, CniError, IpamError) as error:
        runtime.log.error("DEL could not " + what, error=error)
        return error
    return None


def disconnect(call: Call, runtime: Runtime) -> None:
    disconnect_by(call.deadline, runtime, call.request.netns, call.request.ifname)


def disconnect_by(deadline: Deadline, runtime: Runtime, netns: str, ifname: str) -> None:
    """Others may have used up the time that there was; the device still gets some."""
    own = runtime.clock.deadline(DEVICE_SHARE)
    runtime.dataplane.disconnect(netns, ifname, own if own.at > deadline.at else deadline)
