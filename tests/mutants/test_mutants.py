"""Proof that random schedules, and lives of machines and of kept addresses, bite: the code is broken, one must notice.

Each mutant is one change of one file, made in a copy of the project; schedules are run on the copy until an invariant
fails. A mutant that survives them fails its test.
"""

from __future__ import annotations

import pytest

from mutants import kept, lives
from mutants.caught import ROOT, Mutant, require_noticed, run_schedules

MUTANTS: dict[str, Mutant] = {
    "the revision check is gone": (
        "adapters/memory/datastore.py",
        "        self._check(key, address, replaces)\n        return self._write(",
        "        return self._write(",
        31,
    ),
    "the handle is not counted up before the block is written": (
        "usecases/ipam/count_handle.py",
        "    counts[block] = counts.get(block, 0) + count\n",
        "    counts[block] = counts.get(block, 0) + count - 1\n",
        0,
    ),
    "a lost reply is taken for a failure": (
        "usecases/ipam/take_addresses.py",
        "        if self._found is not None and ours:\n",
        "        if self._found is not None and ours and failure is None:\n",
        556,
    ),
    "addresses are not freed before the handle is counted down": (
        "usecases/ipam/free_addresses.py",
        "            free_in_block(work, cidr, chosen, work.datastore.remembered(BlockKey(cidr)))\n",
        "            pass\n",
        0,
    ),
    "an affinity is confirmed whoever owns the block": (
        "usecases/ipam/claim_block.py",
        (
            "        if found.record.affinity != str(key.owner):\n"
            "            drop_affinity(work, affinity)\n"
            "            raise _claimed_elsewhere(found.record) from None\n"
        ),
        "",
        62,
    ),
    "what a vanished node has left of a claim stays beside the next one": (
        "usecases/ipam/claim_block.py",
        "    _end_stale_leads(work, key, leads)\n",
        "",
        24,
    ),
    "it ends only after the next claim is confirmed": (
        "usecases/ipam/claim_block.py",
        "    _end_stale_leads(work, key, leads)\n    confirm(work, affinity)\n",
        "    confirm(work, affinity)\n    _end_stale_leads(work, key, leads)\n",
        170,
    ),
    "it stays if the next claim dies half-way and is taken up": (
        "usecases/ipam/claim_block.py",
        "    _end_stale_leads(work, AffinityKey.of(pending), None)\n",
        "",
        1032,
    ),
    "a block is not rewritten when a handle is struck off": (
        "usecases/ipam/free_addresses.py",
        "        if not ordinals and not chosen.expected:\n",
        "        if not ordinals:\n",
        513,
    ),
    "a handle that has changed is lowered all the same": (
        "usecases/ipam/free_addresses.py",
        "            latest = settle(work, handle, cidr)\n",
        "            latest = lower(work, work.datastore.get(HandleKey(handle), work.deadline), cidr, 0)\n",
        868,
    ),
    "a count is settled without rewriting the block": (
        "usecases/ipam/count_handle.py",
        "        if found is not None:\n",
        "        if False:\n",
        51,
    ),
    "a count that was raised is taken back whatever happened since": (
        "usecases/ipam/count_handle.py",
        "        settle(work, handle, block)\n",
        (
            "        now = work.datastore.get(incremented.key, work.deadline)\n"
            "        lower(work, now, block, now.record.blocks.get(block, 0) - count if now else 0)\n"
        ),
        51,
    ),
    "a count is taken back although the block shows the address": (
        "usecases/ipam/count_handle.py",
        "max(held, incremented.record.blocks.get(block, 0) - count)",
        "incremented.record.blocks.get(block, 0) - count",
        3179,
    ),
    "counts that no block knows are left to a full handle": (
        "usecases/ipam/held_before.py",
        "        settle(work, handle, cidr)\n",
        "        pass\n",
        58,
    ),
    "an address that is answered again is still the first call's to take back": (
        "usecases/ipam/held_before.py",
        "        again = found.give(allocation.ordinal, holder.replace(secondary={**holder.secondary, **renewed}))\n",
        "        again = found\n",
        107,
    ),
    "a handle may count as many as it likes": (
        "usecases/ipam/count_handle.py",
        "    if limit and held + count > limit:\n",
        "    if False:\n",
        11,
    ),
    "of two records written together one is written over whatever is there": (
        "adapters/memory/datastore.py",
        "            elif address in self._texts:\n                raise AlreadyExists(change.key)\n",
        "",
        16,
    ),
    "a handle goes together with a block whatever it counts by now": (
        "usecases/ipam/free_addresses.py",
        "    changes = [Change(stored.key, None, stored.revision)]\n",
        (
            "    now_counted = work.datastore.get(stored.key, work.deadline) or stored\n"
            "    changes = [Change(stored.key, None, now_counted.revision)]\n"
        ),
        200,
    ),
    "undo forgets what was taken": (
        "usecases/calls/safeguards.py",
        "        self._ways_back.append((what, take_back))\n",
        "        self._ways_back.clear()\n",
        170,
    ),
    "a handle that counts too much is left alone": (
        "usecases/ipam/free_addresses.py",
        "            latest = lower(work, latest, cidr, 0)\n",
        "            pass\n",
        0,
    ),
}


SCRIPTS = {
    "worlds/simulate.py": MUTANTS,
    "worlds/machine_simulate.py": lives.MUTANTS,
    "worlds/kept_simulate.py": kept.MUTANTS,
}
EACH = [pytest.param(script, it, id=name) for script, mutants in SCRIPTS.items() for name, it in mutants.items()]


@pytest.mark.parametrize(("script", "mutant"), EACH)
def test_some_run_notices_the_mutant(script, mutant, tmp_path):
    require_noticed(mutant, script, tmp_path, 3000)


def test_the_unbroken_code_survives():
    run = run_schedules(ROOT, "worlds/simulate.py", 0, 400)
    assert run.returncode == 0, run.stdout + run.stderr
    for seen in ("reply lost", "dies before", "dies after", "IpamError", "delete"):
        assert seen in run.stdout
