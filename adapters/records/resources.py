"""What all v3 resources share on the wire: the envelope and the metadata.

`{"kind","apiVersion","metadata","spec"[,"status"]}`; the revision is the store's and never part of the text.

Invariant: an optional member is absent when it is empty, as Go's `omitempty` leaves it out.
"""

from __future__ import annotations

from adapters.records.members import Members, labels_text, object_text
from domain.json_text import dumps
from domain.resource import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.records.members import Unknown

API_VERSION = "projectcalico.org/v3"


def encode_metadata(metadata: Metadata) -> str:
    known = [("name", dumps(metadata.name))]
    for name, text in (
        ("generateName", metadata.generate_name),
        ("namespace", metadata.namespace),
        ("uid", metadata.uid),
        ("creationTimestamp", metadata.created),
    ):
        if text:
            known.append((name, dumps(text)))
    if metadata.labels:
        known.append(("labels", labels_text(metadata.labels)))
    if metadata.annotations:
        known.append(("annotations", labels_text(metadata.annotations)))
    return object_text(known, metadata.unknown)


def decode_metadata(members: Members) -> Metadata:
    members.drop("resourceVersion", "selfLink")
    return Metadata(
        name=members.text("name"),
        namespace=members.text("namespace"),
        generate_name=members.spare("generateName", members.text, ""),
        uid=members.spare("uid", members.text, ""),
        created=members.spare("creationTimestamp", members.text, ""),
        labels=members.labels("labels"),
        annotations=members.spare("annotations", members.labels, {}),
        unknown=members.rest(),
    )


def encode_resource(kind: str, metadata: Metadata, spec: str, status: str = "", unknown: Unknown = ()) -> str:
    """The envelope; `spec` and `status` are JSON text, a `status` of "" is left out."""
    known = [
        ("kind", dumps(kind)),
        ("apiVersion", dumps(API_VERSION)),
        ("metadata", encode_metadata(metadata)),
        ("spec", spec),
    ]
    if status:
        known.append(("status", status))
    return object_text(known, unknown)


def open_resource(text: str) -> tuple[Members, Metadata]:
    """The members besides kind, apiVersion and metadata, which are taken already; and the metadata."""
    members = Members.of_text(text)
    members.drop("kind", "apiVersion")
    return members, decode_metadata(members.inner("metadata"))


def texts_members(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Spec members that are strings: those that are not empty, as JSON text."""
    return [(name, dumps(text)) for name, text in pairs if text]
