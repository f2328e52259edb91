"""`my-custom-cni`, the bridge plugin, which also answers to `bridge`: its flag, its verbs, and what it works with.

The name it was called by decides the defaults (domain/bridge/conf); after this module only they count.

Invariant: a verb loads what it needs and no other verb's use case.
"""

from __future__ import annotations

from domain.cni.request import CniArgs, parse_mac_args
from domain.cni.versions import SUPPORTED_BY_BRIDGE
from entrypoints.flags import UsageWanted, parse_flags
from entrypoints.logs import CallLog
from entrypoints.skel import Plugin, run
from entrypoints.stdio import say, send
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.bridge.conf import BridgeConf
    from domain.cni.request import Request
    from domain.json_text import Json
    from entrypoints.skel import Opener
    from ports.clock import Deadline
    from ports.log import Log
    from ports.runtime import BridgeRuntime
    from usecases.calls.call import BridgeCall
    from usecases.calls.safeguards import Undo

OWN_NAME = "my-custom-cni"
_FLAGS = {"v": "Display version"}
_UNDECLARED = "0.1.0"  # the version of the result when the configuration declares none
_WITH_INTERFACE_MTU = "1.1.0"
_ABOUT = "CNI bridge plugin"


def main(
    name: str,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    open_runtime: Opener[BridgeConf, BridgeRuntime] | None = None,
) -> int:
    """The exit code of `<name> <arguments>`."""
    try:
        flags = parse_flags(arguments, name, _FLAGS)
    except UsageWanted as wanted:
        say(wanted.text)
        return wanted.exit_code
    if "v" in flags:
        return 0 if send(VERSION + "\n") else 1
    log = call_log(name, environ)
    plugin = _plugin(log, own_name=name == OWN_NAME).replace(program=name)
    return run(plugin.replace(open_runtime=open_runtime) if open_runtime else plugin, environ, log)


def call_log(name: str, environ: Mapping[str, str]) -> CallLog:
    """Quiet, but for warnings, unless CNI_DEBUG is set. Each record says whose call it is of."""
    debug = environ.get("CNI_DEBUG", "").lower() not in {"", "0", "false"}
    log = CallLog(name, default="debug" if debug else "warning")
    log.always(
        command=environ.get("CNI_COMMAND", ""),
        container=environ.get("CNI_CONTAINERID", ""),
        ifname=environ.get("CNI_IFNAME", ""),
    )
    return log


def _plugin(log: CallLog, *, own_name: bool) -> Plugin[BridgeConf, BridgeCall, BridgeRuntime]:
    def read_netconf(document: Json, verb: str) -> BridgeConf:
        from domain.bridge.conf import read_bridge_conf

        conf = read_bridge_conf(document, own_name=own_name, verb=verb)
        log.always(network=conf.name)
        return conf

    return Plugin(
        about=_ABOUT,
        read_netconf=read_netconf,
        read_args=_read_args,
        open_runtime=_open_runtime,
        make_call=_make_call,
        verbs={"ADD": _add, "DEL": _delete, "CHECK": _check, "GC": _collect, "STATUS": _status},
        supported=SUPPORTED_BY_BRIDGE,
        versioned_errors=True,
        subject=_ABOUT,
    )


def _read_args(request: Request) -> CniArgs:
    """Only an ADD needs them."""
    return parse_mac_args(request.args) if request.command == "ADD" else CniArgs()


def _make_call(
    request: Request, args: CniArgs, netconf: BridgeConf, netconf_text: str, deadline: Deadline
) -> BridgeCall:
    from usecases.calls.call import BridgeCall

    return BridgeCall(request, args, netconf, netconf_text, deadline)


def _open_runtime(conf: BridgeConf, environ: Mapping[str, str], log: Log) -> BridgeRuntime:
    from entrypoints.wiring.bridge import open_bridge_runtime

    return open_bridge_runtime(conf, environ, log)


def _add(call: BridgeCall, runtime: BridgeRuntime, undo: Undo) -> str:
    from domain.cni.result import result_text
    from usecases.add_bridge import add_bridge

    version = call.netconf.cni_version or _UNDECLARED
    result = add_bridge(call, runtime, undo)
    if version != _WITH_INTERFACE_MTU:
        result = result.replace(interfaces=tuple([interface.replace(mtu=0) for interface in result.interfaces]))
    return result_text(result, version)


def _delete(call: BridgeCall, runtime: BridgeRuntime, _undo: Undo) -> str:
    from usecases.delete_bridge import delete_bridge

    delete_bridge(call, runtime)
    return ""


def _check(call: BridgeCall, runtime: BridgeRuntime, _undo: Undo) -> str:
    from usecases.check_bridge import check_bridge

    check_bridge(call, runtime)
    return ""


def _collect(call: BridgeCall, runtime: BridgeRuntime, _undo: Undo) -> str:
    from usecases.collect_bridge import collect_bridge

    collect_bridge(call, runtime)
    return ""


def _status(call: BridgeCall, runtime: BridgeRuntime, _undo: Undo) -> str:
    from usecases.status_bridge import status_bridge

    status_bridge(call, runtime)
    return ""
