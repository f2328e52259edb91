"""Pages with one thing each, made from the documents that have one thing a row: symptoms, keys, annotations.

Somebody who searches for the text of an error, or for a key, is led to a page that is about it alone. The document with
all of them in tables stays what one reads and edits; on the site its rows lead to these pages.

Invariant: no word on such a page is written here but for the frame; two rows never make the same page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from chapters import ROOT, documents
from tables import Row, rows

TROUBLESHOOTING, CONFIGURATION, ANNOTATIONS = (
    f"docs/{name}.md" for name in ("troubleshooting", "configuration", "annotations")
)
_SYMPTOMS = ("text", "they say", "what")  # what the first column of a table of symptoms is called
_PLUGINS = {
    "calico and calico-ipam": ("calico", {"type": "calico"}),
    "my-custom-cni and bridge": ("bridge", {"type": "my-custom-cni"}),
    "The built-in host-local": ("host-local", {}),
}
_VALUES = {
    "string": "…",
    "boolean": True,
    "list of strings": ["…"],
    "object": {},
    "list of objects": [{}],
    "list of lists of objects": [[{}]],
}
_LONGEST = 60


class Leaf(NamedTuple):
    """`source` is the document that its words and links are from, `line` that of its row there."""

    page: str
    source: str
    line: int
    text: str


def slug(text: str) -> str:
    """The name of a file for it."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    name = "-".join(re.findall(r"[a-z0-9]+", spaced.lower()))
    return name[:_LONGEST].rstrip("-") or "page"


def anchor(heading: str) -> str:
    """Where a heading is, as those places say that show Markdown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def leaves() -> list[Leaf]:
    read = {name: (ROOT / name).read_text() for name in documents()}
    found = [
        *symptoms(read[TROUBLESHOOTING]),
        *keys(read[CONFIGURATION], read),
        *wishes(read[ANNOTATIONS], read),
    ]
    pages = [leaf.page for leaf in found]
    if twice := {page for page in pages if pages.count(page) > 1}:
        raise SystemExit(f"rows that would make the same page: {', '.join(sorted(twice))}")
    return found


def symptoms(document: str) -> Iterator[Leaf]:
    for row in rows(document):
        if row.columns[0] in _SYMPTOMS and "what to do" in row.columns:
            parts = [f"In [Troubleshooting](#{anchor(row.heading)}): {row.heading}."]
            if cause := row.cell("cause"):
                parts += ["## Cause", _sentence(cause)]
            parts += ["## What to do", _sentence(row.cell("what to do"))]
            parts += ["`…` stands for names and numbers; words in italics are somebody else's."]
            yield _leaf(f"symptoms/{slug(row.cells[0])}.md", TROUBLESHOOTING, row, [f"# {row.cells[0]}", *parts])


def keys(document: str, read: dict[str, str]) -> Iterator[Leaf]:
    found = [row for row in rows(document) if row.columns[0] == "key"]
    kinds: dict[str, dict[str, str]] = {}
    for row in found:
        kinds.setdefault(row.chapter, {})[row.cells[0].strip("`")] = row.cell("type")
    for row in found:
        folder, around = _PLUGINS[row.chapter]
        key = row.cells[0].strip("`")
        example = {**around, **_example(key, kinds[row.chapter])}
        parts = [
            f"# `{key}` ({folder})",
            f"Of {row.chapter}, in [Configuration](#{anchor(row.heading)}): {row.heading}.",
            _sentence(row.cell("what it does")),
            f"- type: {row.cell('type')}\n- default: {row.cell('default')}\n- since: {row.cell('since')}",
            f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```",
            *_elsewhere(key, CONFIGURATION, read),
        ]
        yield _leaf(f"keys/{folder}/{slug(key)}.md", CONFIGURATION, row, parts)


def wishes(document: str, read: dict[str, str]) -> Iterator[Leaf]:
    for row in rows(document):
        if row.columns[0] != "annotation":
            continue
        name = row.cells[0].strip("`")
        parts = [
            f"# `{name}`",
            f"In [Annotations](#{anchor(row.heading)}): {row.heading}.",
            _sentence(row.cell("what it does")),
            f"- value: {row.cell('value')}\n- since: {row.cell('since')}",
            *_elsewhere(name, ANNOTATIONS, read),
        ]
        yield _leaf(f"annotations/{slug(name)}.md", ANNOTATIONS, row, parts)


def _leaf(page: str, source: str, row: Row, parts: list[str]) -> Leaf:
    """No chapter lists it: hundreds of lines at the side would help nobody."""
    text = "\n\n".join(["---\norphan: true\n---", *parts])
    return Leaf(page, source, row.line, text + "\n")


def _example(key: str, kinds: dict[str, str]) -> dict[str, Any]:
    """A configuration with the key in its place, which is inside whatever other keys it begins with."""
    value = _VALUES.get(kinds[key].partition(" or ")[0], 0)
    while outer := max((one for one in kinds if key.startswith(f"{one}.")), key=len, default=""):
        inside = {key.removeprefix(f"{outer}."): value}
        key, value = outer, [inside] if kinds[outer].startswith("list") else inside
    return {key: value}


def _elsewhere(name: str, own: str, read: dict[str, str]) -> Iterator[str]:
    """Which other documents speak of it, by the name alone or the last part of it."""
    spoken = re.compile(rf'[`"]{re.escape(name)}[`"]')
    naming = [other for other, text in read.items() if other != own and spoken.search(text)]
    titles = [f"[{_title(read[other])}](/{other})" for other in naming if other != "docs/behaviours.md"]
    if titles:
        yield f"Also in {', '.join(titles)}."


def _title(document: str) -> str:
    return document.splitlines()[0].lstrip("# ")


def _sentence(text: str) -> str:
    """A cell is a sentence without its end."""
    begun = text[0].upper() + text[1:] if text[0].isalpha() else text
    return begun if begun.endswith((".", "`")) else f"{begun}."
