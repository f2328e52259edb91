"""Giving back what IPAM gave to an attachment, whatever the configuration has become since its ADD.

If the section of the configuration is another by now, the IPAM plugin is asked with it and with the one that the ADD
had, which its record keeps: the newer one may have newer credentials, the older one leads to the place where the
addresses are. If it names another plugin, or none, only the older one counts.

Invariant: only the IPAM plugin that gave the addresses is asked, as far as that is known.
"""

from __future__ import annotations

from domain.bridge.attachment import ipam_section, with_ipam_section
from domain.cni.errors import CniError
from domain.cni.plugin_conf import Delegate
from domain.json_text import JsonError, dumps
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.attachment import BridgeAttachment
    from ports.clock import Deadline
    from ports.ipam_plugin import IpamCall
    from ports.runtime import BridgeRuntime


def release_addresses(
    call: IpamCall, record: BridgeAttachment | None, runtime: BridgeRuntime, deadline: Deadline
) -> None:
    """The first failure, if every way fails."""
    failures: list[Exception] = []
    ways = _ways(call, record)
    for way in ways:
        if way is not call:
            runtime.log.warning("Releasing with the ipam section that ADD had, too", type=way.netconf.ipam.type)
        try:
            runtime.ipam_plugin.delete(way, deadline)
        except (PortError, CniError) as error:
            runtime.log.warning("An ipam section did not serve to release the addresses", error=error)
            failures.append(error)
    if failures and len(failures) == len(ways):
        raise failures[0]


def _ways(call: IpamCall, record: BridgeAttachment | None) -> list[IpamCall]:
    current = call.netconf.ipam.type
    recorded = record.ipam if record is not None else ""
    ways = [call] if current and recorded in {"", current} else []
    if record is None or not recorded:
        return ways
    section = record.ipam_section or dumps({"type": recorded})
    if not ways or (record.ipam_section and ipam_section(call.netconf_text) != section):
        try:
            text = with_ipam_section(call.netconf_text, section)
        except JsonError:  # somebody has been at the record
            text = with_ipam_section(call.netconf_text, dumps({"type": recorded}))
        ways.append(call.replace(netconf=call.netconf.replace(ipam=Delegate(recorded)), netconf_text=text))
    return ways
