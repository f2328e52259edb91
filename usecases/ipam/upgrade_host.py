"""Once per boot, before a particular address is assigned: bring the node's old affinity records up to date.

Old versions stored affinities without the labels by which they are listed today. The file is how all plugins of a
host know that it has been done (spec: ipam 3.1, 13.4; IPAM-019).

Invariant: the file is there only after the records are.
"""

from __future__ import annotations

from ports.errors import PortError, Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.affinity import Owner
    from ports.node import Node
    from usecases.ipam.work import Work

UPGRADED = "/var/run/calico/cni/ipam_upgraded"


def upgrade_host(work: Work, node: Node, owner: Owner) -> None:
    """Does nothing once the file exists. Failures: `failed to upgrade IPAM database: <err>`."""
    if node.exists(UPGRADED):
        return
    try:
        work.datastore.upgrade_affinities(owner, work.deadline)
        node.write(UPGRADED, "")
    except Unavailable as error:
        raise Unavailable(f"failed to upgrade IPAM database: {error}") from error
    except PortError as error:
        raise Refused(f"failed to upgrade IPAM database: {error}") from error
