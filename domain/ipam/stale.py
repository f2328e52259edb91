"""An answer to whoever acts on an allocation that is no longer what he took it for.

It protects the address's next holder: a release or a change that was decided on an older state must not reach him.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError


class StaleRequest(IpamError):
    """What the caller expected does not hold. Trying again as it is cannot help.

    Text: `update conflict: <address> with error: <what differs>`.
    """

    def __init__(self, what: object, why: str) -> None:
        super().__init__(f"update conflict: {what} with error: {why}")
        self.why = why


class InCooldown(IpamError):
    """The address was released and nobody holds it, but it is not free yet."""

    def __init__(self, address: object) -> None:
        super().__init__(f"address {address} is in cooldown")
