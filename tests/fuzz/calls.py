"""Whole calls: ADD, CHECK and DEL of each plugin over ports in memory, with everything foreign that they are given.

What a runtime has to be able to rely on: an answer is JSON in the version asked for, or one error with a code; a call
that failed leaves nothing; DEL after a good ADD succeeds and leaves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from adapters.memory.address_files import MemoryAddressFiles
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.bridge.conf import AttachmentId
from domain.bridge.host_local import read_host_local_conf
from domain.cni.errors import CniError
from domain.cni.request import check_command, check_config, config_version, parse_address_args, read_request
from domain.cni.result import parse_result
from domain.cni.versions import check_version
from domain.json_text import JsonError, dumps, parse
from domain.workload.pod import ContainerPort, Pod
from entrypoints import bridge, calico, calico_ipam
from entrypoints.logs import CallLog
from entrypoints.skel import Plugin, budget, describe
from fuzz.cni import plain_error
from fuzz.target import Target, attempt, octets_of, require, text_of
from ports.clock import Deadline
from usecases import host_local
from usecases.calls.safeguards import Undo
from worlds import one_host, one_node
from worlds.one_host import OneHost
from worlds.one_node import NODE, OneNode

_NEVER = Deadline(float("inf"))


def _object(octets: bytes) -> Mapping[str, Any]:
    read, found = attempt(lambda: parse(text_of(octets)), JsonError)
    return found if read and isinstance(found, dict) else {}


def _text(given: Mapping[str, Any], name: str, default: str) -> str:
    found = given.get(name, default)
    return found if isinstance(found, str) and "\0" not in found else default


def _environment(given: Mapping[str, Any], verb: str, place: str) -> dict[str, str]:
    return {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": _text(given, "container", "c1"),
        "CNI_NETNS": place,
        "CNI_IFNAME": _text(given, "ifname", "eth0"),
        "CNI_ARGS": _text(given, "args", ""),
        "CNI_PATH": "/opt/cni/bin",
    }


class Caller:
    """Makes the calls of one plugin, each as a process of its own would; `world` has the ports, and a namespace."""

    def __init__(self, plugin: Plugin, world: OneNode | OneHost, given: Mapping[str, Any]) -> None:
        self._plugin, self._runtime, self._given = plugin, world.runtime, given
        self._place = one_node.netns("c1") if isinstance(world, OneNode) else one_host.netns("c1")
        self._conf = dumps(given.get("conf"))

    def call(self, verb: str, **more: Any) -> tuple[str | None, CniError | None]:
        """The answer, or the error that is told."""
        runtime, log = self._runtime(), RecordingLog()
        undo = Undo(runtime.clock, log)
        try:
            return self._answer(verb, runtime, undo, more), None
        except Exception as error:  # noqa: BLE001 - as the frame of a call does
            undo.run()
            told = describe(error, verb, log)
            require("panicked" not in told.message, told.message, self._given)
            plain_error(told)
            return None, told

    def _answer(self, verb: str, runtime: Any, undo: Undo, more: Mapping[str, Any]) -> str:
        plugin = self._plugin
        request = read_request(
            _environment(self._given, verb, self._place), ignore_unknown_args=plugin.ignore_unknown_args
        )
        document = {**check_config(self._conf), **more}
        check_command(request)
        check_version(verb, config_version(document), plugin.supported)
        netconf = plugin.read_netconf(document, verb)
        args = plugin.read_args(request)
        deadline = runtime.clock.deadline(budget(netconf))
        call = plugin.make_call(request, args, netconf, dumps(document), deadline)
        return plugin.verbs[verb](call, runtime, undo)


def _live(caller: Caller, leftovers: Callable[[], object], given: Mapping[str, Any]) -> None:
    """A container's whole life."""
    answer, error = caller.call("ADD")
    if error is not None:
        require(not leftovers(), "a call that failed has left something", error, given, leftovers())
    else:
        result = json.loads(answer or "")
        require(parse_result(answer or "", "") is not None, "no result", answer)
        caller.call("CHECK", prevResult=result)
    _, error = caller.call("DEL")
    require(answer is None or error is None, "DEL does not take back what ADD did", error and error.message, given)
    if error is None:
        require(not leftovers(), "DEL has left something", given, leftovers())


# --- calico and calico-ipam ------------------------------------------------------------------------------------------


def _node(given: Mapping[str, Any]) -> OneNode:
    node = OneNode()
    node.cluster.namespaces = {"shop": {"team": "blue"}}
    node.cluster.nodes[NODE] = ("10.30.0.0/24",)
    annotations = given.get("annotations")
    texts = (
        {name: text for name, text in (annotations or {}).items() if isinstance(text, str)}
        if isinstance(annotations, dict)
        else {}
    )
    node.cluster.pods["shop", "web-0"] = Pod(
        "web-0",
        "shop",
        uid="u1",
        labels={"app": "web"},
        annotations=texts,
        node=NODE,
        ports=(ContainerPort(8080, "http"),),
    )
    return node


def _calico(octets: bytes) -> None:
    given = _object(octets)
    node = _node(given)
    _live(Caller(calico.PLUGIN, node, given), node.leftovers, given)


def _ipam(octets: bytes) -> None:
    given = _object(octets)
    node = _node(given)
    _live(Caller(calico_ipam.PLUGIN, node, given), node.leftovers, given)


# --- the bridge plugin -----------------------------------------------------------------------------------------------


