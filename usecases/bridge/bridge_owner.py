"""Whose a call to the bridge plugin is, in the words of what it makes: records, aliases, packet filter rules."""

from __future__ import annotations

from domain.bridge.conf import AttachmentId
from ports.firewall import Owner
from usecases.calls.own_namespace import refuse_if_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall


def owner_of(call: BridgeCall) -> Owner:
    return Owner(call.netconf.name, AttachmentId(call.request.container_id, call.request.ifname))


def refuse_host_namespace(call: BridgeCall, runtime: BridgeRuntime) -> None:
    """Code 8 before anything is done, unless the runtime overrides the check (CNI_NETNS_OVERRIDE)."""
    if call.request.netns and not call.request.netns_override:
        refuse_if_own(call.request.netns, runtime.bridges)
