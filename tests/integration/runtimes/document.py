"""docs/runtimes.md has tables that runs write, each between two comments: `<!-- its name -->` and `<!-- -->`.

With TORTIE_RUNTIMES_WRITE a run writes them anew; without, what never changes is compared, and measurements stay.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "runtimes.md"
WRITES = bool(os.environ.get("TORTIE_RUNTIMES_WRITE"))


def write(name: str, text: str) -> None:
    """If this run writes."""
    if WRITES:
        DOCUMENT.write_text(_between(name).sub(lambda match: match[1] + text + match[2], DOCUMENT.read_text()))


def compare(name: str, text: str) -> None:
    """The document says so, or does from now on if this run writes."""
    write(name, text)
    there = _between(name).search(DOCUMENT.read_text())
    assert there is not None
    assert there[0].splitlines()[1:-1] == text.splitlines()


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- -->)", re.DOTALL)
