"""An affinity: the record that a node (or a virtual owner) claims a block, and how far the claim has got.

States go none → pending → confirmed → pendingDeletion → none. Only a confirmed affinity may be routed on; allocation
treats any state as a lead to a block that might be ours. The block's own `affinity` field is the truth.
"""

from __future__ import annotations

from domain.value import Value

PENDING, CONFIRMED, PENDING_DELETION = "pending", "confirmed", "pendingDeletion"
HOST, VIRTUAL = "host", "virtual"


class Owner(Value):
    """Who can be affine to a block: `kind` is `host` or `virtual`."""

    kind: str
    name: str

    def __str__(self) -> str:
        """The form a block's `affinity` field has: `host:node-a`."""
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Owner:
        kind, _, name = text.partition(":")
        return cls(kind, name)


class Affinity(Value):
    """`state` is pending, confirmed, pendingDeletion or "" (old records: confirmed)."""

    state: str
    deleted: bool = False
    unknown: tuple[tuple[str, str], ...] = ()
