"""What the last calls on this host have left of Calico's records, so that the next one need not ask for it.

A line for each: the group and server that all of it is about; the blocks of the node, as it listed them when; the block
that was written last, of each IP version; and the handles of the host's containers.

Invariant: what a note says of a record goes with the version and the uid of its object, which every write over it
names. So a note that is out of date, or of another cluster, costs a refusal, and changes nothing. A note that makes no
sense is none.
"""

from __future__ import annotations

from adapters.records.custom_resources import decode_object, object_name, object_uid
from adapters.records.members import BadRecord
from domain.ipam.address import Cidr
from domain.ipam.block import CONFIRMED, Affinity, Handle, Owner
from domain.json_text import dumps, parse
from domain.moment import SECOND
from ports.datastore import Affinities, AffinityKey, BlockKey, HandleKey, Stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.json_text import Json
    from ports.datastore import Key, Need, Revision

FORM = "tortie 1"
_MOST_HANDLES = 512
_LONGEST_BLOCK = 1 << 16  # of a block's text: a full one of 256 addresses has more, and the rest needs room
_GOOD_FOR = 60 * SECOND  # that the node's blocks have not been given up meanwhile
_UNKNOWN = ""  # the revision of an affinity; what is written over it is read first


class Notes:
    """`server` is the one that they have to be about; `group` the API group of their objects, "" if there are none."""

    def __init__(self, server: str, text: str) -> None:
        self._server = server
        self.group = ""
        self._blocks: dict[int, tuple[str, str]] = {}  # IP version → range, object
        self._handles: dict[str, str] = {}  # handle → version, uid and counts
        self._own: tuple[Affinities, int, tuple[Cidr, ...]] | None = None  # the listing, when, and the blocks
        self._uids: dict[Key[Any], tuple[Revision, str]] = {}
        self._texts: list[str] = []  # the one that nothing has been added to since
        self._read: dict[BlockKey, Stored[Any] | None] = {}
        self.go_by(text)

    def go_by(self, text: str) -> None:
        """These instead, but for a listing that is later than theirs."""
        if self._texts == [text]:
            return
        before = self._own
        for one in (self._blocks, self._handles, self._uids, self._read):
            one.clear()
        self.group, self._own, self._texts = "", None, [text]
        first, *lines = text.split("\n")
        if first.startswith(f"{FORM} ") and first.endswith(f" {self._server}"):
            self.group = first.removeprefix(f"{FORM} ").removesuffix(f" {self._server}")
            for line in lines:
                kind, _, rest = line.partition(" ")
                self._take_up(kind, rest)
        listings = [one for one in (before, self._own) if one is not None]
        self._own = max(listings, key=lambda one: one[1]) if listings else None

    def _take_up(self, kind: str, rest: str) -> None:
        if kind == "handle":
            handle, _, about = rest.partition(" ")
            self._handles[handle] = about
        elif kind == "block":
            cidr, _, value = rest.partition(" ")
            self._blocks[6 if ":" in cidr else 4] = (cidr, value)
        elif kind == "own":
            self._own = _listing(rest)

    def text(self, group: str) -> str:
        """For the next call."""
        lines = [f"{FORM} {group} {self._server}"]
        if self._own is not None:
            listing, when, cidrs = self._own
            lines.append(" ".join(["own", str(when), str(listing.version or 0), str(listing.owner), *map(str, cidrs)]))
        lines += [f"block {cidr} {value}" for cidr, value in self._blocks.values() if len(value) <= _LONGEST_BLOCK]
        lines += [f"handle {handle} {about}" for handle, about in list(self._handles.items())[-_MOST_HANDLES:]]
        return "\n".join([*lines, ""])

    # --- asking ------------------------------------------------------------------------------------------------------

    def find(self, need: Need[Any], now: int) -> Any:
        """What `need` was answered with, or None. `now` is in nanoseconds."""
        try:
            if isinstance(need, BlockKey):
                return self._block(need)
            if isinstance(need, HandleKey):
                return self._handle(need)
            return self._affinities(need, now) if isinstance(need, Affinities) else None
        except (BadRecord, ValueError):
            return None

    def uid(self, key: Key[Any], revision: Revision) -> str:
        """That of the object which was found here at that revision, and nowhere else since; "" of any other."""
        known, uid = self._uids.get(key, ("", ""))
        return uid if known == revision else ""

    def _block(self, key: BlockKey) -> Stored[Any] | None:
        cidr, text = self._blocks.get(key.cidr.version, ("", ""))
        if cidr != str(key.cidr):
            return None
        if key not in self._read:
            self._read[key] = None
            value = parse(text)
            self._read[key] = self._found(decode_object(value, self.group, key), object_uid(value))
        return self._read[key]

    def _handle(self, key: HandleKey) -> Stored[Any] | None:
        version, uid, *counts = self._handles.get(key.handle, " ").split(" ")
        blocks = {Cidr.parse(cidr): int(count) for cidr, _, count in [one.partition("=") for one in counts]}
        return self._found(Stored(key, Handle(blocks), version), uid) if blocks else None

    def _found(self, stored: Stored[Any], uid: str) -> Stored[Any] | None:
        if not (uid and stored.revision):
            return None
        self._uids[stored.key] = (stored.revision, uid)
        return stored

    def _affinities(self, need: Affinities, now: int) -> tuple[Stored[Affinity], ...] | None:
        if self._own is None:
            return None
        listing, when, cidrs = self._own
        covered = listing.owner == need.owner and listing.version in (None, need.version)
        if not covered or not 0 <= now - when < _GOOD_FOR:
            return None
        return tuple(
            [
                Stored(AffinityKey(need.owner, cidr), Affinity(CONFIRMED), _UNKNOWN)
                for cidr in cidrs
                if _is_of(need, cidr)
            ]
        )

    # --- noting ------------------------------------------------------------------------------------------------------

    def saw(self, stored: Stored[Any], value: dict[str, Json], group: str) -> None:
        """An object as the server has just given it."""
        key, self.group = stored.key, group
        self._change(key)
        if isinstance(key, BlockKey):
            metadata: Json = {"name": object_name(key), "resourceVersion": stored.revision, "uid": object_uid(value)}
            kept: Json = {"kind": value.get("kind"), "metadata": metadata, "spec": value.get("spec")}
            self._blocks[key.cidr.version] = (str(key.cidr), dumps(kept))
        elif isinstance(key, HandleKey):
            self._handles.pop(key.handle, None)  # the latest are last
            counts = [f"{cidr}={count}" for cidr, count in stored.record.blocks.items()]
            if not stored.record.unknown and _is_word(key.handle):
                self._handles[key.handle] = " ".join([stored.revision, object_uid(value), *counts])
        elif isinstance(key, AffinityKey):
            self._saw_affinity(key, stored.record)

    def _saw_affinity(self, key: AffinityKey, affinity: Affinity) -> None:
        if self._own is None or key.owner != self._own[0].owner:
            return
        listing, when, cidrs = self._own
        if affinity.state == CONFIRMED:
            self._own = (listing, when, tuple(dict.fromkeys((*cidrs, key.cidr))))
        elif key.cidr in cidrs:
            self._own = None

    def listed(self, listing: Affinities, found: tuple[Stored[Any], ...], now: int) -> None:
        """A node's own blocks, all of them."""
        if not listing.owner.name or listing.to is not None:
            return
        self._texts.clear()
        self._own = None
        if all(stored.record.state == CONFIRMED for stored in found) and _is_word(listing.owner.name):
            self._own = (listing, now, tuple([_block_of(stored) for stored in found]))

    def gone(self, key: Key[Any]) -> None:
        """The record is gone, or not what was thought."""
        self._change(key)
        if isinstance(key, BlockKey) and self._blocks.get(key.cidr.version, ("", ""))[0] == str(key.cidr):
            del self._blocks[key.cidr.version]
        elif isinstance(key, HandleKey):
            self._handles.pop(key.handle, None)
        elif isinstance(key, AffinityKey) and self._own is not None and key.cidr in self._own[2]:
            self._own = None

    def _change(self, key: Key[Any]) -> None:
        self._texts.clear()
        self._uids.pop(key, None)
        if isinstance(key, BlockKey):
            self._read.pop(key, None)


def _block_of(stored: Stored[Any]) -> Cidr:
    key = stored.key
    assert isinstance(key, AffinityKey)  # noqa: S101 - narrows the type
    return key.cidr


def _is_of(need: Affinities, cidr: Cidr) -> bool:
    return need.version in (None, cidr.version) and need.to in (None, cidr)


def _is_word(text: str) -> bool:
    return bool(text) and text.isprintable() and " " not in text


def _listing(text: str) -> tuple[Affinities, int, tuple[Cidr, ...]] | None:
    try:
        when, version, owner, *cidrs = text.split(" ")
        listing = Affinities(Owner.parse(owner), int(version) or None)
        return listing, int(when), tuple([Cidr.parse(cidr) for cidr in cidrs])
    except ValueError:
        return None
