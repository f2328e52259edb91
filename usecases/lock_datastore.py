"""`datastore migrate lock` and `unlock`: whether calls may allocate. Calico's plugins heed it, too.

Invariant: nothing of ClusterInformation but its readiness changes.
"""

from __future__ import annotations

from ports.datastore import ClusterInformationKey
from ports.errors import BadConfiguration
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cluster import ClusterInformation
    from usecases.ipam.work import Leave, Work


def set_ready(work: Work, *, ready: bool) -> None:
    """BadConfiguration if nobody has set the datastore up."""

    def change(found: ClusterInformation | None) -> ClusterInformation | Leave:
        if found is None:
            raise BadConfiguration("the datastore has no ClusterInformation; `tortie init` makes it")
        return LEAVE if found.datastore_ready is ready else found.replace(datastore_ready=ready)

    guarded_write(work, ClusterInformationKey("default"), change)
