"""What users reported about addresses, tried on the installed calico-ipam: R05, C02, C03, C04, C07."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.plugin.host import Answer, Container, Host
from integration.plugin.store import IPAM, cluster_records, node_record

POOL = "10.20.0.0/30"


def ask(host: Host, identity: str, **more: Any) -> Answer:
    return host.add(Container(identity, "/var/run/netns/none"), program="calico-ipam", **more)


def address(answer: Answer) -> str:
    (ip,) = answer.result()["ips"]
    return str(ip["address"])


def one_block(host: Host, **settings: Any) -> None:
    """A pool of one block of four addresses, a second node, and the settings of allocation."""
    host.store.create(cluster_records(POOL, block_sizes={POOL: 30}))
    host.store.put_all({key: json.dumps(record) for key, record in node_record("node-b").items()})
    host.store.put(f"{IPAM}/config", {"auto_allocate_blocks": True, **settings})


def test_r05_an_address_of_the_nodes_own_device_is_left_alone(bare_host: Host) -> None:
    one_block(bare_host)
    bare_host.net.ip("address", "add", "10.20.0.0/32", "dev", "lo")
    assert [address(ask(bare_host, f"c{number}")) for number in range(3)] == [f"10.20.0.{n}/30" for n in (1, 2, 3)]
    ask(bare_host, "c9").error(999, "Assigned 0 out of 1")


@pytest.mark.parametrize(
    ("pools", "text"),
    [
        (["nope"], 'error parsing pool "nope": invalid CIDR address: nope'),
        (["fd20::/112"], '"fd20::" isn\'t a IPv4 address'),
        (["10.99.0.0/24"], "the given pool (10.99.0.0/24) does not exist, or is not enabled"),
    ],
)
def test_c02_a_pool_that_cannot_be_meant_is_named_and_nothing_is_allocated(
    bare_host: Host, pools: list[str], text: str
) -> None:
    """As recorded: code and text are the original's."""
    one_block(bare_host)
    assert ask(bare_host, "c1", ipam={"type": "calico-ipam", "ipv4_pools": pools}).error(999)["msg"] == text
    assert bare_host.left() == {}


def test_c03_without_strict_affinity_an_address_is_borrowed_and_says_for_which_node(bare_host: Host) -> None:
    one_block(bare_host)
    ask(bare_host, "b1", nodename="node-b").result()
    address(ask(bare_host, "a1"))
    (block,) = bare_host.store.blocks().values()
    assert block["affinity"] == "host:node-b"
    assert [attribute["secondary"]["node"] for attribute in block["attributes"]] == ["node-b", "node-a"]


def test_c03_with_strict_affinity_the_log_says_what_it_withholds(bare_host: Host) -> None:
    """The answer is recorded, so the setting and the number of free addresses stand in the log."""
    one_block(bare_host, strict_affinity=True)
    ask(bare_host, "b1", nodename="node-b").result()
    refused = ask(bare_host, "a1")
    refused.error(999, "No more free affine blocks and strict affinity enabled")
    assert "strictAffinity" in refused.stderr
    assert "free_in_foreign_blocks=3" in refused.stderr


def test_c04_the_block_limit_names_itself_and_an_empty_own_block_is_used_first(bare_host: Host) -> None:
    pool = "10.22.0.0/24"
    bare_host.store.create(cluster_records(pool, block_sizes={pool: 32}))
    bare_host.store.put(
        f"{IPAM}/config", {"strict_affinity": True, "auto_allocate_blocks": True, "maxBlocksPerHost": 2}
    )
    first = address(ask(bare_host, "c1"))
    ask(bare_host, "c2").result()
    refused = ask(bare_host, "c3").error(999, "per host block limit")
    assert refused["details"] == "the node owns 2 blocks and may own 2 (maxBlocksPerHost in the IPAM configuration)"
    bare_host.delete(Container("c1", "/var/run/netns/none"), program="calico-ipam").silent()
    assert address(ask(bare_host, "c3")) == first


@pytest.mark.parametrize(
    ("value", "given"), [("true", True), ("false", False), (True, True), (False, False), ("", True), ("FALSE", True)]
)
def test_c07_the_flag_decides_as_text_or_as_boolean(bare_host: Host, value: object, given: bool) -> None:
    bare_host.store.create(cluster_records(POOL, "fd20::/112", block_sizes={POOL: 30}))
    ipam = {"type": "calico-ipam", "assign_ipv4": value, "assign_ipv6": "true"}
    ips = [ip["address"] for ip in ask(bare_host, "c1", ipam=ipam).result()["ips"]]
    assert [ip for ip in ips if "." in ip] == (["10.20.0.0/30"] if given else [])


@pytest.mark.parametrize("flag", ["assign_ipv4", "assign_ipv6"])
def test_c07_what_the_flags_do_not_say_is_told(bare_host: Host, flag: str) -> None:
    one_block(bare_host)
    answer = ask(bare_host, "c1", ipam={"type": "calico-ipam", flag: "TRUE"})
    assert len(answer.result()["ips"]) == 1
    assert f'ipam.{flag} "TRUE" counts as' in answer.stderr
    assert 'write "true" or "false"' in answer.stderr


def test_c07_both_off_is_an_empty_result_of_ipam(bare_host: Host) -> None:
    one_block(bare_host)
    off = {"type": "calico-ipam", "assign_ipv4": "false"}
    assert json.loads(ask(bare_host, "c1", ipam=off, cniVersion="1.0.0").stdout) == {"cniVersion": "1.0.0"}
    assert bare_host.left() == {}
