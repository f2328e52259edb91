"""The metadata of a resource ↔ that of the object which holds it.

In the v3 group they are the same. In the v1 group the resource's metadata is JSON text in an annotation of the object,
and the object's own say only what the server needs; objects that people made by hand have no such annotation.

Invariant: what is written here reads back the same in both groups.
"""

from __future__ import annotations

from adapters.records.custom_names import V1
from adapters.records.members import Members, labels_text, object_text
from adapters.records.resources import decode_metadata, encode_metadata
from domain.json_text import dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from domain.json_text import Json
    from domain.resource import Metadata

ANNOTATION = "projectcalico.org/metadata"
_OURS = ("projectcalico.org/", "operator.tigera.io/")
_SERVERS_OWN = ("managedFields", "generation")  # a PUT may leave them out, and they are large
_FROM_OBJECT = ("name", "namespace", "resourceVersion", "uid")


def converted_uid(uid: str) -> str:
    """The uid of the resource for that of its v1 object, and the other way round; what is no UUID stays as it is.

    The two must differ, since both may own something. The bits of each byte are reversed, except in the two bytes
    that hold the version and the variant.
    """
    digits = uid.replace("-", "")
    try:
        octets = bytes.fromhex(digits)
    except ValueError:
        return uid
    if len(octets) != 16 or len(uid) != 36:
        return uid
    turned = bytes([one if at in {6, 8} else int(f"{one:08b}"[::-1], 2) for at, one in enumerate(octets)]).hex()
    return f"{turned[:8]}-{turned[8:12]}-{turned[12:16]}-{turned[16:20]}-{turned[20:]}"


def read_metadata(metadata: Members, group: str) -> Metadata:
    """The resource's metadata. ValueError when they, or the annotation that holds them, are no metadata."""
    metadata.drop(*_SERVERS_OWN)
    own = decode_metadata(metadata)
    if group != V1:
        return own
    own = own.replace(uid=converted_uid(own.uid))
    if ANNOTATION not in own.annotations:
        return own
    annotations = dict(own.annotations)
    kept = Members.of_text(annotations.pop(ANNOTATION), f"the annotation {ANNOTATION}")
    kept.drop(*_SERVERS_OWN, *_FROM_OBJECT)
    read = decode_metadata(kept)
    return read.replace(
        name=own.name,
        namespace=own.namespace,
        uid=own.uid,
        created=read.created or own.created,
        labels={**own.labels, **read.labels},
        annotations={**annotations, **read.annotations},
    )


def bare_metadata(name: str, group: str, labels: Mapping[str, str], server: tuple[str, str]) -> str:
    """The metadata of an object whose record has only labels. `server` is (resourceVersion, uid), "" for none."""
    known = [("name", dumps(name)), *_server_members(server)]
    if labels:
        known.append(("labels", labels_text(labels)))
    if group == V1:
        kept = object_text([("labels", labels_text(labels))]) if labels else "{}"
        known.append(("annotations", labels_text({ANNOTATION: kept})))
    return object_text(known)


def write_metadata(metadata: Metadata, group: str, server: tuple[str, str]) -> str:
    """The metadata of the object that holds a resource. `server` is (resourceVersion, uid) as the object has them."""
    if group != V1:
        shown = parse(encode_metadata(metadata))
        assert isinstance(shown, dict)  # noqa: S101 - metadata are an object
        shown.pop("uid", None)
        return dumps({"name": metadata.name, **_server_json(server), **shown})
    known = [("name", dumps(metadata.name)), *_server_members(server)]
    labels = _ours(metadata.labels)
    if labels:
        known.append(("labels", labels_text(labels)))
    kept: dict[str, Any] = parse(encode_metadata(metadata))  # type: ignore[assignment]  # metadata are an object
    for name in _FROM_OBJECT:
        kept.pop(name, None)
    annotations = {**_ours(metadata.annotations), ANNOTATION: dumps(kept)}
    known.append(("annotations", labels_text(annotations)))
    return object_text(known)


def _ours(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in labels.items() if any(part in name for part in _OURS)}


def _server_members(server: tuple[str, str]) -> list[tuple[str, str]]:
    return [(name, dumps(text)) for name, text in zip(("resourceVersion", "uid"), server) if text]


def _server_json(server: tuple[str, str]) -> dict[str, Json]:
    return {name: text for name, text in zip(("resourceVersion", "uid"), server) if text}
