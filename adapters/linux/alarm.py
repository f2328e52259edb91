"""An end to whatever takes too long: a timer's signal that raises in the main thread.

For an operator's command, whose parts have time limits of their own: this one is for what nobody has thought of.

Invariant: afterwards timer and handler are as they were before.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C core of `signal`, which loads `enum`; typeshed has no stub

from ports.errors import Expired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


def within(seconds: float, waited_for: str, look: Callable[[], T]) -> T:
    """What `look` gives. Expired after that time; without any limit in another thread than the main one."""

    def expire(_number: int, _frame: object) -> None:
        raise Expired(waited_for)

    try:
        former = _signal.signal(_signal.SIGALRM, expire)
    except ValueError:
        return look()
    left, interval = _signal.setitimer(_signal.ITIMER_REAL, seconds)
    try:
        return look()
    finally:
        _signal.setitimer(_signal.ITIMER_REAL, left, interval)
        _signal.signal(_signal.SIGALRM, former)
