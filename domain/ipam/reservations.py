"""IPReservations: addresses that automatic allocation must leave alone."""

from __future__ import annotations

from domain.resource import Metadata
from domain.value import Value


class Reservation(Value):
    """`cidrs` are texts as stored; malformed entries are skipped when they are used."""

    metadata: Metadata
    cidrs: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()
