r"""Rows of the tables in a Markdown document, each with the headings that it stands under.

Invariant: a cell is the text between two bars as it stands there; one in a cell is written `\|`, as Markdown wants it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|[\s:|-]+\|$")


class Row(NamedTuple):
    """`line` counts from 0. `chapter` is the last heading of the second level, `heading` the last of any."""

    line: int
    chapter: str
    heading: str
    columns: tuple[str, ...]
    cells: tuple[str, ...]

    def cell(self, column: str) -> str:
        """The cell of a column, "" where the table has no such column."""
        return self.cells[self.columns.index(column)] if column in self.columns else ""


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in _BAR.split(line.strip())[1:-1])


def rows(document: str) -> Iterator[Row]:
    chapter = heading = before = ""
    columns: tuple[str, ...] = ()
    fenced = False
    for number, line in enumerate(document.splitlines()):
        fenced ^= line.lstrip().startswith("```")
        if fenced or not line.startswith(("|", "#")):
            columns = ()
        elif line.startswith("#"):
            heading = line.lstrip("# ")
            chapter = heading if line.startswith("## ") else chapter
        elif _RULE.match(line):
            columns = cells(before)
        elif columns:
            yield Row(number, chapter, heading, columns, cells(line))
        before = line
