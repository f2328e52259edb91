"""STATUS of the bridge plugin: could an ADD succeed now?

Invariant: nothing is changed.
"""

from __future__ import annotations

from domain.cni.errors import NOT_AVAILABLE
from domain.linux.steps import HOST, Device
from ports.errors import Refused
from ports.ipam_plugin import IpamCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall


def status_bridge(call: BridgeCall, runtime: BridgeRuntime) -> None:
    """Refused with code 50; what the IPAM plugin says keeps its own code."""
    runtime.bridges.require_privilege()
    with runtime.bridges.enter("", call.deadline) as sides:
        link = sides.link(Device(HOST, call.netconf.bridge))
    if link is not None and link.kind != "bridge":
        raise Refused(f'"{call.netconf.bridge}" already exists but is not a bridge', NOT_AVAILABLE)
    if call.netconf.masquerade:
        try:
            runtime.firewall.choose_backend(call.netconf.masquerade_backend, call.deadline)
        except Refused as error:
            raise Refused(str(error), NOT_AVAILABLE) from error
    if call.netconf.layer_3:
        runtime.ipam_plugin.status(IpamCall(call.request, call.netconf, call.netconf_text), call.deadline)
