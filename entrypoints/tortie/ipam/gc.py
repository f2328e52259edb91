"""`tortie ipam gc`: put right what `check` finds.

Invariant: without --yes nothing is written.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.ipam.inventory import LEAK
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.arguments import add_copies, add_report
from entrypoints.tortie.ipam.copies import Copies
from entrypoints.tortie.ipam.findings import count, findings_sheet, group_lines, groups, outcomes_sheet
from entrypoints.tortie.ipam.report import common, finding_json, read_look
from entrypoints.tortie.output import add_output, shown
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import FAILED, Sweep, collect_ipam, collectable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from domain.ipam.inventory import Finding
    from domain.json_text import Json
    from entrypoints.tortie.session import Session

_LONGEST_GRACE = 86_400  # seconds: a day


def _add_arguments(parser: ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--yes", "--force", action="store_true", help="do it")
    parser.add_argument("--leaked", action="store_true", help="release addresses of containers and nodes that are gone")
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=_seconds,
        default=Sweep().grace,
        help="between the two looks in which a thing must be the same (default: %(default)g)",
    )
    add_report(parser, "an earlier `check -o FILE` is the first look; of several what all found")
    add_copies(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _LONGEST_GRACE:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {_LONGEST_GRACE}")
    return seconds


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 only if something could not be collected for a fault; what somebody is at work on is no fault."""
    first = common([read_look(path) for path in options.from_report]) if options.from_report else None
    copies = Copies(options.copies)
    sweep = Sweep(options.grace, options.leaked, first, keep=copies.keep)
    if not options.yes:
        return _dry_run(options, session, sweep)
    outcomes = collect_ipam(session.work(options.grace), sweep, session.cluster)
    code = 1 if any(collected.outcome == FAILED for collected in outcomes) else 0
    return Answer(shown(options.output, outcomes_sheet(outcomes)), code, copies.notes)


def _dry_run(options: Namespace, session: Session, sweep: Sweep) -> Answer:
    report = check_ipam(session.work(), session.cluster)
    would = [
        finding
        for finding in collectable(report.findings, sweep)
        if sweep.first is None or finding.identity in sweep.first.found
    ]
    items = [finding_json(finding) for finding in would]
    document: dict[str, Json] = {"dryRun": True, "findings": [*items]}
    leaks = [finding for finding in report.findings if finding.level == LEAK and finding.repairable]
    hint = [] if options.leaked or not leaks else [f"{count(leaks, LEAK)} would need --leaked."]
    sheet = findings_sheet(document, items, lambda: _would_text(would, options, session, hint))
    return Answer(shown(options.output, sheet))


def _would_text(would: Sequence[Finding], options: Namespace, session: Session, hint: list[str]) -> str:
    if not would:
        return people(["Nothing to collect.", *hint])
    lines = [f"Would collect {len(would)} (dry run):", ""]
    for group in groups(would):
        lines += [*group_lines(group, session.screen.width, "-o wide shows all"), ""]
    wait = "at once" if not options.grace else f"after a second look {options.grace:g} s later"
    lines.append(f"With --yes this is done, {wait}; what is in use by then stays.")
    return people([*lines, *hint])


COMMAND = Command(
    "gc",
    "Put right what check finds, where that is safe. Only says so without --yes.",
    _run,
    _add_arguments,
    examples="""\
tortie ipam gc                                    what it would do
tortie ipam gc --yes                              look, wait 90 s, look again, act on what has not changed
tortie ipam gc --leaked --yes                     also addresses of containers, machines and nodes that are gone
tortie ipam gc --yes --from-report report.json    an earlier check is the first look""",
)
