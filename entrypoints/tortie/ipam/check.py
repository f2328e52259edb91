"""`tortie ipam check` and `gc`: what is wrong, who has it, what to do; and doing it.

Findings of one kind stand together, the worst kinds first; of many only the first ones are shown unless all are asked
for, so that the rare one is not buried.

Invariant: without --yes nothing is written.
"""

from __future__ import annotations

from domain.ipam.audit import is_clean
from domain.ipam.audit_addresses import LONGEST_CALL, describe, young_addresses
from domain.ipam.inventory import INFO, LEAK, PROBLEM
from domain.json_text import dumps
from entrypoints.tortie.answer import Answer, folded, people
from entrypoints.tortie.ipam.copies import Copies
from entrypoints.tortie.ipam.report import checked, common, finding_json, read_look, report_json
from entrypoints.tortie.manifest_files import write_text
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, FAILED, KEPT, Sweep, collect_ipam, collectable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from domain.ipam.inventory import Finding, Inventory
    from domain.json_text import Json
    from entrypoints.tortie.commands import Session
    from usecases.collect_ipam import Collected

_SHOWN = 5  # findings of one kind
_PLURALS = {PROBLEM: "problems", LEAK: "leaks", INFO: "infos"}


def check(options: Namespace, session: Session) -> Answer:
    """Exit code 0 when all is sound, 1 when there is a finding that is more than an info."""
    report = check_ipam(session.work(), session.cluster, session.host_routes())
    code = 0 if is_clean(report.findings) else 1
    if options.output == "json":
        return Answer(report_json(report), code)
    if options.output:
        write_text(options.output, report_json(report))
    lines = [_checked(report.inventory), ""]
    if options.show_all_ips:
        lines += [*_every_address(report.inventory), ""]
    more = "" if options.show_problem_ips or options.show_all_ips else "--show-problem-ips or -o json shows all"
    for group in _groups(report.findings):
        lines += [*_group(group, session.screen.width, more), ""]
    young = young_addresses(report.inventory)
    if young:
        lines.append(f"{young} {'address' if young == 1 else 'addresses'} younger than {LONGEST_CALL} s not judged.")
    counts = ", ".join([_count(report.findings, level) for level in (PROBLEM, LEAK, INFO)])
    lines.append(f"{'Clean' if code == 0 else 'Not clean'}: {counts}.")
    return Answer(people(lines), code)


def _count(findings: Sequence[Finding], level: str) -> str:
    number = sum(1 for one in findings if one.level == level)
    return f"{number} {level if number == 1 else _PLURALS[level]}"


def _checked(inventory: Inventory) -> str:
    return "Checked " + ", ".join([f"{number} {name}" for name, number in checked(inventory).items()]) + "."


def _every_address(inventory: Inventory) -> Iterable[str]:
    for cidr, (block, _) in inventory.blocks.items():
        for ordinal in range(cidr.size):
            holder = block.holder(ordinal)
            if holder is not None:
                about = "cooling down" if holder.released_at else _words(describe(holder))
                yield f"  {cidr.at(ordinal)}  {about}"


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one kind together, in the order given."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    return list(groups.values())


def _group(findings: list[Finding], width: int, more: str = "") -> Iterable[str]:
    """`more` says how to see all; "" shows them."""
    first, number = findings[0], len(findings)
    yield f"{first.level.upper()} {first.kind} ({number}): {first.advice}"
    for finding in findings[: _SHOWN if more else None]:
        yield from _fitting(f"  {finding.subject}:", finding.reason, width)
        others = {name: text for name, text in finding.holder.items() if text not in (finding.subject, finding.reason)}
        if others:
            yield from folded(_words(others), width, " " * 6)
        if finding.advice != first.advice:
            yield from folded(finding.advice, width, " " * 6)
    if more and number > _SHOWN:
        yield f"  and {number - _SHOWN} more; {more}"


def _fitting(head: str, tail: str, width: int) -> list[str]:
    """On one line if there is room, else on two."""
    return [f"{head} {tail}"] if len(head) + len(tail) < width else [head, f"      {tail}"]


def _words(holder: Mapping[str, str]) -> str:
    """`handle h, node n, pod prod/web-0, since 2026-11-29 13:06:12 UTC`."""
    words = dict(holder)
    namespace, since = words.pop("namespace", ""), words.pop("timestamp", "")
    if "pod" in words:
        words["pod"] = f"{namespace}/{words['pod']}"
    if since:
        words["since"] = f"{since[:19]} UTC"
    return ", ".join([f"{name} {text}" for name, text in words.items()])


def gc(options: Namespace, session: Session) -> Answer:
    """Exit code 1 only if something could not be collected for a fault; what somebody is at work on is no fault."""
    first = common([read_look(path) for path in options.from_report]) if options.from_report else None
    copies = Copies(options.copies)
    sweep = Sweep(options.grace, options.leaked, first, keep=copies.keep)
    if not options.yes:
        return _dry(options, session, sweep)
    outcomes = collect_ipam(session.work(options.grace), sweep, session.cluster)
    code = 1 if any(one.outcome == FAILED for one in outcomes) else 0
    text = outcomes_json(outcomes) if options.output == "json" else outcomes_text(outcomes)
    return Answer(text, code, copies.notes)


def _dry(options: Namespace, session: Session, sweep: Sweep) -> Answer:
    report = check_ipam(session.work(), session.cluster)
    found = [
        one for one in collectable(report.findings, sweep) if sweep.first is None or one.identity in sweep.first.found
    ]
    if options.output == "json":
        items: list[Json] = [finding_json(one) for one in found]
        return Answer(dumps({"dryRun": True, "findings": items}, indent=2) + "\n")
    leaks = [one for one in report.findings if one.level == LEAK and one.repairable]
    hint = [] if options.leaked or not leaks else [f"{_count(leaks, LEAK)} would need --leaked."]
    if not found:
        return Answer(people(["Nothing to collect.", *hint]))
    lines = [f"Would collect {len(found)} (dry run):", ""]
    for group in _groups(found):
        lines += [*_group(group, session.screen.width, "-o json shows all"), ""]
    wait = "at once" if not options.grace else f"after a second look {options.grace:g} s later"
    lines.append(f"With --yes this is done, {wait}; what is in use by then stays.")
    return Answer(people([*lines, *hint]))


def outcomes_text(outcomes: Sequence[Collected]) -> str:
    if not outcomes:
        return "Nothing to collect.\n"
    done = [one.finding for one in outcomes if one.outcome == DONE]
    lines = [f"Collected {len(done)} of {len(outcomes)}."]
    lines += [f"  {len(group)} {group[0].kind}" for group in _groups(done)]
    for outcome in (KEPT, FAILED):
        left = [one for one in outcomes if one.outcome == outcome]
        lines += [
            f"{outcome.capitalize()} {one.finding.kind} {one.finding.subject}: {one.why}" for one in left[:_SHOWN]
        ]
        if len(left) > _SHOWN:
            lines.append(f"  and {len(left) - _SHOWN} more {outcome}; -o json shows all")
    return people(lines)


def outcomes_json(outcomes: Sequence[Collected]) -> str:
    items: list[Json] = [
        {"outcome": one.outcome, **({"why": one.why} if one.why else {}), **finding_json(one.finding)}
        for one in outcomes
    ]
    counts: dict[str, Json] = {
        outcome: sum(1 for one in outcomes if one.outcome == outcome) for outcome in (DONE, KEPT, FAILED)
    }
    return dumps({"dryRun": False, **counts, "findings": items}, indent=2) + "\n"
