"""`tortie ipam release`: addresses by name, by handle or by report.

A pod comes for an address that is kept for it at any time, so what its ADD has just taken counts as used, too.

Invariant: an address whose workload has an endpoint is released only with --force.
"""

from __future__ import annotations

from domain.ipam.audit import UNREADABLE, audit
from domain.ipam.audit_addresses import LEAKED, VANISHED_MACHINE, VANISHED_NODE, Endpoints, Holders, is_young
from domain.ipam.audit_handles import ORPHAN
from domain.ipam.block import Handle
from domain.ipam.errors import IpamError
from domain.ipam.inventory import COLLECT
from domain.ipam.kept import is_kept, is_unused, kept_for
from domain.ipam.release import Release
from entrypoints.tortie.answer import Answer, people, told
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.arguments import add_copies, add_report, ip_address
from entrypoints.tortie.ipam.copies import Copies
from entrypoints.tortie.ipam.findings import outcomes_sheet
from entrypoints.tortie.ipam.report import common, read_look
from entrypoints.tortie.output import Row, Sheet, add_output, shown
from ports.datastore import BlockKey
from ports.record_title import record_title
from usecases.check_ipam import take_inventory
from usecases.collect_ipam import FAILED, Sweep, collect_ipam
from usecases.ipam.free_addresses import cooldown_seconds, free_handle
from usecases.ipam.free_without_handle import free_without_handle
from usecases.ipam.release_listed import release_listed
from usecases.ipam.set_aside import set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from domain.ipam.address import Address
    from domain.ipam.inventory import Finding, Inventory
    from domain.json_text import Json
    from entrypoints.tortie.session import Session
    from usecases.ipam.work import Work

_FROM_REPORT = frozenset((LEAKED, VANISHED_NODE, VANISHED_MACHINE, ORPHAN))


