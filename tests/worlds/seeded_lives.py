"""Random lives, reproducible by seed: of the kind that a Hypothesis machine draws, but denser.

Half of them begin with a scene in which calls are about to hurt each other. What can happen in a life, and what must
hold in it, its machine says (tests/worlds/kept_life.py, tests/worlds/machine_life.py).
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED
from worlds.troubled_life import CALM

if TYPE_CHECKING:
    from collections.abc import Callable


class Lives(NamedTuple):
    """`scenes`: a call marked ~ is disturbed, and the answer of one marked ! not delivered.

    `actions` say when each makes sense, and what it takes; `often`, how many times as often as others it comes.
    """

    machine: type
    scenes: tuple[str, ...]
    actions: dict[str, tuple[Callable[..., object], tuple[str, ...]]]
    often: dict[str, int]
    draws: dict[str, Callable[[random.Random], object]]
    invariants: tuple[Callable[..., None], ...]
    rivals: tuple[str | None, ...]
    most_actions: int
    last_moment: int


def always(_life: object) -> bool:
    return True


def random_life(lives: Lives, seed: int) -> None:
    dice = random.Random(seed)
    life = lives.machine()
    names = [name for name in lives.actions for _ in range(lives.often.get(name, 1))]
    if dice.random() < 0.5:
        for name in dice.choice(lives.scenes).split():
            _act(lives, life, dice, name, 0.9 if name.startswith("~") else 0.0)
        for _ in range(dice.randint(0, 4)):
            _act(lives, life, dice, dice.choice(names), 0.3)
    else:
        for _ in range(dice.randint(3, lives.most_actions)):
            _act(lives, life, dice, dice.choice(names), 0.5)
    life.teardown()


def counted_life(lives: Lives, seed: int) -> Counter[str]:
    """Any exception is a life that went wrong."""
    try:
        random_life(lives, seed)
    except Exception:  # noqa: BLE001 - whatever it is
        raise AssertionError(traceback.format_exc()) from None
    return Counter()


def _act(lives: Lives, life, dice: random.Random, name: str, disturbed: float) -> None:
    name, lost = name.strip("~!"), name.endswith("!")
    ready, given = lives.actions[name]
    if not ready(life):
        return
    drawn = {"trouble": _trouble(lives, dice, disturbed, name)} if "trouble" in given else {}
    drawn |= {what: lives.draws[what](dice) for what in given if what in lives.draws}
    if "delivered" in drawn and (lost or not disturbed):
        drawn["delivered"] = not lost
    getattr(life, name)(**drawn)
    for holds in lives.invariants:
        holds(life)


def _trouble(lives: Lives, dice: random.Random, disturbed: float, name: str):
    if dice.random() >= disturbed:
        return CALM
    if name == "collect":  # it reads everything twice before it acts
        return PROCEED, 0, dice.choice(["start", *lives.rivals]), dice.randint(10, 17)
    fate = dice.choice([PROCEED, PROCEED, PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER])
    return fate, dice.randint(1, lives.last_moment), dice.choice(lives.rivals), dice.randint(1, lives.last_moment)
