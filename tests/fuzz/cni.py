"""What a runtime hands to a plugin (configurations, arguments, earlier results), and what other plugins answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adapters.executed_ipam import Ran, refusal
from domain.bridge.addressing import complete, gateways
from domain.bridge.attachment import attachment_text, read_attachment
from domain.bridge.conf import read_bridge_conf, refuse_contradictions
from domain.bridge.host_local import read_host_local_conf
from domain.cni.errors import CniError, error_text
from domain.cni.netconf import IpamSettings, NetConf, parse_netconf, read_netconf
from domain.cni.request import (
    check_address_args,
    check_command,
    check_config,
    config_version,
    parse_address_args,
    parse_args,
    parse_mac_args,
    read_request,
)
from domain.cni.result import parse_result, result_text
from domain.cni.versions import SUPPORTED, check_version
from domain.json_text import JsonError, dumps, parse
from domain.workload.annotations import PoolWishes
from domain.workload.azure import AzureEndpoint, AzureNetwork, ask_for_release, parse_endpoint, parse_network
from domain.workload.host_local import needs_pod_cidrs, pod_routes, text_for_assignment, text_for_release
from domain.workload.pool_text import with_pools
from fuzz.target import Allowed, Finding, Target, attempt, octets_of, one_in, require, text_of
from ports.errors import Refused
from usecases.calls.lost_settings import plugin_document
from usecases.host_local import read_dns

_CODES = {*range(1, 12), *range(50, 52), *range(100, 1000)}  # the specification's, and those that plugins may define


def plain_error(error: CniError) -> None:
    """One JSON object with a code, whatever was quoted in it."""
    told = json.loads(error_text(error))
    require(told["code"] in _CODES and told["msg"], "an error that no runtime can read", told)


def _refused(read: Any) -> Any:
    """What was read, or None and a plain error."""
    try:
        return read()
    except CniError as error:
        plain_error(error)
        return None


def _netconf(octets: bytes) -> None:
    text = text_of(octets)
    netconf = _refused(lambda: parse_netconf(text))
    document = _refused(lambda: check_config(text))
    if document is not None:
        version = _refused(lambda: config_version(document))
        _refused(lambda: check_version("ADD", version or "", SUPPORTED))
        _refused(lambda: read_netconf(document))
    if netconf is not None:
        with Allowed(ValueError):
            with_pools(netconf, text, PoolWishes(("p",), ("q",), (4, 6)))


def _bridge(octets: bytes) -> None:
    text = text_of(octets)
    document = _refused(lambda: check_config(text))
    for own_name in (True, False):
        if document is not None:
            conf = _refused(lambda named=own_name: read_bridge_conf(document, own_name=named))
            if conf is not None:
                _refused(lambda found=conf: refuse_contradictions(found))
                require(all(0 < vlan < 4095 for vlan in conf.vlans), "a VLAN that is none", conf.vlans)


HOST_LOCAL = NetConf(ipam=IpamSettings(type="host-local"))


def _host_local(octets: bytes) -> None:
    text = text_of(octets)
    conf = _refused(lambda: read_host_local_conf(text, None))
    if conf is not None:
        for one in conf.sets:
            for (address, inside), _ in zip(one.candidates(None), range(4), strict=False):
                require(address in inside and address != inside.gateway, "an address of no range", text)
    if not attempt(lambda: parse(text), JsonError)[0]:
        return
    for read in (
        needs_pod_cidrs,
        lambda found: text_for_assignment(found, "n", ("10.0.0.0/24", "fd00::/64")),
        lambda found: text_for_release(HOST_LOCAL, found),
        pod_routes,
    ):
        with Allowed(ValueError):
            read(text)


def _azure(octets: bytes) -> None:
    text = text_of(octets)
    for read in (parse_network, parse_endpoint):
        with Allowed(ValueError):
            read(text)
    with Allowed(ValueError, CniError):
        ask_for_release(text, AzureNetwork("n", ("10.0.0.0/24",)), AzureEndpoint("n", "c", "i", ("10.0.0.1/24",)))


def _attachment(octets: bytes) -> None:
    found = read_attachment(text_of(octets))
    if found is not None:
        require(read_attachment(attachment_text(found)) == found, "an attachment does not read back", octets)


def _arguments(octets: bytes) -> None:
    text = octets.decode("utf-8", "surrogateescape")  # as the environment is decoded
    for read in (parse_args, check_address_args, parse_mac_args, parse_address_args):
        _refused(lambda reading=read: reading(text))


def _variables(octets: bytes) -> None:
    values = octets.decode("utf-8", "surrogateescape").split("\n")
    names = ("CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH", "CNI_NETNS_OVERRIDE")
    environment = {name: value for name, value in zip(names, values, strict=False) if value}
    for ignore in (True, False):
        request = _refused(lambda unknown=ignore: read_request(environment, ignore_unknown_args=unknown))
        if request is not None and _refused(lambda read=request: check_command(read) or True):
            require("/" not in request.ifname and request.ifname not in (".", ".."), "a way out", request)
            require("/" not in request.container_id and "\0" not in request.container_id, "a way out", request)


def _result(octets: bytes) -> None:
    text = text_of(octets)
    for declared in ("1.0.0", "0.2.0") if one_in(8, octets) else ("",):
        result = _refused(lambda version=declared: parse_result(text, version))
        if result is None:
            continue
        whole = _refused(lambda found=result: complete(found, is_gateway=True, is_default_gateway=True))
        if whole is not None:
            gateways(whole)
        for version in SUPPORTED:
            written = _refused(lambda found=result, wanted=version: result_text(found, wanted))
            if written is not None:
                again = result_text(parse_result(written, ""), version)
                require(again == written, "a result does not read back", version, written, again)


def _plugin(octets: bytes) -> None:
    status, stdout, stderr = octets[:1] or b"\1", *octets[1:].partition(b"\0")[::2]
    with Allowed(Refused):
        refused = refusal(Ran(f"exit status {status[0]}", stdout, stderr))
        if not isinstance(refused, Refused):
            raise Finding("no refusal")
        error_text(CniError(refused.code, str(refused), refused.details))


def _resolv(octets: bytes) -> None:
    read_dns(text_of(octets))


def _installed(octets: bytes) -> None:
    """A file of the runtime's folder."""
    document = plugin_document(text_of(octets), "net1", "calico")
    if document is not None:
        _refused(lambda: check_config(dumps(document)))
        _refused(lambda: read_netconf(document))


