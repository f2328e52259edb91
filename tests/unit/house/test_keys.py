"""The documents have each key and annotation that a parser knows, as it knows it, and words about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_each_key_and_annotation_is_documented():
    """If this fails: `make keys`, then write what the new rows do."""
    checked = subprocess.run(
        [sys.executable, "packaging/site/keys.py", "--check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "."},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
