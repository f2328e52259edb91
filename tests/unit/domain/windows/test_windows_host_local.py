"""host-local's ranges on a Windows node."""

from __future__ import annotations

import json

import pytest

from domain.windows.host_local import with_pinned_ranges


def pinned(**ipam):
    return json.loads(with_pinned_ranges(json.dumps({"name": "n", "ipam": ipam})))["ipam"]


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({}, "10.9.0.3", "10.9.0.62"),
        ({"rangeStart": "10.9.0.10", "rangeEnd": "10.9.0.20"}, "10.9.0.10", "10.9.0.20"),
        ({"rangeStart": "10.9.0.2", "rangeEnd": "10.9.0.63"}, "10.9.0.3", "10.9.0.62"),
        ({"rangeStart": "10.8.0.10", "rangeEnd": "fd00::1"}, "10.9.0.3", "10.9.0.62"),
        ({"rangeStart": 7, "rangeEnd": "x"}, "10.9.0.3", "10.9.0.62"),
    ],
)
def test_a_range_keeps_off_the_hosts_addresses(given, start, end):
    """What is configured stays if it is within the limits."""
    found = pinned(type="host-local", subnet="10.9.0.0/26", **given)
    assert (found["rangeStart"], found["rangeEnd"]) == (start, end)


def test_each_range_of_each_set():
    ranges = [[{"subnet": "10.9.0.0/26"}, {"subnet": "fd00::/64"}], [{"subnet": "10.9.1.0/24"}, 7], "x"]
    found = pinned(ranges=ranges)["ranges"]
    assert found[0][0] == {"subnet": "10.9.0.0/26", "rangeStart": "10.9.0.3", "rangeEnd": "10.9.0.62"}
    assert found[0][1] == {"subnet": "fd00::/64"}
    assert found[1][0]["rangeEnd"] == "10.9.1.254"
    assert found[1][1:] + found[2:] == [7, "x"]


@pytest.mark.parametrize("subnet", ["10.9.0.0/30", "10.9.0.0/32", "usePodCidr", ""])
def test_a_range_that_is_none_or_too_small_stays(subnet):
    assert pinned(subnet=subnet) == {"subnet": subnet}


@pytest.mark.parametrize("text", ["[]", '{"ipam":[]}', '{"name":"n"}'])
def test_a_configuration_without_a_section_stays(text):
    assert with_pinned_ranges(text) == text
