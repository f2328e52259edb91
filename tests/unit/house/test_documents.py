"""What documents say about files is true: every file and folder that they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from entrypoints.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "manifests").rglob("*.md")),
    *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
]
DOCUMENTS += [f"docs/decisions/{path.name}" for path in (ROOT / "docs/decisions").glob("*.md")]
ROOMS = ("domain", "ports", "usecases", "adapters", "entrypoints", "packaging", "tests", "docs", "manifests", "docker")
_IN_A_ROOM = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w./*-]*)(?:::\w+)*`")
_BARE = re.compile(r"`(\w[\w*]*\.py)`")
_ANCHOR = re.compile(r"\]\(([\w./-]*)#([\w-]+)\)")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]+)?\)")
_DECISION = re.compile(r"\[[Dd]ecision\s+(\d+)\]\([\w./-]*?(\d{4})-")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_file_is_where_a_document_says(document):
    text = (ROOT / document).read_text()
    missing = [name for name in _IN_A_ROOM.findall(text) if not any(ROOT.glob(name.rstrip("/")))]
    missing += [link for link in _LINK.findall(text) if not ((ROOT / document).parent / link).exists()]
    assert not missing


def anchors(document: Path) -> set[str]:
    """Where its headings are, as those places say that show Markdown."""
    text = _FENCED.sub("", document.read_text())
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_link_to_a_heading_finds_it(document):
    """`make site` finds this, too, and more of its kind; this takes less."""
    path = ROOT / document
    found = _ANCHOR.findall(path.read_text())
    aims = [((path.parent / name) if name else path, anchor) for name, anchor in found]
    assert [anchor for aim, anchor in aims if aim.suffix == ".md" and anchor not in anchors(aim)] == []


def test_each_decision_has_a_number_of_its_own():
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [path.name[:4] for path in decisions] == [f"{number:04}" for number in range(1, len(decisions) + 1)]
    assert [path.name for path in decisions if not path.read_text().startswith(f"# {int(path.name[:4])}. ")] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_decision_is_cited_by_its_number(document):
    cited = _DECISION.findall((ROOT / document).read_text())
    assert [(said, aim) for said, aim in cited if int(said) != int(aim)] == []


def test_each_bare_name_of_the_architecture_is_a_files():
    """It is in the folder that is named before it, which people see more easily than this test."""
    names = {path.name for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    named = _BARE.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert [name for name in named if name not in names and "*" not in name] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_an_image_in_a_document_is_of_this_version(document):
    tags = re.findall(r"\btortie:(v[\w.-]*\w)", (ROOT / document).read_text())
    assert set(tags) <= {VERSION}


def test_the_glossary_has_forty_words_at_most():
    rows = [line for line in (ROOT / "docs/glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert len(rows) - 1 <= 40


def test_no_file_is_half_merged():
    """Where a text is a string or a document no tool sees the marks."""
    marks = [f"{sign * 7} " for sign in "<>"]
    paths = [path for room in (*ROOMS, ".github") for path in (ROOT / room).rglob("*")]
    texts = [
        path for path in (*paths, *ROOT.glob("*")) if path.suffix in {".py", ".md", ".yaml", ".yml", ".sh", ".toml"}
    ]
    assert [
        path for path in texts if any(line.startswith(tuple(marks)) for line in path.read_text().splitlines())
    ] == []
