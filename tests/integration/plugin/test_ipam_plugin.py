"""Conformance IPAM-001 to IPAM-018: `calico-ipam` called directly, with nothing in its environment but CNI variables.

As in upstream's suite CNI_NETNS, CNI_IFNAME and CNI_PATH are words that name nothing: IPAM needs none of them.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest

from integration.plugin.host import Answer, Host
from integration.plugin.store import IPAM, V3, cluster_records, pool_record

V4_POOL, V6_POOL = "192.168.0.0/16", "fd80:24e2:f998:72d6::/64"
CONTAINER = "2ad1c4d6-9f6f-4a53-8a3e-0f9f6d6f2c11"


class Ipam:
    """`calico-ipam` for one container."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.store = host.store

    def call(self, verb: str, args: str = "", container: str = CONTAINER, **ipam: Any) -> Answer:
        environment = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": "b",
            "CNI_IFNAME": "c",
            "CNI_PATH": "d",
            "CNI_ARGS": args,
        }
        group = {"calico_api_group": "crd.projectcalico.org/v1"} | self.store.settings
        netconf = self.host.netconf(ipam={"type": "calico-ipam", **ipam}, calico_api_group=group["calico_api_group"])
        return self.host.raw(environment, json.dumps(netconf), program="calico-ipam")

    def add(self, args: str = "", container: str = CONTAINER, **ipam: Any) -> list[str]:
        """The addresses of an ADD that works; the routes must lead to them."""
        result = self.call("ADD", args, container, **ipam).result()
        addresses = [ip["address"] for ip in result["ips"]]
        assert [route["dst"] for route in result["routes"]] == addresses
        return addresses

    def delete(self, container: str = CONTAINER) -> None:
        self.call("DEL", container=container).silent()
        assert not [handle for handle in self.store.handles() if container in handle]
        self.store.check()


@pytest.fixture
def ipam(bare_host: Host) -> Ipam:
    bare_host.store.create(cluster_records(V4_POOL, V6_POOL))
    return Ipam(bare_host)


def inside(address: str, pool: str, length: int) -> bool:
    interface = ipaddress.ip_interface(address)
    return interface.network.prefixlen == length and interface.ip in ipaddress.ip_network(pool)


@pytest.mark.parametrize("options", [{}, {"assign_ipv4": "true"}, {"assign_ipv4": True}])
def test_ipam_001_002_one_ipv4_address_with_its_blocks_mask(ipam: Ipam, options: dict[str, Any]) -> None:
    """IPAM-001, IPAM-002."""
    (address,) = ipam.add(**options)
    assert inside(address, V4_POOL, 26)
    ipam.delete()


def test_ipam_003_ipv6_alone(ipam: Ipam) -> None:
    (address,) = ipam.add(assign_ipv4="false", assign_ipv6="true")
    assert inside(address, V6_POOL, 122)
    ipam.delete()


def test_ipam_004_both_families(ipam: Ipam) -> None:
    v4, v6 = ipam.add(assign_ipv4="true", assign_ipv6="true")
    assert inside(v4, V4_POOL, 26)
    assert inside(v6, V6_POOL, 122)
    ipam.delete()


@pytest.mark.parametrize("only_pool", [V4_POOL, V6_POOL])
def test_ipam_005_006_no_address_when_one_of_two_families_has_no_pool(bare_host: Host, only_pool: str) -> None:
    """IPAM-005, IPAM-006."""
    bare_host.store.create(cluster_records(only_pool))
    ipam = Ipam(bare_host)
    ipam.call("ADD", assign_ipv4="true", assign_ipv6="true").error(999)
    assert ipam.store.allocated() == {}
    assert ipam.store.handles() == {}
    ipam.delete()


def test_ipam_007_from_a_pool_asked_for(ipam: Ipam) -> None:
    (address,) = ipam.add(ipv4_pools=[V4_POOL])
    assert address.startswith("192.168.")
    ipam.delete()


