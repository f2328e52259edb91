"""Conformance K8S-001 to K8S-015: pods whose addresses come from host-local, among them from the node's pod CIDRs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from integration.plugin.store import NODE, cluster_records
from integration.pods.checks import (
    NAMED_PORT,
    address_of,
    check_devices,
    check_endpoint,
    check_gone,
    check_settings,
    networks_of,
)
from integration.pods.world import PodHost, Sandbox
from patience import until

GATEWAY = "fe80::ecee:eeff:feee:eeee"


@pytest.fixture
def local(pods: PodHost) -> PodHost:
    pods.use_host_local("10.0.0.0/8")
    return pods


def test_k8s_001_002_a_pod_is_networked_and_gone_again(local: PodHost) -> None:
    """K8S-001, K8S-002."""
    sandbox = local.pod()
    result = local.add(sandbox).result()
    check_endpoint(local, sandbox, networks_of(result))
    check_settings(local, sandbox)
    check_devices(local, sandbox, [address_of(result)])
    local.delete(sandbox).silent()
    check_gone(local, sandbox)
    assert endpoint_count(local) == 0


def endpoint_count(pods: PodHost) -> int:
    """How many records of endpoints DELs have left; pods do not count."""
    return len(pods.stored()) if pods.kind == "etcd" else 0


def test_k8s_003_a_named_port_is_part_of_the_endpoint(local: PodHost) -> None:
    sandbox = local.pod(ports=[{"name": "anamedport", "containerPort": 555}])
    result = local.add(sandbox).result()
    check_endpoint(local, sandbox, networks_of(result), ports=[NAMED_PORT])
    check_settings(local, sandbox)
    local.delete(sandbox).silent()
    check_gone(local, sandbox)


def test_k8s_004_a_leftover_device_of_that_name_is_replaced(local: PodHost) -> None:
    sandbox = local.pod()
    local.net.ip("link", "add", sandbox.host_name, "type", "veth", "peer", "name", "tmp0")
    local.add(sandbox).result()
    assert "tmp0" not in local.net.names()
    local.delete(sandbox).silent()
    check_gone(local, sandbox)


def test_k8s_005_the_mtu_comes_from_the_nodes_file(local: PodHost) -> None:
    sandbox = local.pod()
    own_folder = "mkdir -p /var/lib/calico; mount -t tmpfs none /var/lib/calico; echo 3000 > /var/lib/calico/mtu"
    local.add(sandbox, through=f'{own_folder}; exec "$@"').result()
    assert sandbox.inside.link("eth0")["mtu"] == 3000


def test_k8s_006_the_mtu_comes_from_the_configuration(local: PodHost) -> None:
    for mtu in (3000, 4000):
        sandbox = local.pod()
        local.add(sandbox, mtu=mtu).result()
        assert sandbox.inside.link("eth0")["mtu"] == mtu
        assert local.net.link(sandbox.host_name)["mtu"] == mtu


# --- pod CIDRs of the node ------------------------------------------------------------------------------------------

ONE, TWO = ["10.0.0.0/24"], ["10.10.0.0/24", "dead:beef::/96"]
POD_CIDR = {"subnet": "usePodCidr"}
WITH_V6 = {"ranges": [[POD_CIDR], [{"subnet": "dead:beef::/96"}]]}
BOTH_OF_NODE = {"ranges": [[POD_CIDR], [{"subnet": "usePodCidrIPv6"}]]}
THREE = {
    "ranges": [[POD_CIDR], [{"subnet": "10.100.0.0/24"}], [{"subnet": "dead:beef::/96"}]],
    "routes": [{"dst": "10.123.0.0/16", "gw": "10.123.0.1"}, {"dst": "10.124.0.0/16"}, {"dst": "dead:beef::/96"}],
}
LINK = r"169\.254\.1\.1 dev eth0 scope link"
DEFAULT = r"default via 169\.254\.1\.1 dev eth0"
OWN_V6 = r"dead:beef::[0-9a-f]+ dev eth0 proto kernel metric 256 pref medium"
LINK_LOCAL = r"fe80::/64 dev eth0 proto kernel metric 256 pref medium"
R4 = {DEFAULT, LINK}
DEFAULT_V6 = rf"default via {GATEWAY} dev eth0 metric 1024 pref medium"
R6 = {OWN_V6, LINK_LOCAL, DEFAULT_V6}
R4_MORE = {r"10\.123\.0\.0/16 via 169\.254\.1\.1 dev eth0", r"10\.124\.0\.0/16 via 169\.254\.1\.1 dev eth0", LINK}
R6_MORE = {OWN_V6, rf"dead:beef::/96 via {GATEWAY} dev eth0 metric 1024 pref medium", LINK_LOCAL}

CASES: list[tuple[str, list[str], dict[str, Any], dict[str, Any], set[str], set[str], tuple[int, int]]] = [
    ("K8S-007", ONE, POD_CIDR, {}, R4, set(), (1, 0)),
    ("K8S-008", ONE, WITH_V6, {"cniVersion": "0.3.1"}, R4, R6, (1, 1)),
    ("K8S-009", ONE, THREE, {"cniVersion": "0.3.1"}, R4_MORE, R6_MORE, (2, 1)),
    ("K8S-010", ONE, THREE, {"include_default_routes": True}, R4_MORE | {DEFAULT}, R6_MORE | {DEFAULT_V6}, (2, 1)),
    ("K8S-011", TWO, POD_CIDR, {}, R4, set(), (1, 0)),
    ("K8S-012", TWO, WITH_V6, {"cniVersion": "0.3.1"}, R4, R6, (1, 1)),
    ("K8S-013", TWO, BOTH_OF_NODE, {}, R4, R6, (1, 1)),
    ("K8S-014", TWO, THREE, {"cniVersion": "0.3.1"}, R4_MORE, R6_MORE, (2, 1)),
    ("K8S-015", TWO, THREE, {"include_default_routes": True}, R4_MORE | {DEFAULT}, R6_MORE | {DEFAULT_V6}, (2, 1)),
]


def await_usable(sandbox: Sandbox) -> None:
    """The kernel takes an address for tentative until it gets to see that detection is off, after the call maybe."""
    until(lambda: "scope global tentative" not in sandbox.inside.run("ip", "addr").stdout, sandbox.identity)


@pytest.mark.parametrize(
    ("ranges", "ipam", "more", "v4", "v6", "counts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_k8s_007_015_addresses_and_routes_from_pod_cidrs(
    bare_pods: PodHost,
    ranges: list[str],
    ipam: dict[str, Any],
    more: dict[str, Any],
    v4: set[str],
    v6: set[str],
    counts: tuple[int, int],
) -> None:
    """K8S-007 to K8S-015."""
    pods = bare_pods
    pods.store.put_all(cluster_records())
    pods.cluster.add_namespace("test")
    pods.give_pod_cidrs(NODE, ranges)
    pods.ipam = {"type": "host-local", "dataDir": str(pods.folder / "networks"), **ipam}
    wanted = ranges[0].replace("0/24", "42")
    for _ in range(2):  # a second pod gets the address that the first has given back
        sandbox = pods.pod()
        sandbox.args += f";IP={wanted}"
        result = pods.add(sandbox, name="net6", **more).result()
        addresses = sandbox.inside.addresses("eth0")
        assert sorted(networks_of(result)) == sorted(addresses)
        assert f"{wanted}/32" in addresses
        assert (len([one for one in addresses if "." in one]), len([one for one in addresses if ":" in one])) == counts
        check_lines(sandbox.inside.run("ip", "route").stdout, v4)
        # The link-local route comes when the kernel has noticed the carrier, after the call maybe.
        until(lambda: "fe80::/64" in sandbox.inside.run("ip", "-6", "route").stdout, "the link-local route")  # noqa: B023 - at once
        check_lines(sandbox.inside.run("ip", "-6", "route").stdout, v6 or {LINK_LOCAL})
        if v6:
            assert sandbox.inside.sysctl("ipv6/conf/eth0/accept_dad") == "0"
            await_usable(sandbox)
        pods.delete(sandbox, name="net6", **more).silent()
        check_gone(pods, sandbox)


def check_lines(text: str, patterns: set[str]) -> None:
    """Each line is one of these, and each of these is there."""
    lines = [line.strip() for line in text.splitlines()]
    assert {pattern for pattern in patterns if any(re.fullmatch(pattern, line) for line in lines)} == patterns, lines
    assert [line for line in lines if not any(re.fullmatch(pattern, line) for pattern in patterns)] == []
