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
    "the handle is not counted up before the block is written": (
        STEPS + "count_handle.py",
        "        counts[block] = counts.get(block, 0) + count\n",
        "        counts[block] = counts.get(block, 0) + count - 1\n",
    ),
    "a lost reply is taken for a failure": (
        STEPS + "take_addresses.py",
        "        if found is not None and ours:\n",
        "        if found is not None and ours and failure is None:\n",
    ),
    "addresses are not freed before the handle is counted down": (
        STEPS + "free_addresses.py",
        "        free_in_block(work, cidr, Chosen(lambda block: block.held_by(handle), cooldown, counted, seen))\n",
        "",
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
        "        if not ordinals and not chosen.expected:\n",
        "        if not ordinals:\n",
    ),
    "a handle that has changed is lowered all the same": (
        STEPS + "free_addresses.py",
        "            latest = settle(work, handle, cidr)\n",
        "            latest = lower(work, work.datastore.get(HandleKey(handle), work.deadline), cidr, 0)\n",
    ),
    "a count is settled without rewriting the block": (
        STEPS + "count_handle.py",
        "            if found is not None:\n",
        "            if False:\n",
    ),
    "a count that was raised is taken back whatever happened since": (
        STEPS + "count_handle.py",
        "        settle(work, _name(incremented), block)\n",
        (
            "        now = work.datastore.get(incremented.key, work.deadline)\n"
            "        lower(work, now, block, now.record.blocks.get(block, 0) - count if now else 0)\n"
        ),
    ),
    "a count is taken back although the block shows the address": (
        STEPS + "count_handle.py",
        "max(held, incremented.record.blocks.get(block, 0) - count)",
        "incremented.record.blocks.get(block, 0) - count",
    ),
    "counts that no block knows are left to a full handle": (
        STEPS + "held_before.py",
        "        settle(work, handle, cidr)\n",
        "        pass\n",
    ),
    "an address that is answered again is still the first call's to take back": (
        STEPS + "held_before.py",
        "        again = found.give(taken.ordinal, holder.replace(secondary={**holder.secondary, **renewed}))\n",
        "        again = found\n",
    ),
    "a handle may count as many as it likes": (
        STEPS + "count_handle.py",
        "        if limit and held + count > limit:\n",
        "        if False:\n",
    ),
    "undo forgets what was taken": (
        "domain/usecases/undo.py",
        "        self._steps.append((what, step))\n",
        "        self._steps.clear()\n",
    ),
    "a handle that counts too much is left alone": (
        STEPS + "free_addresses.py",
        "            latest = lower(work, latest, cidr, 0)\n",
        "            pass\n",
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
