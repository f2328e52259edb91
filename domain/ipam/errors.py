"""Why an address could not be given or taken back: the user changes something, and the text says what.

Texts are the original's where one is recorded.

Invariant: each text can go to the user as it is.
"""

from __future__ import annotations


class IpamError(Exception):
    """`code` is the CNI error code the runtime gets; `details` says more where the original says nothing."""

    def __init__(self, message: str, *, code: int = 999, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class NoPool(IpamError):
    """No pool serves the IP version by itself. Which pools there are is the operator's choice, so it may be meant."""


class HandleFull(IpamError):
    """A handle may not count more addresses of this IP version."""

    def __init__(self, handle: str, held: int, limit: int) -> None:
        super().__init__(f"handle {handle} already has {held} allocation(s), cannot allocate more (maxAlloc={limit})")


class BlockLimitReached(IpamError):
    """The node owns as many blocks as it may."""

    def __init__(self, limit: int, owned: int, setting: str) -> None:
        super().__init__(
            "cannot allocate new block due to per host block limit",
            details=f"the node owns {owned} blocks and may own {limit} ({setting})",
        )
        self.limit, self.owned, self.setting = limit, owned, setting


class AddressTaken(IpamError):
    """Somebody holds the address that was asked for. `details` say who."""

    def __init__(self, address: object, details: str = "") -> None:
        super().__init__(
            f"resource already exists: {address} with error: Address already assigned in block", details=details
        )


class StillContended(IpamError):
    """Every try lost a race."""

    def __init__(self, key: object) -> None:
        super().__init__(
            "Max retries hit - excessive concurrent IPAM requests", details=f"last contended record: {key}"
        )


class StaleRequest(IpamError):
    """The allocation is no longer what the caller took it for. Trying again as it is cannot help.

    It protects the address's next holder: what was decided on an older state must not reach him.
    Text: `update conflict: <address> with error: <what differs>`.
    """

    def __init__(self, what: object, why: str) -> None:
        super().__init__(f"update conflict: {what} with error: {why}")
        self.why = why


class InCooldown(IpamError):
    """The address was released and nobody holds it, but it is not free yet."""

    def __init__(self, address: object) -> None:
        super().__init__(f"address {address} is in cooldown")
