"""The addresses of this machine's devices, in one question to the kernel.

Allocation leaves them alone, so that a pod never gets the address of, say, a tunnel device whose record was lost. The
IPAM plugin asks the kernel nothing else, so it does without the seam that the dataplane has.

Invariant: never fails; what the kernel does not tell is unknown.
"""

from __future__ import annotations

from adapters.linux.netlink.messages import NLM_F_DUMP, NetlinkRequest, answers, attributes, envelope, verdict
from domain.ipam.address import V4, V6, Address

RTM_GETADDR, NETLINK_ROUTE = 22, 0
IFADDRMSG = 8  # bytes
IFA_LOCAL, IFA_ADDRESS = 2, 1  # only point-to-point devices tell them apart
_VERSION = {2: V4, 10: V6}  # AF_INET, AF_INET6
_SECONDS = 2


def own_addresses() -> tuple[Address, ...]:
    """In the kernel's order; loopback and link-local ones included. () when the kernel does not answer."""
    import _socket

    try:
        netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, NETLINK_ROUTE)
    except OSError:
        return ()
    try:
        netlink.settimeout(_SECONDS)
        netlink.send(envelope(NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, bytes(IFADDRMSG)), 1))
        found: list[Address] = []
        while _read_messages(netlink.recv(1 << 16), found):
            pass
    except OSError:
        return ()
    finally:
        netlink.close()
    return tuple(found)


def _read_messages(datagram: bytes, found: list[Address]) -> bool:
    """Collect the addresses of one datagram; whether more datagrams follow."""
    for answer in answers(datagram):
        if verdict(answer) is not None:
            return False
        version = _VERSION.get(answer.body[0])
        told = attributes(answer.body[IFADDRMSG:])
        address = told.get(IFA_LOCAL) or told.get(IFA_ADDRESS)
        if version and address:
            found.append(Address(version, int.from_bytes(address)))
    return bool(datagram)
