"""L10: placeholders for the node's ranges mean nothing to a release."""

from __future__ import annotations

import json

import pytest

from domain.cni.netconf import IpamSettings, NetConf
from domain.workload.host_local import text_for_release

HOST_LOCAL = NetConf(ipam=IpamSettings(type="host-local"))


def test_placeholders_become_ranges_that_hold_everything():
    """Whatever the spelling, in the subnet and in the ranges; members that we do not know stay."""
    ranges = [[{"subnet": "usePodCidr", "x": 1}, {"subnet": "10.0.0.0/8"}], [{"subnet": "USEPODCIDRIPV6"}]]
    text = json.dumps({"name": "n", "ipam": {"subnet": "usePodCIDR", "dataDir": "/d", "ranges": ranges}})
    assert json.loads(text_for_release(HOST_LOCAL, text)) == {
        "name": "n",
        "ipam": {
            "subnet": "0.0.0.0/0",
            "dataDir": "/d",
            "ranges": [[{"subnet": "0.0.0.0/0", "x": 1}, {"subnet": "10.0.0.0/8"}], [{"subnet": "::/0"}]],
        },
    }


@pytest.mark.parametrize("netconf", [HOST_LOCAL, NetConf(ipam=IpamSettings(type="other"))])
def test_every_other_configuration_stays_to_the_letter(netconf):
    text = '{ "ipam": {"subnet": "10.0.0.0/8"} }' if netconf is HOST_LOCAL else '{ "subnet": "usePodCidr" }'
    assert text_for_release(netconf, text) is text


@pytest.mark.parametrize("ipam", [1, {"subnet": 1}, {"ranges": 1}, {"ranges": [1]}, {"ranges": [[1, {"subnet": 2}]]}])
def test_odd_shapes_are_left_to_the_plugin(ipam):
    text = json.dumps({"comment": "usePodCidr", "ipam": ipam})
    assert json.loads(text_for_release(HOST_LOCAL, text)) == json.loads(text)
    assert text_for_release(HOST_LOCAL, "[usePodCidr") == "[usePodCidr"
    assert json.loads(text_for_release(HOST_LOCAL, '["usePodCidr"]')) == ["usePodCidr"]