def _recorded_configurations() -> tuple[bytes, ...]:
    """Those of the recordings of the original, each once."""
    found: dict[str, None] = {}
    for path in sorted((Path(__file__).parents[1] / "golden").glob("*.json")):
        for value in _values(json.loads(path.read_text())):
            if isinstance(value, dict) and "cniVersion" in value and "type" in value:
                found.setdefault(json.dumps(value))
    return octets_of(*list(found)[:25])


def _values(value: Any) -> Any:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _values(inner)


_CONF = {
    "cniVersion": "1.0.0",
    "name": "net1",
    "type": "calico",
    "mtu": 1500,
    "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "ipv4_pools": ["10.0.0.0/8"], "subnet": "usePodCidr"},
    "policy": {"type": "k8s", "k8s_auth_token": "x"},
    "kubernetes": {"kubeconfig": "/k", "k8s_api_root": "https://x"},
    "container_settings": {"allow_ip_forwarding": True},
    "runtimeConfig": {"dns": {"nameservers": ["1.1.1.1"]}, "ips": ["10.0.0.1"], "mac": "aa:bb:cc:dd:ee:ff"},
    "args": {"org.apache.mesos": {"network_info": {"name": "x", "labels": {"labels": [{"key": "a", "value": "b"}]}}}},
    "prevResult": {"ips": [{"address": "10.0.0.1/32"}]},
    "etcd_endpoints": "http://127.0.0.1:2379",
    "datastore_type": "etcdv3",
    "readiness_gates": ["http://x/"],
    "feature_control": {"ip_addrs_no_ipam": True},
    "windows_use_single_network": True,
}
_BRIDGE = {
    "cniVersion": "1.1.0",
    "name": "n",
    "type": "bridge",
    "bridge": "br0",
    "isGateway": True,
    "ipMasq": True,
    "mtu": 1400,
    "vlan": 5,
    "vlanTrunk": [{"minID": 1, "maxID": 4}, {"id": 9}],
    "dns": {"nameservers": ["1.1.1.1"], "domain": "x", "search": ["y"], "options": ["z"]},
    "args": {"cni": {"mac": "aa:bb:cc:dd:ee:ff"}},
    "runtimeConfig": {"mac": "aa:bb:cc:dd:ee:ff"},
    "ipam": {"type": "host-local"},
    "stateDir": "/s",
    "cni.dev/valid-attachments": [{"containerID": "c", "ifname": "eth0"}],
}
_LOCAL = {
    "cniVersion": "1.0.0",
    "name": "n",
    "ipam": {
        "type": "host-local",
        "ranges": [
            [{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.5", "rangeEnd": "10.0.0.9", "gateway": "10.0.0.1"}]
        ],
        "subnet": "fd00::/64",
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1", "mtu": 1400, "priority": 5, "table": 7, "scope": 0}],
        "dataDir": "/d",
        "resolvConf": "/r",
    },
    "args": {"cni": {"ips": ["10.0.0.6"]}},
    "runtimeConfig": {"ips": ["10.0.0.7/24"], "ipRanges": [[{"subnet": "10.1.0.0/24"}]]},
}
_RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "eth0", "mac": "aa:bb:cc:dd:ee:ff", "mtu": 1500, "sandbox": "/n"}],
    "ips": [{"address": "10.0.0.2/24", "gateway": "10.0.0.1", "interface": 0}, {"address": "fd00::2/64"}],
    "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1", "mtu": 1400, "advmss": 1, "priority": 1, "table": 1, "scope": 0}],
    "dns": {"nameservers": ["1.1.1.1"], "domain": "d", "search": ["s"], "options": ["o"]},
}
_SINGLE = {"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.2/24", "gateway": "10.0.0.1", "routes": [{"dst": "::/0"}]}}
_ATTACHMENT = {
    "containerID": "c",
    "ifname": "eth0",
    "bridge": "br0",
    "hostInterface": "v",
    "hostIndex": 3,
    "mac": "m",
    "netns": "/n",
    "addresses": ["10.0.0.2/24"],
    "ipMasqBackend": "nftables",
    "macspoofchk": True,
    "ipam": "i",
}


