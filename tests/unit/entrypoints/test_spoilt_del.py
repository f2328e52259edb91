"""A container ends whatever has become of its configuration: a DEL minds only what it needs.

Every call goes through the plugin's own entrypoint, with the ports in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from descriptors import replaced, signals_restored, stdin
from domain.cni.errors import TRY_AGAIN_LATER, CniError
from domain.cni.netconf import NetConf, parse_netconf
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Cidr
from domain.workload.pod import Pod
from entrypoints import calico, calico_ipam
from entrypoints.wiring import datastores
from ports.datastore import Datastore
from ports.runtime import Runtime
from spoiling import Path, Spoilt, spoilt_args, spoilt_documents, with_member
from worlds.one_node import NODE, OneNode, netns

Main = Callable[..., int]

# What a DEL of calico-ipam needs: the first two are checked by the frame, the first also says in which words to answer.
IPAM_NEEDS: tuple[Path, ...] = (
    ("cniVersion",),
    ("name",),  # part of the handle that addresses are found by
    *(("nodename",), ("nodename_file",), ("hostname",)),  # whose blocks are looked through when the handle is gone
)
# The network plugin moreover has to find the device's dataplane.
NEEDS: tuple[Path, ...] = (*IPAM_NEEDS, ("dataplane_options",))
# Without these the records cannot be found; the device, and what others gave, can.
LEADS_TO: dict[str, tuple[Path, ...]] = {
    "sqlite": (("sqlite_path",),),
    "etcdv3": tuple(
        (f"etcd_{what}",) for what in ("endpoints", "discovery_srv", "key_file", "cert_file", "ca_cert_file")
    ),
    "kubernetes": (
        *(("kubernetes", "kubeconfig"), ("kubernetes", "k8s_api_root"), ("policy", "k8s_api_root")),
        *(("calico_api_group",), ("kubernetes",)),
    ),
}
WHERE_RECORDS = (("datastore_type",), *LEADS_TO["sqlite"])  # of GOOD
ELSEWHERE = (*LEADS_TO["etcdv3"], *LEADS_TO["kubernetes"][:4])

GOOD: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "net1",
    "type": "calico",
    "mode": "",
    "mtu": 1440,
    "num_queues": 2,
    "nodename": NODE,
    "nodename_file": "/var/lib/calico/nodename",
    "nodename_file_optional": False,
    "datastore_type": "sqlite",
    "device_type": "veth",
    "include_default_routes": False,
    "readiness_gates": [],
    "policy_setup_timeout_seconds": 0,
    "endpoint_status_dir": "/var/run/calico/endpoint-status",
    "ipam_lock_file": "/run/l",
    "timeout_seconds": 30,
    "log_level": "info",
    "log_file_max_size": 1,
    "container_settings": {"allow_ip_forwarding": False},
    "feature_control": {"ip_addrs_no_ipam": False, "floating_ips": False},
    "args": {
        "org.apache.mesos": {"network_info": {"name": "n", "labels": {"labels": [{"key": "k", "value": "v"}]}}},
        "other": 1,
    },
    "runtimeConfig": {"dns": {"servers": ["10.0.0.1"], "domain": "d", "searches": ["s"], "options": ["o"]}},
    "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/32"}]},
    "capabilities": {"ips": True},
    "ipam": {
        "type": "calico-ipam",
        "name": "i",
        "subnet": "",
        "assign_ipv4": "true",
        "assign_ipv6": "true",
        "ipv4_pools": ["10.244.0.0/24"],
        "ipv6_pools": ["pool1"],
        "optional_families": False,
        "routes": [{"dst": "0.0.0.0/0"}],
    },
    "policy": {"type": ""},
    "kubernetes": {"node_name": NODE},
}
MORE: tuple[Path, ...] = (
    *(("qps",), ("burst",), ("vxlan_vni",), ("vxlan_mac_prefix",), ("require_mtu_file",), ("log_file_path",)),
    *(("log_file_max_age",), ("log_file_max_count",), ("etcd_authority",), ("etcd_scheme",)),
    *(("windows_use_single_network",), ("windows_loopback_DSR",), ("dns",), ("policies",)),
    *(("policy", "k8s_auth_token"), ("policy", "k8s_client_certificate"), ("policy", "k8s_client_key")),
    ("policy", "k8s_certificate_authority"),
    *ELSEWHERE,
)
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u1"


@pytest.fixture(autouse=True, scope="module")
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A spoilt `log_file_path` may well be a file's name."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("spoilt"))
    with signals_restored():
        yield
    os.chdir(before)


def ran(main: Main, node: OneNode, verb: str, text: str, args: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call about container `c1`."""
    environ = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": netns("c1"),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin",
        "CNI_ARGS": args,
    }
    out, said = os.memfd_create("out"), os.memfd_create("said")
    with stdin(text), replaced(1, os.dup(out)), replaced(2, os.dup(said)):
        code = main((), environ, lambda netconf, _environ, _log: opened(node, netconf))
    texts = []
    for descriptor in (out, said):
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, encoding="utf-8") as file:
            texts.append(file.read())
    return code, texts[0], texts[1]


