"""What can go wrong with a connection, before anybody knows what it carries.

Invariant: `str()` says what happened in words for an operator, and holds nothing that was sent or received.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Fault(Exception):
    """The connection could not be made, or is of no use any more."""


class TimedOut(Fault):
    """It took longer than it may."""


class Untrusted(Fault):
    """The two sides do not accept each other's certificates or versions of TLS; another try changes nothing."""


class AllFailed(Fault):
    """Several ways were tried. `faults` has each one's reason, in the order of the tries."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join([str(fault) for fault in faults]))
        self.faults = faults