def _json(*documents: Any) -> tuple[bytes, ...]:
    return octets_of(*map(json.dumps, documents))


TARGETS = (
    Target("netconf", _netconf, _json(_CONF) + _recorded_configurations(), form="json"),
    Target(
        "conflist",
        _installed,
        _json(_CONF, {"cniVersion": "1.0.0", "name": "net1", "plugins": [{"type": "x"}, {**_CONF, "name": "y"}]}),
        form="json",
    ),
    Target("bridge_conf", _bridge, _json(_BRIDGE, {**_BRIDGE, "type": "my-custom-cni"}), form="json"),
    Target("host_local_conf", _host_local, _json(_LOCAL), form="json"),
    Target(
        "azure",
        _azure,
        _json(
            {"Name": "n", "Subnets": ["10.0.0.0/24"]},
            {"Network": "n", "ContainerID": "c", "Interface": "i", "Addresses": ["10.0.0.1"]},
            {"ipam": {"type": "azure-vnet-ipam", "subnet": "x"}, "b": 1},
        ),
        form="json",
    ),
    Target("attachment", _attachment, _json(_ATTACHMENT), form="json"),
    Target(
        "cni_args",
        _arguments,
        octets_of(
            "IgnoreUnknown=1;K8S_POD_NAME=p;K8S_POD_NAMESPACE=n;K8S_POD_INFRA_CONTAINER_ID=c;IP=10.0.0.1",
            *("IP=fd00::1;MAC=aa:bb:cc:dd:ee:ff", "GATEWAY=10.0.0.1", "X=1", "a=b=c", ";;", "IgnoreUnknown=maybe"),
        ),
        most=512,
    ),
    Target(
        "cni_variables",
        _variables,
        octets_of("ADD\nc1\n/run/netns/x\neth0\nIgnoreUnknown=1\n/opt/cni/bin:/x\ntrue", "DEL\nc1\n\nlo\n\n/b", "GC"),
        form="text",
        most=512,
    ),
    Target("result", _result, _json(_RESULT, _SINGLE, {**_RESULT, "cniVersion": "0.4.0"}), form="json"),
    Target(
        "plugin_answer",
        _plugin,
        octets_of('\1{"code": 7, "msg": "no", "details": "x"}\0trace', '\2{"CODE": -1}', "\1\0boom", "\1null\0", "\1"),
        form="json",
        skips=1,
    ),
    Target(
        "resolv_conf",
        _resolv,
        octets_of("nameserver 10.0.0.1\nsearch a b\ndomain c\noptions ndots:5 x\n# no\n; no\nnameserver"),
        form="text",
        most=1024,
    ),
)
