"""Findings, and what became of them, as `check`, `gc` and `release` show them.

Findings of one kind stand together, the worst kinds first; of many only the first ones are shown unless all are asked
for, so that the rare one is not buried.

Invariant: each finding is counted, shown or not.
"""

from __future__ import annotations

from domain.ipam.inventory import INFO, LEAK, PROBLEM
from entrypoints.tortie.answer import folded, people
from entrypoints.tortie.ipam.report import finding_json
from entrypoints.tortie.output import Row, Sheet
from usecases.collect_ipam import DONE, FAILED, KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from domain.ipam.inventory import Finding
    from domain.json_text import Json
    from usecases.collect_ipam import Collected

_SHOWN = 5  # findings of one kind
_PLURALS = {PROBLEM: "problems", LEAK: "leaks", INFO: "infos"}


def count(findings: Sequence[Finding], level: str) -> str:
    number = sum(1 for finding in findings if finding.level == level)
    return f"{number} {level if number == 1 else _PLURALS[level]}"


def groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one kind together, in the order given."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    return list(by_kind.values())


def group_lines(findings: list[Finding], width: int, more: str = "") -> Iterable[str]:
    """`more` says how to see all; "" shows them."""
    first, number = findings[0], len(findings)
    yield f"{first.level.upper()} {first.kind} ({number}): {first.advice}"
    for finding in findings[: _SHOWN if more else None]:
        yield from _fitting(f"  {finding.subject}:", finding.reason, width)
        others = {name: text for name, text in finding.holder.items() if text not in (finding.subject, finding.reason)}
        if others:
            yield from folded(words(others), width, " " * 6)
        if finding.advice != first.advice:
            yield from folded(finding.advice, width, " " * 6)
    if more and number > _SHOWN:
        yield f"  and {number - _SHOWN} more; {more}"


def _fitting(head: str, tail: str, width: int) -> list[str]:
    """On one line if there is room, else on two."""
    return [f"{head} {tail}"] if len(head) + len(tail) < width else [head, f"      {tail}"]


def words(holder: Mapping[str, str]) -> str:
    """`handle h, node n, pod prod/web-0, since 2026-11-29 13:06:12 UTC`."""
    texts = dict(holder)
    namespace, since = texts.pop("namespace", ""), texts.pop("timestamp", "")
    if "pod" in texts:
        texts["pod"] = f"{namespace}/{texts['pod']}"
    if since:
        texts["since"] = f"{since[:19]} UTC"
    return ", ".join([f"{name} {text}" for name, text in texts.items()])


def outcomes_text(outcomes: Sequence[Collected]) -> str:
    if not outcomes:
        return "Nothing to collect.\n"
    done = [collected.finding for collected in outcomes if collected.outcome == DONE]
    lines = [f"Collected {len(done)} of {len(outcomes)}."]
    lines += [f"  {len(group)} {group[0].kind}" for group in groups(done)]
    for outcome in (KEPT, FAILED):
        left = [collected for collected in outcomes if collected.outcome == outcome]
        lines += [
            f"{outcome.capitalize()} {collected.finding.kind} {collected.finding.subject}: {collected.why}"
            for collected in left[:_SHOWN]
        ]
        if len(left) > _SHOWN:
            lines.append(f"  and {len(left) - _SHOWN} more {outcome}; -o wide shows all")
    return people(lines)


def outcomes_sheet(outcomes: Sequence[Collected]) -> Sheet:
    """What became of each finding."""
    items = [
        {
            "outcome": collected.outcome,
            **({"why": collected.why} if collected.why else {}),
            **finding_json(collected.finding),
        }
        for collected in outcomes
    ]
    counts: dict[str, Json] = {
        outcome: sum(1 for collected in outcomes if collected.outcome == outcome) for outcome in (DONE, KEPT, FAILED)
    }
    document: dict[str, Json] = {"dryRun": False, **counts, "findings": [*items]}
    return findings_sheet(document, items, lambda: outcomes_text(outcomes), ("OUTCOME", "WHY"))


def findings_sheet(
    document: Json, items: Sequence[dict[str, Json]], text: Callable[[], str], more: tuple[str, ...] = ()
) -> Sheet:
    """Findings in every form; `more` are headings for what else is said of each."""
    headings = (*more, "LEVEL", "KIND", "SUBJECT", "REASON", "ADVICE")
    rows = [
        Row(
            f"{item['kind']}/{item['subject']}",
            {heading: str(item.get(heading.lower(), "")) for heading in headings},
            item,
        )
        for item in items
    ]
    return Sheet(document, headings, tuple(rows), text)
