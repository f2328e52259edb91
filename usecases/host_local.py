"""What `host-local` does, built in: an address from each range set, release, CHECK, and a GC that the original lacks.

Invariant: whatever fails, an ADD leaves either all of its addresses reserved or none.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.result import Dns, Result, ResultIp
from domain.ipam.address import Address, Cidr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.bridge.conf import AttachmentId
    from domain.bridge.host_local import HostLocalConf, Range, RangeSet
    from ports.address_files import AddressFile, AddressFiles
    from ports.clock import Deadline

# Nanoseconds for which GC leaves a reservation alone: its container may be younger than the list of valid ones.
YOUNG = 30_000_000_000


def allocate(
    conf: HostLocalConf, owner: AttachmentId, files: AddressFiles, given: list[Address], deadline: Deadline
) -> Result:
    """Without DNS. `given` tells, also when this is cut short, what has been reserved. CniError 999 with host-local's
    texts.
    """
    with files.held(deadline):
        try:
            ips = _allocate_all(conf, owner, files, given)
        except BaseException:
            while given:
                files.release(given[-1])
                given.pop()
            raise
    return Result(ips=ips, routes=conf.routes)


def _allocate_all(
    conf: HostLocalConf, owner: AttachmentId, files: AddressFiles, given: list[Address]
) -> tuple[ResultIp, ...]:
    taken = {reservation.address: reservation for reservation in files.reservations()}
    wanted = list(dict.fromkeys(conf.requested))
    ips = []
    for number, ranges in enumerate(conf.sets):
        requested = next((address for address in wanted if ranges.range_of(address) is not None), None)
        if requested is not None:
            wanted.remove(requested)
        try:
            ip = _choose(ranges, requested, owner, taken, files.last_reserved(number))
        except _NoAddress as error:
            raise CniError(INTERNAL, f"failed to allocate for range {number}: {error}") from None
        given.append(ip.address.address)
        files.reserve(given[-1], owner.container_id, owner.ifname, number)
        ips.append(ip)
    if wanted:
        raise CniError(
            INTERNAL, "failed to allocate all requested IPs: " + " ".join([str(address) for address in wanted])
        )
    return tuple(ips)


class _NoAddress(Exception):
    """`str()` is the reason."""


def _choose(
    ranges: RangeSet,
    requested: Address | None,
    owner: AttachmentId,
    taken: dict[Address, AddressFile],
    last: Address | None,
) -> ResultIp:
    if requested is not None:
        return _requested(ranges, requested, taken)
    for reservation in taken.values():
        if _is_whose(reservation, owner) and ranges.range_of(reservation.address) is not None:
            what = f"{reservation.address} has been allocated to {owner.container_id}"
            raise _NoAddress(f"{what}, duplicate allocation is not allowed")
    for address, source in ranges.candidates(last):
        if address not in taken:
            return _given(address, source)
    raise _NoAddress(f"no IP addresses available in range set: {ranges}")


def _requested(ranges: RangeSet, requested: Address, taken: dict[Address, AddressFile]) -> ResultIp:
    source = next(inside for inside in ranges.ranges if requested in inside)
    if requested == source.gateway:
        raise _NoAddress(f"requested ip {requested} is subnet's gateway")
    if requested in taken:
        raise _NoAddress(f"requested IP address {requested} is not available in range set {ranges}")
    return _given(requested, source)


def _given(address: Address, source: Range) -> ResultIp:
    return ResultIp(Cidr(address.version, address.number, source.subnet.length), gateway=source.gateway)


def _is_whose(reservation: AddressFile, owner: AttachmentId) -> bool:
    return reservation.container_id == owner.container_id and reservation.ifname in {"", owner.ifname}


def release(owner: AttachmentId, files: AddressFiles, deadline: Deadline) -> None:
    if not files.exist():
        return
    with files.held(deadline):
        for reservation in files.reservations():
            if _is_whose(reservation, owner):
                files.release(reservation.address)


def check(owner: AttachmentId, files: AddressFiles, deadline: Deadline) -> None:
    with files.held(deadline):
        if not any(_is_whose(reservation, owner) for reservation in files.reservations()):
            raise CniError(INTERNAL, f"host-local: Failed to find address added by container {owner.container_id}")


def collect(
    valid: Iterable[AttachmentId], files: AddressFiles, deadline: Deadline, now: int
) -> tuple[AddressFile, ...]:
    """Release what belongs to nobody valid and is not YOUNG any more; what was released."""
    kept = tuple(valid)
    if not files.exist():
        return ()
    with files.held(deadline):
        stale = [
            reservation
            for reservation in files.reservations()
            if now - reservation.made > YOUNG and not any(_is_whose(reservation, owner) for owner in kept)
        ]
        for reservation in stale:
            files.release(reservation.address)
    return tuple(stale)


def read_dns(resolv_conf: str) -> Dns:
    """What a resolver's configuration says, as host-local reads it."""
    found: dict[str, list[str]] = {"nameserver": [], "domain": [], "search": [], "options": []}
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) < 2 or words[0] not in found:  # also comments
            continue
        found[words[0]] += words[1:] if words[0] in {"search", "options"} else words[1:2]
    return Dns(
        nameservers=tuple(found["nameserver"]),
        domain=found["domain"][-1] if found["domain"] else "",
        search=tuple(found["search"]),
        options=tuple(found["options"]),
    )
