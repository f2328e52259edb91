"""`make demo` on a host without a default route, which would not answer for the containers' gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGING = Path(__file__).parents[3] / "packaging"
PROGRAM = f"""
import subprocess, sys
sys.path.insert(0, {str(PACKAGING)!r})
import demo_host
fault = demo_host.settle(__file__)
print(fault or subprocess.check_output(["ip", "-4", "route", "show", "default"], text=True))
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run_without_routes(program, **environment):
    words = ["unshare", "--net", sys.executable, str(program)]
    return subprocess.run(
        words, check=False, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def test_the_demo_finds_a_host_that_has_one(program):
    done = run_without_routes(program)
    assert done.stdout.splitlines() == [
        "  This host has no default route, so a network namespace stands for it.",
        "default via 192.0.2.1 dev uplink ",
        "",
    ]
    assert done.returncode == 0


def test_where_there_can_be_no_namespace_the_missing_route_is_named(program, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("ip", "unshare"):
        found = subprocess.check_output(["sh", "-c", f"command -v {name}"], text=True).strip()
        (tmp_path / "bin" / name).symlink_to(found)
    script = (
        f"import os; os.environ['PATH'] = {str(tmp_path / 'bin')!r}; os.unlink({str(tmp_path / 'bin/unshare')!r})\n"
    )
    program.write_text(script + PROGRAM)
    done = run_without_routes(program)
    assert "this host has no default route (`ip route add default …`), and there is no `unshare`" in done.stdout
