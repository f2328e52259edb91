"""Why an address could not be given or taken back: the user changes something, and the text says what.

Texts are the original's where one is recorded.
"""

from __future__ import annotations


class IpamError(Exception):
    """`code` is the CNI error code the runtime gets; `details` says more where the original says nothing."""

    def __init__(self, message: str, *, code: int = 999, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class BlockLimitReached(IpamError):
    """The node owns as many blocks as it may."""

    def __init__(self, limit: int) -> None:
        super().__init__("cannot allocate new block due to per host block limit")
        self.limit = limit


class StillContended(IpamError):
    """Every try lost a race."""

    def __init__(self, key: object) -> None:
        super().__init__(
            "Max retries hit - excessive concurrent IPAM requests", details=f"last contended record: {key}"
        )
