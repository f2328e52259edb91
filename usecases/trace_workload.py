"""`tortie trace`: what happened to a workload, from the log and the records, in the order of time.

A line rarely names all: so from those that name the subject come its containers and its calls, and from these the
lines that belong to them. A pod that has been refused for days has thousands of calls: the last ones are told.

Invariant: nothing is changed; what could not be looked at is told. What is kept of the log, and the words that each
line is searched for, are limited, however long the log is.
"""

from __future__ import annotations

from collections import deque

from domain.cni.errors import CniError
from domain.cni.netconf import NetConf, read_netconf
from domain.doctor.configuration import CALICO, OURS, SUFFIXES, chosen_file, read_network_file
from domain.ipam.inventory import Inventory
from domain.moment import rfc3339
from domain.trace.facts import BLOCK, Event, in_order, of_devices, of_line, of_records
from domain.trace.log_lines import NEAR, Calls, Span, is_about, read_log_line
from domain.trace.subject import known_as
from domain.value import Value
from ports.errors import PortError
from usecases.calls.this_node import node_name
from usecases.check_ipam import take_inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from domain.doctor.configuration import NetworkFile
    from domain.trace.log_lines import LogLine
    from domain.trace.subject import Sought
    from ports.host_view import HostView
    from ports.log_history import LogHistory
    from usecases.ipam.work import Work

MOST_CALLS, MOST_OF_CALL = 100, 500  # lines of one call
BEGINNING, _END = -(1 << 64), 1 << 64  # before, and after, all that a log can say
DEFAULT_LOG = "/var/log/calico/cni/cni.log"  # what an installer writes into the configuration


class Installed(Value):
    """What the network configuration of this host says: where its log is, and what its node is called."""

    log_path: str
    node: str


class Trace(Value):
    """`notes` are about what could not be seen."""

    sought: Sought
    events: tuple[Event, ...]
    notes: tuple[str, ...]


class Host(Value):
    """This host: its node's name ("" if it has none), its log, and how else it is looked at."""

    node: str
    log: LogHistory
    view: HostView


def installed(view: HostView, folder: str) -> Installed:
    """As far as files can be read; else the defaults."""
    files = []
    for name in _names(view, folder):
        try:
            files.append(read_network_file(f"{folder}/{name}", view.read(f"{folder}/{name}")))
        except PortError:
            continue
    chosen = chosen_file(files)
    sections = [section for type in OURS if chosen and (section := chosen.section(type)) is not None]
    paths = [str(section.get(key) or "") for section in sections for key in ("log_file_path", "logFile")]
    return Installed(next((path for path in paths if path), DEFAULT_LOG), node_name(_calico(chosen), view))


def _calico(chosen: NetworkFile | None) -> NetConf:
    section = chosen.section(CALICO) if chosen else None
    try:
        return read_netconf({**(section or {})}, "DEL")
    except CniError:
        return NetConf()


def _names(view: HostView, folder: str) -> tuple[str, ...]:
    try:
        return tuple([name for name in view.names(folder) or () if name.endswith(SUFFIXES)])
    except PortError:
        return ()


def trace_workload(sought: Sought, work: Work, host: Host, since: int = BEGINNING) -> Trace:
    """`since` is how far back the log is looked at."""
    inventory, unread = _inventory(work)
    work.doing("reading the log")
    sought, lines, left = _lines(known_as(sought, inventory), host.log, since)
    sought = known_as(sought, inventory)
    records = of_records(inventory, sought)
    devices, notes = _devices(inventory, sought, host)
    events = in_order([*map(of_line, lines), *records, *devices])
    rotated = _rotated(host.log, events, lines) if since == BEGINNING else ()
    return Trace(sought, events, (*unread, *notes, *left, *host.log.gaps(), *rotated))


def _inventory(work: Work) -> tuple[Inventory, tuple[str, ...]]:
    """Without a datastore the log still tells."""
    try:
        return take_inventory(work), ()
    except PortError as error:
        return Inventory(work.clock.now()), (f"The records were not looked at: {error}",)


def _lines(sought: Sought, log: LogHistory, since: int) -> tuple[Sought, list[LogLine], tuple[str, ...]]:
    """The lines of all calls that some line says are about it; it, with the containers that they name; what is left."""
    about = _Last(line for line in _read(log, Span(since, _END, sought.words)) if is_about(line, sought))
    wider = sought.with_containers(frozenset([line.container for line in about.lines if line.container]))
    if wider != sought:
        about = _Last(line for line in _read(log, Span(since, _END, wider.words)) if is_about(line, wider))
        sought = wider
    calls = Calls(about.lines)
    told = _Last(line for span in calls.spans() for line in _read(log, span) if calls.have(line))
    notes = (f"The log has more of it: only the last {MOST_CALLS} calls are shown, and {MOST_OF_CALL} lines of each",)
    return sought, told.lines, notes if about.left_out or told.left_out else ()


class _Last:
    """The last lines, of the last calls, and whether there were others."""

    def __init__(self, lines: Iterable[LogLine]) -> None:
        self.left_out = False
        calls: dict[str, deque[LogLine]] = {}
        for line in lines:
            of_call = calls.setdefault(line.call, deque(maxlen=MOST_OF_CALL))
            self.left_out = self.left_out or len(of_call) == of_call.maxlen
            of_call.append(line)
            if len(calls) > MOST_CALLS:
                del calls[next(iter(calls))]
                self.left_out = True
        self.lines = [line for of_call in calls.values() for line in of_call]


def _read(log: LogHistory, span: Span) -> Iterator[LogLine]:
    since = None if span.since == BEGINNING else span.since
    for text in log.lines(span.words, since, None if span.until == _END else span.until):
        line = read_log_line(text, log.instant)
        if line is not None and span.since <= line.when <= span.until:
            yield line


def _devices(inventory: Inventory, sought: Sought, host: Host) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    endpoints = [endpoint for endpoint in inventory.endpoints if sought.is_of(endpoint)]
    here = [endpoint for endpoint in endpoints if endpoint.node == host.node]
    elsewhere = sorted({endpoint.node for endpoint in endpoints} - {host.node})
    notes = [
        f"It is on node {node}, and this host is {host.node or 'none'}; its log and its device are there"
        for node in elsewhere
    ]
    if not here:
        return (), tuple(notes)
    try:
        return of_devices(here, host.view.links()), tuple(notes)
    except PortError as error:
        return (), (*notes, f"Devices were not looked at: {error}")


def _rotated(log: LogHistory, events: tuple[Event, ...], lines: list[LogLine]) -> tuple[str, ...]:
    """What happened before the log begins is told by records alone, or by nothing."""
    first = read_log_line(log.first(), log.instant)
    if first is None:
        return ()
    moments = [event.when for event in events if event.when is not None and event.source != BLOCK]
    if lines and min(moments) >= first.when - NEAR:
        return ()
    return (f"The log begins at {rfc3339(first.when)}; what was before is not in it",)
