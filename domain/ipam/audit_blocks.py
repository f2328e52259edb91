"""Compare blocks with the affinities, nodes and pools that they belong to.

The block says whose it is; an affinity is a lead to it that a node follows and that routing trusts once confirmed.

Invariant: pure; of a block and an affinity that differ the block is right.
"""

from __future__ import annotations

from domain.ipam.block import CONFIRMED, HOST, Owner
from domain.ipam.inventory import COLLECT, INFO, LEAK, Finding
from domain.ipam.pools import pool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from domain.ipam.address import Address, Cidr
    from domain.ipam.block import Block
    from domain.ipam.inventory import Claim, Inventory

NO_BLOCK, FOREIGN = "affinity-without-block", "affinity-of-others-block"
DOUBLE, UNFINISHED = "affinities-both-confirmed", "affinity-unfinished"
NO_AFFINITY, UNOWNED, EMPTY_UNOWNED = "block-without-affinity", "block-without-owner", "block-empty-without-owner"
EMPTY_VANISHED, VANISHED = "block-empty-of-vanished-node", "block-of-vanished-node"
OVERLAP, LOST = "blocks-overlap", "block-lost-addresses"
NO_POOL, DISABLED_POOL = "block-outside-pools", "block-in-disabled-pool"


def block_findings(inventory: Inventory) -> Iterator[Finding]:
    yield from _claims(inventory)
    used = {
        address: f"{endpoint.metadata.namespace}/{endpoint.metadata.name}"
        for endpoint in inventory.endpoints
        for address in endpoint.addresses
    }
    claimed = {(claim.owner, claim.cidr) for claim in inventory.claims} | inventory.unreadable.claims
    for cidr, (block, revision) in inventory.blocks.items():
        for found in _ownership(inventory, block, revision, has_claim=(_owner(block), cidr) in claimed):
            yield _for_workloads(found, block, used) if found.kind == VANISHED else found
        yield from _home(inventory, cidr)
        yield from _lost(block, revision, used)
    yield from _overlaps(inventory)


def _owner(block: Block) -> Owner | None:
    return Owner.parse(block.affinity) if block.affinity else None


def is_vanished(inventory: Inventory, node: str) -> bool:
    """Whether no such node exists. Where no node exists at all, they are recorded elsewhere, and none has vanished."""
    return bool(node) and bool(inventory.nodes) and node not in inventory.nodes | inventory.unreadable.nodes


def _claims(inventory: Inventory) -> Iterator[Finding]:
    confirmed: dict[Cidr, list[str]] = {}
    for claim in inventory.claims:
        if _is_confirmed(claim):
            confirmed.setdefault(claim.cidr, []).append(str(claim.owner))
    for claim in inventory.claims:
        if claim.cidr in inventory.unreadable.blocks:
            continue
        block = inventory.blocks.get(claim.cidr)
        if block is None:
            state = claim.state or CONFIRMED
            yield _claim(claim, NO_BLOCK, f"{claim.owner} has a {state} affinity to it, but there is no block")
        elif block[0].affinity != str(claim.owner):
            yield _foreign(claim, block[0], confirmed.get(claim.cidr, []))
        elif not _is_confirmed(claim) and not _of_vanished(inventory, block[0]):
            half = f"{claim.owner} has left its affinity in state {claim.state}: a claim or a release stopped half-way"
            yield _claim(claim, UNFINISHED, half)


def _is_confirmed(claim: Claim) -> bool:
    return claim.state in (CONFIRMED, "")


def _foreign(claim: Claim, block: Block, confirmed: list[str]) -> Finding:
    of = f"the block belongs to {block.affinity or 'nobody'}"
    if _is_confirmed(claim) and len(confirmed) > 1:
        both = " and ".join(confirmed)
        return _claim(claim, DOUBLE, f"{both} all have a confirmed affinity to it, so routes go astray; {of}")
    return _claim(claim, FOREIGN, f"{claim.owner} has an affinity to it, but {of}")


def _claim(claim: Claim, kind: str, reason: str) -> Finding:
    does = "which finishes it" if kind == UNFINISHED else "which deletes that affinity"
    return Finding(
        kind,
        str(claim.cidr),
        reason,
        f"{COLLECT}, {does}",
        repairable=True,
        block=claim.cidr,
        owner=claim.owner,
        holder={"node": claim.owner.name} if claim.owner.kind == HOST else {"owner": str(claim.owner)},
        mark=claim.revision,
    )


