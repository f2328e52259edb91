"""What the kernel can do, found out by doing it: in a network namespace that nobody else is in, by a child process.

Lists of modules tell too little: what is built in may be in none, and what is in one may be forbidden to load. The
kernel loads a module for the trial as it would for a container.

Invariant: the namespace, with all that was made in it, ends with the child, and the child within the time it has.
"""

from __future__ import annotations

import os
import select
from errno import ENOTSUP, EOPNOTSUPP

from adapters.linux.files import go_text
from adapters.linux.netlink.messages import (
    CREATE_ONLY,
    NLM_F_ACK,
    NetlinkRequest,
    answers,
    attribute,
    envelope,
    text_attribute,
    verdict,
)
from adapters.linux.netlink.rtnetlink import (
    IFLA_IFNAME,
    IFLA_INFO_DATA,
    IFLA_INFO_KIND,
    IFLA_LINKINFO,
    RTM_NEWLINK,
    link_header,
)
from adapters.linux.process.system_calls import unshare
from domain.doctor.kernel import BRIDGE, NETNS, NFTABLES, VETH, VXLAN
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLONE_NEWNET = 0x40000000
NETLINK_ROUTE, NETLINK_NETFILTER = 0, 12
NFT_MSG_GETGEN = 10 << 8 | 16  # of NFNL_SUBSYS_NFTABLES
IFLA_VXLAN_ID, _VNI = 1, b"\x01\x10\0\0"
_KIND_DATA = {VXLAN: attribute(IFLA_VXLAN_ID, _VNI)}
_SECONDS = 10
_NO_NAMESPACES = (22, 38)  # EINVAL, ENOSYS: what a kernel without them says


def lacking() -> Mapping[str, str]:
    """As the port has it."""
    receiving, sending = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        _try_all(sending)
    os.close(sending)
    try:
        told = _told(receiving)
    finally:
        os.close(receiving)
        os.kill(child, 9)
        os.waitpid(child, 0)
    return _reasons(told)


def _told(receiving: int) -> list[tuple[str, int]]:
    text = b""
    poller = select.poll()
    poller.register(receiving, select.POLLIN)
    while poller.poll(_SECONDS * 1000):
        part = os.read(receiving, 4096)
        if not part:
            break
        text += part
    pairs = [line.rpartition(" ") for line in text.decode().splitlines()]
    return [(feature, int(number)) for feature, _, number in pairs]


def _reasons(told: list[tuple[str, int]]) -> dict[str, str]:
    numbers = dict(told)
    refused = numbers.get(NETNS)
    if refused is None:
        raise Refused("what the kernel can do is not known: the trial gives no answer")
    if refused in _NO_NAMESPACES:
        return {NETNS: go_text(refused)}
    if refused:
        raise Refused(f"what the kernel can do cannot be tried: {go_text(refused)}")
    found = {}
    for feature in (VETH, BRIDGE, VXLAN, NFTABLES):
        number = numbers.get(feature, -1)
        if number:
            unknown = number in (EOPNOTSUPP, ENOTSUP)
            found[feature] = "the kernel has none" if unknown else go_text(number) if number > 0 else "no answer"
    return found


def _try_all(sending: int) -> None:
    """In the child. Never returns."""
    try:
        _tell(sending, NETNS, _number_of(lambda: unshare(CLONE_NEWNET)))
        for kind in (VETH, BRIDGE, VXLAN):
            _tell(sending, kind, _number_of(_trial(kind)))
        question = NetlinkRequest(NFT_MSG_GETGEN, NLM_F_ACK, bytes(4))
        _tell(sending, NFTABLES, _number_of(lambda: _ask(NETLINK_NETFILTER, question)))
    finally:
        os._exit(0)


def _trial(kind: str) -> Callable[[], None]:
    return lambda: _ask(NETLINK_ROUTE, _new_link(f"try-{kind}", kind))


def _tell(sending: int, feature: str, number: int) -> None:
    os.write(sending, f"{feature} {number}\n".encode())
    if feature == NETNS and number:
        os._exit(0)


def _number_of(trial: Callable[[], None]) -> int:
    try:
        trial()
    except OSError as error:
        return error.errno or 1
    return 0


def _new_link(name: str, kind: str) -> NetlinkRequest:
    information = text_attribute(IFLA_INFO_KIND, kind)
    if kind in _KIND_DATA:
        information += attribute(IFLA_INFO_DATA, _KIND_DATA[kind])
    body = link_header() + text_attribute(IFLA_IFNAME, name) + attribute(IFLA_LINKINFO, information)
    return NetlinkRequest(RTM_NEWLINK, NLM_F_ACK | CREATE_ONLY, body)


def _ask(protocol: int, request: NetlinkRequest) -> None:
    """OSError with the kernel's verdict."""
    import _socket

    netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, protocol)
    netlink.settimeout(_SECONDS / 5)
    netlink.send(envelope(request, 1))
    while True:
        for answer in answers(netlink.recv(1 << 16)):
            end = verdict(answer)
            if end is not None:
                if end.errno:
                    raise OSError(end.errno, os.strerror(end.errno))
                return
