"""The addresses of this machine's devices, in one question to the kernel.

Allocation leaves them alone, so that a pod never gets the address of, say, a tunnel device whose record was lost. A
netlink library would cost more to load than all the rest of an allocation, so the one dump is asked for here.

Invariant: never fails; what the kernel does not tell is unknown.
"""

from __future__ import annotations

import sys

from domain.ipam.address import V4, V6, Address

_GET_ADDRESSES, _NEW_ADDRESS, _DONE, _ERROR = 22, 20, 3, 2
_DUMP_REQUEST = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_NETLINK_ROUTE = 0
_HEADER, _ADDRESS_HEADER = 16, 8
_LOCAL, _REMOTE = 2, 1  # IFA_LOCAL, IFA_ADDRESS: only point-to-point devices tell them apart
_VERSION = {2: V4, 10: V6}  # AF_INET, AF_INET6


def own_addresses() -> tuple[Address, ...]:
    """In the kernel's order; loopback and link-local ones included. () when the kernel does not answer."""
    import _socket

    try:
        netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _NETLINK_ROUTE)
    except OSError:
        return ()
    try:
        netlink.settimeout(2)
        netlink.send(
            _bytes(_HEADER + _ADDRESS_HEADER, 4)
            + _bytes(_GET_ADDRESSES, 2)
            + _bytes(_DUMP_REQUEST, 2)
            + bytes(8 + _ADDRESS_HEADER)
        )
        found: list[Address] = []
        while _read_messages(netlink.recv(1 << 16), found):
            pass
    except OSError:
        return ()
    finally:
        netlink.close()
    return tuple(found)


def _bytes(number: int, size: int) -> bytes:
    return number.to_bytes(size, sys.byteorder)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], sys.byteorder)


def _read_messages(data: bytes, found: list[Address]) -> bool:
    """Collect the addresses of one datagram; whether more datagrams follow."""
    at = 0
    while at + _HEADER <= len(data):
        length, kind = _number(data, at, 4), _number(data, at + 4, 2)
        if kind in (_DONE, _ERROR) or length < _HEADER:
            return False
        if kind == _NEW_ADDRESS:
            version = _VERSION.get(data[at + _HEADER])
            attributes = _attributes(data[at + _HEADER + _ADDRESS_HEADER : at + length])
            address = attributes.get(_LOCAL) or attributes.get(_REMOTE)
            if version and address:
                found.append(Address(version, int.from_bytes(address)))
        at += (length + 3) & ~3
    return bool(data)


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length = _number(data, at, 2)
        if length < 4:
            break
        found[_number(data, at + 2, 2)] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found
