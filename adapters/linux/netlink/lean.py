"""Netlink over a bare socket: what a plugin uses, because the library takes twenty times as long to load as to work.

Every request has a number of its own and answers to other numbers are passed over. So a conversation that a signal's
exception tore apart leaves nothing that a later one could take for its own, and no signal has to wait.

Invariant: after `close` no descriptor is left; no process, thread or namespace is ever made.
"""

from __future__ import annotations

import _socket
from errno import EINTR, EINVAL, ENOBUFS, ENODEV, ENOENT

from adapters.linux.netlink import rtnetlink
from adapters.linux.netlink.messages import (
    NLM_F_DUMP,
    NLM_F_DUMP_INTR,
    NLM_F_MULTI,
    NetlinkAnswer,
    NetlinkRequest,
    answers,
    envelope,
    verdict,
)
from adapters.linux.netlink.seam import KernelError, KernelRoute, Netlink, PairRequest, Unanswered, no_socket
from domain.ipam.address import V6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.ipam.address import Address, Cidr
    from domain.linux.link import Link

NETLINK_ROUTE = 0
SOL_NETLINK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 270, 11, 12
_LARGEST = 1 << 16  # twice what the kernel puts into one datagram
_TRIES = 3  # of a question that changes nothing


class LeanNetlink(Netlink):
    """Opened in the calling thread's current network namespace, for which it speaks from then on.

    A `socket` that is given is used, and closed, instead of one to the kernel.
    """

    may_change_threads = True

    def __init__(self, socket: _socket.socket | None = None) -> None:
        self._sequence = 0
        self._socket = socket or _open()

    def link(self, name: str) -> Link | None:
        answer = self._look_up(self._encoded(rtnetlink.get_link, name))
        return None if answer is None else rtnetlink.read_link(answer.body)

    def link_by_index(self, index: int) -> Link | None:
        answer = self._look_up(rtnetlink.get_link(index=index))
        return None if answer is None else rtnetlink.read_link(answer.body)

    def _look_up(self, request: NetlinkRequest) -> NetlinkAnswer | None:
        """The one answer about a device, or None if there is no such device."""
        try:
            return self._only(request)
        except KernelError as error:
            if error.errno == ENODEV:
                return None
            raise

    def _only(self, request: NetlinkRequest) -> NetlinkAnswer:
        found = self._asked_again(request)
        if len(found) != 1:
            raise KernelError(EINVAL, f"the kernel gave {len(found)} answers to a question that has one")
        return found[0]

    def create_pair(self, request: PairRequest) -> None:
        self._ask(self._encoded(rtnetlink.new_pair, request))

    def set_up(self, index: int, *, up: bool) -> None:
        self._ask(rtnetlink.set_up(index, up=up))

    def set_mac(self, index: int, mac: str) -> None:
        self._ask(self._encoded(rtnetlink.set_mac, index, mac))

    def delete_link(self, index: int) -> None:
        try:
            self._ask(rtnetlink.delete_link(index))
        except KernelError as error:
            if error.errno != ENODEV:
                raise

    def add_address(self, index: int, address: Cidr) -> None:
        self._ask(rtnetlink.new_address(index, address))

    def addresses(self, index: int, version: int) -> list[Cidr]:
        listed = [rtnetlink.read_address(answer.body) for answer in self._dump(rtnetlink.get_addresses(index, version))]
        return [found[1] for found in listed if found and found[0] == index]

    def has_tentative(self, index: int) -> bool:
        listed = [rtnetlink.read_tentative(answer.body) for answer in self._dump(rtnetlink.get_addresses(index, V6))]
        return index in listed

    def add_route(self, index: int, destination: Cidr, gateway: Address | None, scope: str) -> None:
        self._ask(rtnetlink.new_route(index, destination, gateway, scope))

    def routes(self, version: int) -> list[KernelRoute]:
        listed = [rtnetlink.read_route(answer.body) for answer in self._dump(rtnetlink.get_routes(version))]
        return [found for found in listed if found]

    def learned_over(self) -> list[int]:
        listed = [rtnetlink.read_learned_over(answer.body) for answer in self._dump(rtnetlink.get_learned_routes())]
        return sorted({index for index in listed if index is not None})

    def namespace_id(self, namespace: int) -> int | None:
        return rtnetlink.read_namespace_id(self._only(rtnetlink.get_namespace_id(namespace)).body)

    def close(self) -> None:
        self._socket.close()

    def _encoded(self, request: Callable[..., NetlinkRequest], *arguments: object, **named: object) -> NetlinkRequest:
        """What cannot be written as a message is an invalid argument, as the kernel would say."""
        try:
            return request(*arguments, **named)
        except (ValueError, OverflowError) as error:
            raise KernelError(EINVAL) from error

    def _dump(self, request: NetlinkRequest) -> list[NetlinkAnswer]:
        """What does not exist has nothing to list."""
        try:
            return self._asked_again(request)
        except KernelError as error:
            if error.errno in (ENODEV, ENOENT):
                return []
            raise

    def _asked_again(self, request: NetlinkRequest) -> list[NetlinkAnswer]:
        """A question that changes nothing: again if what it lists has changed meanwhile, or an answer was lost."""
        for _ in range(_TRIES - 1):
            try:
                return self._ask(request)
            except KernelError as error:
                if error.errno not in (EINTR, ENOBUFS):
                    raise
        return self._ask(request)

    def _ask(self, request: NetlinkRequest) -> list[NetlinkAnswer]:
        """What the kernel answered before its verdict, which is an error if it is not a success."""
        self._sequence += 1
        try:
            self._socket.send(envelope(request, self._sequence))
            return self._collect(self._sequence, is_dump=request.flags & NLM_F_DUMP == NLM_F_DUMP)
        except OSError as error:
            raise Unanswered(error.errno or EINVAL) from error

    def _collect(self, sequence: int, *, is_dump: bool) -> list[NetlinkAnswer]:
        """A single answer ends the conversation as a verdict does; those of a dump go on until its verdict."""
        found: list[NetlinkAnswer] = []
        torn = False
        while True:
            datagram = self._received(is_dump=is_dump)
            torn = torn or not datagram
            for answer in answers(datagram):
                if answer.sequence != sequence:
                    continue
                torn = torn or bool(answer.flags & NLM_F_DUMP_INTR)
                ended = verdict(answer)
                if ended is None:
                    found.append(answer)
                    if answer.flags & NLM_F_MULTI:
                        continue
                elif ended.errno:
                    raise KernelError(ended.errno, explanation=ended.explanation)
                if torn:
                    raise KernelError(EINTR)
                return found

    def _received(self, *, is_dump: bool) -> bytes:
        """A datagram; b"" where some of a dump found no room. It goes on, and no other can begin before its end."""
        try:
            return self._socket.recv(_LARGEST)
        except OSError as error:
            if error.errno == ENOBUFS and is_dump:
                return b""
            raise


def _open() -> _socket.socket:
    try:
        opened = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, NETLINK_ROUTE)
    except OSError as error:
        raise no_socket(error) from error
    for option in (NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK):
        try:
            opened.setsockopt(SOL_NETLINK, option, 1)
        except OSError:  # an older kernel explains nothing, and lists more than it is asked for
            break
    return opened
