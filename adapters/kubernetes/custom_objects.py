"""Calico's own records as custom resources: one object each, every change of it under a precondition.

They are in one of two API groups, which hold different objects. A wrong choice finds nothing, and what "nothing" means
to a DEL is that there is nothing to release. So only an answer about groups decides; as long as there is none, nothing
else is asked.

Deletion is one request that names the version it means. The original marks an object as deleted first, removes it
with a second request, and may die in between; whoever meets such a mark takes the deletion to its end, and nobody
sees the record any more. Both ways work side by side: the mark changes the version, and an object that is gone is gone.

Invariant: nothing is ever written or deleted over a version that was not read. The group is chosen once, at the first
need, and holds as long as the process.
"""

from __future__ import annotations

from adapters.kubernetes.answers import CONFLICT, NOT_FOUND, refusal
from adapters.kubernetes.objects import UNCHECKED, Family, all_of, one, read_objects
from adapters.kubernetes.transport.seam import HttpRequest
from adapters.records.custom_resources import (
    UNLABELLED,
    ObjectKey,
    affinity_selector,
    collection_path,
    decode_object,
    encode_object,
    is_deleted,
    key_named,
    object_path,
    object_revision,
    object_uid,
)
from adapters.records.members import BadRecord
from domain.json_text import dumps
from domain.moment import rfc3339
from ports.datastore import (
    Affinities,
    AffinityKey,
    BadText,
    BlockKey,
    Blocks,
    ClusterInformations,
    HandleKey,
    Handles,
    IPAMConfigurations,
    IPPools,
    IPReservations,
    Key,
)
from ports.errors import AlreadyExists, Conflict, Missing, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.answers import Reply
    from adapters.kubernetes.api import Api
    from adapters.kubernetes.groups import Groups
    from adapters.kubernetes.notes import Notes
    from adapters.kubernetes.objects import Found, Object
    from domain.ipam.block import Owner
    from domain.json_text import Json
    from ports.clock import Clock, Deadline
    from ports.datastore import Need, Revision, Stored

_TRIES = 5
_MARKED = frozenset((BlockKey, AffinityKey, HandleKey))  # the kinds that the original marks before it deletes them
_LISTINGS = (Blocks, Affinities, Handles, IPPools, IPReservations, IPAMConfigurations, ClusterInformations)
_FIRST_PAUSE = 0.1  # seconds, doubled each time


