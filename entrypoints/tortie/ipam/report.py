"""Findings as JSON and back: what `ipam check -o json` writes, `ipam gc` and `ipam release --from-report` read.

It has calicoctl's members besides, so that what reads one of its reports reads ours.

Invariant: a report that was written is read as the same look; anything else is refused before something is done.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import LEAKED, VANISHED_NODE, Endpoints, young_addresses
from domain.ipam.audit_handles import ORPHAN
from domain.ipam.inventory import INFO, LEAK, PROBLEM
from domain.ipam.utilisation import is_borrowed
from domain.json_text import parse
from domain.moment import rfc3339
from entrypoints.tortie.manifest_files import BadFile, text_of
from entrypoints.version import VERSION
from usecases.collect_ipam import Look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from domain.cluster import ClusterInformation
    from domain.ipam.address import Address
    from domain.ipam.block import Block
    from domain.ipam.inventory import Finding, Inventory
    from domain.json_text import Json
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.datastore import Stored
    from usecases.check_ipam import Report

FORMAT = 1
_LARGEST = 64 << 20  # bytes: some hundred thousand findings
_LEVELS = (PROBLEM, LEAK, INFO)


def finding_json(finding: Finding) -> dict[str, Json]:
    """Members that say nothing are left out, but for the first six."""
    more = {
        "address": finding.address,
        "block": finding.block,
        "affinity": finding.owner,
        "handle": finding.handle or None,
        "revision": finding.mark or None,
    }
    return {
        "kind": finding.kind,
        "level": finding.level,
        "subject": finding.subject,
        "reason": finding.reason,
        "advice": finding.advice,
        "collectable": finding.repairable,
        **{name: str(value) for name, value in more.items() if value is not None},
        **({"holder": {**finding.holder}} if finding.holder else {}),
    }


def report_document(report: Report, cluster: Stored[ClusterInformation] | None) -> dict[str, Json]:
    counts = {level: sum(1 for finding in report.findings if finding.level == level) for level in _LEVELS}
    return {
        "format": FORMAT,
        **_for_calicoctl(report, cluster),
        "takenAt": str(report.inventory.now),
        "time": rfc3339(report.inventory.now),
        "clean": not counts[PROBLEM] and not counts[LEAK],
        "problems": counts[PROBLEM],
        "leaks": counts[LEAK],
        "infos": counts[INFO],
        "young": young_addresses(report.inventory),
        "checked": {**checked(report.inventory)},
        "findings": [finding_json(finding) for finding in report.findings],
    }


def _for_calicoctl(report: Report, cluster: Stored[ClusterInformation] | None) -> dict[str, Json]:
    about = cluster.record if cluster else None
    leaked = {finding.address for finding in report.findings if finding.level == LEAK}
    users = Endpoints(report.inventory.endpoints).by_address
    orphans: list[Json] = [finding.handle for finding in report.findings if finding.kind == ORPHAN]
    return {
        "version": VERSION,
        "clusterGUID": about.cluster_guid if about else "",
        "clusterType": about.cluster_type if about else "",
        "clusterInformationRevision": cluster.revision if cluster else "",
        "datastoreLocked": not (about and about.datastore_ready),
        "allocations": {
            str(address): [_allocation(address, at, users.get(address, ()), in_use=address not in leaked)]
            for address, at in _held(report.inventory)
        },
        "leakedHandles": orphans,
    }


def _held(inventory: Inventory) -> Iterable[tuple[Address, tuple[Block, int]]]:
    """Each address that somebody has, and where that is written."""
    for cidr, (block, _) in inventory.blocks.items():
        for ordinal, index in enumerate(block.allocations):
            if index is not None and not block.attributes[index].released_at:
                yield cidr.at(ordinal), (block, ordinal)


def _allocation(
    address: Address, at: tuple[Block, int], users: Sequence[WorkloadEndpoint], *, in_use: bool
) -> dict[str, Json]:
    block, ordinal = at
    holder = block.holder(ordinal)
    assert holder is not None  # noqa: S101 - only what is held comes here
    about = holder.secondary
    members = {"pod": "pod", "namespace": "namespace", "node": "node", "type": "type", "timestamp": "creationTimestamp"}
    return {
        "ip": str(address),
        "handle": holder.holder or "",
        "sequenceNumber": block.sequences.get(ordinal, 0),
        **{member: about[name] for name, member in members.items() if about.get(name)},
        "inUse": in_use,
        "borrowed": is_borrowed(block, holder),
        "owners": [f"{one.metadata.namespace}/{one.metadata.name}" for one in users],
    }


def checked(inventory: Inventory) -> dict[str, int]:
    """How much there is of what."""
    blocks = [block for block, _ in inventory.blocks.values()]
    return {
        "pools": len(inventory.pools),
        "blocks": len(blocks),
        "addresses": sum(len(block.allocations) - block.allocations.count(None) for block in blocks),
        "handles": len(inventory.handles),
        "affinities": len(inventory.claims),
        "endpoints": len(inventory.endpoints),
        "nodes": len(inventory.nodes),
    }


def read_look(path: str, *, foreign: bool = False) -> Look:
    """The look that a report describes. BadFile if it is none of ours, nor, with `foreign`, one of calicoctl's."""
    try:
        document = parse(text_of(path, _LARGEST))
        if foreign and isinstance(document, dict) and "format" not in document and "allocations" in document:
            return Look(0, frozenset(_leaked(document["allocations"])))
        if not isinstance(document, dict) or FORMAT not in (document.get("format"), document.get("version")):
            raise BadFile(f"{path}: not a report of `tortie ipam check -o json`")
        taken, findings = document.get("takenAt"), document.get("findings")
        if (
            not isinstance(taken, str)
            or not (taken.isascii() and taken.isdigit() and len(taken) < 30)
            or not isinstance(findings, list)
        ):
            raise BadFile(f"{path}: not a whole report: takenAt and findings are missing")
        return Look(int(taken), frozenset([_identity(path, finding) for finding in findings]))
    except ValueError as error:
        raise BadFile(f"{path}: not JSON: {error}") from None


def _leaked(allocations: Json) -> Iterable[tuple[str, str, str, str]]:
    """What calicoctl calls unused, as findings of ours; its handles have no revision, so `gc` is for those."""
    for address, those in allocations.items() if isinstance(allocations, dict) else ():
        for one in those if isinstance(those, list) else ():
            if isinstance(one, dict) and one.get("inUse") is False:
                mark = str(one.get("sequenceNumber", ""))
                yield from ((kind, address, str(one.get("handle", "")), mark) for kind in (LEAKED, VANISHED_NODE))


def _identity(path: str, finding: Json) -> tuple[str, str, str, str]:
    if not isinstance(finding, dict):
        raise BadFile(f"{path}: a finding must be an object")
    words = [finding.get(name, "") for name in ("kind", "subject", "handle", "revision")]
    kind, subject, handle, revision = [word if isinstance(word, str) else "" for word in words]
    return kind, subject, handle, revision


def common(looks: Iterable[Look]) -> Look:
    """What all of them found, at the time of the latest."""
    first, *others = looks
    found_by_all = first.found.intersection(*[look.found for look in others])
    return Look(max(look.at for look in (first, *others)), found_by_all)
