"""Commands that documents show, to be run: the blocks marked `sh` and `console`, and what a document says about each.

A block of `sh` is run as it stands; of `console` each line with the prompt that it begins with (`# `, `$ `) is run, and
what follows it is what it prints, where `…` stands for anything, and a line of it alone for any lines. What a block
needs is said in comments right before it, which readers of the page do not see:

    <!-- not run: why -->           for example "needs a cluster"
    <!-- with: etcd -->             what has to be there; `executable`: that of `make dist`; `cluster`: an
                                    API server, with `admin.conf`, which only `make documents` has
    <!-- after: commands -->        what a reader has done before, or has otherwise
    <!-- output: why not compared -->
    <!-- exit code: 1 -->           of the block's last command

Invariant: a block is run, or says why not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("sh", "console")
SAYINGS = ("not run", "with", "after", "output", "exit code")
NEEDS = ("etcd", "cluster", "executable")
_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)\s*$")
_SAYING = re.compile(r"\s*<!-- (?P<what>[a-z ]+): (?P<value>.+?) -->\s*$", re.DOTALL)
PROMPTS = ("# ", "$ ")


class Command(NamedTuple):
    """`printed` is None where nothing is to be compared."""

    text: str
    printed: tuple[str, ...] | None = None


class Block(NamedTuple):
    document: str
    line: int
    language: str
    text: str
    sayings: dict[str, str]

    @property
    def commands(self) -> list[Command]:
        if self.language == "sh":
            return [Command(self.text)]
        compared = "output" not in self.sayings
        found: list[Command] = []
        for line in self.text.splitlines():
            if self.text.startswith(PROMPTS) and line.startswith(self.text[:2]):
                found.append(Command(line[2:], () if compared else None))
            elif found and compared:
                found[-1] = found[-1]._replace(printed=(*(found[-1].printed or ()), line))
        return [one._replace(printed=one.printed or None) for one in found]


def documents() -> list[str]:
    found = [*ROOT.glob("*.md"), *(ROOT / "manifests").rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(document: str, text: str | None = None) -> Iterator[Block]:
    lines = (text if text is not None else (ROOT / document).read_text()).splitlines()
    start: int | None = None
    indent = language = ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if start is None and fence:
            start, indent, language = number, fence["indent"], fence["language"]
        elif start is not None and fence and not fence["language"]:
            if language in LANGUAGES:
                inside = "\n".join(one.removeprefix(indent) for one in lines[start + 1 : number]) + "\n"
                yield Block(document, start + 1, language, inside, dict(_before(lines[:start])))
            start = None


def _before(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The comments that end the text before a block, nearest first. A comment may be of several lines."""
    while lines and lines[-1].rstrip().endswith("-->"):
        first = next(number for number in reversed(range(len(lines))) if "<!--" in lines[number])
        said = _SAYING.match("\n".join(lines[first:]))
        if not said:
            return
        yield said["what"], said["value"]
        lines = lines[:first]


def agrees(printed: str, shown: tuple[str, ...]) -> bool:
    """Whether a command has printed what a document shows: spaces count as one, at the end of a line as none."""
    parts = [_line_pattern(line) for line in shown]
    found = [" ".join(line.split()) for line in printed.splitlines()]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in found)) is not None


def _line_pattern(line: str) -> str:
    words = " ".join(line.split())
    if words == "…":
        return r"(?:[^\n]*\n)*"
    return r"[^\n]*".join(re.escape(part) for part in words.split("…")) + r"\n"
