"""What can go wrong outside, in our words. Each class says who has to act; adapters keep the library's cause.

`Conflict`, `AlreadyExists` and `Missing` are answers that our own loops deal with. `Unavailable` and `Expired` mean
that the runtime tries later (CNI code 11). `Unauthorized` means that an operator mends credentials. `Refused` is an
outside system's clear no (the kernel's, a delegate's), whose text goes to the user as it is.

Invariant: nothing else leaves an adapter because of what is outside of it.
"""

from __future__ import annotations


class PortError(Exception):
    """Base of all of them. `str()` is the text for the user."""


class Conflict(PortError):
    """The record changed since it was read; read again and decide again. Text: `update conflict: <key>`."""

    def __init__(self, key: object) -> None:
        super().__init__(f"update conflict: {key}")
        self.key = key


class AlreadyExists(PortError):
    """`resource already exists: <key> with error: <cause>`."""

    def __init__(self, key: object, cause: str = "") -> None:
        super().__init__(f"resource already exists: {key}" + (f" with error: {cause}" if cause else ""))
        self.key = key


class Missing(PortError):
    """`resource does not exist: <key> with error: <cause>`."""

    def __init__(self, key: object, cause: str = "") -> None:
        super().__init__(f"resource does not exist: {key}" + (f" with error: {cause}" if cause else ""))
        self.key = key


class Unavailable(PortError):
    """The other side cannot be reached or cannot answer now. The text names it (path, URL, endpoint)."""


class Expired(Unavailable):
    """The call's deadline passed. `waited_for` names what was being waited for."""

    def __init__(self, waited_for: str) -> None:
        super().__init__(f"deadline exceeded while waiting for {waited_for}")
        self.waited_for = waited_for


class Unauthorized(PortError):
    """`connection is unauthorized: <cause>`."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"connection is unauthorized: {cause}")


class BadConfiguration(PortError):
    """The configuration cannot be used; the text says which field or file and why (CNI code 7)."""


class Refused(PortError):
    """An outside system said no. `code` is a CNI error code, 999 unless the other side gave one."""

    def __init__(self, message: str, code: int = 999, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class NoWay(Refused):
    """The settings lead to no server: a `BadConfiguration` for which the original has code 999."""


class Damaged(Refused):
    """A record is there and cannot be used. The text names it and its fault, `details` the command that mends it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, details=HOW_TO_MEND)


HOW_TO_MEND = "`tortie ipam check` lists damaged records, `tortie ipam gc --yes` mends those of IPAM or sets them aside"