def _add_arguments(parser: ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--ip", metavar="IP", type=ip_address, action="append", default=[], help="repeatable")
    parser.add_argument("--handle", metavar="HANDLE", default="", help="all its addresses; with --ip only if it has it")
    parser.add_argument("--kept", metavar="NAME", default="", help="what is kept for NAMESPACE/NAME (show --kept)")
    parser.add_argument("--sequence", metavar="N", type=int, help="only the allocation with this number")
    parser.add_argument("--force", action="store_true", help="even if an endpoint has the address")
    add_report(parser, "leaked addresses and orphan handles of a `check -o FILE`; of several what all found")
    add_copies(parser)


def _objection(options: Namespace) -> str:
    named = bool(options.ip or options.handle)
    if named + bool(options.from_report) + bool(options.kept) != 1:
        return "give --ip, --handle, --kept or --from-report"
    if options.sequence is not None and len(options.ip) != 1:
        return "--sequence goes with one --ip"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    work = session.work()
    if options.from_report:
        look = common([read_look(path, foreign=True) for path in options.from_report])
        outcomes = collect_ipam(work, Sweep(0, leaked=True, first=look, kinds=_FROM_REPORT), session.cluster)
        text = shown(options.output, outcomes_sheet(outcomes))
        return Answer(text, 1 if any(collected.outcome == FAILED for collected in outcomes) else 0)
    if options.kept:
        return _release_kept(work, options)
    if options.ip:
        return _release_addresses(work, options)
    return _release_handle(work, options)


def _release_addresses(work: Work, options: Namespace) -> Answer:
    listed = [Release(address, options.handle or None, options.sequence) for address in options.ip]
    if not options.force:
        _require_unused(take_inventory(work), options.ip)
    outcome = release_listed(work, listed)
    text = _outcome_text(options, [allocation.address for allocation in outcome.released], outcome.unallocated)
    if outcome.error is not None:
        return Answer(text, 1, (f"Error: {told(outcome.error)}",))
    return Answer(text)


def _release_kept(work: Work, options: Namespace) -> Answer:
    """Each as it was when it was looked at: a pod that takes one meanwhile keeps it."""
    inventory = take_inventory(work)
    listed = kept_for([block for block, _ in inventory.blocks.values()], options.kept)
    if not listed:
        raise IpamError(f"nothing is kept for {options.kept}; `tortie ipam show --kept` has the names")
    if not options.force:
        _require_unused(inventory, [release.address for release in listed])
    outcome = release_listed(work, listed)
    text = _outcome_text(options, [release.address for release in outcome.released], outcome.unallocated)
    return Answer(text, 1, (f"Error: {told(outcome.error)}",)) if outcome.error is not None else Answer(text)


def _release_handle(work: Work, options: Namespace) -> Answer:
    handle: str = options.handle
    inventory = take_inventory(work)
    blocks = [block for block, _ in inventory.blocks.values()]
    addresses = [block.cidr.at(ordinal) for block in blocks for ordinal in block.held_by(handle)]
    damaged = next(
        (finding for finding in audit(inventory) if finding.kind == UNREADABLE and finding.handle == handle), None
    )
    if not options.force:
        _require_unused(inventory, addresses)
        if Endpoints(inventory.endpoints).are_of(handle):
            raise InUse(handle, "its container has an endpoint")
        if damaged is not None:
            raise IpamError(f"{damaged.subject} is damaged: {damaged.reason}; {COLLECT}, or release it with --force")
    if damaged is not None:
        return _release_damaged(work, options, damaged, addresses)
    if not free_handle(work, handle) and not any(free_without_handle(work, None, handle, cooldown_seconds(work))):
        raise IpamError(f"no handle {handle}, and no address is held under it")
    left = _in_damaged_blocks(inventory, handle)
    text = _outcome_text(options, addresses, handle="" if left else handle)
    return Answer(text, 1 if left else 0, tuple([f"Error: {why}" for why in left]))


def _in_damaged_blocks(inventory: Inventory, handle: str) -> list[str]:
    """What the handle goes on holding where nobody can read it."""
    counted, _ = inventory.handles.get(handle, (Handle({}), ""))
    return [
        f"{record_title(BlockKey(cidr))} is damaged, and keeps what it holds for {handle}; {COLLECT}, then try again"
        for cidr in counted.blocks
        if cidr in inventory.unreadable.blocks
    ]


def _release_damaged(work: Work, options: Namespace, damaged: Finding, addresses: Sequence[Address]) -> Answer:
    """What the blocks hold is freed; then nothing proves the record any more, and it goes."""
    copies = Copies(options.copies)
    free_without_handle(work, None, damaged.handle, cooldown_seconds(work))
    if not set_aside(work, damaged, copies.keep):
        raise IpamError(f"{damaged.subject} has changed meanwhile; see what is left with `tortie ipam check`")
    return Answer(_outcome_text(options, addresses, handle=damaged.handle), notes=copies.notes)


def _outcome_text(
    options: Namespace, released: Sequence[Address], unallocated: Sequence[Address] = (), *, handle: str = ""
) -> str:
    """What was released, and what nobody had."""
    document: dict[str, Json] = {
        "released": [str(address) for address in released],
        "notAssigned": [str(address) for address in unallocated],
        **({"handle": handle} if handle else {}),
    }
    rows = [_row("ip", str(address), "released") for address in released]
    rows += [_row("ip", str(address), "notAssigned") for address in unallocated]
    rows += [_row("handle", handle, "released")] if handle else []

    def text() -> str:
        lines = [f"Successfully released IP address {address}" for address in released]
        lines += [f"IP address {address} is not assigned" for address in unallocated]
        return people([*lines, f"Successfully released handle {handle}"] if handle else lines)

    return shown(options.output, Sheet(document, ("KIND", "NAME", "OUTCOME"), tuple(rows), text))


def _row(kind: str, name: str, outcome: str) -> Row:
    about: dict[str, Json] = {"kind": kind, "name": name, "outcome": outcome}
    return Row(f"{kind}/{name}", {"KIND": kind, "NAME": name, "OUTCOME": outcome}, about)


class InUse(IpamError):
    """What is to be released belongs to a workload that is there."""

    def __init__(self, what: object, why: str) -> None:
        super().__init__(f"{what} is in use: {why}; delete the workload, or release it all the same with --force")


def _require_unused(inventory: Inventory, addresses: Sequence[Address]) -> None:
    """InUse for the first address that an endpoint has, or whose holder has an endpoint."""
    endpoints, holders = Endpoints(inventory.endpoints), Holders(inventory.blocks)
    for address in addresses:
        having = endpoints.by_address.get(address)
        if having:
            raise InUse(address, f"endpoint {having[0].metadata.namespace}/{having[0].metadata.name} has it")
        _, _, holder = holders.of(address) or (None, None, None)
        if holder is not None and endpoints.speak_for(holder, address):
            raise InUse(address, f"the container of {holder.holder} has an endpoint")
        if holder is not None and is_kept(holder) and not is_unused(holder) and is_young(inventory, holder):
            raise InUse(
                address, f"an ADD has just taken it for {holder.secondary.get('pod')}, and may be at work still"
            )


COMMAND = Command(
    "release",
    "Release addresses that nobody uses any more.",
    _run,
    _add_arguments,
    _objection,
    examples="""\
tortie ipam release --ip 10.244.0.7
tortie ipam release --handle k8s-pod-network.4f1d --force
tortie ipam release --from-report report.json     what a `tortie ipam check -o report.json` has found leaked""",
)
