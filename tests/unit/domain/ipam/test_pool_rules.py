"""Which IPPools may be stored, and what the refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.pool_rules import (
    BadPool,
    block_sizes_by_version,
    check_block_sizes_used,
    check_pool,
    check_pool_among,
    check_pool_change,
    complete_pool,
    derived_name,
)
from domain.ipam.pools import Pool
from domain.resource import Metadata


def pool(cidr, name="p", **more):
    return Pool(Metadata(name), cidr, **more)


@pytest.mark.parametrize(
    "good",
    [
        pool("10.244.0.0/16"),
        pool("fd00:10:244::/48"),
        pool("10.0.0.0/26"),
        pool("10.0.0.0/32", block_size=32),
        pool("10.0.0.0/28", disabled=True),
        pool("10.0.0.0/16", block_size=20, ipip_mode="Always", vxlan_mode="Never", node_selector="zone == 'a'"),
        pool("fd00::/64", block_size=116, vxlan_mode="CrossSubnet", allowed_uses=("Tunnel",), assignment_mode="Manual"),
    ],
)
def test_sound_pools_pass(good):
    check_pool(good)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (pool("10.244.0.0"), "'10.244.0.0' is not a CIDR; write it like"),
        (pool("10.244.1.0/16"), "10.244.1.0/16 has bits set beyond its prefix; write 10.244.0.0/16"),
        (pool("169.254.0.0/24"), "169.254.0.0/24 lies in the link-local range 169.254.0.0/16, which is never routed"),
        (pool("fe80::/64"), "lies in the link-local range fe80::/10"),
        (pool("224.0.0.0/4"), "224.0.0.0/4 lies in the multicast range 224.0.0.0/4"),
        (pool("239.1.0.0/16"), "lies in the multicast range 224.0.0.0/4"),
        (pool("ff05::/64"), "lies in the multicast range ff00::/8"),
        (pool("127.0.0.0/8"), "lies in the loopback range 127.0.0.0/8, which is each host's own; choose another"),
        (pool("127.1.0.0/16", disabled=True), "lies in the loopback range 127.0.0.0/8"),
        (pool("::1/128"), "lies in the loopback range ::1/128"),
        (pool("::/64"), "::/64 contains the loopback range ::1/128"),
        (pool("0.0.0.0/0"), "0.0.0.0/0 contains the link-local range"),
        (pool("10.0.0.0/8", block_size=19), "block size 19 is not possible for IPv4; choose a prefix length from 20"),
        (pool("10.0.0.0/8", block_size=116), "block size 116 is not possible for IPv4"),
        (pool("fd00::/48", block_size=26), "block size 26 is not possible for IPv6"),
        (pool("10.0.0.0/27"), "10.0.0.0/27 is smaller than one block of /26"),
        (pool("10.0.0.0/16", ipip_mode="always"), "ipipMode is 'always'; choose one of Never, Always, CrossSubnet"),
        (pool("10.0.0.0/16", allowed_uses=("Pods",)), "allowedUses is 'Pods'"),
        (pool("10.0.0.0/16", assignment_mode="x"), "assignmentMode is 'x'"),
        (pool("fd00::/48", ipip_mode="Always"), "ipipMode Always is not possible for IPv6"),
        (pool("10.0.0.0/16", ipip_mode="Always", vxlan_mode="Always"), "exclude each other"),
        (pool("10.0.0.0/16", node_selector="=="), "selector '==' cannot be used"),
        (pool("10.0.0.0/16", namespace_selector="a b"), "selector 'a b' cannot be used"),
    ],
)
def test_bad_pools_are_refused_with_what_to_change(bad, why):
    with pytest.raises(BadPool) as caught:
        check_pool(bad)
    assert str(caught.value).startswith("IPPool p: ")
    assert why in str(caught.value)


def test_a_pool_is_stored_with_a_canonical_range_and_its_defaults():
    stored = complete_pool(pool("FD00:0:0::7/64", vxlan_mode="Always", node_selector="has(a)"))
    assert (stored.cidr_text, stored.block_size, stored.vxlan_mode) == ("fd00::/64", 122, "Always")
    assert (stored.node_selector, stored.allowed_uses) == ("has(a)", ("Workload", "Tunnel"))
    assert (stored.assignment_mode, stored.ipip_mode) == ("Automatic", "Never")
    check_pool(stored)
    assert complete_pool(stored) == stored
    with pytest.raises(BadPool, match="'no range' is not a CIDR") as caught:
        complete_pool(pool("no range"))
    assert not caught.value.fault.startswith("IPPool")


def test_pools_share_no_address():
    others = [pool("10.1.0.0/16", "a"), pool("not a range", "b"), pool("fd00::/48", "c")]
    check_pool_among(pool("10.2.0.0/16"), others)
    with pytest.raises(BadPool, match=r"^IPPool p: 10\.0\.0\.0/8 overlaps 10\.1\.0\.0/16 of IPPool a; choose"):
        check_pool_among(pool("10.0.0.0/8"), others)


def test_what_blocks_depend_on_never_changes():
    stored = pool("10.1.0.0/16")
    check_pool_change(stored, pool("10.1.0.0/16", block_size=26, disabled=True))
    with pytest.raises(BadPool, match=r"its range is 10\.1\.0\.0/16 and cannot become 10\.2\.0\.0/16"):
        check_pool_change(stored, pool("10.2.0.0/16"))
    with pytest.raises(BadPool, match="its block size is 26 and cannot become 27"):
        check_pool_change(stored, pool("10.1.0.0/16", block_size=27))


def test_a_block_size_says_which_ip_version_it_is_for():
    assert block_sizes_by_version([26, 122, 26]) == {4: 26, 6: 122}
    with pytest.raises(BadPool, match="block size 64 is not possible; choose 20 to 32 for IPv4 or 116 to 128 for IPv6"):
        block_sizes_by_version([64])
    with pytest.raises(BadPool, match="given twice for IPv4: 26 and 27"):
        block_sizes_by_version([26, 27])


def test_a_block_size_without_a_pool_to_use_it_is_refused():
    check_block_sizes_used({4: 26, 6: 122}, ["10.0.0.0/16", "fd00::/48"])
    check_block_sizes_used({}, ["10.0.0.0/16"])
    check_block_sizes_used({4: 26}, ["fd01::/48", "no range"])
    with pytest.raises(BadPool, match="block size 26 is for IPv4, and there is no pool of that version; leave it out"):
        check_block_sizes_used({6: 122, 4: 26}, ["fd01::/48"])


@given(st.integers(0, (1 << 128) - 1), st.integers(0, 128))
def test_derived_names_differ_as_ranges_do(number, length):
    cidr = Cidr(6, number, length).network
    name = derived_name(cidr)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert Cidr.parse(name.removeprefix("ippool-").replace("-", ":")[::-1].replace(":", "/", 1)[::-1]) == cidr
