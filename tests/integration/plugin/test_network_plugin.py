"""Conformance CNI-001 to CNI-036 without those of the gRPC dataplane (016–020): `calico` without Kubernetes, CNI 0.3.1.

The embedded datastore stands where upstream's suite has etcd. What does not depend on where addresses come from is
tried with both `calico-ipam` and `host-local`.
"""

from __future__ import annotations

import json
from subprocess import DEVNULL
from typing import Any

import pytest

from integration.plugin.host import Container, Host
from integration.plugin.store import IPAM, NODE, V3, cluster_records, node_record

CLUSTER = f"{V3}/clusterinformations/default"


@pytest.fixture(params=["calico-ipam", "host-local"])
def either(bare_host: Host, request: pytest.FixtureRequest) -> Host:
    """A host whose addresses come from 10.0.0.0/8, by one plugin or the other."""
    bare_host.store.create(cluster_records("10.0.0.0/24"))
    if request.param == "host-local":
        bare_host.use_host_local("10.0.0.0/8")
    return bare_host


@pytest.fixture
def own(bare_host: Host) -> Host:
    """A host with calico-ipam and the pool 10.0.0.0/24."""
    bare_host.store.create(cluster_records("10.0.0.0/24"))
    return bare_host


def without_cluster_information(host: Host) -> None:
    host.store.drop(CLUSTER)


def not_ready(host: Host) -> None:
    record = json.loads(host.store.texts()[CLUSTER])
    record["spec"]["datastoreReady"] = False
    host.store.put(CLUSTER, record)


def address_of(result: dict[str, Any]) -> str:
    """The only address of a result, which must be a host's."""
    (ip,) = result["ips"]
    address, _, length = ip["address"].partition("/")
    assert length == "32"
    return str(address)


def endpoint_of(host: Host) -> dict[str, Any]:
    (endpoint,) = host.store.endpoints().values()
    return dict(endpoint)


def test_c07_with_both_versions_off_there_is_nothing_to_network(own: Host) -> None:
    off = {"type": "calico-ipam", "assign_ipv4": "false"}
    container = own.container()
    own.add(container, ipam=off).error(999, "both off")
    own.delete(container, ipam=off).silent()
    assert own.left() == {}


# --- the story of one container -------------------------------------------------------------------------------------


def test_cni_001_003_add_answers_one_address_and_stores_profile_and_endpoint(either: Host) -> None:
    """CNI-001, CNI-002, CNI-003."""
    container = either.container(identity="abc123")
    address = address_of(either.add(container).result())
    assert address.startswith("10.")

    profile = either.store.profiles()["net1"]
    assert profile["spec"] == {
        "ingress": [{"action": "Allow", "source": {"selector": "has(net1)"}}],
        "egress": [{"action": "Allow"}],
        "labelsToApply": {"net1": ""},
    }
    assert list(either.store.endpoints()) == ["default/node--a-cni-abc123-eth0"]
    assert endpoint_of(either)["metadata"]["namespace"] == "default"
    assert endpoint_of(either)["spec"] == {
        "orchestrator": "cni",
        "node": NODE,
        "containerID": "abc123",
        "endpoint": "eth0",
        "ipNetworks": [f"{address}/32"],
        "profiles": ["net1"],
        "interfaceName": "caliabc123",
        "mac": container.inside.link("eth0")["address"],
    }


def test_cni_004_006_the_host_end_is_up_with_its_settings_and_route(either: Host) -> None:
    """CNI-004, CNI-006."""
    container = either.container(identity="abcdefghijklmnop")
    address = address_of(either.add(container).result())
    name = "caliabcdefghijk"
    link = either.net.link(name)
    assert "UP" in link["flags"]
    assert (link["mtu"], link["address"], link["linkinfo"]["info_kind"]) == (1500, "ee:ee:ee:ee:ee:ee", "veth")
    expected = {
        f"ipv4/conf/{name}/proxy_arp": "1",
        f"ipv4/neigh/{name}/proxy_delay": "0",
        f"ipv4/conf/{name}/forwarding": "1",
        f"ipv4/conf/{name}/route_localnet": "1",
    }
    assert either.net.sysctls(*expected) == expected
    assert either.net.routes(4, "dev", name) == [
        {"type": "unicast", "dst": address, "protocol": "boot", "scope": "link", "flags": []}
    ]


def test_cni_005_007_the_container_end_has_address_routes_and_no_forwarding(either: Host) -> None:
    """CNI-005, CNI-007."""
    container = either.container()
    address = address_of(either.add(container).result())
    inside = container.inside
    assert "UP" in inside.link("eth0")["flags"]
    assert inside.addresses("eth0") == [f"{address}/32"]
    routes = inside.routes(4)
    assert {(route["dst"], route.get("gateway"), route["scope"], route["protocol"]) for route in routes} == {
        ("default", "169.254.1.1", "global", "boot"),
        ("169.254.1.1", None, "link", "boot"),
    }
    assert {route["dev"] for route in routes} == {"eth0"}
    assert inside.sysctl("ipv4/ip_forward") == "0"


