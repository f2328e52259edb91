"""What runtimes do with the plugins: chains (D07), odd DEL calls (K01), odd CNI_ARGS (C12), versions that change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import PLUGINS, Container, Host

TOOLS = "/usr/sbin:/usr/bin:/sbin:/bin"
IPAM_SCRIPT = """#!/bin/sh
echo "$CNI_COMMAND|$CNI_ARGS" >> {log}
cat > /dev/null
[ "$CNI_COMMAND" != ADD ] || echo '{{"cniVersion": "0.3.1", "ips": [{{"version": "4", "address": "10.9.8.7/24"}}]}}'
"""


# --- D07: chains ----------------------------------------------------------------------------------------------------


def chained(
    host: Host, verb: str, container: Container, type: str, previous: dict[str, Any] | None, **conf: Any
) -> Any:
    """Call one of the CNI project's own plugins with what the plugin before it has answered."""
    environment = host.environment(verb, container, PATH=TOOLS)
    whole = {"cniVersion": "1.0.0", "name": "net1", "type": type, **conf}
    whole |= {"prevResult": previous} if previous else {}
    answer = host.raw(environment, json.dumps(whole), program=PLUGINS / type)
    return answer.result() if verb == "ADD" else answer.silent()


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0"])
def test_d07_each_address_belongs_to_the_containers_interface(host: Host, version: str) -> None:
    container = host.container()
    result = host.add(container, cniVersion=version).result()
    host_end, container_end = result["interfaces"]
    assert "sandbox" not in host_end
    assert container_end["sandbox"] == container.netns
    assert [result["interfaces"][ip["interface"]]["name"] for ip in result["ips"]] == ["eth0"]
    assert all("gateway" not in ip for ip in result["ips"])


def test_d07_portmap_bandwidth_and_tuning_go_on_from_our_result(host: Host) -> None:
    ports = [{"hostPort": 18080, "containerPort": 80, "protocol": "tcp"}]
    plugins: list[tuple[str, dict[str, Any]]] = [
        ("portmap", {"snat": False, "runtimeConfig": {"portMappings": ports}}),
        ("bandwidth", {"ingressRate": 8_000_000, "ingressBurst": 8_000_000}),
        ("tuning", {"sysctl": {"net.ipv4.conf.IFNAME.accept_redirects": "0"}}),
    ]
    container = host.container()
    first = host.add(container, cniVersion="1.0.0").result()
    result = first
    for type, conf in plugins:
        result = chained(host, "ADD", container, type, result, **conf)
    assert [ip["address"] for ip in result["ips"]] == [ip["address"] for ip in first["ips"]]
    address = first["ips"][0]["address"].partition("/")[0]
    assert f"{address}:80" in host.net.run("iptables", "-w", "-t", "nat", "-S").stdout
    assert "tbf" in host.net.run("tc", "qdisc", "show", "dev", container.host_name).stdout
    assert container.inside.sysctl("ipv4/conf/eth0/accept_redirects") == "0"

    for type, conf in reversed(plugins):
        chained(host, "DEL", container, type, result, **conf)
    host.delete(container, cniVersion="1.0.0", prevResult=result).silent()
    assert host.left() == {}


@pytest.mark.parametrize("added", ["0.1.0", "0.3.1", "0.4.0", "1.0.0"])
@pytest.mark.parametrize("deleted", ["0.1.0", "0.3.1", "1.0.0"])
def test_c09_a_container_is_deleted_whatever_version_added_it(host: Host, added: str, deleted: str) -> None:
    container = host.container()
    result = host.add(container, cniVersion=added).result()
    assert result["cniVersion"] == added
    host.delete(container, cniVersion=deleted, prevResult=result).silent()
    assert host.left() == {}


# --- K01: DEL -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["calico-ipam", "host-local"])
def either(host: Host, request: pytest.FixtureRequest) -> Host:
    if request.param == "host-local":
        host.use_host_local()
    return host


def test_k01_del_twice(either: Host) -> None:
    container = either.container()
    either.add(container).result()
    either.delete(container).silent()
    either.delete(container).silent()
    assert either.left() == {}


def test_k01_del_of_what_the_datastore_does_not_know(either: Host) -> None:
    """The records are lost, device and reservation are not."""
    container = either.container()
    either.add(container).result()
    for prefix in ("/calico/ipam/", "/calico/resources/v3/projectcalico.org/workloadendpoints/"):
        for key in [key for key in either.store.texts() if key.startswith(prefix)]:
            either.store.drop(key)
    either.delete(container).silent()
    assert either.left() == {}


