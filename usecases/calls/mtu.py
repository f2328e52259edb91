"""Which MTU a container's device gets: the configuration's, else the one that calico-node found out.

Invariant: a damaged MTU file is an error even where the configuration makes it useless, as in the original.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from ports.errors import Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.log import Log
    from ports.node import ThisNode

MTU_FILE = "/var/lib/calico/mtu"
LARGEST_MTU = (1 << 31) - 1  # what the kernel takes as a number; a device refuses far smaller ones
_LARGEST = (1 << 63) - 1
_DIGITS = frozenset("0123456789")


def device_mtu(netconf: NetConf, node: ThisNode, log: Log) -> int:
    """The MTU, 0 (also for a negative one) for the kernel's default. CniError `failed to read MTU file: <why>`."""
    from_file = _from_file(node, log, required=netconf.require_mtu_file)
    mtu = netconf.mtu or from_file
    if mtu > LARGEST_MTU:
        raise CniError(INTERNAL, f"MTU {mtu} is more than a device can have ({LARGEST_MTU})")
    return max(0, mtu)


def _from_file(node: ThisNode, log: Log, *, required: bool) -> int:
    try:
        text = node.read(MTU_FILE)
    except Missing as error:
        if required:
            raise _unreadable(str(error)) from error
        log.debug("No MTU file", path=MTU_FILE)
        return 0
    except PortError as error:
        raise _unreadable(str(error)) from error
    return _integer(text.strip())


def _integer(text: str) -> int:
    """As Go's `strconv.Atoi`: an optional sign and ASCII digits that fit 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not _DIGITS.issuperset(digits):
        raise _unreadable(f'strconv.Atoi: parsing "{text}": invalid syntax')
    if len(digits) > 19 or int(digits) > _LARGEST:
        raise _unreadable(f'strconv.Atoi: parsing "{text}": value out of range')
    return int(text)


def _unreadable(why: str) -> CniError:
    return CniError(INTERNAL, f"failed to read MTU file: {why}")
