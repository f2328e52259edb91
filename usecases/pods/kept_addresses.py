"""The addresses that are kept for a name: which of them a pod may have, and how it comes to have one.

Nobody has an unused one. One that a pod has is another's as long as that pod may run: unless it is an earlier sandbox
of our own pod, the API server is asked, after the address's record was read. A pod that it does not know by that UID
any more is gone for good, as UIDs never come back; that is what tells a lost node's pod from one that is merely late.
The record is written over only as it was read, so whoever takes the address meanwhile keeps it.

Undoing puts back what was there, and only while it is still exactly this call's (its time is in it).

Invariant: an address is answered only if its block, as written, names this sandbox.
"""

from __future__ import annotations

from domain.ipam.kept import POD_UID, is_unused
from domain.ipam.pools import pool_of
from domain.ipam.request import Allocation
from domain.value import Value
from ports.cluster import NoSuchObject
from ports.datastore import BlockKey, HandleKey
from ports.errors import BadConfiguration, Refused, Unauthorized
from usecases.ipam.count_handle import settle
from usecases.ipam.free_addresses import Chosen, free_in_block
from usecases.ipam.work import LEAVE, LostRace, guarded_write, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Address, Cidr
    from domain.ipam.block import Attribute, Block
    from domain.ipam.request import AssignRequest
    from ports.clock import Deadline
    from ports.cluster import Cluster
    from ports.datastore import Stored
    from usecases.calls.safeguards import Undo
    from usecases.ipam.allocation_terms import Terms
    from usecases.ipam.work import Leave, Work


class NotKept(Exception):
    """The pod gets ordinary addresses. `str()` says why."""


class Place(Value):
    """An address of the name's, and who has it."""

    stored: Stored[Block]
    ordinal: int
    holder: Attribute

    @property
    def address(self) -> Address:
        return self.stored.record.cidr.at(self.ordinal)


class KeptAddresses:
    """`before` has every address that was the name's before this call took it.

    `interface` is how the pod's device on this host is called.
    """

    def __init__(self, work: Work, cluster: Cluster, request: AssignRequest, undo: Undo, interface: str) -> None:
        self._work = work
        self._cluster = cluster
        self._request = request
        self._undo = undo
        self._interface = interface
        self.before: set[tuple[Cidr, int]] = set()

    def claim(self, terms: Mapping[int, Terms]) -> tuple[Allocation, ...]:
        """One address of each IP version that there is one of. NotKept if it cannot be had."""
        return until_won(HandleKey(self._request.handle), lambda: self._claim(terms))

    def _claim(self, terms: Mapping[int, Terms]) -> tuple[Allocation, ...]:
        """Everything is decided before anything is taken."""
        places = self._places()
        chosen = [self._choose(each, places) for each in terms.values()]
        return tuple([self._take(place) for place in chosen if place is not None])

    def _places(self) -> list[Place]:
        work, name = self._work, self._request.handle
        handle = work.datastore.get(HandleKey(name), work.deadline)
        keys = [BlockKey(cidr) for cidr in (handle.record.blocks if handle else ())]
        found = work.datastore.fetch(*keys, deadline=work.deadline) if keys else ()
        return [
            Place(stored, ordinal, stored.record.attributes[stored.record.allocations[ordinal] or 0])
            for stored in found
            if stored is not None
            for ordinal in stored.record.held_by(name)
        ]

    def _choose(self, terms: Terms, places: list[Place]) -> Place | None:
        """One that this call has already, else the first that it may have; None if the name has none."""
        found = [place for place in places if place.address.version == terms.version]
        found.sort(key=lambda place: not self._is_ours(place.holder))
        refusals: list[str] = []
        for place in found:
            refusal = self._refusal(place, terms)
            if refusal:
                refusals.append(refusal)
            elif _fits(place, terms):
                return place
            else:
                self._give_up(place, terms.config.cooldown_seconds)
        if refusals:
            raise NotKept(refusals[0])
        return None

    def _is_ours(self, holder: Attribute) -> bool:
        return holder == self._request.attribute

    def _refusal(self, place: Place, terms: Terms) -> str:
        """Why this pod cannot have the address, although it is kept for its name; "" if it can."""
        if self._is_ours(place.holder):
            return ""
        block, owner = place.stored.record, str(self._request.owner)
        if terms.config.strict_affinity and block.affinity != owner:
            return f"{place.address} is in a block of {block.affinity or 'nobody'}, and strictAffinity is set"
        if not is_unused(place.holder) and not self._has_left(place.holder.secondary):
            about = place.holder.secondary
            return f"pod {about.get('namespace')}/{about.get('pod')} on node {about.get('node')} has {place.address}"
        interface = self._work.interface_of(place.address)
        return f"{interface} of this host has {place.address}" if interface not in ("", self._interface) else ""

    def _has_left(self, about: Mapping[str, str]) -> bool:
        """Whether the pod that has it is gone, or is our own in an earlier sandbox. A pod never changes its node."""
        mine = self._request.secondary
        uid = about.get(POD_UID, "")
        if uid and uid == mine.get(POD_UID):
            return about.get("node") == mine["node"]
        try:
            pod = self._cluster.pod_now(about.get("namespace", ""), about.get("pod", ""), self._work.deadline)
        except NoSuchObject:
            return True
        except (BadConfiguration, Unauthorized, Refused) as error:
            self._work.log.debug("Cannot find out whether a pod is gone", pod=about.get("pod"), error=error)
            return False
        return bool(uid) and pod.uid != uid

    def _give_up(self, place: Place, cooldown: int) -> None:
        """It is of no use to the name: its pool serves this pod no more, or it is reserved."""
        cidr, name = place.stored.record.cidr, self._request.handle

        def unchanged(block: Block) -> tuple[int, ...]:
            return (place.ordinal,) if block.holder(place.ordinal) == place.holder else ()

        if free_in_block(self._work, cidr, Chosen(unchanged, cooldown)).holders:
            self._work.log.info("Gave up a kept address that is not for this pod any more", address=place.address)
        settle(self._work, name, cidr)

    def _take(self, place: Place) -> Allocation:
        cidr, ordinal, mine = place.stored.record.cidr, place.ordinal, self._request.attribute

        def taken(present: Block | None) -> Block | Leave:
            if present is None or present.holder(ordinal) != place.holder:
                return LEAVE
            return present.give(ordinal, mine).replace(sequence=present.sequence + 1)

        left: Stored[Block] | None = place.stored
        if not self._is_ours(place.holder):
            self.before.add((cidr, ordinal))
            self._undo.register(f"take {place.address}", lambda until: self._hand_back(place, until))
            left = guarded_write(self._work, BlockKey(cidr), taken, place.stored)
        if left is None or left.record.holder(ordinal) != mine:
            raise LostRace
        return Allocation(cidr, ordinal, left.record.sequences.get(ordinal, 0), held_before=True)

    def _hand_back(self, place: Place, deadline: Deadline) -> None:
        def handed_back(present: Block | None) -> Block | Leave:
            if present is None or present.holder(place.ordinal) != self._request.attribute:
                return LEAVE
            return present.give(place.ordinal, place.holder).replace(sequence=present.sequence + 1)

        guarded_write(self._work.until(deadline), BlockKey(place.stored.record.cidr), handed_back)


def _fits(place: Place, terms: Terms) -> bool:
    """Whether the pod could be given the address if nobody had it."""
    serves = pool_of(terms.choice.usable, place.address) is not None
    return serves and not any(place.address in cidr for cidr in terms.reserved)
