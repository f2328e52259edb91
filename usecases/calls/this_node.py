"""Under which name this machine is known to Calico.

All records of a machine hang on this name, so every plugin and verb decides it in the same order.

Invariant: the same configuration and files give ADD and DEL the same name.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.node import ThisNode

DEFAULT_FILE = "/var/lib/calico/nodename"


class NoNodename(CniError):
    """The file that calico-node leaves is not there. The original's code and text."""

    def __init__(self, path: str, advice: str) -> None:
        hint = "check that the calico/node container is running and has mounted /var/lib/calico/"
        super().__init__(INTERNAL, f"stat {path}: no such file or directory: {hint}", advice)


def require_nodename_file(netconf: NetConf, node: ThisNode) -> None:
    """Refuse to work while calico-node, which leaves the file, has not run. The network plugin's check only.

    The original demands the file even when `nodename` makes it useless; here it may be missing then, unless the
    configuration names it.
    """
    superfluous = netconf.nodename != "" and netconf.nodename_file == ""
    if netconf.nodename_file_optional or superfluous:
        return
    path = netconf.nodename_file or DEFAULT_FILE
    if not node.exists(path):
        raise NoNodename(path, _advice(netconf))


def _advice(netconf: NetConf) -> str:
    """For a node without calico/node, of which the text says nothing."""
    if netconf.nodename:
        return 'leave "nodename_file" out, since "nodename" is set'
    return (
        'where calico/node does not run, set "nodename" in the network configuration to the node\'s name, '
        'or "nodename_file_optional" to true: then the name is the host\'s'
    )


def node_name(netconf: NetConf, node: ThisNode) -> str:
    """`nodename`, else the file's content, else `hostname`, else the system's host name in lower case; "" without any.

    White space around the file's content does not count (the original takes it for a part of the name). A file that
    cannot be read counts as absent.
    """
    return netconf.nodename or _from_file(netconf, node) or netconf.hostname or node.host_name().strip().lower()


def _from_file(netconf: NetConf, node: ThisNode) -> str:
    try:
        return node.read(netconf.nodename_file or DEFAULT_FILE).strip()
    except PortError:
        return ""
