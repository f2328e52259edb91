"""Whatever a crash leaves, `ipam gc` collects, and `ipam check` then finds nothing (L03, L04; spec: ipam 16).

The schedules are those of tests/worlds/simulate.py; the sweep comes after them, or is one of the calls at work.
"""

from __future__ import annotations

import random

import pytest

from domain.ipam.audit import is_clean
from domain.ipam.errors import IpamError
from domain.ipam.inventory import PROBLEM
from ports.errors import PortError
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import KEPT, Sweep, collect_ipam
from worlds.ipam_world import NODES, World, call_of
from worlds.scheduler import PROCEED, Died, Process, Schedule
from worlds.simulate import CONTAINERS, FATES, FILLERS, VERBS, body_of, settle

RUNS = 8  # a test


def drawn(seed: int, *, apart: bool):
    """The dice, what is there before, and what is asked at once; `apart`: a container is deleted by one at a time."""
    dice = random.Random(seed)
    before = [(dice.choice([*CONTAINERS, *FILLERS]), dice.choice(NODES)) for _ in range(dice.randint(0, 16))]
    asked, gone = [], set()
    for _ in range(dice.randint(2, 4)):
        container = dice.choice(CONTAINERS if dice.random() < 0.7 else CONTAINERS[:1])
        verb = dice.choice(VERBS)
        if verb in ("DEL", "FREE"):
            verb = "ADD" if apart and container in gone else verb
            gone.add(container)
        asked.append((verb, container, dice.choice(NODES), dice.random() < 0.4))
    return dice, before, asked


def started(world: World, asked) -> list[Process]:
    return [Process(f"{at} {one[0]} {one[1]} on {one[2]}", body_of(world, one)) for at, one in enumerate(asked)]


def swept(world: World, seed: int) -> None:
    """Clean but for addresses that nobody has asked to delete; those are still their containers'."""
    held = world.held()
    outcomes = collect_ipam(world.work(), Sweep())
    assert not [one for one in outcomes if one.outcome == KEPT], seed
    left = [finding for finding in check_ipam(world.work()).findings if finding.level == PROBLEM]
    assert not left, (seed, left)
    assert world.held() == held, seed
    world.check_at_rest({handle.partition(".")[2] for handle, _ in held})


@pytest.mark.parametrize("batch", range(6))
def test_a_sweep_after_any_schedule_leaves_no_problem_and_takes_no_address(batch):
    for seed in range(batch * RUNS, (batch + 1) * RUNS):
        world = World(strict=seed % 3 == 0)
        dice, before, asked = drawn(seed, apart=False)
        settle(world, before)
        Schedule(world.store, dice.randrange, lambda dice=dice: dice.choice(FATES), lambda: None).run(
            started(world, asked)
        )
        swept(world, seed)
        for container in (*CONTAINERS, *FILLERS):
            world.delete(call_of(container, "node-a", "DEL"))
        assert is_clean(check_ipam(world.work()).findings), seed


@pytest.mark.parametrize("batch", range(6))
def test_a_sweep_without_any_grace_hurts_no_call_at_work(batch):
    """The invariants hold at every step, and nobody's address is taken."""
    for seed in range(batch * RUNS, (batch + 1) * RUNS):
        world = World(strict=seed % 3 == 0)
        dice, before, asked = drawn(seed, apart=True)
        settle(world, before)
        processes = started(world, asked)
        sweep = Process("sweep", lambda store, world=world: collect_ipam(world.work(store), Sweep(grace=0)))
        fates = [*[PROCEED] * 20, *FATES]
        Schedule(world.store, dice.randrange, lambda dice=dice, fates=fates: dice.choice(fates), world.check).run(
            [*processes, sweep]
        )
        for process in (*processes, sweep):
            assert isinstance(process.error, (type(None), Died, IpamError, PortError)), (seed, process.error)
        require_answers_kept(world, processes, asked, seed)
        swept(world, seed)


def require_answers_kept(world: World, processes: list[Process], asked, seed: int) -> None:
    spared = {"DEL", "FREE"}
    gone = {container for verb, container, *_ in asked if verb in spared}
    answered = [a for one, (_, c, *_) in zip(processes, asked) if c not in gone for a in one.result or ()]
    blocks = [block for block, _ in check_ipam(world.work()).inventory.blocks.values()]
    taken = {str(one.cidr.at(at)) for one in blocks for at in range(one.cidr.size) if one.holder(at)}
    assert len(answered) == len(set(answered)), seed
    assert set(answered) <= taken, seed
