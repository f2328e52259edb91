"""What docs/troubleshooting.md quotes of us, our sources can say: people search for the text that they see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from house.told_texts import fragments, told_texts

ROOT = Path(__file__).resolve().parents[3]
_FIRST_CELL = re.compile(r"\| (?P<ticks>`+)(?P<text>.+?)(?P=ticks) (?:\*[\w ]+\* )?\| ")


def quotations() -> list[str]:
    """The first cells of tables that begin with a quotation."""
    text = (ROOT / "docs/troubleshooting.md").read_text()
    _, *tables = text.split("\n| text |")
    rows = [row for table in tables for row in table.split("\n\n")[0].splitlines() if row.startswith("| `")]
    cells = [found for row in rows if (found := _FIRST_CELL.match(row))]
    assert len(cells) == len(rows), "a row whose first cell is no quotation"
    return [cell["text"] for cell in cells]


@pytest.fixture(scope="module")
def told() -> list[str]:
    recorded = [path.read_text() for path in (ROOT / "tests/golden").glob("*.json")]
    return [*told_texts(ROOT), *recorded]


@pytest.mark.parametrize("quotation", quotations())
def test_a_quoted_text_is_one_of_ours(quotation, told):
    missing = [part for part in fragments(quotation) if not any(part in text for text in told)]
    assert not missing, "nobody says this any more"


def test_there_is_something_to_search_for():
    assert len(quotations()) > 40


def test_what_fragments_are(told):
    assert fragments("kubeconfig …: none of these files exists") == ["kubeconfig", "none of these files exists"]
    assert "nobody says this" not in told
