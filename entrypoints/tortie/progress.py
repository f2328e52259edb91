"""What an operator sees while a command lasts: nothing for two seconds, then one line that says what is being done.

    | 14 s  waiting for the second look

Invariant: it is written to stderr, only if that is a terminal, and is gone before the answer is written. A line of the
log, which may come at any time, wipes it away itself.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Event, Thread

from domain.cni.go_quote import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

QUIET = 2.0  # seconds in which nobody wonders
_TICK = 0.2
_USUAL_WIDTH = 80
_SIGNS = "|/-\\"
CLEAR = "\r\x1b[K"


def _columns(stream: TextIO | None, said: str) -> int:
    if said.isascii() and said.isdigit() and 1 < len(said) < 6:
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno() if stream else -1).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


class Progress:
    """A context: `doing` says what is being done from now on."""

    def __init__(self, environment: Mapping[str, str], stream: TextIO | None = None, quiet: float = QUIET) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        shown = self._stream is not None and self._stream.isatty() and environment.get("TERM", "") not in ("", "dumb")
        self.is_shown = shown
        self._thread = Thread(target=self._tell, daemon=True) if shown else None
        self._width = _columns(self._stream, environment.get("COLUMNS", ""))
        self._what, self._quiet = "", quiet
        self._over = Event()

    def doing(self, what: str) -> None:
        self._what = printable(what)

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _tell(self) -> None:
        began = time.monotonic()
        if self._over.wait(self._quiet):
            return
        turn = 0
        while not self._over.wait(_TICK if turn else 0):
            turn += 1
            if self._what:
                line = f"{_SIGNS[turn % len(_SIGNS)]} {int(time.monotonic() - began)} s  {self._what}"
                self._write(CLEAR + line[: self._width - 1])
        self._write(CLEAR)

    def _write(self, text: str) -> None:
        try:
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):  # nobody looks any more
            self._over.set()
