"""What goes over the wire to a gRPC dataplane, read by field numbers, and compared with what the library would write.

CNI-017, CNI-019, G14; spec: cni-plugin 8.2.
"""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from adapters.grpc import cni_dataplane_pb2 as wire
from adapters.grpc.messages import DataplaneReply, add_request, del_request, read_add_reply, read_del_reply
from domain.ipam.address import Address, Cidr
from domain.workload.attachment import Attachment
from domain.workload.endpoint import Port

OPTIONS = {"type": "grpc", "socket": "unix:///run/dataplane.sock", "extra": "option"}
PLAIN = Attachment("/var/run/netns/n", "eth0", "cali1", (Cidr.parse("10.0.0.9/26"),), (Cidr.parse("0.0.0.0/0"),))


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """(field number, number or bytes) in the order sent."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            octet = message[at]
            at += 1
            number |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                return number

    while at < len(message):
        tag = varint()
        length = varint()
        if tag & 7 == 0:
            found.append((tag >> 3, length))
        else:
            assert tag & 7 == 2
            found.append((tag >> 3, message[at : at + length]))
            at += length
    assert at == len(message)
    return found


def all_of(number: int, message: bytes) -> list[int | bytes]:
    return [value for field, value in fields(message) if field == number]


def only(number: int, message: bytes) -> int | bytes:
    (value,) = all_of(number, message)
    return value


def mapping(number: int, message: bytes) -> dict[bytes, bytes]:
    return {only(1, entry): only(2, entry) for entry in all_of(number, message)}


def encoded(number: int, payload: int | str) -> bytes:
    """One field, for replies."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    return bytes([number << 3 | 2, len(payload)]) + payload.encode()


def test_an_add_request_has_everything_under_the_numbers_of_the_protocol():
    attachment = PLAIN.replace(
        addresses=(Cidr.parse("10.0.0.9/26"), Cidr.parse("fd00::9/122")),
        gateways=(Address.parse("10.0.0.1"), None),
        routes=(Cidr.parse("0.0.0.0/0"), Cidr.parse("::/0")),
        mtu=1450,
        allow_ip_forwarding=True,
        name="n-cni-c-eth0",
        namespace="default",
        labels={"k": "v"},
        annotations={"a": "b"},
        endpoint="eth0",
        node="n",
        orchestrator="cni",
        pod="p",
        ports=(Port("web", "TCP", 80, 30080, "1.2.3.4"), Port("", "UDP", 53)),
    )
    request = add_request(attachment, OPTIONS)
    assert [only(number, request) for number in (1, 2, 3)] == [b"eth0", b"/var/run/netns/n", b"cali1"]
    assert fields(only(4, request)) == [(1, 1), (2, 1450)]
    assert [fields(address) for address in all_of(5, request)] == [
        [(1, b"10.0.0.9/26"), (2, b"10.0.0.1")],
        [(1, b"fd00::9/122"), (2, b"<nil>")],
    ]
    assert all_of(6, request) == [b"0.0.0.0/0", b"::/0"]
    workload = only(7, request)
    assert [only(number, workload) for number in (1, 2, 5, 6, 7, 8)] == [
        *(b"n-cni-c-eth0", b"default", b"eth0", b"n", b"cni", b"p")
    ]
    assert mapping(3, workload) == {b"k": b"v"}
    assert mapping(4, workload) == {b"a": b"b"}
    assert [fields(port) for port in all_of(9, workload)] == [
        [(1, b"web"), (2, b"TCP"), (3, 80), (4, 30080), (5, b"1.2.3.4")],
        [(2, b"UDP"), (3, 53)],
    ]
    assert mapping(8, request) == {
        b"type": b"grpc",
        b"socket": b"unix:///run/dataplane.sock",
        b"extra": b"option",
    }


def test_without_gateways_each_is_the_text_that_go_prints_for_none():
    """G14"""
    for gateways in ((), (None,)):
        assert only(2, only(5, add_request(PLAIN.replace(gateways=gateways), OPTIONS))) == b"<nil>"


def test_gateways_that_do_not_belong_to_the_addresses_are_a_mistake_of_ours():
    with pytest.raises(ValueError, match="longer"):
        add_request(PLAIN.replace(gateways=(None, None)), OPTIONS)


