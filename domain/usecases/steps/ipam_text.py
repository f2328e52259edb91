"""What to give `host-local` on its stdin when it is to release (spec: cni-plugin 6.3; case L10).

`usePodCidr` and `usePodCidrIPv6` stand for ranges that only the node's record knows. A release goes by container, so
any range will do, and a DEL works though the record, or the whole cluster, is gone.

Invariant: every other configuration is passed on to the letter.
"""

from __future__ import annotations

from domain.json_text import JsonError, dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from domain.json_text import Json

HOST_LOCAL = "host-local"
_ANY = {"usepodcidr": "0.0.0.0/0", "usepodcidripv6": "::/0"}


def text_for_release(netconf: NetConf, text: str) -> str:
    """The configuration with placeholders replaced; the text itself where there is none."""
    if netconf.ipam.type != HOST_LOCAL or "usepodcidr" not in text.lower():
        return text
    try:
        document = parse(text)
    except JsonError:
        return text
    if isinstance(document, dict) and isinstance(ipam := document.get("ipam"), dict):
        _replace(ipam)
        for ranges in _list(ipam.get("ranges")):
            for one in _list(ranges):
                _replace(one)
    return dumps(document)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _replace(holder: Json) -> None:
    if isinstance(holder, dict) and isinstance(subnet := holder.get("subnet"), str):
        holder["subnet"] = _ANY.get(subnet.lower(), subnet)
