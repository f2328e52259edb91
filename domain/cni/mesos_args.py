"""What Mesos says about a container, deep inside `args` of the network configuration: a name and labels.

Invariant: a wrong type is refused in Go's words, which name the whole way down to it.
"""

from __future__ import annotations

from domain.cni.json_fields import section, sections, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.cni.json_fields import Fields

_ORG = "args.org.apache.mesos."
_NETWORK_INFO = _ORG + "network_info."
_LABELS = _NETWORK_INFO + "labels."


def _spread(found: dict[str, Any]) -> dict[str, Any]:
    return found


def _label(found: dict[str, Any]) -> tuple[str, str]:
    return found.get("key", ""), found.get("value", "")


def _mesos(found: dict[str, Any]) -> dict[str, Any]:
    """Three nested objects come down to a name and a list of labels."""
    info: dict[str, Any] = found.get("mesos", {}).get("info", {})
    labels: tuple[tuple[str, str], ...] = info.get("labels", {}).get("labels", ())
    return {"mesos_network_name": info.get("name", ""), "mesos_labels": labels}


_LABEL_FIELDS: Fields = {"key": ("key", text), "value": ("value", text)}
_LABELS_FIELDS: Fields = {"labels": ("labels", sections(_LABEL_FIELDS, "types.Label", _LABELS + "labels.", _label))}
_INFO_FIELDS: Fields = {
    "name": ("name", text),
    "labels": ("labels", section(_LABELS_FIELDS, _spread, "types.Labels", _LABELS)),
}
_APACHE_FIELDS: Fields = {"network_info": ("info", section(_INFO_FIELDS, _spread, "types.NetworkInfo", _NETWORK_INFO))}
_ARGS_FIELDS: Fields = {"org.apache.mesos": ("mesos", section(_APACHE_FIELDS, _spread, "types.Mesos", _ORG))}

read_args = section(_ARGS_FIELDS, _mesos, "types.Args", "args.")