def opened(node: OneNode, netconf: NetConf) -> Runtime:
    """The ports of a configuration, as `datastores` opens them."""

    def datastore() -> Datastore:
        datastores.whole(netconf, netconf.datastore_type)
        return node.datastore

    node.runtime_for = lambda other: opened(node, other)
    node.former._open = node.runtime_for
    return node.runtime(datastore)


def added(main: Main, node: OneNode, document: dict[str, Any], args: str = "") -> None:
    code, out, said = ran(main, node, "ADD", json.dumps(document), args)
    assert code == 0, (out, said)
    assert node.leftovers() != {}


def assert_nothing_left(main: Main, node: OneNode, text: str, args: str = "") -> str:
    code, out, said = ran(main, node, "DEL", text, args)
    assert (code, out) == (0, ""), said
    assert node.leftovers() == {}
    assert "panicked" not in said
    return said


def is_refused_by_add(text: str) -> bool:
    try:
        parse_netconf(text)
    except CniError:
        return True
    return False


def assert_told(spoilt: Spoilt, said: str) -> None:
    """The warning names the member, or the list or object that is lost with it."""
    if is_refused_by_add(spoilt.text):
        keys = [key for key in spoilt.path if isinstance(key, str)]
        assert "WARNING" in said
        assert f'DEL does without \\"{".".join(keys)}' in said or f'DEL does without "{".".join(keys)}' in said


@given(spoilt_documents(GOOD, (*NEEDS, *WHERE_RECORDS), MORE))
@example(Spoilt(("timeout_seconds",), 0, json.dumps({**GOOD, "timeout_seconds": 2**63 - 1})))
@example(Spoilt(("nodename_file_optional",), "no", json.dumps({**GOOD, "nodename_file_optional": "no"})))
def test_del_of_a_container_minds_only_what_it_needs(spoilt: Spoilt) -> None:
    node = OneNode()
    added(calico.main, node, GOOD)
    assert_told(spoilt, assert_nothing_left(calico.main, node, spoilt.text))


@given(spoilt_documents(GOOD, (*IPAM_NEEDS, *WHERE_RECORDS), [*MORE, ("dataplane_options",)]))
def test_del_of_addresses_minds_only_what_it_needs(spoilt: Spoilt) -> None:
    node = OneNode()
    added(calico_ipam.main, node, GOOD)
    assert_told(spoilt, assert_nothing_left(calico_ipam.main, node, spoilt.text))


@given(spoilt_documents({**GOOD, "policy": {"type": "k8s"}}, (*NEEDS, *WHERE_RECORDS), MORE))
def test_del_of_a_pod_minds_only_what_it_needs(spoilt: Spoilt) -> None:
    node = with_pod()
    added(calico.main, node, {**GOOD, "policy": {"type": "k8s"}}, POD)
    assert_told(spoilt, assert_nothing_left(calico.main, node, spoilt.text, POD))


HOST_LOCAL = {**GOOD, "ipam": {"type": "host-local", "ranges": [[{"subnet": "usePodCidr"}]], "routes": []}}


@given(spoilt_documents(HOST_LOCAL, (*NEEDS, *WHERE_RECORDS, ("ipam", "type")), MORE))
def test_del_with_another_ipam_plugin_minds_only_what_it_needs(spoilt: Spoilt) -> None:
    """What that plugin makes of its own section is its business."""
    node = OneNode(own_ipam=False)
    node.plugin.answers("host-local", Result(ips=(ResultIp(Cidr.parse("10.1.0.2/24")),)))
    added(calico.main, node, HOST_LOCAL)
    assert_told(spoilt, assert_nothing_left(calico.main, node, spoilt.text))
    assert node.plugin.added == {}


@given(st.sampled_from([calico.main, calico_ipam.main]), spoilt_args("IgnoreUnknown=1;IP=10.244.0.9;FOO=bar", ()))
def test_del_of_a_container_minds_no_argument(main: Main, args: str) -> None:
    node = OneNode()
    added(main, node, GOOD, "IgnoreUnknown=1;IP=10.244.0.9")
    assert_nothing_left(main, node, json.dumps(GOOD), args)


