"""`calico`, the network plugin: its flags, and which use case answers which verb.

Use cases are imported by the verb that needs them, because start-up is latency.

Invariant: a verb loads its own use case and no other one.
"""

from __future__ import annotations

from domain.cni.errors import PLUGIN_FAILURE, CniError, error_text
from domain.cni.request import parse_args_of
from entrypoints.flags import UsageWanted, parse_flags
from entrypoints.logs import CallLog
from entrypoints.skel import BUDGET, Plugin, attempt, budget, run
from entrypoints.stdio import read_stdin, say, send
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.cni.netconf import NetConf
    from domain.cni.request import CniArgs, Request
    from domain.json_text import Json
    from entrypoints.skel import Opener
    from ports.clock import Deadline
    from ports.log import Log
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo

_FLAGS = {"t": "Test datastore connection", "v": "Display version"}
_UNDECLARED = "0.2.0"  # the version of the result when the configuration declares none


def main(
    arguments: Sequence[str], environ: Mapping[str, str], open_runtime: Opener[NetConf, Runtime] | None = None
) -> int:
    """The exit code of `calico <arguments>`."""
    try:
        flags = parse_flags(arguments, "Calico", _FLAGS)
    except UsageWanted as wanted:
        say(wanted.text)
        return wanted.exit_code
    if "v" in flags:
        return 0 if send(VERSION + "\n") else 1
    log = CallLog("cni-plugin")
    if "t" in flags:
        return _report_connection(environ, log, open_runtime or _open_runtime)
    return run(PLUGIN.replace(open_runtime=open_runtime) if open_runtime else PLUGIN, environ, log)


def _read_netconf(document: Json, verb: str) -> NetConf:
    from domain.cni.netconf import read_netconf

    return read_netconf(document, verb)


def _open_runtime(netconf: NetConf, environ: Mapping[str, str], log: Log) -> Runtime:
    from entrypoints.wiring.calico import open_runtime

    return open_runtime(netconf, environ, log)


def _datastore(netconf: NetConf, environ: Mapping[str, str]) -> str:
    from entrypoints.wiring.datastores import datastore_of

    return datastore_of(netconf, environ)


def _make_call(request: Request, args: CniArgs, netconf: NetConf, netconf_text: str, deadline: Deadline) -> Call:
    from usecases.calls.call import Call

    return Call(request, args, netconf, netconf_text, deadline)


def _add(call: Call, runtime: Runtime, undo: Undo) -> str:
    from domain.cni.result import result_text
    from usecases.add_workload import add_workload

    return result_text(add_workload(call, runtime, undo), call.netconf.cni_version or _UNDECLARED)


def _delete(call: Call, runtime: Runtime, _undo: Undo) -> str:
    from usecases.delete_workload import delete_workload

    delete_workload(call, runtime)
    return ""


def _check(call: Call, runtime: Runtime, _undo: Undo) -> str:
    """Without a `prevResult` there is nothing to compare with, and the answer is the original's `OK`."""
    if not call.netconf.prev_result:
        return "OK\n"
    from usecases.check_workload import check_workload

    check_workload(call, runtime)
    return ""


PLUGIN = Plugin(
    about="Calico CNI plugin",
    read_netconf=_read_netconf,
    read_args=parse_args_of,
    open_runtime=_open_runtime,
    make_call=_make_call,
    verbs={"ADD": _add, "DEL": _delete, "CHECK": _check},
    ignore_unknown_args=True,
    program="calico",
    datastore=_datastore,
)


def _report_connection(environ: Mapping[str, str], log: Log, open_runtime: Opener[NetConf, Runtime]) -> int:
    """`-t`: silent when the datastore answers and is ready, else error 100 with the reason as details."""
    _, error = attempt(lambda: _check_connection(environ, log, open_runtime), "the connection test", log)
    if error is None:
        return 0
    log.error("Datastore connection test failed.", error=error)
    send(error_text(CniError(PLUGIN_FAILURE, "data store connection failed", error.message)))
    return 1


def _check_connection(environ: Mapping[str, str], log: Log, open_runtime: Opener[NetConf, Runtime]) -> None:
    from domain.cni.netconf import parse_netconf
    from usecases.check_connection import check_connection

    text, waited = read_stdin(BUDGET)
    netconf = parse_netconf(text)
    runtime = open_runtime(netconf, environ, log)
    check_connection(netconf, runtime, runtime.clock.deadline(budget(netconf) - waited))
