"""Our words ↔ the messages of cni_dataplane.proto, written and read by hand so that no library is loaded for them.

Invariant: pure. What the original sends is sent, quirks included, because services are written for it. Field numbers
are those of the .proto beside this file.
"""

from __future__ import annotations

from adapters.wire.protobuf import delimited, fields, integer, message, number, octets, text
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.workload.attachment import Attachment
    from domain.workload.endpoint import Port

ADD = "/cni.CniDataplane/Add"
DEL = "/cni.CniDataplane/Del"
_NO_GATEWAY = "<nil>"  # Calico quirk: how Go prints an address that is not there
_INT32, _UINT32 = range(-(1 << 31), 1 << 31), range(1 << 32)


class OutOfRange(ValueError):
    """A number that its field in the message does not hold."""


class DataplaneReply(Value):
    """`error` is None for success. The others are of Add only."""

    error: str | None
    host_interface: str = ""
    mac: str = ""


def add_request(attachment: Attachment, options: Mapping[str, str]) -> bytes:
    """ValueError for what the messages cannot carry: texts that are not Unicode, numbers out of range."""
    forwarding = number(1, attachment.allow_ip_forwarding)
    return b"".join(
        (
            text(1, attachment.ifname),
            text(2, attachment.netns),
            text(3, attachment.host_name),
            message(4, forwarding, _number(2, attachment.mtu, _INT32)),
            *[message(5, text(1, address), text(2, gateway)) for address, gateway in _addresses(attachment)],
            *[text(6, str(route)) for route in attachment.routes],
            message(7, *_workload(attachment)),
            _mapping(8, options),
        )
    )


def _addresses(attachment: Attachment) -> list[tuple[str, str]]:
    gateways = attachment.gateways or (None,) * len(attachment.addresses)
    return [
        (str(address), _NO_GATEWAY if gateway is None else str(gateway))
        for address, gateway in zip(attachment.addresses, gateways, strict=True)
    ]


def _workload(attachment: Attachment) -> tuple[bytes, ...]:
    return (
        text(1, attachment.name),
        text(2, attachment.namespace),
        _mapping(3, attachment.labels),
        _mapping(4, attachment.annotations),
        text(5, attachment.endpoint),
        text(6, attachment.node),
        text(7, attachment.orchestrator),
        text(8, attachment.pod),
        *[message(9, *_port(port)) for port in attachment.ports],
    )


def _port(port: Port) -> tuple[bytes, ...]:
    numbers = _number(3, port.port, _UINT32), _number(4, port.host_port, _UINT32)
    return (text(1, port.name), text(2, port.protocol), *numbers, text(5, port.host_ip))


def _mapping(field: int, items: Mapping[str, str]) -> bytes:
    """In the order of the keys, so that the same request is the same octets. Empty texts are written, too."""
    return b"".join([message(field, _entry(1, key), _entry(2, items[key])) for key in sorted(items)])


def _entry(field: int, value: str) -> bytes:
    return octets(field, value.encode(), present=True)


def _number(field: int, value: int, allowed: range) -> bytes:
    if value not in allowed:
        raise OutOfRange(f"{value} is out of range")
    return number(field, value)


def del_request(netns: str, ifname: str, options: Mapping[str, str]) -> bytes:
    """ValueError as above."""
    return text(1, ifname) + text(2, netns) + _mapping(3, options)


def read_add_reply(answer: bytes) -> DataplaneReply:
    """ValueError for bytes that are no such message."""
    return _read(answer)


def read_del_reply(answer: bytes) -> DataplaneReply:
    """ValueError as above."""
    return _read(answer).replace(host_interface="", mac="")


def _read(answer: bytes) -> DataplaneReply:
    """Fields that a later version may have are left unread."""
    successful = False
    texts = {2: "", 3: "", 4: ""}
    for field, value in fields(answer):
        if field == 1:
            successful = bool(integer(value))
        elif field in texts:
            texts[field] = bytes(delimited(value)).decode()
    return DataplaneReply(None if successful else texts[2], texts[3], texts[4])
