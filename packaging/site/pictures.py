#!/usr/bin/env python3
"""`make pictures`: the diagrams of the documents, docs/pictures/*.svg, from what is in this file and in pyproject.toml.

They are seen where the repository is read, on the site, and without a network, so they are plain SVG in version
control; a unit test says when one is not as this makes it. Each has a white ground, for readers with a dark one.

Invariant: the layers are those of the import rules, which `make lint` checks.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/pictures"
INK, LINE, FILL, OURS = "#222", "#667", "#eef2f7", "#dcebdd"
_ROW = 46  # from one message to the next


class Box(NamedTuple):
    left: float
    top: float
    width: float
    height: float
    lines: tuple[str, ...] = ()
    fill: str = FILL
    at_top: bool = False  # where the words are

    def svg(self) -> Iterator[str]:
        yield (
            f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" rx="6" '
            f'fill="{self.fill}" stroke="{LINE}"/>'
        )
        middle = self.top + self.height / 2 + 5 - 9 * (len(self.lines) - 1)
        first = self.top + 20 if self.at_top else middle
        for number, line in enumerate(self.lines):
            yield text(self.left + self.width / 2, first + 18 * number, line, bold=number == 0)


class Arrow(NamedTuple):
    """From one point to another, with words above its middle; `dashed` for an answer."""

    x1: float
    y1: float
    x2: float
    y2: float
    words: str = ""
    dashed: bool = False
    both: bool = False

    def svg(self) -> Iterator[str]:
        dashes = ' stroke-dasharray="5 4"' if self.dashed else ""
        start = ' marker-start="url(#head)"' if self.both else ""
        yield (
            f'<line x1="{self.x1}" y1="{self.y1}" x2="{self.x2}" y2="{self.y2}" stroke="{LINE}"{dashes}{start} '
            'marker-end="url(#head)"/>'
        )
        if self.words:
            yield text((self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2 - 6, self.words, small=True)


def text(x: float, y: float, words: str, *, bold: bool = False, small: bool = False) -> str:
    """Around a point. Small words keep the lines behind them away."""
    weight = ' font-weight="600"' if bold else ""
    weight += ' stroke="#fff" stroke-width="4" paint-order="stroke"' if small else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{12 if small else 14}" text-anchor="middle"'
    return f"<text {place}{weight}>{escape(words)}</text>"


def from_left(drawn: str) -> str:
    """The same words, beginning at their point."""
    return drawn.replace('text-anchor="middle"', 'text-anchor="start"')


def picture(width: int, height: int, title: str, shapes: Sequence[Box | Arrow], *more: str) -> str:
    """`title` is what a reader without eyes hears."""
    sides = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
    head = f'<marker id="head" {sides} orient="auto-start-reverse">'
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = f'font-family="system-ui, sans-serif" fill="{INK}" role="img" aria-label="{escape(title)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>',
        f"<title>{escape(title)}</title>",
        f'<defs>{head}<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *[line for shape in shapes for line in shape.svg()],
        *more,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


# The layers


_SAYS = {
    "entrypoints": "SPEAKS: reads the process, chooses adapters, calls one use case, answers",
    "usecases": "TELLS: the story of an ADD, a DEL, a CHECK",
    "adapters": "DOES: a folder per technology; none knows another",
    "ports": "NEEDS: what a story wants from outside, in our own words",
    "domain": "DECIDES: values and rules; no input or output at all",
}


def layers() -> str:
    """Each row may import what is below it, and nothing else; those in one row know nothing of each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rules = next(one["layers"] for one in contracts if one["type"] == "layers")
    shapes: list[Box | Arrow] = []
    words: list[str] = []
    said: list[str] = []
    top, width = 16, 860
    for rule in rules:
        names = [name.strip() for name in rule.replace(":", "|").split("|")]
        told = [one for one in dict.fromkeys(_SAYS[name.partition(".")[0]] for name in names) if one not in said]
        said += told
        words += [from_left(text(16, top + 12 + 17 * row, line, small=True)) for row, line in enumerate(told)]
        top += 17 * len(told) + 4
        each = (width - 32 - 8 * (len(names) - 1)) / len(names)
        shapes += [
            Box(16 + (each + 8) * at, top, each, 34, (name.partition(".")[2] or name,), _colour(name))
            for at, name in enumerate(names)
        ]
        top += 34 + 22
    return picture(width, top, "The layers, from entrypoints down to domain; imports point down", shapes, *words)


def _colour(name: str) -> str:
    return OURS if name.partition(".")[0] in {"domain", "usecases", "ports"} else FILL


# One call, as messages


class Message(NamedTuple):
    """Between two of the columns; from one to itself is what that one does alone."""

    sender: int
    receiver: int
    words: str
    answer: bool = False


def messages(title: str, columns: Sequence[str], told: Sequence[Message], apart: int = 215) -> str:
    shapes: list[Box | Arrow] = []
    lines: list[str] = []
    at = [96 + apart * number for number in range(len(columns))]
    bottom = 76 + _ROW * len(told)
    for x, name in zip(at, columns, strict=True):
        lines.append(f'<line x1="{x}" y1="52" x2="{x}" y2="{bottom}" stroke="{LINE}" stroke-dasharray="2 4"/>')
        shapes.append(Box(x - 76, 14, 152, 38, (name,), OURS if name.startswith("calico") else FILL))
    for row, one in enumerate(told):
        y = 84 + _ROW * row
        if one.sender == one.receiver:
            width = 7.0 * len(one.words) + 20
            shapes.append(Box(at[one.sender] - width / 2, y - 18, width, 26, (), "#fff"))
            lines.append(text(at[one.sender], y, one.words, small=True))
        else:
            shapes.append(Arrow(at[one.sender], y, at[one.receiver], y, one.words, dashed=one.answer))
    width = at[-1] + 100
    drawn = picture(width, bottom + 16, title, shapes, *lines)
    return _under(drawn, lines)


