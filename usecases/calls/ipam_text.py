"""What to give an IPAM plugin on its stdin when it is to release (spec: cni-plugin 6.3; case L10).

Invariant: every configuration but host-local's is passed on to the letter.
"""

from __future__ import annotations

from domain.json_text import JsonError
from domain.workload import host_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf


def text_for_release(netconf: NetConf, text: str) -> str:
    """The configuration without what only the cluster could answer; the text itself where there is nothing such."""
    if netconf.ipam.type != host_local.HOST_LOCAL:
        return text
    try:
        return host_local.text_for_release(text)
    except JsonError:
        return text
