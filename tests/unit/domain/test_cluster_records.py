"""A node's record, as far as anybody changes it."""

from __future__ import annotations

import pytest

from domain.cluster import Node
from domain.resource import Metadata


@pytest.mark.parametrize(
    ("spec", "before", "after"),
    [
        ("{}", "", '{"bgp":{"ipv4IPIPTunnelAddr":"10.0.0.1"}}'),
        ("[]", "", '{"bgp":{"ipv4IPIPTunnelAddr":"10.0.0.1"}}'),
        ('{"bgp":1,"x":[1.50]}', "", '{"bgp":{"ipv4IPIPTunnelAddr":"10.0.0.1"},"x":[1.50]}'),
        ('{"bgp":{"ipv4IPIPTunnelAddr":7}}', "", '{"bgp":{"ipv4IPIPTunnelAddr":"10.0.0.1"}}'),
        (
            '{"x":[],"bgp":{"asNumber":1,"ipv4IPIPTunnelAddr":"10.0.0.9","routeReflectorClusterID":"r"}}',
            "10.0.0.9",
            '{"bgp":{"asNumber":1,"ipv4IPIPTunnelAddr":"10.0.0.1","routeReflectorClusterID":"r"},"x":[]}',
        ),
    ],
)
def test_a_tunnel_address_is_written_where_the_original_has_it(spec, before, after):
    node = Node(Metadata("n"), spec)
    assert node.tunnel_address == before
    changed = node.with_tunnel_address("10.0.0.1")
    assert changed.tunnel_address == "10.0.0.1"
    assert changed.spec == after
