"""Keeping termination signals out of code that an exception at any point would break.

SIGTERM, SIGINT and SIGHUP raise in the main thread so that undo runs. In the middle of a library's event loop, or
between two system calls that belong together, such an exception is swallowed or leaves things half done; so the
signal waits for the end of the block.

Invariant: the mask is what it was before once the block has been left; a signal that came meanwhile raises then.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C core of `signal`, which loads `enum`; typeshed has no stub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_TERMINATION = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)


class Withheld:
    """`with Withheld():` — the calling thread hears of no termination signal inside, except at `admit`.

    Can be nested, not shared.
    """

    def __init__(self) -> None:
        self._before: set[int] = set()

    def __enter__(self) -> Self:
        self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _TERMINATION)  # raises for a signal that is here already
        except BaseException:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
            raise
        return self

    def admit(self) -> None:
        """Let those raise that have come meanwhile; afterwards the others are still withheld."""
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _TERMINATION)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
