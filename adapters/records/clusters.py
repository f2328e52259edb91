"""ClusterInformation and Nodes ↔ JSON text.

Invariant: a node's spec and status are carried through member by member as they were; `status` is always written.
"""

from __future__ import annotations

from adapters.records.members import object_text
from adapters.records.resources import encode_resource, open_resource, texts_members
from domain.cluster import ClusterInformation, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.records.members import Members
    from domain.resource import Metadata


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
