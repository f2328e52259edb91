"""Documents have each key and annotation that a parser knows, as it knows it, with words; diagrams are up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("program", ["keys.py", "pictures.py"])
def test_documents_are_as_the_sources_say(program):
    """If this fails: `make keys`, then write what the new rows do; or `make pictures`."""
    checked = subprocess.run(
        [sys.executable, f"packaging/site/{program}", "--check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "."},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
