"""Termination signals as an exception, so that what a call has done is taken back before it ends.

SIGTERM, SIGINT and SIGHUP raise `Interrupted` in the main thread while a verb runs, at most once. From then on, and
when the verb is over, they are only noted, so that undoing and answering go through. They stay caught until the end,
since programs that are started meanwhile would inherit it if they were ignored.

The interpreter drops what is raised inside a finalizer or a weak reference's callback, and says so on stderr alone. So
the handler also leaves the signal's name behind, and `settle` raises again what was lost.

`_signal` is the core of `signal`, which would load `enum`.

Invariant: of several signals one at most is raised, and none is lost while a verb runs.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows only `signal`, which loads `enum`

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_NAMES = {_signal.SIGTERM: "SIGTERM", _signal.SIGINT: "SIGINT"}
if hasattr(_signal, "SIGHUP"):  # not on Windows
    _NAMES[_signal.SIGHUP] = "SIGHUP"

_unseen: list[str] = []  # the signal that has been raised, until `seen`: one at most


class Interrupted(BaseException):
    """A BaseException, so that handlers of ordinary errors let it pass. `str()` names the signal."""


def raise_when_signalled() -> None:
    _unseen.clear()
    for number in _NAMES:
        _signal.signal(number, _raise)


def settle() -> None:
    """From here on the signals change nothing. Interrupted if one came before and its exception was lost."""
    _only_note()
    if _unseen:
        raise Interrupted(_unseen[0])


def seen() -> None:
    """The exception has arrived where it ends the call."""
    _unseen.clear()


def ignore() -> None:
    """The call is over. The interpreter, while it ends, restores the default handling of signals that are caught; one
    that came then would turn a delivered answer into a death by signal.
    """
    for number in _NAMES:
        _signal.signal(number, _signal.SIG_IGN)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    _only_note()
    _unseen.append(_NAMES[number])
    raise Interrupted(_NAMES[number])


def _only_note() -> None:
    for number in _NAMES:
        _signal.signal(number, _note)


def _note(_number: int, _frame: FrameType | None) -> None:
    pass
