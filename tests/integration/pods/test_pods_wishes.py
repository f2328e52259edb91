"""Conformance K8S-016 to K8S-030 and K8S-044 to K8S-047: what pods and their namespaces ask for in annotations."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest

from integration.pods.checks import (
    POD_IP,
    POD_IPS,
    address_of,
    addresses_of,
    check_devices,
    check_endpoint,
    check_gone,
    check_nothing_stored,
    check_result,
    check_settings,
    networks_of,
)
from integration.pods.world import PodHost, Sandbox

CNI = "cni.projectcalico.org/"
BOTH = {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}


def asking(**wishes: Any) -> dict[str, str]:
    """Annotations; a text stays as it is."""
    return {CNI + name: wish if isinstance(wish, str) else json.dumps(wish) for name, wish in wishes.items()}


def inside(address: str, pool: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(pool)


def in_namespace(pods: PodHost, *pools: str) -> Sandbox:
    """A pod of a namespace that asks for these pools, in a cluster with two of two blocks each."""
    pods.pools("50.60.0.0/28", "60.70.0.0/28", block_size=29)
    pods.cluster.add_namespace("asking", annotations=asking(ipv4pools=pools))
    return pods.pod(namespace="asking")


# --- pools ----------------------------------------------------------------------------------------------------------


def test_k8s_016_the_namespaces_pool_is_used(pods: PodHost) -> None:
    sandbox = in_namespace(pods, "50.60.0.0/28")
    assert inside(address_of(pods.add(sandbox).result()), "50.60.0.0/28")
    pods.delete(sandbox).silent()
    check_gone(pods, sandbox)


def test_k8s_017_a_pool_that_is_not_there_is_refused(pods: PodHost) -> None:
    sandbox = in_namespace(pods, "100.0.0.0/16")
    pods.add(sandbox).error(999, "100.0.0.0/16")
    check_nothing_stored(pods)
    pods.delete(sandbox).silent()


def test_k8s_018_a_full_pool_is_refused(pods: PodHost) -> None:
    sandbox = in_namespace(pods, "50.60.0.0/28")
    pods.fill("50.60.0.0/29", "50.60.0.8/29")
    pods.add(sandbox).error(999)
    pods.delete(sandbox).silent()
    assert list(pods.store.allocated()) == ["test-handle"]
    pods.store.check()


def test_k8s_019_the_second_pool_is_used_when_the_first_is_full(pods: PodHost) -> None:
    sandbox = in_namespace(pods, "50.60.0.0/28", "60.70.0.0/28")
    pods.fill("50.60.0.0/29", "50.60.0.8/29")
    assert inside(address_of(pods.add(sandbox).result()), "60.70.0.0/28")


def test_k8s_020_the_pods_pool_beats_the_namespaces(pods: PodHost) -> None:
    pods.pools("50.70.0.0/16", "50.55.0.0/16")
    pods.cluster.add_namespace("asking", annotations=asking(ipv4pools=["50.55.0.0/16"]))
    sandbox = pods.pod(namespace="asking", annotations=asking(ipv4pools=["50.70.0.0/16"]))
    assert inside(address_of(pods.add(sandbox).result()), "50.70.0.0/16")


@pytest.mark.parametrize(
    ("wished", "pool"), [("172.16.0.0/16", "172.16.0.0/16"), ("172-17-0-0-16", "172.17.0.0/16")], ids=["021", "022"]
)
def test_k8s_021_022_a_pool_by_its_range_and_by_its_name(pods: PodHost, wished: str, pool: str) -> None:
    """K8S-021, K8S-022."""
    pods.pools("172.16.0.0/16", "172.17.0.0/16")
    sandbox = pods.pod(annotations=asking(ipv4pools=[wished]))
    assert inside(address_of(pods.add(sandbox).result()), pool)
    pods.delete(sandbox).silent()
    check_gone(pods, sandbox)


# --- what the endpoint says besides ---------------------------------------------------------------------------------


def test_k8s_023_source_prefixes_are_the_endpoints(pods: PodHost) -> None:
    pods.pools("172.16.0.0/16")
    sandbox = pods.pod(annotations=asking(allowedSourcePrefixes=["8.8.8.8/32", "1.1.1.0/24"]))
    networks = networks_of(pods.add(sandbox).result())
    check_endpoint(pods, sandbox, networks, allowSpoofedSourcePrefixes=["8.8.8.8/32", "1.1.1.0/24"])


def test_k8s_024_a_floating_address_leads_to_the_pods(pods: PodHost) -> None:
    pods.pools("172.16.0.0/16", "1.1.1.0/24")
    sandbox = pods.pod(annotations=asking(floatingIPs=["1.1.1.1"], ipv4pools=["172.16.0.0/16"]))
    result = pods.add(sandbox, feature_control={"floating_ips": True}).result()
    nat = {"internalIP": address_of(result), "externalIP": "1.1.1.1"}
    check_endpoint(pods, sandbox, networks_of(result), ipNATs=[nat])


def test_k8s_025_floating_addresses_are_refused_where_they_are_off(pods: PodHost) -> None:
    pods.pools("172.16.0.0/16", "1.1.1.0/24")
    sandbox = pods.pod(annotations=asking(floatingIPs=["1.1.1.1"]))
    pods.add(sandbox).error(999, "floating_ips")
    check_nothing_stored(pods)
    pods.delete(sandbox).silent()


# --- addresses by name ----------------------------------------------------------------------------------------------


def test_k8s_026_an_address_past_ipam(pods: PodHost) -> None:
    sandbox = pods.pod(annotations=asking(ipAddrsNoIpam=["10.0.0.1"]))
    assert address_of(pods.add(sandbox, feature_control={"ip_addrs_no_ipam": True}).result()) == "10.0.0.1"
    assert sandbox.inside.addresses("eth0") == ["10.0.0.1/32"]
    check_endpoint(pods, sandbox, ["10.0.0.1/32"])
    check_settings(pods, sandbox)
    assert pods.store.allocated() == {}
    pods.delete(sandbox).silent()
    check_gone(pods, sandbox)


@pytest.mark.parametrize(
    ("addresses", "allowed", "text"),
    [
        (["10.0.0.1"], False, "requested feature is not enabled: ip_addrs_no_ipam"),
        (["10.0.0.1", "10.0.0.2"], True, "cannot have more than one IPv4 address"),
    ],
    ids=["027", "028"],
)
def test_k8s_027_028_refused_addresses_past_ipam(pods: PodHost, addresses: list[str], allowed: bool, text: str) -> None:
    """K8S-027, K8S-028."""
    sandbox = pods.pod(annotations=asking(ipAddrsNoIpam=addresses))
    pods.add(sandbox, feature_control={"ip_addrs_no_ipam": allowed}).error(999, text)
    check_nothing_stored(pods)
    pods.delete(sandbox).silent()


def test_k8s_029_an_address_from_ipam_by_name(pods: PodHost) -> None:
    pods.pools("20.0.0.0/24")
    sandbox = pods.pod(annotations=asking(ipAddrs=["20.0.0.111"]))
    assert networks_of(pods.add(sandbox, ipam=BOTH).result()) == ["20.0.0.111/32"]
    assert sandbox.inside.addresses("eth0") == ["20.0.0.111/32"]
    check_endpoint(pods, sandbox, ["20.0.0.111/32"])
    check_settings(pods, sandbox)
    assert pods.holds(sandbox) == ["20.0.0.111"]
    pods.delete(sandbox, ipam=BOTH).silent()
    check_gone(pods, sandbox)


def test_k8s_030_both_families_with_floating_addresses(pods: PodHost) -> None:
    pods.pools("20.0.0.0/24", "fd80:20::/96")
    sandbox = pods.pod(annotations=asking(floatingIPs=["1.1.1.1", "2001:647f::21"]))
    result = pods.add(sandbox, ipam=BOTH, feature_control={"floating_ips": True}).result()
    v4, v6 = addresses_of(result)
    assert inside(v4, "20.0.0.0/24")
    assert inside(v6, "fd80:20::/96")
    routes = [ipaddress.ip_network(route["dst"]) for route in result["routes"]]
    assert [address in route for address, route in zip(map(ipaddress.ip_address, (v4, v6)), routes)] == [True, True]
    nats = [{"internalIP": v4, "externalIP": "1.1.1.1"}, {"internalIP": v6, "externalIP": "2001:647f::21"}]
    check_endpoint(pods, sandbox, [f"{v4}/32", f"{v6}/128"], ipNATs=nats)
    check_devices(pods, sandbox, [v4, v6])
    if pods.kind != "etcd":
        said = pods.annotations(sandbox)
        assert (said[POD_IP], said[POD_IPS]) == (f"{v4}/32", f"{v4}/32,{v6}/128")
    pods.delete(sandbox, ipam=BOTH).silent()
    check_gone(pods, sandbox)


# --- the MAC --------------------------------------------------------------------------------------------------------


def test_k8s_044_the_mac_is_the_one_asked_for(pods: PodHost) -> None:
    pods.pools("10.0.0.0/24")
    sandbox = pods.pod(annotations=asking(hwAddr="ca:fe:ca:fe:ca:fe"))
    check_result(pods.add(sandbox).result(), sandbox)
    assert sandbox.inside.link("eth0")["address"] == "ca:fe:ca:fe:ca:fe"


def test_k8s_045_what_is_no_mac_is_refused(pods: PodHost) -> None:
    pods.pools("10.0.0.0/24")
    pods.add(pods.pod(annotations=asking(hwAddr="invalid MAC address"))).error(999, "invalid MAC address")
    check_nothing_stored(pods)


# --- the result -----------------------------------------------------------------------------------------------------


def test_k8s_046_the_result_has_two_interfaces_and_a_route(pods: PodHost) -> None:
    pods.pools("50.80.0.0/16")
    sandbox = pods.pod(annotations=asking(ipv4pools=["50.80.0.0/16"]))
    result = pods.add(sandbox).result()
    check_result(result, sandbox)
    (route,) = result["routes"]
    assert inside(address_of(result), route["dst"])


def test_k8s_047_and_with_a_pool_of_each_family_two(pods: PodHost) -> None:
    pods.pools("50.80.0.0/16", "fd80:50::/96")
    sandbox = pods.pod(annotations=asking(ipv4pools=["50.80.0.0/16"], ipv6pools=["fd80:50::/96"]))
    result = pods.add(sandbox, ipam=BOTH).result()
    check_result(result, sandbox)
    v4, v6 = addresses_of(result)
    assert inside(v4, "50.80.0.0/16")
    assert inside(v6, "fd80:50::/96")
    assert len(result["routes"]) == 2
