"""Tell the cluster of a Windows node's part in the overlay: the address and the MAC of its tunnel.

Other nodes send to them. calico-node on Windows does not know the network before the first container is connected, so
the plugin that has just connected one says so.

Invariant: a container's ADD does not fail because of it; what the node's record says otherwise stays.
"""

from __future__ import annotations

from domain.windows.plan import GATEWAY
from ports.datastore import NodeKey
from ports.errors import Missing, PortError, Refused
from usecases.ipam.work import LEAVE, Work, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cluster import Node
    from domain.ipam.address import Cidr
    from ports.clock import Deadline
    from ports.runtime import Runtime
    from usecases.ipam.work import Leave

TRIES, PAUSE = 3, 1.0


def keep_tunnel(runtime: Runtime, node: str, subnet: Cidr, deadline: Deadline) -> None:
    """Three times at most, a second apart; what then is still wrong is in the log."""
    for left in range(TRIES - 1, -1, -1):
        try:
            _keep(runtime, node, subnet, deadline)
        except PortError as error:
            runtime.log.error("Cannot keep the node's VXLAN tunnel address", node=node, error=error, tries_left=left)
        else:
            return
        if left:
            runtime.clock.sleep(PAUSE)


def _keep(runtime: Runtime, node: str, subnet: Cidr, deadline: Deadline) -> None:
    mac = runtime.host_networking.tunnel_mac(subnet, deadline)
    wanted = (str(subnet.at(GATEWAY)), mac)

    def with_tunnel(found: Node | None) -> Node | Leave:
        if found is None:
            raise Refused(str(Missing(NodeKey(node))))
        return LEAVE if found.vxlan_tunnel == wanted else found.with_vxlan_tunnel(*wanted)

    guarded_write(Work.on(runtime, deadline), NodeKey(node), with_tunnel)
