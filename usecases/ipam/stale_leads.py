"""End the affinities that others have to our block: of a node that vanished in the middle of a claim or a release.

A block names its owner, so another's affinity to it leads nowhere. A node drops such an affinity when it next follows
it; one that is no more never does. The affinity of a claim that may be under way is left to whoever makes it: it
finds our block and drops the affinity itself, and the original may want to find it then.

Invariant: nothing is deleted but over the revision that was read, and only while the block is ours.
"""

from __future__ import annotations

from domain.ipam.block import HOST, PENDING
from ports.datastore import AffinityKey, NodeKey, affinities_of_all
from ports.errors import Missing, PortError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Affinity, Owner
    from ports.datastore import Stored
    from usecases.ipam.work import Work


def read_leads(work: Work, cidr: Cidr) -> tuple[Stored[Affinity], ...]:
    """All affinities to a block."""
    hosts, virtual = work.datastore.fetch(*affinities_of_all(cidr.version, to=cidr), deadline=work.deadline)
    return (*hosts, *virtual)


def end_stale_leads(work: Work, owner: Owner, leads: tuple[Stored[Affinity], ...]) -> None:
    """Delete those of others that no claim can be behind. Whoever changes one meanwhile keeps it."""
    for lead in leads:
        key = AffinityKey.of(lead)
        if key.owner == owner or _may_be_claiming(work, key.owner, lead.record.state):
            continue
        try:
            work.datastore.delete(key, lead.revision, work.deadline)
        except Missing:
            continue
        except PortError as error:
            work.log.warning("Could not delete a stale block affinity", affinity=key, error=error)
            continue
        work.log.info("Deleted an affinity that led to no block", affinity=key, state=lead.record.state)


def _may_be_claiming(work: Work, owner: Owner, state: str) -> bool:
    """A claim begins with a pending affinity. Of owners other than nodes nobody knows whether they are still there."""
    if state != PENDING:
        return False
    try:
        return owner.kind != HOST or work.datastore.get(NodeKey(owner.name), work.deadline) is not None
    except Refused:  # there is one, but it cannot be read
        return True
