"""Memory for undoing: a call that fails for want of memory needs some to take back what it has done.

It is set aside when a call begins, untouched, so that the kernel gives no page for it, and given back before anything
is undone. Whoever undoes on the way, before the frame of the call does, gives it back as well.

Invariant: nothing here fails once the call has begun.
"""

from __future__ import annotations

SIZE = 3 << 20  # bytes; undoing may have to load modules
kept: list[bytes] = []


def set_aside() -> None:
    """MemoryError if there is not even that: then nothing has been done."""
    kept.append(bytes(SIZE))


def give_back() -> None:
    kept.clear()
