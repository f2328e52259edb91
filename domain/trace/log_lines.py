"""Lines of the plugins' log as values, whichever form they are in: text, as the original writes it too, or JSON.

Invariant: pure; a line in any other form belongs to no call, and is left out.
"""

from __future__ import annotations

from domain.json_text import JsonError, dumps, parse
from domain.moment import SECOND, BadMoment, parse_rfc3339
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from domain.json_text import Json
    from domain.trace.subject import Sought

LONGEST = 600 * SECOND  # of a call, with all that is waited for
NEAR = 120 * SECOND  # a process number within that time is the same process
_HEAD = len("2026-11-29 13:06:12.345")
_CONTAINER = ' container="'
# What a JSON record has besides its own fields.
_OF_ALL = ("time", "level", "call", "plugin", "command", "container", "ifname", "pod", "source", "pid", "message")


class LogLine(Value):
    """`call` is the call's id in JSON; in a text the process, `[4711]`, which is one call for a while."""

    when: int
    level: str
    call: str
    plugin: str
    text: str
    container: str = ""
    pod: str = ""

    @property
    def is_json(self) -> bool:
        return not self.call.startswith("[")


def read_log_line(line: str, instant: Callable[[str], int]) -> LogLine | None:
    """`instant` says when a local time was; BadMoment."""
    try:
        return _of_json(parse(line)) if line.startswith("{") else _of_text(line, instant)
    except (JsonError, BadMoment):
        return None


def _of_text(line: str, instant: Callable[[str], int]) -> LogLine | None:
    level, bracket, rest = line[_HEAD + 2 :].partition("][")
    process, closed, rest = rest.partition("] ")
    place, colon, text = rest.partition(": ")
    if line[_HEAD : _HEAD + 2] != " [" or not (bracket and closed and colon and process.isdecimal()):
        return None
    _, named, after = text.partition(_CONTAINER)
    container = after.partition('"')[0] if named else ""
    return LogLine(instant(line[:_HEAD]), level.lower(), f"[{process}]", place.partition("/")[0], text, container)


def _of_json(record: Json) -> LogLine | None:
    if not isinstance(record, dict) or not all(
        isinstance(record.get(name), str) for name in ("time", "call", "message")
    ):
        return None
    fields = [f"{name}={_shown(value)}" for name, value in record.items() if name not in _OF_ALL]
    return LogLine(
        parse_rfc3339(str(record["time"])),
        str(record.get("level", "")),
        str(record["call"]),
        str(record.get("plugin", "")),
        " ".join([str(record["message"]), *fields]),
        str(record.get("container", "")),
        str(record.get("pod", "")),
    )


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return ",".join([_shown(item) for item in value])
    return value if isinstance(value, str) and " " not in value else dumps(value)


def is_about(line: LogLine, sought: Sought) -> bool:
    """What a record says of its call counts more than words in its text."""
    if line.container and sought.has_container(line.container):
        return True
    if line.pod and tuple(line.pod.split("/", 1)) in sought.pods:
        return True
    beside = sought.replace(pods=frozenset()) if line.pod else sought
    return beside.is_in(line.text)


class Span(Value):
    """A part of the log, and the words one of which stands in each line of the calls in it."""

    since: int
    until: int
    words: tuple[str, ...]


class Calls:
    """Calls that some line is about, by which their other lines are found."""

    def __init__(self, lines: Iterable[LogLine]) -> None:
        self._moments: dict[str, list[int]] = {}
        for line in lines:
            self._moments.setdefault(line.call, []).append(line.when)

    def spans(self) -> tuple[Span, ...]:
        """When they were, in order: two that share a moment are one."""
        found: list[Span] = []
        for call, moments in self._moments.items():
            if call.startswith("["):
                found += [Span(moment - NEAR, moment + NEAR, (call,)) for moment in moments]
            else:
                found.append(Span(min(moments) - LONGEST, max(moments) + LONGEST, (call,)))
        spans: list[Span] = []
        for span in sorted(found, key=lambda one: one.since):
            last = spans[-1] if spans else None
            if last is None or last.until < span.since:
                spans.append(span)
            else:
                words = tuple(dict.fromkeys([*last.words, *span.words]))
                spans[-1] = Span(last.since, max(last.until, span.until), words)
        return tuple(spans)

    def have(self, line: LogLine) -> bool:
        moments = self._moments.get(line.call, ())
        return any(line.is_json or abs(line.when - moment) <= NEAR for moment in moments)
