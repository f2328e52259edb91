"""The kinds of records that operators see, with every name by which calicoctl or kubectl knows them.

Invariant: a name belongs to one kind.
"""

from __future__ import annotations

from domain.value import Value
from ports.datastore import (
    Affinities,
    AffinityKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    ClusterInformations,
    HandleKey,
    Handles,
    IPAMConfigurationKey,
    IPAMConfigurations,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    IPReservations,
    NodeKey,
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
    affinities_of_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ports.datastore import Key, Listing


class Kind(Value):
    """`name` is the manifest's `kind`; `aliases` are further names, all lower case like `plural`."""

    name: str
    plural: str
    aliases: tuple[str, ...]
    key_type: Any
    listing_type: Any
    namespaced: bool = False
    inner: bool = False
    """IPAM's own, which allocation writes: people read them, and nobody names them by key."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the command line takes, singular first."""
        return (self.name.lower(), self.plural, *self.aliases)

    def key(self, name: str, namespace: str = "") -> Key[Any]:
        key: Key[Any] = self.key_type(namespace, name) if self.namespaced else self.key_type(name)
        return key

    def listings(self, namespace: str = "") -> tuple[Listing[Any], ...]:
        """All of them; of a namespaced kind those of one namespace, or all with ""."""
        if self.key_type is AffinityKey:
            return affinities_of_all()
        listing: Listing[Any] = self.listing_type(namespace) if self.namespaced else self.listing_type()
        return (listing,)


KINDS = (
    Kind("IPPool", "ippools", ("ipp", "ipps", "pool", "pools"), IPPoolKey, IPPools),
    Kind("IPReservation", "ipreservations", ("reservation", "reservations"), IPReservationKey, IPReservations),
    Kind(
        "IPAMConfiguration",
        "ipamconfigurations",
        ("ipamconfig", "ipamconfigs"),
        IPAMConfigurationKey,
        IPAMConfigurations,
    ),
    Kind(
        "ClusterInformation",
        "clusterinformations",
        ("clusterinfo", "clusterinfos"),
        ClusterInformationKey,
        ClusterInformations,
    ),
    Kind("Node", "nodes", ("no", "nos"), NodeKey, Nodes),
    Kind("Profile", "profiles", ("pro", "pros"), ProfileKey, Profiles),
    Kind(
        "WorkloadEndpoint",
        "workloadendpoints",
        ("wep", "weps"),
        WorkloadEndpointKey,
        WorkloadEndpoints,
        namespaced=True,
    ),
)

INNER_KINDS = (
    Kind("IPAMBlock", "ipamblocks", ("block", "blocks"), BlockKey, Blocks, inner=True),
    Kind("IPAMHandle", "ipamhandles", ("handle", "handles"), HandleKey, Handles, inner=True),
    Kind("BlockAffinity", "blockaffinities", ("affinity", "affinities"), AffinityKey, Affinities, inner=True),
)


def kind_named(text: str) -> Kind | None:
    """The kind by any of its names, case not counting; None for none of ours. kubectl adds the API group to a name."""
    wanted = text.lower().removesuffix(".crd.projectcalico.org").removesuffix(".projectcalico.org")
    return next((kind for kind in (*KINDS, *INNER_KINDS) if wanted in kind.names), None)


def kind_of(key: Key[Any]) -> Kind:
    """LookupError for a key of a record that operators do not see as such."""
    for kind in (*KINDS, *INNER_KINDS):
        if type(key) is kind.key_type:
            return kind
    raise LookupError(f"{key} is of no kind that operators know")
