"""What a call takes from this machine: the name under which Calico knows it, and the MTU that calico-node found out.

All records of a machine hang on its name, so every plugin and verb decides it in the same order.

Invariant: the same configuration and files give ADD and DEL the same name. A damaged MTU file is an error even where
the configuration makes it useless, as in the original.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from ports.errors import Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.log import Log
    from ports.node import ThisNode

NODENAME_FILE = "/var/lib/calico/nodename"
MTU_FILE = "/var/lib/calico/mtu"
SMALLEST_MTU, LARGEST_MTU = 68, 65535  # the kernel's for pairs, which says no more than "invalid argument"
_LARGEST = (1 << 63) - 1
_DIGITS = frozenset("0123456789")


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
    path = netconf.nodename_file or NODENAME_FILE
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
    return netconf.nodename or _name_from_file(netconf, node) or netconf.hostname or node.host_name().strip().lower()


def _name_from_file(netconf: NetConf, node: ThisNode) -> str:
    try:
        return node.read(netconf.nodename_file or NODENAME_FILE).strip()
    except PortError:
        return ""


def device_mtu(netconf: NetConf, node: ThisNode, log: Log) -> int:
    """The MTU, 0 (also for a negative one) for the kernel's default. CniError for one that no device can have, or if
    the file is wanted and cannot be read: `failed to read MTU file: <why>`.
    """
    from_file = _mtu_from_file(node, log, required=netconf.require_mtu_file)
    mtu = max(0, netconf.mtu or from_file)
    if mtu and not SMALLEST_MTU <= mtu <= LARGEST_MTU:
        than = f"more than a device can have ({LARGEST_MTU})" if mtu > LARGEST_MTU else f"less than {SMALLEST_MTU}"
        source = '"mtu"' if netconf.mtu else MTU_FILE
        raise CniError(INTERNAL, f"MTU {mtu} is {than}; change {source}")
    return mtu


def _mtu_from_file(node: ThisNode, log: Log, *, required: bool) -> int:
    try:
        text = node.read(MTU_FILE)
    except Missing as error:
        if required:
            raise _unreadable_mtu(str(error)) from error
        log.debug("No MTU file", path=MTU_FILE)
        return 0
    except PortError as error:
        raise _unreadable_mtu(str(error)) from error
    return _integer(text.strip())


def _integer(text: str) -> int:
    """As Go's `strconv.Atoi`: an optional sign and ASCII digits that fit 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not _DIGITS.issuperset(digits):
        raise _unreadable_mtu(f'strconv.Atoi: parsing "{text}": invalid syntax')
    if len(digits) > 19 or int(digits) > _LARGEST:
        raise _unreadable_mtu(f'strconv.Atoi: parsing "{text}": value out of range')
    return int(text)


def _unreadable_mtu(why: str) -> CniError:
    return CniError(INTERNAL, f"failed to read MTU file: {why}")
