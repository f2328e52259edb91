"""One plugin call as the use cases receive it: everything parsed, nothing left to read from the process.

Invariant: the deadline covers the whole call; undo has a budget of its own.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.conf import BridgeConf
    from domain.cni.netconf import NetConf
    from domain.cni.plugin_conf import PluginConf
    from domain.cni.request import CniArgs, Request
    from ports.deadline import Deadline
    from ports.firewall import RuleOwner


class PluginCall(Value):
    """`netconf_text` is the text on stdin, kept to be handed to other plugins unchanged."""

    request: Request
    args: CniArgs
    netconf: PluginConf
    netconf_text: str
    deadline: Deadline


class Call(PluginCall):
    """Of one of Calico's plugins."""

    netconf: NetConf


class BridgeCall(PluginCall):
    """Of the bridge plugin."""

    netconf: BridgeConf

    @property
    def owner(self) -> RuleOwner:
        """Whose the call is, in the words of what it makes: records, aliases, packet filter rules."""
        from domain.bridge.conf import AttachmentId
        from ports.firewall import RuleOwner

        return RuleOwner(self.netconf.name, AttachmentId(self.request.container_id, self.request.ifname))
