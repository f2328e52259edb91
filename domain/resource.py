"""What every v3 resource has in common: its metadata, and the labels by which others find it.

Invariant: members that we do not know survive a rewrite.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NO_LABELS: Mapping[str, str] = {}


class Metadata(Value):
    """`created` is RFC 3339 or "" before the first write; `uid` likewise (the datastore adapter fills both on create).

    `unknown` holds members that we do not know, as (name, JSON text), so that they survive a rewrite.
    """

    name: str
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    created: str = ""
    labels: Mapping[str, str] = NO_LABELS
    annotations: Mapping[str, str] = NO_LABELS
    unknown: tuple[tuple[str, str], ...] = ()
