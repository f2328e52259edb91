"""Hardware addresses as Go reads them, and the IPv6 address that follows from one."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address
from domain.linux.link import link_local, parse_mac
from domain.workload.plan import HOST_MAC


@pytest.mark.parametrize(
    ("text", "mac"),
    [
        ("1c:0c:0a:c0:ff:ee", "1c:0c:0a:c0:ff:ee"),
        ("1C-0C-0A-C0-FF-EE", "1c:0c:0a:c0:ff:ee"),
        ("1c0c.0ac0.ffee", "1c:0c:0a:c0:ff:ee"),
        ("00:00:5e:00:53:01:02:03", "00:00:5e:00:53:01:02:03"),
        (":".join(["ab"] * 20), ":".join(["ab"] * 20)),
    ],
)
def test_macs_are_read_as_go_reads_them(text, mac):
    assert parse_mac(text) == mac


@pytest.mark.parametrize(
    "text",
    [
        "1c:0c:0a:c0:ff",
        "1c:0c:0a:c0:ff:ee:01",
        "1c:0c-0a:c0:ff:ee",
        "1c:0c:0a:c0:ff:eg",
        "1c0c0ac0ffee",
        "1c:0c:0a:c0:ff:e",
        "١c:0c:0a:c0:ff:ee",
    ],
)
def test_what_go_does_not_read_as_a_mac_is_refused(text):
    with pytest.raises(ValueError, match="invalid MAC address") as refused:
        parse_mac(text)
    assert str(refused.value) == f"address {text}: invalid MAC address"


def test_an_empty_mac_is_refused_without_naming_it():
    with pytest.raises(ValueError, match=r"^invalid MAC address$"):
        parse_mac("")


def test_the_link_local_address_of_the_host_end():
    assert link_local(HOST_MAC) == Address.parse("fe80::ecee:eeff:feee:eeee")
    assert link_local("00:15:5d:01:02:03") == Address.parse("fe80::215:5dff:fe01:203")
