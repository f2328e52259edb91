"""Proof that the schedules bite: break the code on purpose, and some schedule must notice.

Each mutant is one change of one file, made in a copy of the project; random schedules are run on the copy until an
invariant fails. A mutant that survives them fails its test.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = "domain/usecases/steps/"
MUTANTS = {
    "the revision check is gone": (
        "adapters/memory/datastore.py",
        "        self._check(key, address, replaces)\n        return self._write(",
        "        return self._write(",
    ),
    "the block is written before the handle is counted": (
        STEPS + "take_addresses.py",
        "        increment(work, want.request.handle, block.cidr, len(ordinals), want.request.max_per_handle)\n",
        "",
    ),
    "the handle is counted down before the block is written": (
        STEPS + "free_addresses.py",
        "        freed = len(free_in_block(",
        "        decrement(work, handle, cidr, counted)\n        freed = len(free_in_block(",
    ),
    "an affinity is confirmed whoever owns the block": (
        STEPS + "claim_block.py",
        (
            "        if found.record.affinity != str(key.owner):\n"
            "            drop_affinity(work, affinity)\n"
            "            raise _claimed_elsewhere(found.record) from None\n"
        ),
        "",
    ),
    "a block is not rewritten when a handle is struck off": (
        STEPS + "free_addresses.py",
        "        if not ordinals and not expected:\n",
        "        if not ordinals:\n",
    ),
    "a handle is struck off whatever has happened to it": (
        STEPS + "free_addresses.py",
        "            decrement(work, handle, cidr, freed)\n",
        "            decrement(work, handle, cidr, counted)\n",
    ),
    "a lost reply is taken for a failure": (
        STEPS + "take_addresses.py",
        "        if found is not None and ours:\n",
        "        if found is not None and ours and failure is None:\n",
    ),
    "undo forgets what was taken": (
        "domain/usecases/undo.py",
        "        self._steps.append((what, step))\n",
        "        self._steps.clear()\n",
    ),
    "a handle that counts too much is left alone": (
        STEPS + "free_addresses.py",
        "            latest = _strike(work, latest, cidr)\n",
        "            if freed:\n                latest = _strike(work, latest, cidr)\n",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_schedules_catch_the_mutant(name, tmp_path):
    file, old, new = MUTANTS[name]
    for folder in ("domain", "ports", "adapters", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "unit", "integration", "mutants", "golden", "linux")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    source = (tmp_path / file).read_text()
    assert source.count(old) == 1, "the mutant no longer fits the code"
    (tmp_path / file).write_text(source.replace(old, new))
    run = subprocess.run(
        [sys.executable, "-B", str(tmp_path / "tests/simulate.py"), "--runs", "1500"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert run.returncode == 1, f"survived: {run.stdout} {run.stderr}"
    assert run.stdout.startswith("seed "), run.stderr


def test_the_unbroken_code_survives():
    run = subprocess.run(
        [sys.executable, "-B", str(ROOT / "tests/simulate.py"), "--runs", "400"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for seen in ("reply lost", "dies before", "dies after", "IpamError", "delete"):
        assert seen in run.stdout
