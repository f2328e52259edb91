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
    from domain.cni.result import Result
    from ports.clock import Deadline
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

    def previous_result(self) -> Result:
        """What an earlier ADD has answered, as the runtime says: for a CHECK to compare with.

        CniError 7 if `prevResult` cannot be read, or has no address.
        """
        from domain.cni.errors import INVALID_CONFIG, CniError
        from domain.cni.result import parse_result

        try:
            previous = parse_result(self.netconf.prev_result, self.netconf.cni_version)
        except CniError as error:
            raise CniError(INVALID_CONFIG, f"prevResult cannot be read: {error}") from error
        if not previous.ips:
            raise CniError(INVALID_CONFIG, "prevResult has no ips to compare with")
        return previous


class BridgeCall(PluginCall):
    """Of the bridge plugin."""

    netconf: BridgeConf

    @property
    def owner(self) -> RuleOwner:
        """Whose the call is, in the words of what it makes: records, aliases, packet filter rules."""
        from domain.bridge.conf import AttachmentId
        from ports.firewall import RuleOwner

        return RuleOwner(self.netconf.name, AttachmentId(self.request.container_id, self.request.ifname))
