"""Addresses and prefixes as numbers, held against the standard library's `ipaddress` (spec: ipam 19.3, 19.8)."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.ipam.address import V4, V6, Address, Cidr, covers
from strategies import addresses, cidrs

MAPPED = 0xFFFF << 32


def oracle_address(text: str) -> Address | None:
    """Without zones, which Go's `net.ParseIP` refuses; IPv4-mapped addresses are IPv4."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:
        return None
    if found.version == 6 and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return Address(found.version, int(found))


def parsed(text: str) -> Address | None:
    try:
        return Address.parse(text)
    except ValueError:
        return None


# Texts that are nearly addresses: every mistake is a few characters away.
nearly = st.one_of(
    st.text("0123456789abcdefF:.%/ ", max_size=24),
    st.lists(st.sampled_from(["0", "1", "00", "ffff", "12345", "", "1.2.3.4", "255", "256", "g"]), max_size=10).map(
        ":".join
    ),
    st.lists(st.sampled_from(["0", "1", "01", "255", "256", "", "-1", "+1", "٣", "1e1"]), max_size=6).map(".".join),
)


@given(nearly)
@example("1:2:3:4:5:6:7::")
@example("1::2::3")
@example(":::")
@example("1.2.3.4::1")
@example("::1.2.3.4")
@example("::ffff:1.2.3.4")
@example("1:2:3:4:5:6:1.2.3.4")
@example("1:2:3:4:5:6:7:1.2.3.4")
@example("::1.2.3.400")
@example("fe80::1%eth0")
@example("1:2:3:4::5:6:7:8")
@example("::1:1.2.3.4:1")
@settings(max_examples=200, deadline=None)
def test_a_text_is_an_address_exactly_when_the_standard_library_says_so(text):
    assert parsed(text) == oracle_address(text)


@given(addresses())
@example(Address(V6, 0))
@example(Address(V6, 1))
@example(Address(V6, 1 << 127))
@example(Address(V6, 0x0001_0000_0000_0002_0000_0000_0000_0003))
@example(Address(V6, 0x0001_0000_0000_0002_0000_0000_0003_0004))  # two runs of equal length: the first is shortened
@example(Address(V6, 0x0001_0000_0002_0003_0004_0005_0006_0007))  # one group of zeros is never shortened
@settings(deadline=None)
def test_an_address_is_written_as_the_standard_library_writes_it_and_read_back(address):
    oracle = ipaddress.ip_address(address.number) if address.version == V4 else ipaddress.IPv6Address(address.number)
    assert str(address) == str(oracle)
    assert Address.parse(str(address)) == address
    assert Address.parse(str(oracle.exploded).upper()) == address


def test_an_address_alone_is_a_host_prefix():
    assert str(Address.parse("10.0.0.1").host_cidr) == "10.0.0.1/32"
    assert str(Address.parse("fd00::1").host_cidr) == "fd00::1/128"


@pytest.mark.parametrize("text", ["", "x", "10.0.0", "10.0.0.01", "fe80::1%eth0"])
def test_what_is_no_address_is_refused_by_its_own_text(text):
    with pytest.raises(ValueError, match=r"^invalid IP address: ") as caught:
        Address.parse(text)
    assert str(caught.value) == f"invalid IP address: {text}"


def interface_text(cidr: Cidr, host_bits: int) -> str:
    return f"{Address(cidr.version, cidr.first + host_bits % cidr.size)}/{cidr.length}"


@given(cidrs(), st.integers(0, 2**128))
@settings(deadline=None)
def test_a_prefix_agrees_with_the_standard_library(cidr, host_bits):
    text = interface_text(cidr, host_bits)
    oracle = ipaddress.ip_interface(text)
    read = Cidr.parse(text)
    assert str(read) == str(oracle)
    assert str(read.network) == str(oracle.network)
    assert read.size == oracle.network.num_addresses
    assert (read.first, read.end) == (int(oracle.network[0]), int(oracle.network[-1]) + 1)
    assert read.at(0).number == read.first
    assert Cidr.parse(str(read)) == read


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/ 8", "10.0.0.0/8/8",
        "10.0.0.0/255.0.0.0", "10.0.0.0/٨", "fd00::/129", "fd00::/0000", "x/8", "/8", "", "::ffff:10.0.0.0/95",
        "::ffff:10.0.0.0/129", "10.0.0.0/0024",
    ],
)  # fmt: skip
def test_what_is_no_prefix_is_refused_by_its_own_text(text):
    with pytest.raises(ValueError, match=r"^invalid CIDR address: ") as caught:
        Cidr.parse(text)
    assert str(caught.value) == f"invalid CIDR address: {text}"