def test_ipam_008_from_one_of_two_pools_asked_for(ipam: Ipam) -> None:
    ipam.store.put_all(pool_record("192.169.1.0/24", blockSize=26))
    (address,) = ipam.add(ipv4_pools=["192.169.1.0/24", V4_POOL])
    assert address.startswith(("192.169.1.", "192.168."))
    ipam.delete()


def test_ipam_009_a_disabled_pool_gives_no_more_addresses(ipam: Ipam) -> None:
    (first,) = ipam.add()
    assert first.startswith("192.168.")
    key = f"{V3}/ippools/192-168-0-0-16"
    pool = json.loads(ipam.store.texts()[key])
    pool["spec"]["disabled"] = True
    ipam.store.put(key, pool)
    ipam.store.put_all(pool_record("192.169.1.0/24", blockSize=26))
    (second,) = ipam.add(container="another")
    assert second.startswith("192.169.1.")
    ipam.delete()
    ipam.delete("another")


@pytest.mark.parametrize("pools", [[V4_POOL, "192.169.1.0/24"], ["192.169.1.0/24", V4_POOL]])
def test_ipam_010_011_a_pool_that_does_not_exist_is_named(ipam: Ipam, pools: list[str]) -> None:
    """IPAM-010, IPAM-011."""
    ipam.call("ADD", ipv4_pools=pools).error(999, "192.169.1.0/24) does not exist")
    assert ipam.store.allocated() == {}


def test_ipam_012_013_an_address_asked_for_is_given_and_given_again(ipam: Ipam) -> None:
    """IPAM-012, IPAM-013."""
    for _ in range(2):
        assert ipam.add("IP=192.168.123.123") == ["192.168.123.123/32"]
        ipam.delete()


def test_ipam_014_an_address_that_is_taken_is_refused(ipam: Ipam) -> None:
    ipam.add("IP=192.168.123.123")
    before = ipam.store.texts()
    ipam.call("ADD", "IP=192.168.123.123").error(999)
    assert ipam.store.allocated() == {f"net1.{CONTAINER}": [("192.168.123.64/26", 59)]}
    assert set(ipam.store.texts()) == set(before)
    ipam.delete()


def test_ipam_015_a_pool_for_tunnels_gives_no_workload_address(ipam: Ipam) -> None:
    ipam.store.put_all(pool_record("10.123.0.0/24", blockSize=26, allowedUses=["Tunnel"]))
    ipam.call("ADD", "IP=10.123.0.5").error(999)
    assert ipam.store.allocated() == {}


def test_ipam_016_del_of_a_container_without_an_address(ipam: Ipam) -> None:
    ipam.delete()


def test_ipam_017_del_frees_what_an_old_version_has_given_out(ipam: Ipam) -> None:
    """The handle of version 2 is the container id alone."""
    ipam.add("IP=192.168.123.123")
    handle = f"{IPAM}/handle/net1.{CONTAINER}"
    for key, text in ipam.store.texts().items():
        if "/block/" in key and "assignment" in key:
            ipam.store.put(key, text.replace(f'"net1.{CONTAINER}"', f'"{CONTAINER}"'))
    ipam.store.put(f"{IPAM}/handle/{CONTAINER}", ipam.store.texts()[handle])
    ipam.store.drop(handle)
    assert ipam.store.allocated() == {CONTAINER: [("192.168.123.64/26", 59)]}
    ipam.delete()
    assert ipam.store.allocated() == {}


def test_ipam_018_del_frees_by_todays_handle(ipam: Ipam) -> None:
    ipam.add("IP=192.168.123.123")
    assert list(ipam.store.handles()) == [f"net1.{CONTAINER}"]
    ipam.delete()
    assert ipam.store.allocated() == {}


def test_each_container_has_an_address_of_its_own(ipam: Ipam) -> None:
    """Five containers, and one of them goes: the others keep what they have."""
    given = {f"c{number}": ipam.add(container=f"c{number}") for number in range(5)}
    assert len({address for addresses in given.values() for address in addresses}) == 5
    ipam.delete("c2")
    assert sorted(ipam.store.allocated()) == ["net1.c0", "net1.c1", "net1.c3", "net1.c4"]
    ipam.store.check()