@pytest.mark.parametrize("path", ["gone", "absent", "a regular file", "a directory", "unset", "empty"])
def test_k01_del_when_the_namespace_is_not_there(either: Host, path: str) -> None:
    container = either.container()
    either.add(container).result()
    container.inside.remove()
    either.await_end_of(container)
    file = either.folder / "regular"
    file.write_text("no namespace")
    netns = {
        "gone": container.netns,
        "absent": "/var/run/netns/absent",
        "a regular file": str(file),
        "a directory": str(either.folder),
        "unset": None,
        "empty": "",
    }[path]
    environment = either.environment("DEL", container, CNI_NETNS=netns)
    for _ in range(2):
        either.raw(environment, json.dumps(either.netconf())).silent()
    assert either.left() == {}


def test_k01_del_when_the_device_is_gone(either: Host) -> None:
    container = either.container()
    either.add(container).result()
    container.inside.ip("link", "del", "eth0")
    either.delete(container).silent()
    assert either.left() == {}


@pytest.mark.parametrize("previous", [None, {}, {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "x"}]}])
def test_k01_del_with_odd_previous_results(either: Host, previous: Any) -> None:
    container = either.container()
    either.add(container, cniVersion="1.0.0").result()
    netconf = either.netconf(cniVersion="1.0.0") | {"prevResult": previous}
    either.raw(either.environment("DEL", container), json.dumps(netconf)).silent()
    assert either.left() == {}


# --- C12: CNI_ARGS --------------------------------------------------------------------------------------------------


@pytest.fixture
def recording_host(host: Host) -> Host:
    """Its IPAM plugin is a script that notes what it was given."""
    script = host.folder / "plugins" / "script-ipam"
    script.parent.mkdir()
    script.write_text(IPAM_SCRIPT.format(log=host.folder / "calls"))
    script.chmod(0o755)
    host.ipam = {"type": "script-ipam"}
    return host


def call_script(host: Host, verb: str, container: Container, args: str | None) -> Any:
    environment = host.environment(verb, container, CNI_ARGS=args, PATH=TOOLS)
    environment["CNI_PATH"] += f":{host.folder}/plugins"
    return host.raw(environment, json.dumps(host.netconf()))


GOOD_ARGS = [
    None,
    "",
    "FOO=bar",
    "IgnoreUnknown=1;FOO=bar",
    "IgnoreUnknown=true;FOO=bar",
    "IgnoreUnknown=1;IgnoreUnknown=1",
    "K8S_POD_UID=",
    "K8S_POD_UID=u1;K8S_POD_INFRA_CONTAINER_ID=c1",
    "K8S_POD_NAMESPACE=ns1",
]


@pytest.mark.parametrize("args", GOOD_ARGS)
def test_c12_arguments_that_are_accepted_reach_the_ipam_plugin(recording_host: Host, args: str | None) -> None:
    host = recording_host
    container = host.container()
    call_script(host, "ADD", container, args).result()
    call_script(host, "DEL", container, args).silent()
    expected = "IgnoreUnknown=1" + (f";{args}" if args else "")
    given = [line.split("|") for line in Path(host.folder / "calls").read_text().splitlines()]
    assert [verb for verb, _ in given] == ["ADD", "DEL"]
    assert {arguments for _, arguments in given} <= {expected, args or ""}
    assert host.left() == {}


@pytest.mark.parametrize("args", ["K8S_POD_NAME=p;", "A=b=c", "FOO", ";", "IP=1.2.3", "IgnoreUnknown=maybe"])
@pytest.mark.parametrize("program", ["calico", "calico-ipam"])
def test_c12_arguments_that_are_no_pairs_are_refused(host: Host, program: str, args: str) -> None:
    host.add(host.container(), program=program, cni_args=args).error(999, "ARGS")
    assert host.left() == {}


def test_c12_calico_ipam_alone_accepts_unknown_arguments_only_when_told(host: Host) -> None:
    container = host.container()
    host.add(container, program="calico-ipam", cni_args="FOO=bar").error(999, 'unknown args ["FOO=bar"]')
    host.add(container, program="calico-ipam", cni_args="FOO=bar;IgnoreUnknown=1").result()
    host.add(container, program="calico-ipam", cni_args="IgnoreUnknown=true;FOO=bar").result()
    host.delete(container, program="calico-ipam").silent()
    assert host.left() == {}
