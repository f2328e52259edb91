#!/usr/bin/env python3
"""Lays out what Sphinx makes the site of: `layout.py FOLDER`.

The documents stay where they are in the repository, to be read there too, so their links go by its folders. The site
has one folder: documents are copied into it, and links led to where things are now. A link to a folder leads to the
page about it, a link to a file that is no document to a copy that one can download. From documents with one thing a
row are made pages with one thing each, which a search then leads to.

Invariant: nothing in the repository is written. Sphinx complains about each link that leads nowhere.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

from chapters import DECISIONS, FIRST, ROOT, SHORT, chapters
from leaves import Leaf, leaves

_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>\))")
_ELSEWHERE = re.compile(r"[a-z]+:")
_TOCTREE = "\n```{{toctree}}\n:hidden:\n{options}\n{names}\n```\n"


def page_of(name: str) -> str:
    """Where something of the repository is on the site."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if name.endswith(".md"):
        return name.replace("/README.md", ".md") if "/" in name else name.lower()
    return f"files/{name}"


class Layout:
    """The site's sources in a folder, and which of its files are of this run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: set[Path] = set()

    def write(self, page: str, text: str) -> None:
        """Only what has changed, so that Sphinx reads only that again."""
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        self.written.add(path)

    def linked(self, text: str, source: str, page: str) -> str:
        """The text of a document, or a part of it, with its links as they have to be on a page."""
        return _LINK.sub(lambda found: found["before"] + self._target(found["target"], source, page) + ")", text)

    def _target(self, target: str, source: str, page: str) -> str:
        name, mark, anchor = target.partition("#")
        if _ELSEWHERE.match(target) or (not name and page == page_of(source)):
            return target
        base = "" if name.startswith("/") else posixpath.dirname(source)  # which leaves.py writes
        path = posixpath.normpath(posixpath.join(base, name.lstrip("/"))) if name else source
        if (ROOT / path).is_dir():
            path = self._about(path)
        to = page_of(path)
        if not path.endswith(".md") and (ROOT / path).is_file():
            (self.folder / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, self.folder / to)
            self.written.add(self.folder / to)
        return posixpath.relpath(to, posixpath.dirname(page)) + mark + anchor

    def _about(self, folder: str) -> str:
        """What is a folder's page: its own document, or a list of its files."""
        if folder == "docs/decisions":
            return DECISIONS
        about = f"{folder}/README.md"
        if not (ROOT / about).exists():
            names = sorted(path.name for path in (ROOT / folder).iterdir() if path.is_file())
            listed = "\n".join(f"- [{name}]({name})" for name in names)
            text = f"---\norphan: true\n---\n\n# The files of `{folder}`\n\n{listed}\n"
            self.write(page_of(about), self.linked(text, about, page_of(about)))
        return about

    def document(self, name: str, grown: list[Leaf], below: str = "") -> None:
        """Its rows lead to the pages that are made of them."""
        page = page_of(name)
        lines = (ROOT / name).read_text().splitlines()
        for leaf in grown:
            if leaf.source == name:
                before, cell, rest = lines[leaf.line].split("|", 2)
                lines[leaf.line] = f"{before}| [{cell.strip()}](/docs/{leaf.page}) |{rest}"
        self.write(page, self.linked("\n".join(lines) + "\n", name, page) + below)

    def tidy(self) -> None:
        """Pages of documents that are gone are gone."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path not in self.written:
                path.unlink()


def toctree(pages: list[str], *options: str) -> str:
    return _TOCTREE.format(options="\n".join(options), names="\n".join(pages))


def _entry(name: str) -> str:
    short = SHORT.get(name)
    return f"{short} <{page_of(name)}>" if short else page_of(name)


def decisions(layout: Layout) -> None:
    """A page that lists them, which the repository does not need: there one sees the folder."""
    names = sorted(f"docs/decisions/{path.name}" for path in (ROOT / "docs/decisions").glob("0*.md"))
    titles = [(ROOT / name).read_text().splitlines()[0].lstrip("# ") for name in names]
    rows = [f"- [{title}]({posixpath.basename(name)})" for title, name in zip(titles, names, strict=True)]
    about = "# Decisions\n\nWhy things are as they are, in the order in which it was decided.\n\n"
    pages = [posixpath.basename(name) for name in names]
    layout.write(page_of(DECISIONS), about + "\n".join(rows) + "\n" + toctree(pages))
    for name in names:
        layout.document(name, [])


def main(folder: Path) -> None:
    layout, grown, trees = Layout(folder), leaves(), ""
    for leaf in grown:
        layout.write(leaf.page, layout.linked(leaf.text, leaf.source, leaf.page))
    decisions(layout)
    for title, names in chapters().items():
        trees += toctree([_entry(name) for name in names], f":caption: {title}")
        for name in names:
            if name != DECISIONS:
                layout.document(name, grown)
    layout.document(FIRST, grown, trees)
    layout.tidy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
