"""The kinds of v3 resources that operators see, with every name by which calicoctl knows them.

Invariant: a name belongs to one kind.
"""

from __future__ import annotations

from domain.value import Value
from ports.datastore import (
    ClusterInformationKey,
    ClusterInformations,
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

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the command line takes, singular first."""
        return (self.name.lower(), self.plural, *self.aliases)

    def key(self, name: str, namespace: str = "") -> Key[Any]:
        key: Key[Any] = self.key_type(namespace, name) if self.namespaced else self.key_type(name)
        return key

    def listing(self, namespace: str = "") -> Listing[Any]:
        """All of them; of a namespaced kind those of one namespace, or all with ""."""
        listing: Listing[Any] = self.listing_type(namespace) if self.namespaced else self.listing_type()
        return listing


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


def kind_named(text: str) -> Kind | None:
    """The kind by any of its names, case not counting; None for none of ours."""
    wanted = text.lower()
    return next((kind for kind in KINDS if wanted in kind.names), None)


def kind_of(key: Key[Any]) -> Kind:
    """LookupError for a key of a record that is no v3 resource."""
    for kind in KINDS:
        if type(key) is kind.key_type:
            return kind
    raise LookupError(f"{key} is no v3 resource")
