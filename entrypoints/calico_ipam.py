"""`calico-ipam`, the IPAM plugin: its flags, and which use case answers which verb.

Invariant: a verb loads its own use case and no other one.
"""

from __future__ import annotations

from domain.cni.request import check_address_args, parse_args_of
from entrypoints.flags import UsageWanted, parse_flags
from entrypoints.logs import CallLog
from entrypoints.skel import Plugin, run
from entrypoints.stdio import say, send
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

_FLAGS = {"upgrade": "Upgrade from host-local", "v": "Display version"}
_UNDECLARED = "0.1.0"  # the version of the result when the configuration declares none


def main(
    arguments: Sequence[str], environ: Mapping[str, str], open_runtime: Opener[NetConf, Runtime] | None = None
) -> int:
    """The exit code of `calico-ipam <arguments>`."""
    try:
        flags = parse_flags(arguments, "calico-ipam", _FLAGS)
    except UsageWanted as wanted:
        say(wanted.text)
        return wanted.exit_code
    if "v" in flags:
        return 0 if send(VERSION + "\n") else 1
    if "upgrade" in flags:
        from entrypoints.tortie.guard import guarded

        return guarded(lambda: _upgrade(environ))
    return run(PLUGIN.replace(open_runtime=open_runtime) if open_runtime else PLUGIN, environ, CallLog("ipam"))


def _upgrade(environ: Mapping[str, str]) -> int:
    from entrypoints.upgrade import main as upgrade

    return upgrade(environ)


def _open_runtime(netconf: NetConf, environ: Mapping[str, str], log: Log) -> Runtime:
    from entrypoints.wiring.calico import open_runtime

    return open_runtime(netconf, environ, log)


def _datastore(netconf: NetConf, environ: Mapping[str, str]) -> str:
    from entrypoints.wiring.datastores import datastore_of

    return datastore_of(netconf, environ)


def _make_call(request: Request, args: CniArgs, netconf: NetConf, netconf_text: str, deadline: Deadline) -> Call:
    from usecases.calls.call import Call

    return Call(request, args, netconf, netconf_text, deadline)


def _read_netconf(document: Json, verb: str) -> NetConf:
    from domain.cni.netconf import read_netconf

    return read_netconf(document, verb, ipam_only=True)


def _read_args(request: Request) -> CniArgs:
    args = parse_args_of(request)
    if request.command == "ADD":
        check_address_args(request.args)
    return args


def _add(call: Call, runtime: Runtime, undo: Undo) -> str:
    from domain.cni.result import result_text
    from usecases.assign_addresses import assign_addresses

    return result_text(assign_addresses(call, runtime, undo), call.netconf.cni_version or _UNDECLARED)


def _delete(call: Call, runtime: Runtime, _undo: Undo) -> str:
    from usecases.release_addresses import release_addresses

    release_addresses(call, runtime)
    return ""


def _check(call: Call, runtime: Runtime, _undo: Undo) -> str:
    """Without a `prevResult` there is nothing to compare with, and the answer is empty."""
    if call.netconf.prev_result:
        from usecases.check_addresses import check_addresses

        check_addresses(call, runtime)
    return ""


PLUGIN = Plugin(
    about="Calico CNI IPAM",
    read_netconf=_read_netconf,
    read_args=_read_args,
    open_runtime=_open_runtime,
    make_call=_make_call,
    verbs={"ADD": _add, "DEL": _delete, "CHECK": _check},
    program="calico-ipam",
    datastore=_datastore,
)
