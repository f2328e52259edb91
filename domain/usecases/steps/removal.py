"""What every DEL has in common: each step is tried whatever the others do, and the device goes however late it is."""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.ipam.errors import IpamError
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.usecases.call import Call
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
    """Others may have used up the call's time; the device still gets some."""
    own = runtime.clock.deadline(DEVICE_SHARE)
    deadline = own if own.at > call.deadline.at else call.deadline
    runtime.dataplane.disconnect(call.request.netns, call.request.ifname, deadline)
