"""The search of the site: an error is found with the names and numbers in it that no page has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "packaging/site/static/most_words.js"
# What Sphinx has on the page of the search, as far as the script uses it. `PAGES` has the words of each.
STAGE = """
const PAGES = {forbidden: ["pods", "forbidden", "user"], missing: ["pods", "found"], other: ["user"]};
const has = (page, words) => [...words].every((word) => PAGES[page].includes(word));
const Search = {performTermsSearch: (words, excluded) => Object.keys(PAGES)
  .filter((page) => has(page, words) && ![...excluded].some((word) => PAGES[page].includes(word)))
  .map((page) => [page, page, "", null, 5, page, "text"])};
const document = {addEventListener: (_, ready) => { document.ready = ready; }};
%s
document.ready();
console.log(JSON.stringify(JSON.parse(process.argv[1]).map(([words, excluded]) =>
  Search.performTermsSearch(new Set(words), new Set(excluded)).sort((a, b) => b[4] - a[4]).map((found) => found[0]))));
"""


def test_what_no_page_has_hides_none() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT CHECKED BY NODE: there is none on PATH; Debian has it in the package nodejs")
    asked = {
        ("pods", "forbidden"): ["forbidden"],
        ("pods", "user", "found"): ["forbidden", "missing"],
        ("pods", "web", "0", "forbidden"): ["forbidden"],
        ("pods", "user", "forbidden", "web"): ["forbidden"],
        ("user", "pods", "web"): ["forbidden"],
        ("user", "found"): ["forbidden", "other", "missing"],
        ("web",): [],
        ("web", "shop"): [],
    }
    words = json.dumps([*[[[*words], []] for words in asked], [["pods", "web"], ["user"]]])
    done = subprocess.run(
        [node, "-e", STAGE % SCRIPT.read_text(), words], capture_output=True, text=True, check=True, timeout=60
    )
    *found, without = json.loads(done.stdout)
    assert dict(zip(asked, found)) == asked
    assert without == ["missing"]