class CustomObjects(Family):
    def __init__(self, api: Api, groups: Groups, clock: Clock) -> None:
        self._api = api
        self._groups = groups
        self._clock = clock
        self.left_out: tuple[BadText, ...] = ()
        self.notes: Notes | None = None  # nobody but plugins leaves any

    def recall(self, text: str) -> None:
        from adapters.kubernetes.notes import Notes

        if self.notes is None:
            self.notes = Notes(self._api.where, text)
        self.notes.go_by(text)

    def noted(self) -> str:
        """What a later call may start from."""
        return self.notes.text(self._groups.known) if self.notes is not None and self._groups.known else ""

    def remembered(self, need: Need[Any]) -> Any:
        notes = self.notes
        if notes is None or notes.group != (self._groups.known or notes.group):
            return None
        return notes.find(need, self._clock.now())

    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[HttpRequest, ...]:
        group = self._groups.choose(deadline)
        if isinstance(need, Key):
            return (one(object_path(need, group)),)
        labels = affinity_selector(need) if isinstance(need, Affinities) else ""
        return (all_of(collection_path(need, group), labels, may_lag=getattr(need, "may_lag", False)),)

    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:
        (objects,) = found
        if isinstance(need, Key):
            return self._one(need, None if isinstance(objects, list) else objects, deadline)
        listed = [self._listed(value, deadline) for value in objects or () if isinstance(value, dict)]
        chosen = tuple([stored for stored in listed if stored is not None and _belongs(need, stored.key)])
        if self.notes is not None and isinstance(need, Affinities):
            self.notes.listed(need, chosen, self._clock.now())
        return chosen

    def create(self, key: Key[Any], record: Any, deadline: Deadline) -> Stored[Any]:
        """Over an object that is only waiting for its end, that end comes first."""
        group = self._groups.choose(deadline)
        object_path(key, group)  # BadRecord for a name that no object can have
        body = encode_object(key, self._born(record), group).encode()
        request = HttpRequest("POST", collection_path(key, group), UNCHECKED, body)
        for _ in range(_TRIES):
            reply = self._api.write(request, deadline)
            if reply.ok:
                return self._written(key, reply, group)
            error = refusal(reply, key)
            if not (isinstance(error, AlreadyExists) and type(key) in _MARKED and self._made_way(key, deadline)):
                raise error
        raise error

    def update(self, key: Key[Any], record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:
        group = self._groups.choose(deadline)
        body = encode_object(key, record, group, _version(key, replaces), self._noted_uid(key, replaces)).encode()
        self._forget(key)
        reply = self._api.write(HttpRequest("PUT", object_path(key, group), UNCHECKED, body), deadline)
        if not reply.ok:
            raise refusal(reply, key)
        return self._written(key, reply, group)

    def delete(self, key: Key[Any], replaces: Revision | None, deadline: Deadline) -> None:
        conditions: dict[str, Json] = {} if replaces is None else {"resourceVersion": _version(key, replaces)}
        if replaces is not None and (uid := self._noted_uid(key, replaces)):
            conditions["uid"] = uid
        self._forget(key)
        reply = self._api.write(self._deletion(key, conditions, deadline), deadline)
        if not reply.ok:
            raise refusal(reply, key)

    def _noted_uid(self, key: Key[Any], revision: Revision) -> str:
        """A version alone does not tell an object of this cluster from one of another, which a note may be about."""
        return "" if self.notes is None else self.notes.uid(key, revision)

    def _forget(self, key: Key[Any]) -> None:
        """Whatever comes of a write, the record is not what it was."""
        if self.notes is not None:
            self.notes.gone(key)

    def _saw(self, stored: Stored[Any], value: Object) -> Stored[Any]:
        if self.notes is not None:
            self.notes.saw(stored, value, self._groups.known)
        return stored

    def _written(self, key: Key[Any], reply: Reply, group: str) -> Stored[Any]:
        """What the server says to have written now. If that is something else, nobody knows what has happened."""
        try:
            return self._saw(decode_object(reply.object, group, key), reply.object)
        except BadRecord as error:
            why = f"the server answers a write with something else: {error.fault}"
            raise Unavailable(f"{self._api.where}: {why}") from error

    def unreadable(self, deadline: Deadline, listing: Need[Any] | None = None) -> tuple[BadText, ...]:
        """All objects of all kinds, or of a listing's, that are no records."""
        group = self._groups.choose(deadline)
        kinds = _LISTINGS if listing is None else (type(listing),)
        collections = [all_of(collection_path(kind, group)) for kind in kinds]
        faults: list[BadText] = []
        for objects in read_objects(self._api, collections, deadline):
            for value in objects if isinstance(objects, list) else ():
                try:
                    decode_object(value, group)
                except BadRecord as error:
                    faults.append(_bad(value, error))
        return tuple(faults)

    def upgrade_affinities(self, owner: Owner, deadline: Deadline) -> None:
        """Write again, and so with labels, the owner's affinities that have none; as often as others interfere."""
        group = self._groups.choose(deadline)
        request, pause = all_of(collection_path(Affinities, group), UNLABELLED), _FIRST_PAUSE
        while not self._upgraded(owner, read_objects(self._api, [request], deadline)[0], deadline):
            self._clock.sleep(min(pause, deadline.left(self._clock.monotonic())))
            pause *= 2

    def _upgraded(self, owner: Owner, objects: Found, deadline: Deadline) -> bool:
        """False if somebody else has written one of them meanwhile."""
        done = True
        for value in objects if isinstance(objects, list) else ():
            stored = self._listed(value, deadline)
            if stored is None or not isinstance(stored.key, AffinityKey) or stored.key.owner != owner:
                continue
            try:
                self.update(stored.key, stored.record, stored.revision, deadline)
            except (Conflict, Missing):
                done = False
        return done

    def _one(self, key: Key[Any], value: Object | None, deadline: Deadline) -> Stored[Any] | None:
        """BadRecord when the object is no record, or another key's."""
        group = self._groups.choose(deadline)
        for _ in range(_TRIES):
            if value is None:
                return None
            if not (type(key) in _MARKED and is_deleted(value)):
                return self._saw(decode_object(value, group, key), value)
            if self._finished(key, value, deadline):
                return None
            (found,) = read_objects(self._api, [one(object_path(key, group))], deadline)
            value = found if isinstance(found, dict) else None
        raise Conflict(key)

    def _listed(self, value: Object, deadline: Deadline) -> Stored[Any] | None:
        """None for what a listing leaves out: one bad record must not keep a node from using the others."""
        if is_deleted(value):
            return None
        try:
            return decode_object(value, self._groups.choose(deadline))
        except BadRecord as error:
            if isinstance(error.key, Key):
                self.left_out += (BadText(error.key, error.fault),)
            return None

    def _made_way(self, key: Key[Any], deadline: Deadline) -> bool:
        """Whether an object that stood in the way of a new one was about to go, and has gone."""
        path = object_path(key, self._groups.choose(deadline))
        (value,) = read_objects(self._api, [one(path)], deadline)
        if isinstance(value, dict) and is_deleted(value):
            self._finished(key, value, deadline)
            return True
        return value is None

    def _finished(self, key: Key[Any], value: Object, deadline: Deadline) -> bool:
        """Remove an object that is marked as deleted; False if it has changed, or was made again, since it was read."""
        conditions: dict[str, Json] = {"uid": object_uid(value), "resourceVersion": object_revision(value)}
        reply = self._api.write(self._deletion(key, conditions, deadline), deadline)
        if not reply.ok and reply.status not in (NOT_FOUND, CONFLICT):
            raise refusal(reply, key)
        return reply.status != CONFLICT

    def _deletion(self, key: Key[Any], conditions: dict[str, Json], deadline: Deadline) -> HttpRequest:
        options: dict[str, Json] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if conditions:
            options["preconditions"] = conditions
        return HttpRequest("DELETE", object_path(key, self._groups.choose(deadline)), body=dumps(options).encode())

    def _born(self, record: Any) -> Any:
        """A resource gets the creation time that it lacks; its uid is the server's to give."""
        metadata = getattr(record, "metadata", None)
        if metadata is None or metadata.created:
            return record
        return record.replace(metadata=metadata.replace(created=rfc3339(self._clock.now())))


def _bad(value: Object, error: BadRecord) -> BadText:
    """An object that does not say which record it is goes by its name, if that says so."""
    from adapters.records.salvage import salvaged

    key = error.key if isinstance(error.key, Key) else ObjectKey("object", str(value.get("kind")))
    if isinstance(key, ObjectKey):
        key = key_named(key) or key
    return BadText(
        key, error.fault, dumps(value), object_revision(value), salvaged(key, value.get("spec"), "affinityClaimTime")
    )


def _version(key: Key[Any], revision: Revision) -> str:
    """The server takes a version that is no number for a mistake of ours rather than for an old one."""
    if not (revision.isascii() and revision.isdigit() and len(revision) < 21 and int(revision) > 0):
        raise Conflict(key)
    return revision


def _belongs(listing: Need[Any], key: Key[Any]) -> bool:
    if isinstance(listing, Affinities) and isinstance(key, AffinityKey):
        same = key.owner.kind == listing.owner.kind and listing.owner.name in ("", key.owner.name)
        return same and listing.version in (None, key.cidr.version) and listing.to in (None, key.cidr)
    if isinstance(listing, Blocks) and isinstance(key, BlockKey):
        near = listing.around is None or listing.around.overlaps(key.cidr)
        return near and listing.version in (None, key.cidr.version)
    return True
