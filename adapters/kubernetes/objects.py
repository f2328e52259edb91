"""Objects by their paths: one, or all of a collection, however many pages that takes; and families of records,
which are kept in objects in one and the same way.

Everything that one question needs goes out at once, and again at once for the pages that follow.

Invariant: a collection is complete and from one moment. If the server has forgotten that moment between two pages,
the collection is asked for anew and whole. Asking a family changes nothing, so that the questions of several families
can go out together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from adapters.kubernetes.answers import GONE, NOT_FOUND
from adapters.kubernetes.transport.http11 import MOST
from adapters.kubernetes.transport.seam import HttpRequest
from ports.datastore import NodeKey, ProfileKey, WorkloadEndpointKey
from ports.errors import Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from adapters.kubernetes.answers import Reply
    from adapters.kubernetes.api import Api
    from domain.json_text import Json
    from ports.clock import Deadline
    from ports.datastore import Need, Revision, Stored

    Object: TypeAlias = dict[str, Json]
    Found: TypeAlias = Object | list[Object] | None

PAGE = "500"
MOST_PAGES = 2000
"""A million objects. Some servers' pages are smaller."""
_ONE_FOR_EACH_POD, _MANY = ("/pods", "/ipamhandles"), 8  # times the octets of other collections: the large ones
_ANY_AGE = ("resourceVersion", "0")
UNCHECKED = (("fieldValidation", "Ignore"),)
"""Of a write: the server shall not look for members that it does not know, which it would only warn of. It drops them
either way, and decodes the object once instead of twice.
"""


def one(path: str) -> HttpRequest:
    """Asks for an object: answered with it, or None."""
    return HttpRequest("GET", path)


def all_of(path: str, labels: str = "", *, fields: str = "", may_lag: bool = False) -> HttpRequest:
    """Asks for the objects of a collection that have the labels and fields: answered with a list, in order of names.

    A collection that the server does not have is empty. `may_lag`: what the server remembers will do. To be up to date
    it has to ask its etcd, which it does every 100 ms only; over an etcd that cannot say (before 3.4.31 or 3.5.13) it
    reads the whole collection, however few have the labels.
    """
    query = [("limit", PAGE)]
    if labels:
        query.insert(0, ("labelSelector", labels))
    if fields:
        query.insert(0, ("fieldSelector", fields))
    if may_lag:
        query.append(_ANY_AGE)
    return HttpRequest("GET", path, tuple(query))


def read_objects(api: Api, requests: Sequence[HttpRequest], deadline: Deadline) -> list[Found]:
    """What each asks for, in order. `Refused` if the server does not understand one; else as `Api.read`."""
    searches = {request: _Collection(request, api.where) if request.query else _Single(request) for request in requests}
    while going := [search for search in searches.values() if search.next is not None]:
        replies = api.read([search.next for search in going if search.next is not None], deadline)
        for search, reply in zip(going, replies):
            search.take(reply)
    return [searches[request].found for request in requests]


class _Single:
    """`next` is what to send now, None when `found` is complete."""

    def __init__(self, request: HttpRequest) -> None:
        self.next: HttpRequest | None = request
        self.found: Found = None

    def take(self, reply: Reply) -> None:
        self.next = None
        if reply.ok:
            self.found = reply.object
        elif reply.status != NOT_FOUND:
            raise Refused(reply.message)


class _Collection(_Single):
    def __init__(self, request: HttpRequest, where: str) -> None:
        super().__init__(request)
        self._where = where
        self._first = request
        self._objects: list[Object] = []
        self.found = self._objects
        self._names: set[tuple[Json, Json]] = set()
        self._pages = self._octets = 0

    def take(self, reply: Reply) -> None:
        asked, self.next = self.next, None
        if reply.status == GONE and asked != self._first:
            self._objects.clear()
            self._names.clear()
            self.next = self._first.replace(query=tuple([pair for pair in self._first.query if pair[0] != "limit"]))
            return
        if not reply.ok:
            if reply.status != NOT_FOUND:
                raise Refused(reply.message)
            return
        items, metadata = reply.object.get("items"), reply.object.get("metadata")
        page = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        self._count(reply, page)
        self._objects += page
        if isinstance(token, str) and token:
            asked_first = [pair for pair in self._first.query if pair != _ANY_AGE]  # the token has an age already
            self.next = self._first.replace(query=(*asked_first, ("continue", token)))

    def _count(self, reply: Reply, page: list[Object]) -> None:
        """`Unavailable` for pages that would have no end."""
        self._pages += 1
        self._octets += reply.octets
        most = MOST * _MANY if self._first.path.endswith(_ONE_FOR_EACH_POD) else MOST
        if self._pages > MOST_PAGES or self._octets > most:
            raise Unavailable(f"{self._where}: the server's listing of {self._first.path} has no end")
        names = {_name(item) for item in page}
        if len(names) < len(page) or names & self._names:
            raise Unavailable(f"{self._where}: the server's listing of {self._first.path} repeats itself")
        self._names |= names


def _name(item: Object) -> tuple[Json, Json]:
    metadata = item.get("metadata")
    return (metadata.get("namespace"), metadata.get("name")) if isinstance(metadata, dict) else (None, None)


_OF_KUBERNETES = (NodeKey, ProfileKey, WorkloadEndpointKey)  # made of its own objects when they are read
_BY_KUBECTL = "Kubernetes says it by its nodes, namespaces, service accounts and pods: change these, with kubectl"


class Family(ABC):
    """What it does not define itself is not supported for its records."""

    @abstractmethod
    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[HttpRequest, ...]:
        """What to read; nothing if the answer needs no object."""

    @abstractmethod
    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:
        """What a key or listing is answered with, given what the requests found."""

    def create(self, key: Any, record: Any, deadline: Deadline) -> Stored[Any]:  # noqa: ARG002 - see the class
        raise unsupported("Create", key)

    def update(self, key: Any, record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:  # noqa: ARG002 - likewise
        raise unsupported("Update", key)

    def delete(self, key: Any, replaces: Revision | None, deadline: Deadline) -> None:  # noqa: ARG002 - likewise
        raise unsupported("Delete", key)


def unsupported(operation: str, key: object) -> Refused:
    said = f"operation {operation} is not supported on {key}"
    return Refused(said, details=_BY_KUBECTL if isinstance(key, _OF_KUBERNETES) else "")