def test_the_same_request_is_the_same_bytes():
    twisted = dict(reversed(OPTIONS.items()))
    assert add_request(PLAIN, OPTIONS) == add_request(PLAIN, twisted)


@pytest.mark.parametrize("change", [{"netns": "/run/\udcff"}, {"mtu": 1 << 31}, {"labels": {"k": "\ud800"}}])
def test_what_a_message_cannot_carry_is_refused(change):
    with pytest.raises(ValueError, match=r".+"):
        add_request(PLAIN.replace(**change), OPTIONS)


def test_a_del_request():
    request = del_request("/var/run/netns/n", "eth0", OPTIONS)
    assert (only(1, request), only(2, request)) == (b"eth0", b"/var/run/netns/n")
    assert mapping(3, request)[b"extra"] == b"option"
    assert [number for number, _ in fields(request)] == [1, 2, 3, 3, 3]


def test_replies():
    success = encoded(1, 1) + encoded(3, "vpp-tap1") + encoded(4, "00:11:22:33:44:55")
    assert read_add_reply(success) == DataplaneReply(None, "vpp-tap1", "00:11:22:33:44:55")
    assert read_del_reply(encoded(1, 1)) == DataplaneReply(None)
    for read in (read_add_reply, read_del_reply):
        assert read(encoded(2, "no room")).error == "no room"
        assert read(b"").error == ""  # nothing said is not success
        assert read(encoded(1, 1) + encoded(9, "from a later version")).error is None
        with pytest.raises(ValueError, match=r".+"):
            read(b"\xff\xff not a message")


short = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
mapping_of = st.dictionaries(short, short, max_size=4)
ports_of = st.lists(st.builds(Port, short, short, *[st.integers(0, 2**32 - 1)] * 2, short), max_size=3).map(tuple)
gateways_of = st.sampled_from([(), (None,), (Address.parse("10.0.0.1"),)])
attachments = st.builds(
    PLAIN.replace,
    gateways=gateways_of,
    mtu=st.integers(-(2**31), 2**31 - 1),
    allow_ip_forwarding=st.booleans(),
    labels=mapping_of,
    annotations=mapping_of,
    ports=ports_of,
    **dict.fromkeys(("ifname", "netns", "host_name", "name", "namespace", "endpoint", "node", "orchestrator"), short),
    pod=short,
)


@given(attachments, mapping_of)
def test_requests_are_those_of_the_library(attachment, options):
    gateway = "<nil>" if attachment.gateways in ((), (None,)) else "10.0.0.1"
    meant = wire.AddRequest(
        interface_name=attachment.ifname,
        netns=attachment.netns,
        desired_host_interface_name=attachment.host_name,
        settings=wire.ContainerSettings(allow_ip_forwarding=attachment.allow_ip_forwarding, mtu=attachment.mtu),
        container_ips=[wire.IPConfig(address="10.0.0.9/26", gateway=gateway)],
        container_routes=["0.0.0.0/0"],
        workload=wire.WorkloadIDs(
            **{name: getattr(attachment, name) for name in ("name", "namespace", "labels", "annotations", "endpoint")},
            **{name: getattr(attachment, name) for name in ("node", "orchestrator", "pod")},
            ports=[
                wire.Port(
                    **{name: getattr(port, name) for name in ("name", "protocol", "port", "host_port", "host_ip")}
                )
                for port in attachment.ports
            ],
        ),
        dataplane_options=options,
    )
    same(add_request(attachment, options), meant)
    deletion = wire.DelRequest(interface_name=attachment.ifname, netns=attachment.netns, dataplane_options=options)
    same(del_request(attachment.netns, attachment.ifname, options), deletion)


def same(written: bytes, meant: Message) -> None:
    """In the octets, too, but for the order of a mapping's entries, which each library has its own of."""
    assert type(meant).FromString(written) == meant
    assert len(written) == meant.ByteSize()


@given(st.booleans(), short, short, short)
def test_replies_of_the_library_are_read(successful, error, host_interface, mac):
    reply = wire.AddReply(
        successful=successful, error_message=error, host_interface_name=host_interface, container_mac=mac
    )
    assert read_add_reply(reply.SerializeToString()) == DataplaneReply(
        None if successful else error, host_interface, mac
    )
