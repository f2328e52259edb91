"""Who uses an address, and who is about to: the two slots of owner attributes, and how they may change.

During a live migration the same address belongs to two pods: the active owner, and the alternate one that takes over.

Invariant: a change happens wholly or not at all, and only while both slots are as the caller expects.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.ipam.errors import IpamError, StaleRequest
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.block import Attribute, Block


class OwnerPod(Value):
    """A pod as owner attributes name it."""

    namespace: str
    name: str

    def owns(self, attributes: Mapping[str, str] | None) -> bool:
        """Whether the attributes are this pod's: both names, exactly."""
        found = attributes or {}
        return found.get("pod") == self.name and found.get("namespace") == self.namespace

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class OwnerUpdate(Value):
    """What to put into each slot: None leaves it, unless it is to be cleared."""

    active: Mapping[str, str] | None = None
    alternate: Mapping[str, str] | None = None
    clear_active: bool = False
    clear_alternate: bool = False


class Expectation(Value):
    """What each slot must hold for an update to happen: a pod, or nothing at all."""

    active: OwnerPod | None = None
    alternate: OwnerPod | None = None
    active_empty: bool = False
    alternate_empty: bool = False


ANYTHING = Expectation()


def require_sense(update: OwnerUpdate | None, expected: Expectation) -> OwnerUpdate:
    """The update. IpamError with the original's texts for what contradicts itself."""
    if update is None:
        raise IpamError("updates cannot be nil")
    contradictions = (
        (update.clear_active and update.active is not None, "ClearActiveOwner", "ActiveOwnerAttrs"),
        (update.clear_alternate and update.alternate is not None, "ClearAlternateOwner", "AlternateOwnerAttrs"),
        (expected.active_empty and expected.active is not None, "ExpectedActiveOwner", "VerifyActiveOwnerEmpty"),
        (
            expected.alternate_empty and expected.alternate is not None,
            "ExpectedAlternateOwner",
            "VerifyAlternateOwnerEmpty",
        ),
    )
    for contradictory, one, other in contradictions:
        if contradictory:
            raise IpamError(f"{one} and {other} are mutually exclusive")
    return update


def update_owners(block: Block, ordinal: int, update: OwnerUpdate, expected: Expectation) -> Block:
    """The block with the owners of an allocated ordinal changed, and with them those of all that share its attribute.

    StaleRequest if the owners are not the expected ones.
    """
    index = block.allocations[ordinal]
    assert index is not None  # noqa: S101 - the caller has looked
    attribute = block.attributes[index]
    address = block.cidr.at(ordinal)
    _require(address, ("active", attribute.secondary), expected.active, empty=expected.active_empty)
    _require(address, ("alternate", attribute.alternate), expected.alternate, empty=expected.alternate_empty)
    changed = _with(attribute, update)
    return block.replace(attributes=(*block.attributes[:index], changed, *block.attributes[index + 1 :]))


def _with(attribute: Attribute, update: OwnerUpdate) -> Attribute:
    active = {} if update.clear_active else update.active
    alternate = {} if update.clear_alternate else update.alternate
    return attribute.replace(
        secondary=attribute.secondary if active is None else active,
        alternate=(attribute.alternate if alternate is None else alternate) or None,
    )


def _require(
    address: Address, slot: tuple[str, Mapping[str, str] | None], pod: OwnerPod | None, *, empty: bool
) -> None:
    name, found = slot
    named = OwnerPod((found or {}).get("namespace", ""), (found or {}).get("pod", ""))
    if empty and found:
        raise StaleRequest(address, f"expected no {name} owner, found {named}")
    if pod is not None and not pod.owns(found):
        raise StaleRequest(address, f"expected {pod} as {name} owner, found {named if found else 'none'}")
