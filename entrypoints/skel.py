"""One plugin call between its first and its last byte: read it, have it done, answer it, or take it back.

A runtime sees the standard output and the exit code of a call, and nothing else. So an effect lasts only if an answer
tells of it: an error, a signal, a closed or full stdout undoes what this call has done. All errors become CNI JSON
here, in `attempt`, which has the only broad `except` of the plugins.

Invariant: stdout gets one answer, or one error and nothing else; stdin is never logged (it may hold tokens).
"""

from __future__ import annotations

from time import monotonic_ns

from adapters.linux.spare_memory import give_back, set_aside
from domain.cni.errors import (
    INTERNAL,
    INVALID_CONFIG,
    SUCCESS,
    TRY_AGAIN_LATER,
    CniError,
    error_text,
    outcome,
)
from domain.cni.request import check_command, check_config, config_version, read_request
from domain.cni.versions import SUPPORTED, check_version, supported_text, version_text
from domain.value import Value
from entrypoints.stdio import read_stdin, say, send
from entrypoints.termination import Interrupted, ignore, raise_when_signalled, seen, settle
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Generic, TypeAlias, TypeVar

    from domain.cni.plugin_conf import PluginConf
    from domain.cni.request import CniArgs, Request
    from domain.json_text import Json
    from entrypoints.logs import CallLog
    from ports.clock import Deadline
    from ports.log import Log
    from ports.runtime import Ports
    from usecases.calls.call import PluginCall
    from usecases.calls.safeguards import Undo

    T = TypeVar("T")
    ConfT = TypeVar("ConfT", bound=PluginConf)
    CallT = TypeVar("CallT", bound=PluginCall)
    PortsT = TypeVar("PortsT", bound=Ports)
    Opener: TypeAlias = Callable[[ConfT, Mapping[str, str], Log], PortsT]
else:  # `typing` would take longer to load than a call without effects takes
    ConfT = CallT = PortsT = None
    Generic = {(None, None, None): object}

BUDGET = 60.0  # seconds for a call whose configuration does not say
_LONGEST = 86_400  # a day; the kernel's timers do not take any number
_MOST_UNDO_ROUNDS = 100
_OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")
_ENOMEM, _NO_FILES = 12, (23, 24)  # ENFILE, EMFILE
NO_DATASTORE = "none"
_UNDELIVERED = "undelivered"  # the outcome of a call whose answer nobody took


def _no_datastore(_netconf: object, _environ: object) -> str:
    return NO_DATASTORE


class Plugin(Value, Generic[ConfT, CallT, PortsT]):
    """What differs between our plugins. Which configuration, call and ports go together, each says by its types.

    `about` goes before the version. `read_netconf` gets the verb beside the document: a DEL minds less than an ADD.
    `make_call` gets request, arguments, configuration, its text and the deadline. A verb answers with the text for
    stdout. `ignore_unknown_args` as in `domain.cni.request`. With `versioned_errors` an error names the version that
    was asked for. `subject` is who is said to have panicked. Calls are counted for `program`, and for the `datastore`
    that configuration and environment ask for.
    """

    about: str
    read_netconf: Callable[[Json, str], ConfT]
    read_args: Callable[[Request], CniArgs]
    open_runtime: Opener[ConfT, PortsT]
    make_call: Callable[[Request, CniArgs, ConfT, str, Deadline], CallT]
    verbs: Mapping[str, Callable[[CallT, PortsT, Undo], str]]
    ignore_unknown_args: bool = False
    supported: tuple[str, ...] = SUPPORTED
    versioned_errors: bool = False
    subject: str = "Calico CNI"
    program: str = ""
    datastore: Callable[[ConfT, Mapping[str, str]], str] = _no_datastore


class Effects:
    """What the call has done so far, once it has begun to do anything."""

    def __init__(self, began: int) -> None:
        self._undo: Undo | None = None
        self.began = began  # by the clock that is never set, in nanoseconds
        self.version = ""  # that the configuration asks for, once it has been read
        self.outcome = ""
        self.metrics_dir = ""
        self.datastore = ""

    def begin(self, undo: Undo) -> Undo:
        self._undo = undo
        return undo

    def keep(self) -> None:
        if self._undo:
            self._undo.keep()

    def take_back(self, verb: str, log: Log) -> None:
        """Every step is tried: an unforeseen failure ends a round, and the next one goes on with the rest."""
        give_back()
        if self._undo is None:
            return
        for _ in range(_MOST_UNDO_ROUNDS):
            _, error = attempt(self._undo.run, f"the undoing of {verb}", log)
            if error is None:
                return