def test_cni_008_del_leaves_nothing(either: Host) -> None:
    container = either.container()
    either.add(container).result()
    either.delete(container).silent()
    assert either.left() == {}
    assert container.inside.names() == {"lo"}


def test_cni_009_a_leftover_device_of_that_name_is_replaced(either: Host) -> None:
    container = either.container()
    either.net.ip("link", "add", container.host_name, "type", "veth", "peer", "name", "tmp0")
    either.add(container).result()
    assert "tmp0" not in either.net.names()
    either.delete(container).silent()
    assert either.left() == {}


@pytest.mark.parametrize("spoil", [not_ready, without_cluster_information])
def test_cni_010_012_add_fails_while_the_datastore_is_not_ready(either: Host, spoil: Any) -> None:
    """CNI-010, CNI-012."""
    spoil(either)
    container = either.container()
    either.add(container).error(999)
    assert either.left() == {}
    assert container.inside.names() == {"lo"}


@pytest.mark.parametrize("spoil", [not_ready, without_cluster_information])
def test_cni_011_013_del_fails_while_the_datastore_is_not_ready_and_works_later(either: Host, spoil: Any) -> None:
    """CNI-011, CNI-013."""
    before = either.store.texts()[CLUSTER]
    container = either.container()
    either.add(container).result()
    spoil(either)
    either.delete(container).error(999)
    either.store.put(CLUSTER, before)
    either.delete(container).silent()
    assert either.left() == {}


def test_cni_014_forwarding_in_the_container_can_be_allowed(either: Host) -> None:
    container = either.container()
    either.add(container, container_settings={"allow_ip_forwarding": True}).result()
    assert container.inside.sysctl("ipv4/ip_forward") == "1"


def test_cni_015_an_unknown_dataplane_is_refused(either: Host) -> None:
    container = either.container()
    either.add(container, dataplane_options={"type": "invalid-dataplane-type"}).error(999, "invalid-dataplane-type")
    assert either.left() == {}


# --- names and labels -----------------------------------------------------------------------------------------------


def test_cni_021_the_old_hostname_setting_names_the_node(either: Host) -> None:
    either.store.put_all(node_record("named-hostname.somewhere"))
    container = either.container(identity="abcd1234")
    either.add(container, nodename=None, hostname="named-hostname.somewhere").result()
    assert list(either.store.endpoints()) == ["default/named--hostname.somewhere-cni-abcd1234-eth0"]
    assert endpoint_of(either)["spec"]["node"] == "named-hostname.somewhere"
    either.delete(container, nodename=None, hostname="named-hostname.somewhere").silent()
    assert either.left() == {}


def test_cni_022_nodename_wins_over_hostname(either: Host) -> None:
    either.store.put_all(node_record("named-nodename"))
    container = either.container(identity="abcd")
    either.add(container, nodename="named-nodename", hostname="named-hostname").result()
    assert endpoint_of(either)["spec"]["node"] == "named-nodename"
    assert list(either.store.endpoints()) == ["default/named--nodename-cni-abcd-eth0"]


def test_cni_023_024_mesos_labels_become_the_endpoints(either: Host) -> None:
    """CNI-023 (the datastore's type only in the environment), CNI-024."""
    container = either.container()
    labels = [{"key": "k", "value": "v"}, {"key": "DCOS_SPACE", "value": "/a/b/c"}]
    netconf = either.netconf(
        datastore_type=None, args={"org.apache.mesos": {"network_info": {"labels": {"labels": labels}}}}
    )
    environment = either.environment("ADD", container, DATASTORE_TYPE=either.store.settings["datastore_type"])
    either.raw(environment, json.dumps(netconf)).result()
    stored = endpoint_of(either)["metadata"]["labels"]
    assert stored == {
        "k": "v",
        "DCOS_SPACE": "a.b.c",
        "projectcalico.org/namespace": "default",
        "projectcalico.org/orchestrator": "cni",
    }
    either.raw(environment | {"CNI_COMMAND": "DEL"}, json.dumps(netconf)).silent()
    assert either.left() == {}


def test_cni_025_addresses_past_ipam_are_for_kubernetes_only(either: Host) -> None:
    either.add(either.container(), feature_control={"ip_addrs_no_ipam": True}).error(999, "ip_addrs_no_ipam")
    assert either.left() == {}


def test_cni_026_del_of_a_container_that_was_never_added(either: Host) -> None:
    container = either.container()
    either.delete(container).silent()
    either.delete(container).silent()


