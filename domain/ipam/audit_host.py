"""Compare the routes of the machine that an audit runs on with who holds the addresses.

An address without a holder that the machine routes to an interface is in use all the same: its holder was released,
and not taken off the network. Allocation passes it over on that machine, and gives it out on others.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import Holders
from domain.ipam.inventory import Finding
from domain.ipam.pools import pool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.ipam.inventory import Inventory

IN_USE = "address-free-but-in-use-on-host"


def host_findings(inventory: Inventory) -> Iterator[Finding]:
    holders = Holders(inventory.blocks)
    for address, interface in inventory.host_routes:
        found = holders.of(address)
        if found is None and pool_of(inventory.pools, address) is None:
            continue  # none of ours
        if any(address in cidr for cidr in inventory.unreadable.blocks):
            continue
        if found is None or found[2] is None or found[2].released_at:
            reason = f"nobody holds it, but this host has a route to it over {interface}"
            advice = f"if its container is gone, `ip link delete {interface}`; else delete the workload"
            yield Finding(IN_USE, str(address), reason, advice, holder={"interface": interface}, address=address)
