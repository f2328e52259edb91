"""What can go wrong with a connection, before anybody knows what it carries.

Invariant: `str()` says what happened in words for an operator, and holds nothing that was sent or received.
"""

from __future__ import annotations


class Fault(Exception):
    """The connection could not be made, or is of no use any more."""


class TimedOut(Fault):
    """It took longer than it may."""


class Untrusted(Fault):
    """The two sides do not accept each other's certificates or versions of TLS; another try changes nothing."""
