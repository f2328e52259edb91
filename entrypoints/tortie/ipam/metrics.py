"""`tortie ipam metrics`: how full, how sound, in Prometheus' text format; for a timer and node exporter, or for a look.

    tortie ipam metrics --output /run/node_exporter/textfile_collector/tortie_ipam.prom

Invariant: nothing is changed in the datastore; a file has the whole of one look, or stays as it was.
"""

from __future__ import annotations

from domain.ipam.metrics import metrics
from entrypoints.tortie.answer import Answer, left_out
from entrypoints.tortie.command import Command, place
from entrypoints.tortie.manifest_files import write_text
from usecases.check_ipam import check_ipam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from domain.ipam.metrics import Metric
    from entrypoints.tortie.session import Session

_READABLE = 0o644  # whoever scrapes is another user


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", type=place, help="write them there, whole or not at all")
    parser.add_argument(
        "--blocks", action="store_true", help="each block by itself, too: many series in a large cluster"
    )


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 0 even if something cannot be read: that is among the findings."""
    report = check_ipam(session.work(), session.cluster)
    notes = left_out([(bad.record, bad.fault) for bad in report.inventory.unreadable.records])
    text = exposition(metrics(report.inventory, report.findings, blocks=options.blocks))
    if not options.output:
        return Answer(text, notes=notes)
    write_text(options.output, text, _READABLE)
    return Answer("", notes=notes)


def exposition(gauges: Iterable[Metric]) -> str:
    """Prometheus' text format."""
    lines = []
    for gauge in gauges:
        lines += [f"# HELP {gauge.name} {gauge.about}", f"# TYPE {gauge.name} gauge"]
        for values, number in gauge.samples:
            named = ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(gauge.labels, values)])
            lines.append(f"{gauge.name}{{{named}}} {number}" if named else f"{gauge.name} {number}")
    return "\n".join([*lines, ""])


def _escaped(value: str) -> str:
    """Names in a datastore are whatever somebody wrote there."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


COMMAND = Command(
    "metrics",
    "Show how full and how sound IPAM is, for Prometheus.",
    _run,
    _add_arguments,
    examples="""\
tortie ipam metrics
tortie ipam metrics --output /run/node_exporter/textfile_collector/tortie_ipam.prom""",
)
