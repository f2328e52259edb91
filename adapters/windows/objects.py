"""Looking things up in HNS by what we know them by: names and addresses, never ids.

Invariant: looking changes nothing, and what is gone by the time it is looked at was not there.
"""

from __future__ import annotations

from adapters.windows.documents import addresses, objects, query
from adapters.windows.seam import ENDPOINT, HnsMissing, hns_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.windows.seam import Document, Hns

_NETWORK_NOT_FOUND = 0x803B0001


class Objects:
    def __init__(self, hns: Hns) -> None:
        self._hns = hns

    def network(self, name: str) -> Document | None:
        return _named(self._hns.call("GET", "/networks/"), name)

    def existing_network(self, name: str) -> Document:
        """`HnsMissing` without one."""
        found = self.network(name)
        if found is None:
            raise hns_error(f"GET /networks/ ({name})", _NETWORK_NOT_FOUND)
        return found

    def older_endpoint(self, name: str) -> Document | None:
        return _named(self._hns.call("GET", "/endpoints/"), name)

    def older_rivals(self, name: str, address: str) -> list[Document]:
        """Endpoints of that name or address."""
        listed = objects(self._hns.call("GET", "/endpoints/"))
        return [one for one in listed if one.get("Name") == name or one.get("IPAddress") == address]

    def newer_endpoints(self, name: str) -> list[Document]:
        return [one for one in self._queried(query(Name=name)) if one.get("Name") == name]

    def newer_rivals(self, name: str, address: str) -> list[Document]:
        return [one for one in self._queried(query()) if one.get("Name") == name or address in addresses(one)]

    def _queried(self, what: Document) -> Iterator[Document]:
        for identity in self._hns.enumerate(ENDPOINT, what):
            try:
                yield self._hns.query(ENDPOINT, identity, query())
            except HnsMissing:
                continue


def _named(listed: object, name: str) -> Document | None:
    return next((one for one in objects(listed) if one.get("Name") == name), None)
