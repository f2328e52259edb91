"""The record of one attachment: what an ADD made on the host, as a value and as the JSON text of a small file.

Invariant: `read_attachment` gives back what `attachment_text` wrote; what it cannot read is None, never an error,
because cleaning up must go on. `with_ipam_section` gives a text that section and no other, and leaves the rest as it
was.
"""

from __future__ import annotations

from domain.bridge.conf import AttachmentId
from domain.cni.json_fields import WrongType, flag, integer, read_fields, text, texts
from domain.ipam.address import Cidr
from domain.json_text import JsonError, dumps, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.json_fields import Fields
    from domain.json_text import Json

_IPAM = "ipam"


class BridgeAttachment(Value):
    """`masquerade` is the back end that has rules, "" without any. `host_index` is 0 if it is not known. `ipam` is the
    type of the IPAM plugin, which was asked in CNI `version` with the text of its section of the configuration.
    """

    id: AttachmentId
    bridge: str
    host_name: str
    host_index: int = 0
    mac: str = ""
    netns: str = ""
    addresses: tuple[Cidr, ...] = ()
    masquerade: str = ""
    guarded: bool = False
    ipam: str = ""
    version: str = ""
    ipam_section: str = ""


def attachment_text(attachment: BridgeAttachment) -> str:
    return dumps(
        {
            "containerID": attachment.id.container_id,
            "ifname": attachment.id.ifname,
            "bridge": attachment.bridge,
            "hostInterface": attachment.host_name,
            "hostIndex": attachment.host_index,
            "mac": attachment.mac,
            "netns": attachment.netns,
            "addresses": [str(cidr) for cidr in attachment.addresses],
            "ipMasqBackend": attachment.masquerade,
            "macspoofchk": attachment.guarded,
            "ipam": attachment.ipam,
            "cniVersion": attachment.version,
            "ipamSection": attachment.ipam_section,
        },
        indent=4,
    )


_FIELDS: Fields = {
    "containerID": ("container_id", text),
    "ifname": ("ifname", text),
    "bridge": ("bridge", text),
    "hostInterface": ("host_name", text),
    "hostIndex": ("host_index", integer),
    "mac": ("mac", text),
    "netns": ("netns", text),
    "addresses": ("addresses", texts),
    "ipMasqBackend": ("masquerade", text),
    "macspoofchk": ("guarded", flag),
    "ipam": ("ipam", text),
    "cniVersion": ("version", text),
    "ipamSection": ("ipam_section", text),
}


def read_attachment(written: str) -> BridgeAttachment | None:
    try:
        document = parse(written)
        if not isinstance(document, dict):
            return None
        found = read_fields(document, _FIELDS, "Attachment")
        found["id"] = AttachmentId(found.pop("container_id"), found.pop("ifname"))
        addresses = tuple([Cidr.parse(cidr) for cidr in found.pop("addresses", ())])
        return BridgeAttachment(**{"addresses": addresses, "bridge": "", "host_name": "", **found})
    except (JsonError, WrongType, KeyError, ValueError):
        return None


def ipam_section(netconf_text: str) -> str:
    """The `ipam` section of a configuration as text, to be given to the IPAM plugin later; "" without one."""
    document = _document(netconf_text)
    section = next((value for key, value in document.items() if key.lower() == _IPAM), None)
    return dumps(section) if isinstance(section, dict) else ""


def with_ipam_section(netconf_text: str, section: str) -> str:
    kept = {key: value for key, value in _document(netconf_text).items() if key.lower() != _IPAM}
    return dumps({**kept, _IPAM: parse(section)})


def _document(text: str) -> dict[str, Json]:
    try:
        document = parse(text)
    except JsonError:
        return {}
    return document if isinstance(document, dict) else {}
