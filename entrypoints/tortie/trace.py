"""`tortie trace`: what happened to a pod, a container or an address, in the order of time.

Invariant: nothing is changed; no line is wider than the screen, and what could not be seen is told.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from textwrap import wrap

from domain.cni.go_quote import printable
from domain.go_duration import parse_go_duration
from domain.moment import SECOND, rfc3339
from domain.trace.facts import LOG
from domain.trace.subject import SHORTEST, read_subject
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command, Stopped, place
from entrypoints.tortie.output import Row, Sheet, add_output, shown
from entrypoints.tortie.resources import DEFAULT_NAMESPACE, add_namespace
from usecases.doctor.patient import NET_DIR
from usecases.trace_workload import BEGINNING, DEFAULT_LOG, Host, installed, trace_workload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from domain.json_text import Json
    from domain.trace.facts import Event
    from entrypoints.tortie.session import Session
    from usecases.trace_workload import Trace

_EXAMPLES = """\
tortie trace web-0 -n shop             a pod
tortie trace shop/web-0                the same
tortie trace 3f9c0d1e77aa              a container, by the beginning of its id
tortie trace 10.244.0.5                whoever has or had the address
tortie trace web-0 --since 2h          of the last two hours: quicker, where the log is large
tortie trace web-0 -o json"""
_NARROW = 60  # columns, below which the text of an event stands below its time
_NOW = "now"
_HEADINGS = ("TIME", "SOURCE", "LEVEL", "CALL", "TEXT")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="POD|CONTAINER|ADDRESS")
    add_namespace(parser)
    add_output(parser)
    parser.add_argument(
        "--log-file",
        metavar="FILE",
        type=place,
        help=f"the plugins' log on the host (default: as the network configuration says, else {DEFAULT_LOG})",
    )
    parser.add_argument(
        "--since",
        metavar="DURATION",
        type=_duration,
        help="how far back to look in the log, such as 30m or 48h (default: to its beginning)",
    )
    parser.add_argument("--root", metavar="DIR", default="", help="where the host's root is mounted, in a container")
    parser.add_argument(
        "--net-dir", metavar="DIR", default=NET_DIR, help=f"network configurations (default: {NET_DIR})"
    )


def _duration(text: str) -> int:
    try:
        nanoseconds = parse_go_duration(text)
    except ValueError:
        nanoseconds = 0
    if nanoseconds <= 0:
        raise ArgumentTypeError(f"{text!r} is not a time such as 30m or 48h")
    return nanoseconds


def _objection(options: Namespace) -> str:
    if options.root and not options.root.startswith("/"):
        return f"--root {options.root}: give an absolute path"
    return "" if options.subject.strip("/") else "name a pod, a container or an address"


def _run(options: Namespace, session: Session) -> Answer:
    from entrypoints.wiring.doctor import log_history

    view = session.host(options.root.rstrip("/"))
    found = installed(view, options.net_dir.rstrip("/"))
    host = Host(found.node, log_history(view, options.log_file or found.log_path), view)
    sought = read_subject(options.subject, options.namespace or DEFAULT_NAMESPACE)
    since = session.clock.now() - options.since if options.since else BEGINNING
    trace = trace_workload(sought, session.work(), host, since)
    notes = tuple([f"Note: {printable(note)}" for note in trace.notes])
    if not trace.events:
        why = (
            ""
            if len(options.subject) >= SHORTEST
            else f"; of a container give its whole id, or {SHORTEST} characters of it"
        )
        told = f". {printable(trace.notes[0])}" if trace.notes else ""
        raise Stopped(f"neither records nor the log know {printable(options.subject)}{why}{told}")
    return Answer(shown(options.output, _sheet(options.subject, trace, session.screen.width)), notes=notes)


def _sheet(subject: str, trace: Trace, width: int) -> Sheet:
    rows = [
        Row(f"{event.source}/{event.call or number}", dict(zip(_HEADINGS, _cells(event))), _document(event))
        for number, event in enumerate(trace.events)
    ]
    containers: list[Json] = [*sorted(trace.sought.containers)]
    events: list[Json] = [row.document for row in rows]
    notes: list[Json] = [*trace.notes]
    document: Json = {"version": 1, "subject": subject, "containers": containers, "events": events, "notes": notes}
    return Sheet(document, _HEADINGS, tuple(rows), lambda: _text(trace, width))


def _cells(event: Event) -> tuple[str, str, str, str, str]:
    return _moment(event), event.source, event.level, event.call, event.text


def _document(event: Event) -> dict[str, Json]:
    said = {
        "time": None if event.when is None else _moment(event).replace(" ", "T"),
        "source": event.source,
        "level": event.level,
        "call": event.call,
        "text": event.text,
    }
    return {name: text for name, text in said.items() if text != ""}


def _moment(event: Event) -> str:
    """UTC, to the millisecond."""
    if event.when is None:
        return _NOW
    return f"{rfc3339(event.when)[:-1].replace('T', ' ')}.{event.when % SECOND // 1_000_000:03d}Z"


def _text(trace: Trace, width: int) -> str:
    lines: list[str] = []
    for event in trace.events:
        head = f"{_moment(event):<24}  {event.source:<8}  "
        told = f"[{event.call.strip('[]')}] " if event.source == LOG else ""
        level = f"{event.level.upper()} " if event.level not in ("", "info") else ""
        text = printable(f"{told}{level}{event.text}")
        if width < _NARROW:
            lines += [head.rstrip(), *_wrapped(text, width - 2, "  ")]
        else:
            first, *rest = _wrapped(text, width - len(head), "") or [""]
            lines += [head + first, *[" " * len(head) + line for line in rest]]
    return "".join([f"{line}\n" for line in lines])


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Also what has no blank, such as a container's id."""
    return [indent + line for line in wrap(text, max(width, 20), break_on_hyphens=False)]


COMMAND = Command(
    "trace",
    "Tell what happened to a pod, a container or an address, from the log and the records.",
    _run,
    _add_arguments,
    _objection,
    examples=_EXAMPLES,
    more="Run it on the pod's node, whose log it reads. With log_format json each call leaves a line.",
)