def _under(drawn: str, lines: Sequence[str]) -> str:
    """Columns' lines come before what is drawn over them."""
    columns = [line for line in lines if line.startswith("<line")]
    rest = [line for line in drawn.splitlines() if line not in columns]
    ground = next(number for number, line in enumerate(rest) if line.startswith("<rect"))
    return "\n".join([*rest[: ground + 1], *columns, *rest[ground + 1 :]]) + "\n"


_COLUMNS = ("the runtime", "calico", "calico-ipam", "the datastore", "the kernel")
_ADD = (
    Message(0, 1, "ADD, configuration"),
    Message(1, 3, "one fetch: ready? endpoint, profile"),
    Message(1, 2, "ADD, in the same process"),
    Message(2, 2, "takes the host's lock"),
    Message(2, 3, "pools, settings, own blocks"),
    Message(2, 3, "handle: counts one more"),
    Message(2, 3, "block: takes an address"),
    Message(2, 1, "addresses", answer=True),
    Message(1, 4, "pair of devices, addresses, routes, sysctls"),
    Message(1, 3, "profile, endpoint"),
    Message(1, 0, "result; what was done is kept", answer=True),
)
_DEL = (
    Message(0, 1, "DEL, the same configuration"),
    Message(1, 2, "DEL, in the same process"),
    Message(2, 3, "handle: which blocks?"),
    Message(2, 3, "block: frees the addresses"),
    Message(2, 3, "handle: counts down, gone at zero"),
    Message(2, 1, "done, or what failed", answer=True),
    Message(1, 3, "endpoint: deleted"),
    Message(1, 4, "the pair of devices goes, with its routes"),
    Message(1, 0, "success, or the first failure", answer=True),
)


# A node, and an affinity


def node() -> str:
    host = Box(16, 16, 700, 330, ("the host",), "#f7f7f7", at_top=True)
    shapes: list[Box | Arrow] = [host]
    names: list[str] = []
    for at, (name, address) in enumerate((("container c1", "10.244.0.1/32"), ("container c2", "10.244.0.2/32"))):
        left = 40 + at * 350
        shapes += [
            Box(left, 214, 302, 116, (), "#fff"),
            Box(left + 26, 250, 250, 62, ("eth0", address, "default via 169.254.1.1"), OURS),
            Box(left + 26, 120, 250, 62, ("cali…", "answers ARP for 169.254.1.1", f"route to {address[:-3]}"), OURS),
            Arrow(left + 151, 182, left + 151, 250, both=True),
        ]
        names.append(from_left(text(left + 12, 236, name, bold=True)))
    shapes += [Box(216, 52, 300, 44, ("the host's routes", "forwarding is on"), FILL)]
    shapes += [Arrow(191, 120, 260, 96, both=True), Arrow(541, 120, 472, 96, both=True)]
    shapes += [Box(760, 52, 178, 44, ("other nodes", "by Felix, BIRD, or you"), "#fff")]
    shapes += [Arrow(516, 74, 760, 74, both=True)]
    return picture(954, 362, "A node: each container has a pair of devices, and a route on the host", shapes, *names)


def affinity() -> str:
    shapes: list[Box | Arrow] = [
        Box(16, 60, 130, 44, ("no record",), "#fff"),
        Box(230, 60, 170, 44, ("pending", "which node wants it"), FILL),
        Box(500, 60, 180, 44, ("confirmed", "block and node agree"), OURS),
        Box(800, 60, 174, 44, ("pendingDeletion", "the node gives it back"), FILL),
        Arrow(146, 74, 230, 74, "claim"),
        Arrow(400, 74, 500, 74, "block written"),
        Arrow(680, 74, 800, 74, "block is empty"),
        Arrow(230, 92, 146, 92, ""),
        Arrow(800, 92, 680, 92, ""),
        Arrow(887, 104, 887, 140, ""),
    ]
    words = (
        text(188, 112, "others have it", small=True),
        text(740, 112, "it is wanted again", small=True),
        text(887, 156, "block deleted, then this record", small=True),
        from_left(text(16, 28, "An affinity: the record by which a node has a block", bold=True)),
    )
    return picture(990, 172, "The states of an affinity: pending, confirmed, pendingDeletion", shapes, *words)


def pictures() -> dict[str, str]:
    """By file name."""
    return {
        "layers.svg": layers(),
        "add.svg": messages("An ADD, message by message", _COLUMNS, _ADD),
        "del.svg": messages("A DEL, message by message", _COLUMNS, _DEL),
        "node.svg": node(),
        "affinity.svg": affinity(),
    }


def main() -> int:
    """With `--check` nothing is written; 1 if something would have to be."""
    FOLDER.mkdir(exist_ok=True)
    drawn = pictures()
    stale = [name for name in drawn if not (FOLDER / name).exists() or (FOLDER / name).read_text() != drawn[name]]
    if sys.argv[1:] == ["--check"]:
        print(
            *[f"{FOLDER.name}/{name} is not as `make pictures` draws it: run that\n" for name in stale], end="", sep=""
        )
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).write_text(drawn[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
