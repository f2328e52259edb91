"""Records that describe the cluster itself: whether it may be used, and its nodes."""

from __future__ import annotations

from domain.resource import Metadata
from domain.value import Value


class ClusterInformation(Value):
    """`datastore_ready` None (the field is absent) counts as not ready."""

    metadata: Metadata
    cluster_guid: str = ""
    cluster_type: str = ""
    calico_version: str = ""
    datastore_ready: bool | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


class Node(Value):
    """A Calico node. Allocation needs its name and labels; the rest of the spec and the status is kept as it was.

    `spec` is the JSON text of the whole spec, `status` that of the status ("{}" when empty).
    """

    metadata: Metadata
    spec: str = "{}"
    status: str = "{}"
    unknown: tuple[tuple[str, str], ...] = ()