def run(plugin: Plugin[ConfT, CallT, PortsT], environ: Mapping[str, str], log: CallLog) -> int:
    """The exit code. Without CNI_COMMAND it only says what it is."""
    verb = environ.get("CNI_COMMAND", "")
    began = monotonic_ns()
    if not verb:
        say(f"{plugin.about} {VERSION}\n{supported_text(plugin.supported)}\n")
        return 0
    try:
        raise_when_signalled()
        effects = Effects(began)
        code = _serve(plugin, environ, log, effects)
        if effects.metrics_dir:
            _count(plugin, verb, log, effects)
    except Interrupted as signal:  # it came before `attempt` could take it, so nothing has been begun
        seen()
        send(error_text(_interrupted(signal, verb)))
        return 1
    else:
        return code
    finally:
        ignore()


def _interrupted(signal: Interrupted, verb: str) -> CniError:
    return CniError(TRY_AGAIN_LATER, f"interrupted by {signal} during {verb}")


def _count(plugin: Plugin[ConfT, CallT, PortsT], verb: str, log: CallLog, effects: Effects) -> None:
    """The answer is out; whatever goes wrong here is a line in the log."""

    def count() -> None:
        from entrypoints.wiring.this_program import ON_WINDOWS

        if ON_WINDOWS:
            log.warning("Calls are not counted on Windows: leave metrics_dir out")
            return
        from entrypoints.call_metrics import FinishedCall, count_call

        labels = (plugin.program, verb, effects.outcome, effects.datastore)
        count_call(effects.metrics_dir, FinishedCall(labels, (monotonic_ns() - effects.began) // 1000), log)

    attempt(count, f"the counting of {verb}", log, plugin.subject)


def _serve(plugin: Plugin[ConfT, CallT, PortsT], environ: Mapping[str, str], log: CallLog, effects: Effects) -> int:
    """Have it done and answer, or answer with the error and take back what was done; the exit code."""
    verb = environ["CNI_COMMAND"]
    try:
        return _answer(plugin, environ, log, effects)
    except MemoryError:  # in answering
        effects.take_back(verb, log)
        raise


def _answer(plugin: Plugin[ConfT, CallT, PortsT], environ: Mapping[str, str], log: CallLog, effects: Effects) -> int:
    verb = environ["CNI_COMMAND"]
    answer, error = attempt(lambda: _respond(plugin, environ, log, effects), verb, log, plugin.subject)
    if answer is not None and send(answer):
        effects.keep()
        effects.outcome = SUCCESS
        log.succeeded(verb, answer, (monotonic_ns() - effects.began) / 1e9)
        return 0
    effects.take_back(verb, log)
    effects.outcome = outcome(error.code) if error else _UNDELIVERED
    if error is None:
        log.error(f"Undone: the result of CNI {verb} could not be written.")
        return 1
    log.error(f"Final result of CNI {verb} was an error.", code=error.code, error=error, **log.whose)
    send(error_text(error, (effects.version or plugin.supported[-1]) if plugin.versioned_errors else ""))
    return 1


def _respond(plugin: Plugin[ConfT, CallT, PortsT], environ: Mapping[str, str], log: CallLog, effects: Effects) -> str:
    request = read_request(environ, ignore_unknown_args=plugin.ignore_unknown_args)
    if request.command == "VERSION":
        return version_text(plugin.supported)
    log.concerns(command=request.command, container=request.container_id, ifname=request.ifname)
    netconf_text, waited = read_stdin(BUDGET)
    document = check_config(netconf_text)
    check_command(request)
    effects.version = config_version(document)
    check_version(request.command, effects.version, plugin.supported)

    from usecases.calls.safeguards import Undo

    netconf = plugin.read_netconf(document, request.command)
    log.configure(netconf)
    if netconf.metrics_dir:
        effects.metrics_dir, effects.datastore = netconf.metrics_dir, plugin.datastore(netconf, environ)
    args = plugin.read_args(request)
    if args.pod_name:
        log.concerns(pod=f"{args.pod_namespace}/{args.pod_name}")
    for warning in netconf.warnings + args.warnings:
        log.warning(warning)
    runtime = plugin.open_runtime(netconf, environ, log)
    set_aside()
    undo = effects.begin(Undo(runtime.clock, log))
    deadline = runtime.clock.deadline(budget(netconf) - waited)
    call = plugin.make_call(request, args, netconf, netconf_text, deadline)
    return plugin.verbs[request.command](call, runtime, undo)


def budget(netconf: PluginConf) -> float:
    """Seconds that a call may take."""
    return float(min(netconf.timeout_seconds, _LONGEST)) if netconf.timeout_seconds > 0 else BUDGET


def attempt(
    action: Callable[[], T], verb: str, log: Log, subject: str = "Calico CNI"
) -> tuple[T | None, CniError | None]:
    """What the action returned, or the error it ended with; afterwards termination signals change nothing."""
    try:
        try:
            done = action()
            settle()
        except MemoryError:
            settle()
            return None, _out_of_memory(verb, subject)
        except Exception as error:  # noqa: BLE001 - the one place: whatever went wrong, a runtime gets CNI JSON
            settle()
            return None, _described(error, verb, log, subject)
        else:
            return done, None
    except Interrupted as signal:  # also one that came while the handler above began, or was lost before
        seen()
        return None, _interrupted(signal, verb)


def _out_of_memory(verb: str, subject: str) -> CniError:
    give_back()
    return CniError(INTERNAL, f"{subject} ran out of memory during {verb}")


def _described(error: Exception, verb: str, log: Log, subject: str) -> CniError:
    """Loading and logging what describes it may take the last memory, too."""
    try:
        return describe(error, verb, log, subject)
    except MemoryError:
        return _out_of_memory(verb, subject)


def describe(error: Exception, verb: str, log: Log, subject: str = "Calico CNI") -> CniError:
    """The error as its runtime reads it. What nobody foresaw is a bug: its trace goes to the log.

    The text of our own errors is for the user, even of one that should have been caught.
    """
    if isinstance(error, CniError):
        return error
    from domain.ipam.errors import IpamError
    from ports.errors import BadConfiguration, PortError, Refused, Unavailable

    if isinstance(error, (Refused, IpamError)):
        return CniError(error.code, str(error), error.details)
    if isinstance(error, PortError):
        code = INTERNAL
        if isinstance(error, Unavailable):
            code = TRY_AGAIN_LATER
        elif isinstance(error, BadConfiguration):
            code = INVALID_CONFIG
        return CniError(code, str(error))
    if isinstance(error, (OSError, ImportError)):
        return _of_the_system(error, verb, log, subject)
    if type(error).__module__.partition(".")[0] in _OWN:
        log.error(f"Nobody has caught an error during {verb}", error=error, trace=trace(error))
        return CniError(INTERNAL, str(error) or type(error).__name__)
    shown = f"{type(error).__name__}: {error}"
    log.error(f"Panic during {verb}", error=shown, trace=trace(error))
    return CniError(INTERNAL, f"{subject} panicked during {verb}: {shown}")


def _of_the_system(error: OSError | ImportError, verb: str, log: Log, subject: str) -> CniError:
    """What a process has too little of, or a part of the program that cannot be loaded."""
    number = error.errno if isinstance(error, OSError) else 0
    if number == _ENOMEM:
        return _out_of_memory(verb, subject)
    why = "may not open as many files as it needs" if number in _NO_FILES else "cannot go on"
    log.error(f"{subject} {why}", error=error, trace=trace(error))
    return CniError(INTERNAL, f"{subject} {why} during {verb}: {error}")


def trace(error: BaseException) -> str:
    """Where an error comes from, innermost place last, on one line (`traceback` costs 10 ms to load)."""
    places = []
    step = error.__traceback__
    while step:
        code = step.tb_frame.f_code
        places.append(f"{code.co_filename}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return " > ".join(places)