def test_cni_027_del_with_a_namespace_path_that_does_not_exist(either: Host) -> None:
    either.delete(Container("c27", "/not/a/real/path1234567890")).silent()


# --- repeated ADD ---------------------------------------------------------------------------------------------------


def test_cni_028_the_handle_holds_exactly_the_address(own: Host) -> None:
    container = own.container(identity="badbeef")
    result = own.add(container).result()
    address = address_of(result)
    (route,) = result["routes"]
    assert route["dst"].partition("/")[0] == address
    assert endpoint_of(own)["spec"]["ipNetworks"] == [f"{address}/32"]
    assert {"workload", "pod"}.isdisjoint(endpoint_of(own)["spec"])
    assert list(own.store.handles()) == ["net1.badbeef"]
    ((cidr, ordinal),) = own.store.allocated()["net1.badbeef"]
    network, _, last = cidr.partition("/")[0].rpartition(".")
    assert f"{network}.{int(last) + ordinal}" == address


def test_cni_029_a_second_add_answers_the_same_without_routes(own: Host) -> None:
    container = own.container(identity="badbeef")
    first = own.add(container).result()
    records = own.store.texts()
    second = own.add(container).result()
    assert second == {key: value for key, value in first.items() if key != "routes"}
    assert own.store.texts() == records
    own.delete(container).silent()
    assert own.left() == {}


def test_cni_030_a_second_network_adds_its_profile(own: Host) -> None:
    container = own.container(identity="badbeef")
    first = own.add(container).result()
    second = own.add(container, name="net2").result()
    assert second == {key: value for key, value in first.items() if key != "routes"}
    assert endpoint_of(own)["spec"]["profiles"] == ["net1", "net2"]
    assert set(own.store.profiles()) == {"net1", "net2"}
    assert list(own.store.allocated()) == ["net1.badbeef"]
    own.delete(container).silent()
    assert own.left() == {}


def test_cni_031_032_a_renamed_host_end_does_not_matter(own: Host) -> None:
    """CNI-031, CNI-032."""
    container = own.container(identity="badbeef")
    own.add(container).result()
    own.net.ip("link", "set", container.host_name, "down")
    own.net.ip("link", "set", container.host_name, "name", "salibadbeef")
    own.net.ip("link", "set", "salibadbeef", "up")
    reserved = own.store.allocated()
    own.add(container).result()
    assert own.store.allocated() == reserved
    own.delete(container).silent()
    assert own.left() == {}


def test_cni_033_a_route_that_is_there_already_is_tolerated(own: Host) -> None:
    """Another agent of the host may add the route in the moment between the device and our own route."""
    container = own.container(identity="meep1337")
    address = address_of(own.add(container).result())
    own.delete(container).silent()
    commands = own.folder / "rival"
    commands.write_text(f"route add {address}/32 dev {container.host_name} scope link proto static\n" * 300_000)
    rival_was_first = False
    for _ in range(100):
        words = ("-force", "-batch", str(commands))
        rival = own.start({}, *words, program=own.tool("ip"), stdin=None, stdout=DEVNULL, stderr=DEVNULL)
        own.add(container, cni_args=f"IP={address}").result()
        (route,) = own.net.routes(4, "dev", container.host_name)
        rival.kill()
        rival_was_first = rival_was_first or route["protocol"] == "static"
        own.delete(container).silent()
        if rival_was_first:
            break
    assert rival_was_first, "the rival never was the first, so nothing was tested"
    assert own.left() == {}


# --- the connection test --------------------------------------------------------------------------------------------


def test_cni_034_the_connection_test_is_silent_when_all_is_well(own: Host) -> None:
    own.connection_test(json.dumps(own.netconf())).silent()


@pytest.mark.parametrize("verb", [{"CNI_COMMAND": "VERSION"}, {}])
def test_cni_035_the_connection_test_fails_without_a_datastore(bare_host: Host, verb: dict[str, str]) -> None:
    answer = bare_host.raw(verb, json.dumps(bare_host.netconf(**bare_host.store.nowhere())), "-t")
    assert answer.error(100, "data store connection failed")["details"]


# --- the result -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0", "1.0.0"])
def test_cni_036_the_result_names_both_ends_and_whose_the_address_is(either: Host, version: str) -> None:
    container = either.container()
    result = either.add(container, cniVersion=version).result()
    host_end, container_end = result["interfaces"]
    assert host_end == {"name": container.host_name}
    assert container_end == {
        "name": "eth0",
        "mac": container.inside.link("eth0")["address"],
        "sandbox": container.netns,
    }
    assert [ip["interface"] for ip in result["ips"]] == [1]
    (address,) = container.inside.addresses("eth0")
    assert address.startswith("10.")
    assert result["ips"][0]["address"] == address
    assert f"{IPAM}/config" not in either.store.texts()
