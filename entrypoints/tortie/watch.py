"""`tortie ipam show --watch`: the same picture again and again, in place, until Ctrl-C.

On a terminal the lines are written over those of the look before; what was there above stays, and so does the last
picture. Where stdout is no terminal, a look is written when it differs from the one before.

Invariant: no line is wrapped by the terminal, and no more are written than it has, so the next look finds its place.
"""

from __future__ import annotations

import re

from domain.moment import rfc3339
from domain.value import Value
from entrypoints.tortie.answer import Answer, deliver, told
from entrypoints.tortie.command import FAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from entrypoints.tortie.answer import Screen
    from entrypoints.tortie.session import Session

PAUSE = 2.0  # seconds between two looks, unless something else is said
_STOPPED_BY_KEYBOARD = 130  # what a shell reports of a process that the signal killed
_RESET = "\x1b[0m"


class Frame(Value):
    """What one look has shown, without what says when."""

    text: str
    lines: int = 0


def watch(session: Session, look: Callable[[], str], pause: float) -> Answer:
    """Ends with Ctrl-C. A datastore that goes away meanwhile is told, and asked again; one that was never there is an
    error.
    """
    session.hush()
    try:
        before = _frame(session, look(), Frame(""), pause)
        while True:
            session.clock.sleep(pause)
            before = _frame(session, _looked(look), before, pause)
    except KeyboardInterrupt:
        return Answer("", _STOPPED_BY_KEYBOARD)


def _looked(look: Callable[[], str]) -> str:
    try:
        return look()
    except FAULTS as error:
        return f"{told(error)}\n"


def _frame(session: Session, text: str, before: Frame, pause: float) -> Frame:
    screen = session.screen
    if not screen.height:
        if text != before.text:
            deliver(("\n" if before.text else "") + text)
        return Frame(text)
    lines = fitted([_head(session, pause), "", *text.splitlines()], screen)
    up = f"\x1b[{before.lines}F" if before.lines else ""
    deliver(up + "".join([f"{line}{_RESET if screen.colour else ''}\x1b[K\n" for line in lines]) + "\x1b[J")
    return Frame(text, len(lines))


def _head(session: Session, pause: float) -> str:
    clock = rfc3339(session.clock.now())[11:19]
    return f"{clock} UTC, every {pause:g} s; Ctrl-C ends"


def fitted(lines: list[str], screen: Screen) -> list[str]:
    """As many as the screen has, the last line of it left free; none wider. Whatever is too wide loses its colours."""
    room = max(screen.height - 1, 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines"]
    return [line if _width(line) <= screen.width else _plain(line)[: screen.width] for line in lines]


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def _width(line: str) -> int:
    return len(_plain(line))
