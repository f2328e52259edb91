"""IPReservations: addresses that automatic allocation must leave alone."""

from __future__ import annotations

from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Reservation(Value):
    """`cidrs` are texts as stored; malformed entries are skipped when they are used."""

    metadata: Metadata
    cidrs: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


def reserved_cidrs(reservations: Iterable[Reservation], version: int) -> tuple[Cidr, ...]:
    """All reserved ranges of one IP version; blanks around a text are fine, what is no address or CIDR is skipped."""
    found: list[Cidr] = []
    for reservation in reservations:
        for text in reservation.cidrs:
            try:
                cidr = Cidr.parse_lenient(text.strip()).network
            except ValueError:
                continue
            if cidr.version == version:
                found.append(cidr)
    return tuple(found)
