"""Which MTU a device gets, checklist UTIL-007 to UTIL-010 (spec: cni-plugin 2.5; G19; recording `errors` 31)."""

from __future__ import annotations

import pytest

from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from domain.cni.errors import CniError
from domain.cni.netconf import NetConf
from usecases.calls.this_node import device_mtu

FILE = "/var/lib/calico/mtu"


@pytest.mark.parametrize(
    ("netconf", "text", "mtu"),
    [
        pytest.param(NetConf(), "1500", 1500, id="UTIL-007"),
        pytest.param(NetConf(), " 1440\n", 1440, id="white space"),
        pytest.param(NetConf(), "+68", 68, id="plus sign"),
        pytest.param(NetConf(), "-1", 0, id="minus sign"),
        pytest.param(NetConf(mtu=9000), "1500", 9000, id="the configuration wins"),
        pytest.param(NetConf(mtu=65535), "7", 65535, id="the largest"),
    ],
)
def test_the_mtu_comes_from_the_configuration_or_the_file(netconf, text, mtu):
    assert device_mtu(netconf, MemoryNode("", {FILE: text}), RecordingLog()) == mtu


def test_a_missing_optional_file_is_no_error_and_only_a_debug_line():
    """UTIL-008, G19."""
    log = RecordingLog()
    assert device_mtu(NetConf(), MemoryNode(), log) == 0
    assert log.shown("debug") == [f"No MTU file path={FILE}"]
    assert log.shown() == log.shown("debug")


def message(netconf, node):
    with pytest.raises(CniError) as caught:
        device_mtu(netconf, node, RecordingLog())
    assert caught.value.code == 999
    return caught.value.message


@pytest.mark.parametrize(
    ("netconf", "text", "fault"),
    [
        (NetConf(mtu=65536), "1500", 'MTU 65536 is more than a device can have (65535); change "mtu"'),
        (NetConf(mtu=67), "1500", 'MTU 67 is less than 68; change "mtu"'),
        (NetConf(), "100000", f"MTU 100000 is more than a device can have (65535); change {FILE}"),
        (NetConf(), "1", f"MTU 1 is less than 68; change {FILE}"),
    ],
)
def test_an_mtu_that_no_device_can_have_is_refused_with_its_source(netconf, text, fault):
    """The kernel would say "invalid argument", once an address is taken."""
    assert message(netconf, MemoryNode("", {FILE: text})) == fault


def test_a_missing_required_file_is_an_error_even_when_the_configuration_has_an_mtu():
    """UTIL-009."""
    expected = f"failed to read MTU file: open {FILE}: no such file or directory"
    assert message(NetConf(require_mtu_file=True), MemoryNode()) == expected
    assert message(NetConf(require_mtu_file=True, mtu=1500), MemoryNode()) == expected


@pytest.mark.parametrize("text", ["", "abc", "1_500", "1500 bytes", "-", "0x5dc", "١"])
def test_a_file_that_holds_no_number_is_an_error(text):
    """UTIL-010 (as root, who may read the file)."""
    expected = f'failed to read MTU file: strconv.Atoi: parsing "{text}": invalid syntax'
    assert message(NetConf(mtu=1500), MemoryNode("", {FILE: text})) == expected


@pytest.mark.parametrize("text", ["9223372036854775808", "1" * 20, "1" * 5000])
def test_a_number_beyond_64_bits_is_an_error(text):
    assert message(NetConf(), MemoryNode("", {FILE: text})).endswith("value out of range")


def test_a_file_that_may_not_be_read_is_an_error():
    """UTIL-010 (not root)."""
    node = MemoryNode()
    node.broken.add(FILE)
    assert message(NetConf(), node) == f"failed to read MTU file: open {FILE}: permission denied"
