"""Start-up is latency: each plugin entrypoint may load the modules listed here and no others.

A test that fails here names the modules that came in. Either import them where they are needed and seldom used
(inside a function), or add them to the list with the measured cost in mind: `make bench` shows it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NEVER = {
    "typing",
    "dataclasses",
    "enum",
    "logging",
    "argparse",
    "asyncio",
    "re",
    "json",
    "inspect",
    "datetime",
    "ipaddress",
}


def modules_after(code: str) -> set[str]:
    """Names of the modules that an isolated interpreter, started as the launcher starts it, has loaded at the end."""
    report = "\nimport os\nos.write(2, '\\n'.join(sorted(sys.modules)).encode())\n"
    script = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}{report}"
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split("\n"))


def test_the_values_and_rules_load_nothing_dear() -> None:
    code = "\n".join(
        f"import {path.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}"
        for package in ("domain", "ports")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "__init__.py"
    )
    assert not modules_after(code) & NEVER
