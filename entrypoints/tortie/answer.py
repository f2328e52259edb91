"""What a command of `tortie` gives back, and what it is shown on.

Names in a datastore are whatever somebody wrote there, and go to the operator's terminal: what could move its cursor,
forge a row or turn the direction of writing is escaped here, wherever text for people is made.

Invariant: colour and width depend on the terminal alone, never on what is shown, so piped output stays the same; a line
that was given is one line.
"""

from __future__ import annotations

import errno
import os
import sys

from domain.cni.go_quote import printable
from domain.value import Value
from ports.errors import Damaged, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

PIPED_WIDTH = 120
_USUAL_HEIGHT = 24
_CHECK = "`tortie ipam check` says what to do"
_MOST_DIGITS = 6  # of COLUMNS and LINES


class Answer(Value):
    """Text for stdout and an exit code. `notes` are lines for stderr: what the person should know besides."""

    text: str
    code: int = 0
    notes: tuple[str, ...] = ()


def left_out(records: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Notes on records, by name and fault, that are there and not shown, because nobody can read them."""
    return tuple([f"Warning: {record} cannot be read and is left out: {fault}; {_CHECK}" for record, fault in records])


def told(error: Exception) -> str:
    """An error as text, with what to do: about a record that nobody can read, about a setting."""
    details = error.details if isinstance(error, Refused) else ""
    if not details:
        return str(error)
    return f"{error}; {_CHECK if isinstance(error, Damaged) else details}"


class Screen(Value):
    """`width` in columns; `height` in lines, 0 where there is no terminal."""

    width: int
    colour: bool = False
    height: int = 0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Screen:
        """Of stdout. COLUMNS beats what the terminal says; NO_COLOR and TERM=dumb turn colours off."""
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        plain = bool(environment.get("NO_COLOR")) or environment.get("TERM", "") in ("", "dumb")
        width = _size(environment.get("COLUMNS", ""), 0, PIPED_WIDTH, is_terminal=is_terminal)
        height = _size(environment.get("LINES", ""), 1, _USUAL_HEIGHT, is_terminal=True) if is_terminal else 0
        return cls(width, is_terminal and not plain, height)


def people(lines: Iterable[str]) -> str:
    """The lines as text for people."""
    return "".join([f"{printable(line)}\n" for line in lines])


def _size(said: str, which: int, otherwise: int, *, is_terminal: bool) -> int:
    """Of the terminal, unless the environment says else: its columns (0) or lines (1)."""
    if said.isascii() and said.isdigit() and len(said) < _MOST_DIGITS and int(said):
        return int(said)
    if not is_terminal:
        return otherwise
    try:
        return os.get_terminal_size(sys.stdout.fileno())[which] or otherwise
    except OSError:
        return otherwise


def deliver(text: str) -> None:
    """To stdout, at once. OSError if it cannot be written."""
    out: TextIO | None = sys.stdout  # None where the parent left the descriptor closed
    if out is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        out.write(text)
    except UnicodeEncodeError:  # a locale without the character: what is written is UTF-8 in all others
        out.buffer.write(text.encode("utf-8", "replace"))
    out.flush()


def aligned(rows: Sequence[Sequence[str]], numbers: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Lines with columns of equal width; columns in `numbers` are flush right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    return [
        gap.join(
            [
                cell.rjust(width) if at in numbers else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths))
            ]
        ).rstrip()
        for row in rows
    ]


def folded(text: str, width: int, indent: str) -> list[str]:
    """The text in lines of that width, broken at commas, or where there is none at two blanks."""
    mark = ", " if ", " in text else "  "
    lines: list[str] = []
    for word in text.split(mark):
        if lines and len(lines[-1]) + len(mark) + len(word) < width:
            lines[-1] += mark + word
        else:
            lines.append(indent + word)
    return lines
