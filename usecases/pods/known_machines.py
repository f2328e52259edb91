"""Find out which virtual machines are gone while their addresses are still allocated, for an audit.

A machine that is off keeps its addresses without any pod, so only the API server can say whether one is left over.

Invariant: a machine about which the API server gives no answer counts as one that is there.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import Endpoints, is_of_machine
from domain.workload.kubevirt import machines_named_by
from ports.cluster import NoSuchObject
from ports.errors import BadConfiguration, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from domain.ipam.block import Attribute, Block
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.cluster import Cluster
    from usecases.ipam.work import Work


def known_machines(
    work: Work, cluster: Cluster, blocks: Iterable[Block], endpoints: tuple[WorkloadEndpoint, ...]
) -> dict[str, bool]:
    """Handle → whether there is such a machine. Handles that pods with an endpoint own are not asked about."""
    owned = Endpoints(endpoints)
    known: dict[str, bool] = {}
    try:
        for handle, holder in sorted(_machines(blocks).items()):
            names = _named(handle, holder)
            if names and not owned.have_owner_of(holder):
                known[handle] = any(_is_there(work, cluster, *name) for name in names)
    except BadConfiguration as error:
        work.log.debug("Nobody can be asked which virtual machines there are", error=error)
    except PortError as error:
        work.log.warning("Could not find out which virtual machines there are", error=error)
    return known


def _machines(blocks: Iterable[Block]) -> dict[str, Attribute]:
    holders = [attribute for block in blocks for attribute in block.attributes]
    return {holder.holder or "": holder for holder in holders if is_of_machine(holder)}


def _named(handle: str, holder: Attribute) -> tuple[tuple[str, str], ...]:
    """By the owners, of which one may say it, and by the handle itself, unless that is a hash."""
    said = [
        (owner.get("namespace", ""), owner.get("vmi-name", "")) for owner in (holder.secondary, holder.alternate or {})
    ]
    return tuple(dict.fromkeys([*[names for names in said if all(names)], *machines_named_by(handle)]))


def _is_there(work: Work, cluster: Cluster, namespace: str, name: str) -> bool:
    looks: tuple[Callable[[], object], ...] = (
        lambda: cluster.virtual_machine(namespace, name, work.deadline),
        lambda: cluster.virtual_machine_instance(namespace, name, work.deadline),
    )
    for look in looks:
        try:
            look()
        except NoSuchObject:
            continue
        return True
    return False
