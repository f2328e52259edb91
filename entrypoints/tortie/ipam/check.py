"""`tortie ipam check`: what is wrong, who has it, and what to do about it.

Invariant: nothing is changed.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.ipam.audit import is_clean
from domain.ipam.audit_addresses import LONGEST_CALL, describe, young_addresses
from domain.ipam.inventory import INFO, LEAK, PROBLEM
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.findings import count, findings_sheet, group_lines, groups, words
from entrypoints.tortie.ipam.report import checked, finding_json, report_document
from entrypoints.tortie.manifest_files import shown_as, write_text
from entrypoints.tortie.output import JSON, Form, form, shown
from ports.datastore import ClusterInformationKey
from ports.errors import Damaged
from usecases.check_ipam import check_ipam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from domain.cluster import ClusterInformation
    from domain.ipam.inventory import Inventory
    from entrypoints.tortie.session import Session
    from ports.datastore import Stored
    from usecases.check_ipam import Report


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORMAT|FILE",
        type=_form_or_file,
        default=Form(),
        help="json, yaml, wide, name or custom-columns=…; or a file for the report as JSON, besides the text",
    )
    parser.add_argument("--show-problem-ips", action="store_true", help="every finding, however many")
    parser.add_argument("--show-all-ips", action="store_true", help="every address in use, too")


def _form_or_file(text: str) -> Form | str:
    """A form, or something that looks like the name of a file: a misspelt form must not become one."""
    if "=" not in text and ("." in text or "/" in text):
        return text
    try:
        return form(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}; nor is it the name of a file, such as report.json") from None


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 0 when all is sound, 1 when there is a finding that is more than an info."""
    report = check_ipam(session.work(), session.cluster, session.host_routes())
    code = 0 if is_clean(report.findings) else 1
    form, document = options.output, {}
    if not isinstance(form, Form) or form.is_document:  # it has every address, so it is made only for those who read it
        document = report_document(report, _cluster(session))
    if not isinstance(form, Form):
        write_text(form, shown_as(document, JSON))
        form = Form()
    items = [finding_json(finding) for finding in report.findings]
    return Answer(shown(form, findings_sheet(document, items, lambda: _text(report, options, session))), code)


def _cluster(session: Session) -> Stored[ClusterInformation] | None:
    """None also for one that cannot be read: that is among the findings."""
    try:
        return session.datastore.get(ClusterInformationKey("default"), session.deadline)
    except Damaged:
        return None


def _text(report: Report, options: Namespace, session: Session) -> str:
    lines = [_checked(report.inventory), ""]
    if options.show_all_ips:
        lines += [*_every_address(report.inventory), ""]
    more = "" if options.show_problem_ips or options.show_all_ips else "--show-problem-ips or -o wide shows all"
    for group in groups(report.findings):
        lines += [*group_lines(group, session.screen.width, more), ""]
    young = young_addresses(report.inventory)
    if young:
        lines.append(f"{young} {'address' if young == 1 else 'addresses'} younger than {LONGEST_CALL} s not judged.")
    counts = ", ".join([count(report.findings, level) for level in (PROBLEM, LEAK, INFO)])
    lines.append(f"{'Clean' if is_clean(report.findings) else 'Not clean'}: {counts}.")
    return people(lines)


def _checked(inventory: Inventory) -> str:
    return "Checked " + ", ".join([f"{number} {name}" for name, number in checked(inventory).items()]) + "."


def _every_address(inventory: Inventory) -> Iterable[str]:
    for cidr, (block, _) in inventory.blocks.items():
        for ordinal in range(cidr.size):
            holder = block.holder(ordinal)
            if holder is not None:
                about = "cooling down" if holder.released_at else words(describe(holder))
                yield f"  {cidr.at(ordinal)}  {about}"


COMMAND = Command(
    "check",
    "Find inconsistencies and leaks. Exit code 1 if there are any.",
    _run,
    _add_arguments,
    examples="""\
tortie ipam check
tortie ipam check -o report.json                  the report into a file, for `gc` and `release --from-report`
tortie ipam check -o custom-columns=LEVEL,SUBJECT,NODE:.holder.node""",
)
