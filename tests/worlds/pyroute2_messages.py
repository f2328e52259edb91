"""pyroute2's messages as an oracle for our own: what it reads in ours, and how it writes the same."""

from __future__ import annotations

from adapters.linux.netlink.messages import NetlinkRequest, envelope


def decoded(kind, request: NetlinkRequest):
    """What the library reads in our request."""
    message = kind(envelope(request, 7))
    message.decode()
    return message


def encoded(kind, **fields) -> bytes:
    """The body of a message that the library writes."""
    message = kind()
    message["attrs"] = fields.pop("attrs", [])
    for name, value in fields.items():
        message[name] = value
    message.encode()
    return bytes(message.data[16:])