def _bridge(octets: bytes) -> None:
    given = _object(octets)
    host = OneHost()
    read, answer = attempt(lambda: parse_result(dumps(given.get("answer")), "1.0.0"), CniError)
    if read:
        host.ipam.answers("host-local", answer)
    plugin = bridge._plugin(CallLog("fuzz", default="error"), own_name=given.get("own") is True)

    def leftovers() -> object:
        links = [name for name in host.network.namespaces[""] if name.startswith("veth")]
        inside = set(host.network.namespaces[one_host.netns("c1")]) - {"lo"}
        return [*links, *inside, *host.attachments.kept]

    _live(Caller(plugin, host, given), leftovers, given)


def _host_local(octets: bytes) -> None:
    """The built-in one: what was given out is the container's own, and is all given back."""
    given, clock = _object(octets), MemoryClock()
    files, owner = MemoryAddressFiles(clock), AttachmentId("c1", "eth0")
    try:
        requested = parse_address_args(_text(given, "args", ""))
        conf = read_host_local_conf(dumps(given.get("conf")), requested)
        for container in ("c0", "c1"):
            result = host_local.allocate(conf, AttachmentId(container, "eth0"), files, [], _NEVER)
            require(len(result.ips) == len(conf.sets), "not an address from each set", given, result)
            for ip in result.ips:
                require(ip.address.address != ip.gateway, "the gateway's own address", given, ip)
        host_local.check(owner, files, _NEVER)
    except CniError as error:
        plain_error(error)
    host_local.release(owner, files, _NEVER)
    require(all(one.container_id == "c0" for one in files.reservations()), "not all is given back", given)


_WORKLOAD = {
    "cniVersion": "1.0.0",
    "name": "net1",
    "type": "calico",
    "mtu": 1400,
    "nodename": NODE,
    "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "false", "ipv4_pools": ["10.244.0.0/24"]},
    "container_settings": {"allow_ip_forwarding": True},
    "policy": {"type": "k8s"},
    "kubernetes": {"kubeconfig": "/k"},
    "feature_control": {"ip_addrs_no_ipam": True, "floating_ips": True},
    "include_default_routes": True,
    "timeout_seconds": 5,
}
_POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
_WISHES = {
    "cni.projectcalico.org/ipAddrs": '["10.244.0.9"]',
    "cni.projectcalico.org/ipv4pools": '["pool0"]',
    "cni.projectcalico.org/hwAddr": "1c:0c:0a:c0:ff:ee",
    "cni.projectcalico.org/floatingIPs": '["1.1.1.1"]',
    "cni.projectcalico.org/allowedSourcePrefixes": '["8.8.8.0/24"]',
    "qos.projectcalico.org/ingressBandwidth": "10M",
}
_PLAIN = {**_WORKLOAD, "policy": {}, "kubernetes": {}}
_BRIDGE = {
    "cniVersion": "1.1.0",
    "name": "net1",
    "type": "bridge",
    "bridge": "br0",
    "isGateway": True,
    "isDefaultGateway": True,
    "ipMasq": True,
    "mtu": 1400,
    "vlan": 5,
    "vlanTrunk": [{"minID": 6, "maxID": 9}],
    "macspoofchk": True,
    "dns": {"nameservers": ["1.1.1.1"]},
    "args": {"cni": {"mac": "02:bb:cc:dd:ee:ff"}},
    "ipam": {"type": "host-local"},
}
_ANSWER = {
    "cniVersion": "1.0.0",
    "ips": [{"address": "10.244.0.2/24", "gateway": "10.244.0.1"}, {"address": "fd44::2/64"}],
    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.0.0.0/8", "gw": "10.244.0.9", "mtu": 1300, "priority": 5, "scope": 0}],
    "dns": {"search": ["x"]},
}
_LOCAL = {
    "cniVersion": "1.0.0",
    "name": "n",
    "ipam": {"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/126", "gateway": "fd00::2"}]]},
}

TARGETS = (
    Target(
        "call_calico",
        _calico,
        octets_of(
            json.dumps({"conf": _PLAIN, "args": "IP=10.244.0.7"}),
            json.dumps({"conf": _PLAIN, "container": "c1", "ifname": "net0"}),
            json.dumps({"conf": _WORKLOAD, "args": _POD, "annotations": {}}),
            json.dumps({"conf": _WORKLOAD, "args": _POD, "annotations": _WISHES}),
        ),
        form="json",
    ),
    Target(
        "call_ipam",
        _ipam,
        octets_of(json.dumps({"conf": _PLAIN, "args": "IgnoreUnknown=1;IP=10.244.0.7"}), json.dumps({"conf": _PLAIN})),
        form="json",
    ),
    Target(
        "call_bridge",
        _bridge,
        octets_of(
            json.dumps({"conf": {**_BRIDGE, "vlanTrunk": None}, "answer": _ANSWER}),
            json.dumps(
                {"conf": {**_BRIDGE, "vlan": 0}, "answer": _ANSWER, "own": True, "args": "MAC=02:00:00:00:00:01"}
            ),
            json.dumps({"conf": {**_BRIDGE, "vlan": 0, "ipam": {}}, "answer": None}),
        ),
        form="json",
    ),
    Target(
        "call_host_local",
        _host_local,
        octets_of(json.dumps({"conf": _LOCAL, "args": "IP=10.0.0.3"}), json.dumps({"conf": _LOCAL})),
        form="json",
    ),
)
