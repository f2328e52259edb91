"""The netkit request as bytes, since few kernels have the device: what is sent is compared with the kernel's header."""

from __future__ import annotations

import struct

from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from adapters.linux.netlink.on_pyroute2 import pair_fields
from adapters.linux.netlink.seam import PairRequest

IFLA_LINKINFO, INFO_KIND, INFO_DATA = 18, 1, 2
PEER_INFO, POLICY, PEER_POLICY, MODE, SCRUB, PEER_SCRUB = 1, 3, 4, 5, 6, 7
IFNAME, MTU, NET_NS_FD = 3, 4, 28


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def test_the_netkit_request_is_as_the_kernel_reads_it():
    """DP-011: layer 2, forwarding, no scrubbing; the peer with name, MTU and namespace."""
    fields = pair_fields(PairRequest("netkit", "cali1", "eth0", 9, 1450, 2, "ee:ee:ee:ee:ee:ee"))
    message = ifinfmsg()
    message["attrs"] = [("IFLA_LINKINFO", fields.pop("IFLA_LINKINFO"))]
    message.encode()
    header = 16 + 16
    information = _attributes(_attributes(bytes(message.data[header:]))[IFLA_LINKINFO])
    assert information[INFO_KIND].rstrip(b"\0") == b"netkit"
    data = _attributes(information[INFO_DATA])
    assert set(data) == {PEER_INFO, POLICY, PEER_POLICY, MODE, SCRUB, PEER_SCRUB}
    assert all(data[kind] == bytes(4) for kind in (POLICY, PEER_POLICY, MODE, SCRUB, PEER_SCRUB))
    peer = _attributes(data[PEER_INFO][16:])
    assert data[PEER_INFO][:16] == bytes(16)
    assert peer[IFNAME].rstrip(b"\0") == b"eth0"
    assert struct.unpack("=I", peer[MTU]) == (1450,)
    assert struct.unpack("=I", peer[NET_NS_FD]) == (9,)
    assert set(peer) == {IFNAME, MTU, NET_NS_FD}
    assert fields == {
        "ifname": "cali1",
        "mtu": 1450,
        "address": "ee:ee:ee:ee:ee:ee",
        "num_tx_queues": 2,
        "num_rx_queues": 2,
    }
