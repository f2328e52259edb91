"""Find what is inconsistent, left over or leaked in the records of IPAM, and say who has it and what to do.

Pure: it sees an inventory and changes nothing. Whether a finding is left over or merely in the making, when calls are
at work, shows only in a second look (usecases/collect_ipam.py).

Invariant: a datastore in which every call came to its end, or its leavings were collected, has no finding but infos.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import Holders, address_findings
from domain.ipam.audit_blocks import block_findings
from domain.ipam.audit_handles import handle_findings
from domain.ipam.inventory import COLLECT, INFO, LEAK, PROBLEM, Finding
from domain.ipam.pools import pool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from domain.ipam.inventory import Inventory


UNREADABLE, SETTINGS = "record-unreadable", "settings-differ"
IN_USE = "address-free-but-in-use-on-host"
_RESTORE = "restore it from a backup, or delete it (`tortie delete` can) and write it anew if anybody needs it"
_SET = "give the settings anew with `tortie ipam configure`, which sets it aside, with a copy in a file"
_REBUILT = (
    ("block", "writes anew what it still says and what endpoints prove"),
    ("handle", "writes anew what blocks hold for it"),
    ("claim", "writes anew what the block proves"),
)
_ORDER = (PROBLEM, LEAK, INFO)


def audit(inventory: Inventory) -> tuple[Finding, ...]:
    """All findings, the worst first, those of one kind in the order of what they are about."""
    found = [
        *_unreadable(inventory),
        *handle_findings(inventory),
        *block_findings(inventory),
        *address_findings(inventory),
        *_host_routes(inventory),
        *_settings(inventory),
    ]
    return tuple(sorted(found, key=_place))


def is_clean(findings: Iterable[Finding]) -> bool:
    return all(finding.level == INFO for finding in findings)


def _place(finding: Finding) -> tuple[int, str, int, int, str]:
    block, address = finding.block, finding.address
    version, number = (
        (address.version, address.number) if address else (block.version, block.first) if block else (0, 0)
    )
    return (_ORDER.index(finding.level), finding.kind, version, number, finding.subject)


def _unreadable(inventory: Inventory) -> Iterator[Finding]:
    blind = inventory.unreadable.endpoints
    for one in inventory.unreadable.records:
        rebuilt = next((text for own, text in _REBUILT if getattr(one, own)), "")
        advice = f"{COLLECT}, which sets it aside, with a copy in a file, and {rebuilt}"
        if rebuilt and blind:
            advice = f"mend the unreadable endpoint records first; then {advice}"
        owner, cidr = one.claim or (None, one.block)
        yield Finding(
            UNREADABLE,
            one.record,
            one.fault,
            advice if rebuilt else _SET if one.settings else _RESTORE,
            repairable=bool(rebuilt) and bool(one.revision) and not blind,
            block=cidr,
            handle=one.handle,
            owner=owner,
            mark=one.revision,
        )


def _settings(inventory: Inventory) -> Iterator[Finding]:
    """The two records of settings, of which allocation reads one and calicoctl the other."""
    resource = inventory.configuration
    if resource is None:
        return
    names = ("strict_affinity", "auto_allocate_blocks", "max_blocks_per_host", "cooldown_seconds")
    differ = [name for name in names if getattr(resource, name) != getattr(inventory.config, name)]
    if differ:
        words = ", ".join([name.replace("_", " ") for name in differ])
        reason = f"the resource IPAMConfiguration and what allocation goes by differ in {words}"
        advice = "set them with `tortie ipam configure`, which writes both"
        yield Finding(SETTINGS, "IPAMConfiguration(default)", reason, advice, level=INFO)


def _host_routes(inventory: Inventory) -> Iterator[Finding]:
    """Addresses without a holder that this very machine routes to an interface.

    They are in use all the same: the holder was released, and not taken off the network. Allocation passes them over on
    this machine, and gives them out on others.
    """
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
