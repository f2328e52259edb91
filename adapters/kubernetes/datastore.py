"""The datastore in a Kubernetes cluster that Calico itself may share: custom resources, and what is derived from pods,
nodes, namespaces and service accounts.

Each kind of record is in the hands of one family; here their questions are put together, so that all that one `fetch`
needs goes out at once.

Invariant: a record is read and written by one family only.
"""

from __future__ import annotations

from adapters.kubernetes.custom_objects import CustomObjects
from adapters.kubernetes.derived import DerivedProfiles, KubernetesNodes
from adapters.kubernetes.groups import Groups
from adapters.kubernetes.objects import read_objects
from adapters.kubernetes.pod_endpoints import PodEndpoints
from ports.datastore import (
    Datastore,
    NodeKey,
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from ports.errors import Expired, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    from adapters.kubernetes.api import Api
    from adapters.kubernetes.objects import Family
    from domain.ipam.block import Owner
    from ports.clock import Clock, Deadline
    from ports.datastore import BadText, Key, Listing, Need, Revision, Stored

    R = TypeVar("R")


class KubernetesDatastore(Datastore):
    """`group` is CALICO_API_GROUP, `host_prefix` FELIX_INTERFACEPREFIX; with `no_ipam` there are no IPAM records.

    Whoever made the `api` may share it with a `KubernetesCluster`, so that neither asks for what the other has just
    read. Closing this closes it.
    """

    lists_in_one_go = False  # a page has 500 objects
    brings_along = True

    def __init__(
        self, api: Api, clock: Clock, *, group: str = "", host_prefix: str = "cali", no_ipam: bool = False
    ) -> None:
        self._api = api
        self._clock = clock
        self._custom = CustomObjects(api, Groups(api, group), clock)
        self._nodes = KubernetesNodes(api)
        endpoints, profiles = PodEndpoints(api, host_prefix), DerivedProfiles()
        self._families: dict[type, Family] = {
            WorkloadEndpointKey: endpoints,
            WorkloadEndpoints: endpoints,
            NodeKey: self._nodes,
            Nodes: self._nodes,
            ProfileKey: profiles,
            Profiles: profiles,
        }
        if no_ipam:
            from adapters.kubernetes.no_ipam import IPAM_RECORDS, NoIpam

            self._families.update(dict.fromkeys(IPAM_RECORDS, NoIpam()))
        self._expected: tuple[Need[Any], ...] = ()

    @property
    def left_out(self) -> tuple[BadText, ...]:  # type: ignore[override]  # one family has them
        return self._custom.left_out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Safe to repeat."""
        self._api.close()

    def recall(self, notes: str) -> None:
        self._custom.recall(notes)

    def notes(self) -> str:
        return self._custom.noted()

    def remembered(self, need: Need[Any]) -> Any:
        return self._custom.remembered(need) if self._family(need) is self._custom else None

    def expect(self, *needs: Need[Any]) -> None:
        self._expected += needs

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        self._expire(deadline)
        asked = [self._family(need).requests(need, deadline) for need in needs]
        self._announce(deadline)
        found = read_objects(self._api, [request for requests in asked for request in requests], deadline)
        answers = []
        for need, requests in zip(needs, asked):
            mine, found = found[: len(requests)], found[len(requests) :]
            answers.append(self._family(need).answer(need, mine, deadline))
        return tuple(answers)

    def _announce(self, deadline: Deadline) -> None:
        expected, self._expected = self._expected, ()
        for need in expected:
            try:
                self._api.expect(self._family(need).requests(need, deadline))
            except PortError:  # what no object can have for a name: whoever asks for it is told
                continue

    def unreadable(self, deadline: Deadline, listing: Listing[Any] | None = None) -> tuple[BadText, ...]:
        self._expire(deadline)
        custom = self._family(listing) is self._custom if listing is not None else True
        found = self._custom.unreadable(deadline, listing) if custom else ()
        return found + self._nodes.unreadable(deadline) if isinstance(listing, (Nodes, type(None))) else found

    def upgrade_affinities(self, owner: Owner, deadline: Deadline) -> None:
        self._expire(deadline)
        self._custom.upgrade_affinities(owner, deadline)

    def create(self, key: Key[R], record: R, deadline: Deadline) -> Stored[R]:
        self._expire(deadline)
        return self._family(key).create(key, record, deadline)

    def update(self, key: Key[R], record: R, replaces: Revision, deadline: Deadline) -> Stored[R]:
        self._expire(deadline)
        return self._family(key).update(key, record, replaces, deadline)

    def delete(self, key: Key[R], replaces: Revision | None, deadline: Deadline) -> None:
        self._expire(deadline)
        self._family(key).delete(key, replaces, deadline)

    def _family(self, need: Need[Any]) -> Family:
        return self._families.get(type(need), self._custom)

    def _expire(self, deadline: Deadline) -> None:
        if deadline.passed(self._clock.monotonic()):
            raise Expired(f"datastore {self._api.where}")
