"""What is wanted for one container interface, in our words; a dataplane turns it into devices, addresses and routes.

Invariant: everything that `connect` needs is in here; no dataplane asks a datastore or the environment for more.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.resource import NO_LABELS
from domain.value import Value
from domain.workload.endpoint import Port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ROUTES = (Cidr.parse("0.0.0.0/0"), Cidr.parse("::/0"))


class Attachment(Value):
    """What is wanted for one container interface.

    `netns` is the path in CNI_NETNS, `ifname` the name inside, `host_name` the name wanted on the host. `addresses`
    are as IPAM gave them; `gateways` run parallel to them (None where IPAM gave none). `routes` are the destinations
    to be reached through the pod's gateway. `mtu` 0 leaves the kernel's default. `mac` None leaves the kernel's;
    otherwise it is the text of the hwAddr annotation. `device_type` is "", veth or netkit. With `replace_host_link`
    a leftover host device of that name goes even if its peer lives in another namespace. `nat_outgoing` and
    `nat_exceptions` say whether what the container sends out gets the host's address, and on the way to where it does
    not: on Linux that is Felix's business, on Windows the interface's.
    """

    netns: str
    ifname: str
    host_name: str
    addresses: tuple[Cidr, ...]
    routes: tuple[Cidr, ...]
    gateways: tuple[Address | None, ...] = ()
    mtu: int = 0
    num_queues: int = 1
    device_type: str = ""
    mac: str | None = None
    allow_ip_forwarding: bool = False
    host_routes: bool = True
    replace_host_link: bool = False
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = NO_LABELS
    annotations: Mapping[str, str] = NO_LABELS
    endpoint: str = ""
    node: str = ""
    orchestrator: str = ""
    pod: str = ""
    ports: tuple[Port, ...] = ()
    nat_outgoing: bool = True
    nat_exceptions: tuple[Cidr, ...] = ()
