"""What an ADD does outside the datastore, each with its way back: addresses from an IPAM plugin, and the device pair.

Invariant: the way back is registered before the plugin runs, since one that is cut short may have given addresses out;
a plugin that said no has given out none, and is left alone afterwards.
"""

from __future__ import annotations

from domain.cni.plugin_conf import OWN_IPAM
from domain.cni.result import Result
from ports.errors import PortError, Refused
from ports.ipam_plugin import IpamCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.cni.request import Request
    from domain.workload.attachment import Attachment
    from ports.clock import Deadline
    from ports.dataplane import Connected
    from ports.runtime import BridgeRuntime, Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo

DEVICE_SHARE = 2.0  # seconds that the device's removal has, however late it is


def expect_ipam(call: Call, runtime: Runtime) -> None:
    """Before the first question of a call: what our IPAM plugin reads first may come along. Nothing is refused here."""
    if call.netconf.ipam.type != OWN_IPAM:
        return
    try:
        runtime.ipam_plugin.expect(IpamCall(call.request, call.netconf, call.netconf_text), call.deadline)
    except PortError as error:
        runtime.log.debug("Nothing is read ahead", error=error)


def ask_ipam(runtime: Runtime | BridgeRuntime, ipam_call: IpamCall, deadline: Deadline, undo: Undo) -> Result:
    """The plugin's own result, which may be without addresses."""
    plugin = runtime.ipam_plugin
    result = Result()
    said_no = False

    def take_back(deadline: Deadline) -> None:
        if not said_no:
            plugin.withdraw(ipam_call, result, deadline)

    undo.register("IPAM ADD", take_back)
    try:
        result = plugin.add(ipam_call, deadline)
    except Refused:
        said_no = True
        raise
    return result


def connect_device(call: Call, runtime: Runtime, attachment: Attachment, undo: Undo) -> Connected:
    """What came of it; on an error the dataplane itself has taken its pair back."""
    if runtime.on_windows:
        from usecases.windows.terms import with_pools

        attachment = with_pools(call, runtime, attachment)
    connected = runtime.dataplane.connect(attachment, call.deadline)
    undo.register("connect", lambda deadline: disconnect(call.request, runtime, deadline))
    return connected


def disconnect(request: Request, runtime: Runtime, deadline: Deadline) -> None:
    """Others may have used up the time that there was; the device still gets some."""
    runtime.dataplane.disconnect(request.netns, request.ifname, _with_share(runtime, deadline))


class Disconnection:
    """The same for a call that goes on meanwhile: after `begin` the device is gone, after `end` what is left of it."""

    def __init__(self, call: Call, runtime: Runtime) -> None:
        self._call, self._runtime = call, runtime
        self._wait_for_rest: Callable[[Deadline], None] | None = None

    def begin(self) -> None:
        request, deadline = self._call.request, _with_share(self._runtime, self._call.deadline)
        self._wait_for_rest = self._runtime.dataplane.begin_disconnect(request.netns, request.ifname, deadline)

    def end(self) -> None:
        """Nothing, if it could not begin."""
        if self._wait_for_rest is not None:
            self._wait_for_rest(_with_share(self._runtime, self._call.deadline))


def _with_share(runtime: Runtime, deadline: Deadline) -> Deadline:
    own = runtime.clock.deadline(DEVICE_SHARE)
    return own if own.at > deadline.at else deadline