@given(st.sampled_from([calico.main, calico_ipam.main]), spoilt_args(POD, ("K8S_POD_NAMESPACE", "K8S_POD_NAME")))
def test_del_of_a_pod_minds_its_name_only(main: Main, args: str) -> None:
    node = with_pod()
    added(main, node, GOOD, POD)
    assert_nothing_left(main, node, json.dumps(GOOD), args)


def test_what_is_not_understood_of_cni_args_is_told() -> None:
    node = OneNode()
    said = assert_nothing_left(calico.main, node, json.dumps(GOOD), "IP=zz")
    assert "CNI_ARGS; mend it: ARGS: error parsing value of pair" in said


@pytest.mark.parametrize("main", [calico.main, calico_ipam.main])
@pytest.mark.parametrize("path", NEEDS)
def test_what_is_needed_and_cannot_be_read_is_refused_and_nothing_touched(main: Main, path: Path) -> None:
    """Else DEL would look elsewhere, find nothing, and call that a success."""
    if main is calico_ipam.main and path not in IPAM_NEEDS:
        return
    node = OneNode()
    added(main, node, GOOD)
    before = node.leftovers()
    code, out, _ = ran(main, node, "DEL", json.dumps(with_member(GOOD, path, ["?"])))
    assert code == 1
    assert path[-1] in json.loads(out)["msg"]
    assert node.leftovers() == before


@pytest.mark.parametrize("path", [("ipam",), ("ipam", "type")])
def test_addresses_are_found_by_their_handle_when_ipam_cannot_be_read(path: Path) -> None:
    node = OneNode()
    added(calico.main, node, GOOD)
    said = assert_nothing_left(calico.main, node, json.dumps(with_member(GOOD, path, ["?"])))
    assert f'DEL does without "{".".join(path)}"' in said


def test_del_comes_again_if_nothing_says_who_gave_the_addresses() -> None:
    """The device goes at once; DEL repeated with the section put back ends the container."""
    node = OneNode(own_ipam=False)
    node.plugin.answers("other-ipam", Result(ips=(ResultIp(Cidr.parse("10.1.0.2/24")),)))
    conf = {**GOOD, "ipam": {"type": "other-ipam"}}
    added(calico.main, node, conf)
    code, out, _ = ran(calico.main, node, "DEL", json.dumps({**conf, "ipam": 7}))
    assert (code, json.loads(out)["code"]) == (1, 11)
    assert "put back what ADD had" in json.loads(out)["msg"]
    assert "eth0" not in node.dataplane.network.namespaces[netns("c1")]
    assert node.plugin.added
    assert ran(calico.main, node, "DEL", json.dumps(conf))[0] == 0
    assert node.plugin.added == {}


def installed(node: OneNode) -> None:
    whole = json.dumps({**GOOD, "sqlite_path": "/db", "etcd_endpoints": "http://a:1", "etcd_discovery_srv": "d"})
    node.former.files = node.former.files.replace(configurations=(("/etc/cni/net.d/10-net1.conf", whole),))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        *[("", (("datastore_type",)))],
        *[(kind, path) for kind, paths in LEADS_TO.items() for path in paths],
        *[("", path) for paths in LEADS_TO.values() for path in paths],
    ],
)
def test_without_the_way_to_the_records_the_device_goes_and_the_rest_with_a_later_del(kind: str, path: Path) -> None:
    node = OneNode()
    added(calico.main, node, GOOD)
    spoilt = with_member({**GOOD, "datastore_type": kind}, path, ["?"])
    code, out, _ = ran(calico.main, node, "DEL", json.dumps(spoilt))
    assert code == 1
    answer = json.loads(out)
    assert answer["code"] == TRY_AGAIN_LATER
    assert ".".join(path) in answer["msg"]
    assert set(node.leftovers()) == {"addresses", "handles", "endpoints"}
    assert_nothing_left(calico.main, node, json.dumps(GOOD))


@pytest.mark.parametrize("path", [("datastore_type",), ("sqlite_path",), ("etcd_endpoints",), ("etcd_discovery_srv",)])
def test_the_installed_configuration_says_what_the_call_does_not(path: Path) -> None:
    node = OneNode()
    installed(node)
    added(calico.main, node, GOOD)
    assert_nothing_left(calico.main, node, json.dumps(with_member(GOOD, path, ["?"])))


def with_pod() -> OneNode:
    node = OneNode()
    node.cluster.namespaces = {"shop": {}}
    node.cluster.pods["shop", "web-0"] = Pod("web-0", "shop", uid="u1", node=NODE)
    return node
