"""v3 resources ↔ JSON text: the envelope and the metadata that all of them share; and those that IPAM reads:
ClusterInformation, Nodes, IPPools and IPReservations.

`{"kind","apiVersion","metadata","spec"[,"status"]}`; the revision is the store's and never part of the text.

Invariant: an optional member is absent when it is empty, as Go's `omitempty` leaves it out.
A node's spec and status are carried through member by member as they were; its `status` is always written. A pool's
status is rewritten as it was read as long as its conditions are the ones that were read; members that readers must
default (block size, uses, …) stay absent when they were.
"""

from __future__ import annotations

from adapters.records.members import Members, labels_text, object_text, texts_text
from domain.cluster import ClusterInformation, Node
from domain.ipam.pools import IPReservation, Pool
from domain.json_text import dumps, parse
from domain.resource import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.records.members import Unknown
    from domain.json_text import Json

    Conditions = tuple[tuple[str, str], ...]

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


def encode_cluster_information(information: ClusterInformation) -> str:
    spec = cluster_information_spec(information)
    return encode_resource("ClusterInformation", information.metadata, spec, unknown=information.unknown)


def cluster_information_spec(information: ClusterInformation) -> str:
    known = texts_members(
        [
            ("clusterGUID", information.cluster_guid),
            ("clusterType", information.cluster_type),
            ("calicoVersion", information.calico_version),
        ]
    )
    if information.datastore_ready is not None:
        known.append(("datastoreReady", "true" if information.datastore_ready else "false"))
    return object_text(known, information.spec_unknown)


def decode_cluster_information(text: str) -> ClusterInformation:
    return read_cluster_information(*open_resource(text))


def read_cluster_information(members: Members, metadata: Metadata) -> ClusterInformation:
    """The resource that the members besides the metadata describe."""
    spec = members.inner("spec")
    return ClusterInformation(
        metadata=metadata,
        cluster_guid=spec.spare("clusterGUID", spec.text, ""),
        cluster_type=spec.spare("clusterType", spec.text, ""),
        calico_version=spec.spare("calicoVersion", spec.text, ""),
        datastore_ready=spec.optional_flag("datastoreReady"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )


def encode_node(node: Node) -> str:
    return encode_resource("Node", node.metadata, node.spec, node.status, node.unknown)


def decode_node(text: str) -> Node:
    members, metadata = open_resource(text)
    return Node(
        metadata=metadata,
        spec=members.spare("spec", members.object_text, "{}"),
        status=members.spare("status", members.object_text, "{}"),
        unknown=members.rest(),
    )


def _conditions(status: Json) -> Conditions:
    members = Members({} if status is None else status, "status")
    return tuple([(one.text("type"), one.text("status")) for one in members.objects("conditions")])


def _status_of(conditions: Conditions) -> str:
    if not conditions:
        return ""
    return dumps({"conditions": [{"type": kind, "status": status} for kind, status in conditions]})


def pool_spec(pool: Pool) -> str:
    known = [
        ("cidr", dumps(pool.cidr_text)),
        *texts_members([("vxlanMode", pool.vxlan_mode), ("ipipMode", pool.ipip_mode)]),
    ]
    flags = (
        ("natOutgoing", pool.nat_outgoing),
        ("disabled", pool.disabled),
        ("disableBGPExport", pool.disable_bgp_export),
    )
    known += [(name, "true") for name, flag in flags if flag]
    if pool.block_size:
        known.append(("blockSize", str(pool.block_size)))
    known += texts_members([("nodeSelector", pool.node_selector), ("namespaceSelector", pool.namespace_selector)])
    if pool.allowed_uses:
        known.append(("allowedUses", texts_text(pool.allowed_uses)))
    known += texts_members([("assignmentMode", pool.assignment_mode)])
    return object_text(known, pool.spec_unknown)


def encode_pool(pool: Pool) -> str:
    status, unknown = pool_status(pool)
    return encode_resource("IPPool", pool.metadata, pool_spec(pool), status, unknown)


def pool_status(pool: Pool) -> tuple[str, Unknown]:
    """The status: the text that was read when it still says the same, else made from `conditions`, "" for none; and
    the members that nobody knows.
    """
    kept = dict(pool.unknown).get("status", "")
    if not kept or _conditions(parse(kept)) != pool.conditions:
        kept = _status_of(pool.conditions)
    return kept, tuple([(name, text) for name, text in pool.unknown if name != "status"])


def decode_pool(text: str) -> Pool:
    return read_pool(*open_resource(text))


def read_pool(members: Members, metadata: Metadata) -> Pool:
    """The pool that the members besides the metadata describe."""
    spec = members.inner("spec")
    status = members.take("status")
    conditions = _conditions(status)
    kept = "" if status is None else dumps(status)
    if kept == _status_of(conditions):  # nothing in it that `conditions` does not say
        kept = ""
    return Pool(
        metadata=metadata,
        cidr_text=spec.text("cidr"),
        block_size=spec.number("blockSize"),
        disabled=spec.flag("disabled"),
        node_selector=spec.text("nodeSelector"),
        namespace_selector=spec.text("namespaceSelector"),
        allowed_uses=spec.texts("allowedUses"),
        assignment_mode=spec.text("assignmentMode"),
        ipip_mode=spec.spare("ipipMode", spec.text, ""),
        vxlan_mode=spec.spare("vxlanMode", spec.text, ""),
        nat_outgoing=spec.spare("natOutgoing", spec.flag, False),
        disable_bgp_export=spec.spare("disableBGPExport", spec.flag, False),
        conditions=conditions,
        deleting=any(name == "deletionTimestamp" and shown != "null" for name, shown in metadata.unknown),
        unknown=(*((("status", kept),) if kept else ()), *members.rest()),
        spec_unknown=spec.rest(),
    )


def encode_reservation(reservation: IPReservation) -> str:
    spec = reservation_spec(reservation)
    return encode_resource("IPReservation", reservation.metadata, spec, unknown=reservation.unknown)


def reservation_spec(reservation: IPReservation) -> str:
    known = [("reservedCIDRs", texts_text(reservation.cidrs))] if reservation.cidrs else []
    return object_text(known, reservation.spec_unknown)


def decode_reservation(text: str) -> IPReservation:
    return read_reservation(*open_resource(text))


def read_reservation(members: Members, metadata: Metadata) -> IPReservation:
    """The reservation that the members besides the metadata describe."""
    spec = members.inner("spec")
    return IPReservation(
        metadata=metadata,
        cidrs=spec.texts("reservedCIDRs"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )
