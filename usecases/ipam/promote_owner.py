"""Make the target of a finished live migration the active owner of its machine's addresses.

Felix does it where the target runs, when KubeVirt says that the migration is over; the source's own DEL then clears
the slot that it was moved to (spec: ipam 14.5).

Invariant: the two owners change places in one write, and only if the target is still the alternate one. Doing it again
changes nothing.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError, StaleRequest
from domain.ipam.owner_update import Expectation, OwnerUpdate, Pod
from ports.errors import Missing
from usecases.ipam.handles import addresses_of_handle, holder_of_address
from usecases.ipam.owner_attributes import set_owner_attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Address
    from usecases.ipam.work import Work

TRIES = 5


class AlternateOwnerEmpty(IpamError):
    """Nobody is about to take the address over."""


class AlternateOwnerMismatch(IpamError):
    """Another pod is about to take the address over."""


def promote_owner(work: Work, handle: str, target: Pod) -> None:
    """Every address of the machine. IpamError if it has none, or if the target is not about to have one of them."""
    try:
        addresses = addresses_of_handle(work, handle)
    except Missing as error:
        raise IpamError(f"failed to get IPs for handle {handle}: {error}") from error
    if not addresses:
        raise IpamError(f"failed to get IPs for handle {handle}: it has none")
    for address in addresses:
        _promote(work, address, handle, target)


def _promote(work: Work, address: Address, handle: str, target: Pod) -> None:
    last: StaleRequest | None = None
    for _ in range(TRIES):
        holder = holder_of_address(work, address)
        source, coming = holder.secondary, holder.alternate
        if target.owns(source):
            return
        if not coming:
            raise AlternateOwnerEmpty(f"no pod is the alternate owner of {address}, expected {target}")
        if not target.owns(coming):
            raise AlternateOwnerMismatch(f"the alternate owner of {address} is {_named(coming)}, expected {target}")
        expected = Expectation(_named(source) if source else None, target, active_empty=not source)
        update = OwnerUpdate(active=coming, alternate=source or None, clear_alternate=not source)
        try:
            set_owner_attributes(work, address, handle, update, expected)
        except StaleRequest as error:
            last = error
        else:
            return
    assert last is not None  # noqa: S101 - every round but the last has raised
    raise last


def _named(owner: Mapping[str, str]) -> Pod:
    return Pod(owner.get("namespace", ""), owner.get("pod", ""))