def test_a_mapped_prefix_is_an_ipv4_prefix():
    assert Cidr.parse("::ffff:10.20.0.0/112") == Cidr.parse("10.20.0.0/16")


def test_a_bare_address_can_stand_for_its_host_prefix():
    assert Cidr.parse_lenient("10.1.0.1") == Cidr.parse("10.1.0.1/32")
    assert Cidr.parse_lenient("fd00::1") == Cidr.parse("fd00::1/128")
    assert Cidr.parse_lenient("10.1.0.1/24") == Cidr.parse("10.1.0.1/24")
    with pytest.raises(ValueError, match="invalid IP address: x"):
        Cidr.parse_lenient("x")


# A universe so small that prefixes meet all the time.
small = st.builds(
    lambda version, low, length: Cidr(version, (10 << 24) + low, (28 if version == V4 else 124) + length),
    st.sampled_from([V4, V6]),
    st.integers(0, 31),
    st.integers(0, 4),
)


def oracle_network(cidr: Cidr):
    return ipaddress.ip_interface(str(cidr)).network


@given(small, small)
@settings(deadline=None)
def test_containment_and_overlap_agree_with_the_standard_library(one, other):
    same_version = one.version == other.version
    mine, theirs = oracle_network(one), oracle_network(other)
    assert (other in one) == (same_version and theirs.subnet_of(mine))
    assert one.overlaps(other) == (same_version and mine.overlaps(theirs))
    assert (other.address in one) == (ipaddress.ip_address(str(other.address)) in mine)


@given(st.lists(small, max_size=8), small)
@settings(deadline=None)
def test_prefixes_cover_another_exactly_when_every_address_of_it_lies_in_one(reserved, cidr):
    expected = all(any(cidr.at(ordinal) in one for one in reserved) for ordinal in range(cidr.size))
    assert covers(reserved, cidr) == expected


@pytest.mark.parametrize(
    ("reserved", "cidr", "covered"),
    [
        (["10.0.0.0/27", "10.0.0.32/27"], "10.0.0.0/26", True),
        (["10.0.0.0/27", "10.0.0.0/28", "10.0.0.40/29"], "10.0.0.0/26", False),
        (["10.0.0.0/8"], "10.0.0.0/26", True),
        (["10.0.0.32/27"], "10.0.0.0/26", False),
        ([], "10.0.0.0/26", False),
        (["fd00::/64"], "10.0.0.0/26", False),
    ],
)
def test_the_whole_block_examples_of_the_specification(reserved, cidr, covered):
    """spec: ipam 19.8."""
    assert covers([Cidr.parse(text) for text in reserved], Cidr.parse(cidr)) is covered


@pytest.mark.parametrize(
    ("reserved", "matching", "others"),
    [
        pytest.param(
            ["0.0.0.0/0"],
            ["0.0.0.0", "255.255.255.255", "10.0.0.1", "0.0.0.0/0", "255.255.255.255/32", "10.0.0.0/8"],  # noqa: S104 - compared, not bound
            ["::/0"],
            id="LIB-244",
        ),
        pytest.param(
            ["::/0"],
            ["::", "ffff::", "cafe:f00d::", "::/0", "ffff::/32", "cafe:f00d::/96"],
            ["0.0.0.0/0"],
            id="LIB-245",
        ),
        pytest.param(
            ["192.168.1.64/26", "192.168.1.0/26"],
            [
                "192.168.1.0",
                "192.168.1.63",
                "192.168.1.64",
                "192.168.1.127",
                "192.168.1.64/26",
                "192.168.1.0/26",
                "192.168.1.0/25",
                "192.168.1.64/27",
                "192.168.1.96/27",
            ],
            ["10.0.0.1", "0.0.0.0", "10.0.0.0/8", "0.0.0.0/32", "192.168.2.64/26", "192.168.1.0/24"],  # noqa: S104 - compared, not bound
            id="LIB-246",
        ),
    ],
)
def test_reserved_ranges_cover_addresses_and_whole_prefixes(reserved, matching, others):
    ranges = [Cidr.parse(text) for text in reserved]
    assert [text for text in matching if not covers(ranges, Cidr.parse_lenient(text))] == []
    assert [text for text in others if covers(ranges, Cidr.parse_lenient(text))] == []
