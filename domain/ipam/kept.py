"""An address that is kept for a name while no pod has it: what its record says, and when its time is over.

As with a virtual machine a handle of its own holds it, made of network, namespace and name, so every tool of Calico's
reads it as an allocation like others. While a pod has it, the attributes name the pod as they name any, and beside it
the sandbox and the pod's UID, by which two pods of one name are told apart. Between two pods they say until when it is
kept, and leave out pod and node, so that it is not taken for leaked. How long it is kept stands with the address: who
gives it up does not need the configuration that it was given under.

Invariant: pure; whether an address is kept is told by its own attributes, never by what its handle looks like.
"""

from __future__ import annotations

from domain.ipam.block import KEPT_BY, Attribute
from domain.ipam.release import Release
from domain.moment import SECOND, go_string, parse_go_string
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from domain.ipam.block import Block

KEPT_AS = "kept-as"  # namespace/name
KEPT_SECONDS = "kept-seconds"  # for so long, once nobody has it
KEPT_OWNER = "kept-owner"  # what the pod's controller is
POD_UID = "kept-uid"  # of the pod that has it; `KEPT_BY` is its sandbox
KEPT_ON, KEPT_UNTIL = "kept-on", "kept-until"  # the node that had it last, and when its time is over

LONGEST_HANDLE = 253  # of the name of an object in Kubernetes
DEFAULT_SECONDS = 86_400


class KeptName(Value):
    """What an address is kept for."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def handle(self, network: str) -> str:
        """The handle that holds its addresses."""
        return f"{network}.kept.{self.namespace}.{self.name}"


def is_kept(holder: Attribute) -> bool:
    """Whether it is, or will be, kept when its pod goes."""
    return KEPT_AS in holder.secondary


def is_unused(holder: Attribute) -> bool:
    """Whether it is kept for a name, and no pod has it."""
    about = holder.secondary
    return KEPT_AS in about and KEPT_BY not in about and "pod" not in about


def is_over(holder: Attribute, now: int) -> bool:
    """Whether nobody has it any more, and its time is over. A time that cannot be read is over."""
    if not is_unused(holder):
        return False
    try:
        return parse_go_string(holder.secondary.get(KEPT_UNTIL, "")) <= now
    except ValueError:
        return True


def in_use(name: KeptName, container: str, uid: str, owner: str, seconds: int) -> dict[str, str]:
    """What the attributes of a pod's address say beside the usual."""
    said = {KEPT_OWNER: owner, POD_UID: uid}
    found = {KEPT_AS: str(name), KEPT_BY: container, KEPT_SECONDS: str(seconds)}
    return {**found, **{key: text for key, text in said.items() if text}}


def left_alone(holder: Attribute, now: int) -> Attribute:
    """The same address once its pod has gone."""
    about = holder.secondary
    kept = {key: about[key] for key in (KEPT_AS, KEPT_SECONDS, KEPT_OWNER) if key in about}
    kept[KEPT_UNTIL] = go_string(now + _seconds(about) * SECOND)
    if about.get("node"):
        kept[KEPT_ON] = about["node"]
    return Attribute(holder.handle, kept)


def _seconds(about: Mapping[str, str]) -> int:
    text = about.get(KEPT_SECONDS, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else DEFAULT_SECONDS


def last_node(holder: Attribute) -> str:
    """Where the pod is that has it, or was that had it last."""
    return holder.secondary.get("node") or holder.secondary.get(KEPT_ON, "")


def kept_in(block: Block) -> Iterator[tuple[int, Attribute]]:
    """(ordinal, holder) of each address of a block that is kept."""
    kept = {index for index, attribute in enumerate(block.attributes) if is_kept(attribute)}
    for ordinal, index in enumerate(block.allocations if kept else ()):
        if index is not None and index in kept:
            yield ordinal, block.attributes[index]


def left_by(block: Block, container: str, now: int) -> Block:
    """The block once a sandbox has left the kept addresses that it has there."""
    left = block
    for ordinal, holder in kept_in(block):
        if holder.secondary.get(KEPT_BY) == container:
            left = left.give(ordinal, left_alone(holder, now))
    return left


def kept_name_of(block: Block, container: str) -> str:
    """What the kept addresses that a sandbox has there are kept for; "" if it has none."""
    names = [holder.secondary[KEPT_AS] for _, holder in kept_in(block) if holder.secondary.get(KEPT_BY) == container]
    return next(iter(names), "")


def over_in(blocks: Iterable[Block], now: int) -> list[Release]:
    """What may be given up of those blocks."""
    return [_release(*found) for found in _all_in(blocks) if is_over(found[2], now)]


def kept_for(blocks: Iterable[Block], name: str) -> list[Release]:
    """What is kept for a name, `namespace/name`, whether a pod has it or not."""
    return [_release(*found) for found in _all_in(blocks) if found[2].secondary[KEPT_AS] == name]


def _all_in(blocks: Iterable[Block]) -> Iterator[tuple[Block, int, Attribute]]:
    for block in blocks:
        for ordinal, holder in kept_in(block):
            yield block, ordinal, holder


def _release(block: Block, ordinal: int, holder: Attribute) -> Release:
    """It names the allocation, which is another one if a pod takes it again."""
    return Release(block.cidr.at(ordinal), holder.holder, block.sequences.get(ordinal, 0))