def _of_vanished(inventory: Inventory, block: Block) -> bool:
    owner = _owner(block)
    return owner is not None and owner.kind == HOST and is_vanished(inventory, owner.name)


def _ownership(inventory: Inventory, block: Block, revision: str, *, has_claim: bool) -> Iterator[Finding]:
    owner, subject = _owner(block), str(block.cidr)
    empty = block.collect(inventory.now, inventory.config.cooldown_seconds).is_empty()
    found: Finding | None = None
    if owner is None and empty:
        found = Finding(
            EMPTY_UNOWNED, subject, "no node owns it and nobody can claim its place", f"{COLLECT}, which deletes it"
        )
    elif owner is None:
        reason = "no node owns it; its addresses can be borrowed, and it goes with the last of them"
        found = Finding(UNOWNED, subject, reason, "nothing to do", level=INFO)
    elif _of_vanished(inventory, block) and empty:
        reason = f"node {owner.name} does not exist and no address is held"
        found = Finding(EMPTY_VANISHED, subject, reason, f"{COLLECT}, which gives it back")
    elif _of_vanished(inventory, block):
        reason = f"node {owner.name} does not exist, but addresses are still held"
        advice = "run `tortie ipam gc --leaked --yes`, which gives it back once they are released"
        found = Finding(VANISHED, subject, reason, advice, level=LEAK)
    elif not has_claim:
        reason = f"it belongs to {owner}, which has no affinity to it and so will not find it"
        found = Finding(NO_AFFINITY, subject, reason, f"{COLLECT}, which writes the affinity")
    if found is not None:
        holder = {} if owner is None else {"node": owner.name} if owner.kind == HOST else {"owner": str(owner)}
        repairable = found.level != INFO
        yield found.replace(block=block.cidr, owner=owner, holder=holder, repairable=repairable, mark=revision)


def _for_workloads(found: Finding, block: Block, used: Mapping[Address, str]) -> Finding:
    """The block of a node that is gone, while workloads go on: releasing what has leaked does not give it back."""
    addresses = [block.cidr.at(ordinal) for ordinal in range(block.cidr.size)]
    names = list(dict.fromkeys([used[address] for address in addresses if address in used]))
    if not names:
        return found
    node = found.owner.name if found.owner else ""
    rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
    advice = f"make node {node} again, or delete the workload of endpoint {names[0]}{rest}, which has an address of it"
    return found.replace(advice=advice, repairable=False)


def _home(inventory: Inventory, cidr: Cidr) -> Iterator[Finding]:
    pool = pool_of(inventory.pools, cidr)
    if pool is None:
        reason = "no IP pool contains it; its addresses stay usable, and new ones come from other blocks"
        yield Finding(NO_POOL, str(cidr), reason, "create the pool again, or delete the workloads", INFO, block=cidr)
    elif pool.disabled:
        reason = (
            f"IP pool {pool.metadata.name} is disabled; its addresses stay usable, and new ones come from elsewhere"
        )
        yield Finding(DISABLED_POOL, str(cidr), reason, "enable the pool, or delete the workloads", INFO, block=cidr)


def _lost(block: Block, revision: str, used: Container[Address]) -> Iterator[Finding]:
    lost = lost_ordinals(block, used)
    if lost:
        shown = ", ".join([str(block.cidr.at(ordinal)) for ordinal in lost[:3]]) + (", …" if len(lost) > 3 else "")
        yield Finding(
            LOST,
            str(block.cidr),
            f"{len(lost)} of its addresses are neither free nor held: {shown}",
            f"{COLLECT}, which frees them",
            repairable=True,
            block=block.cidr,
            mark=revision,
        )


def lost_ordinals(block: Block, used: Container[Address]) -> tuple[int, ...]:
    """Ordinals that nobody holds and that are not in the queue of free ones either, where they belong.

    Not those whose addresses are `used` by endpoints: free, they would be given out a second time.
    """
    free = set(block.unallocated)
    missing = [ordinal for ordinal, index in enumerate(block.allocations) if index is None and ordinal not in free]
    return tuple(ordinal for ordinal in missing if block.cidr.at(ordinal) not in used)


def _overlaps(inventory: Inventory) -> Iterator[Finding]:
    reached: Cidr | None = None
    for cidr in sorted(inventory.blocks, key=lambda one: (one.version, one.first, one.length)):
        if reached is not None and reached.overlaps(cidr):
            reason = f"it overlaps block {reached}, so one address can be given out twice"
            yield Finding(OVERLAP, str(cidr), reason, "delete the workloads in one of the two", block=cidr)
        else:
            reached = cidr
