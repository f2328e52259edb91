"""Random lives of names whose addresses are kept, reproducible by seed:
`python tests/worlds/kept_simulate.py --runs N --seed S`.

They are of the same kind as those that Hypothesis draws (tests/worlds/kept_life.py), but denser, and half of them
begin with a scene in which calls are about to hurt each other. Exit code 1, and the seed, when one goes wrong.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from pathlib import Path

if __name__ == "__main__":  # as a script: the project and the test modules beside it
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from worlds.ipam_world import NODES
from worlds.kept_life import CALM, PLAIN, RIVALS, SECONDS, SHARED, WEB, KeptLife
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED
from worlds.seeded_runs import command

SCENES = (  # a call marked ~ is disturbed, and the answer of one marked ! not delivered
    "start lose ~start end",
    "start start ~end_and_remove start",
    "start end_and_remove wait ~collect start",
    "start end_and_remove ~start ~start",
    "start lose wait collect ~start",
    "start ~network_again end",
    "start end_and_remove ~start! start",
    "start end_and_remove wait start start start start start start",
    "start end_and_remove switch ~start switch start",
    "start turn_strict end_and_remove ~start",
)


def random_life(seed: int) -> None:
    dice = random.Random(seed)
    life = KeptLife()
    if dice.random() < 0.5:
        for name in dice.choice(SCENES).split():
            _act(life, dice, name, 0.9 if name.startswith("~") else 0.0)
        for _ in range(dice.randint(0, 4)):
            _act(life, dice, dice.choice(NAMES), 0.3)
    else:
        for _ in range(dice.randint(3, 20)):
            _act(life, dice, dice.choice(NAMES), 0.5)
    life.teardown()


def _act(life: KeptLife, dice: random.Random, name: str, disturbed: float) -> None:
    name, lost = name.strip("~!"), name.endswith("!")
    ready, given = ACTIONS[name]
    if not ready(life):
        return
    drawn = {"trouble": _trouble(dice, disturbed, name)} if "trouble" in given else {}
    drawn |= {what: DRAWS[what](dice) for what in given if what in DRAWS}
    if "delivered" in drawn and (lost or not disturbed):
        drawn["delivered"] = not lost
    getattr(life, name)(**drawn)
    life.records_are_sound()
    life.nobody_has_the_address_of_another()


def _trouble(dice: random.Random, disturbed: float, name: str):
    if dice.random() >= disturbed:
        return CALM
    if name == "collect":  # it reads everything twice before it acts
        return PROCEED, 0, dice.choice(["start", *RIVALS]), dice.randint(10, 17)
    fate = dice.choice([PROCEED, PROCEED, PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER])
    return fate, dice.randint(1, 16), dice.choice(RIVALS), dice.randint(1, 16)


def _always(_life: KeptLife) -> bool:
    return True


DRAWS = {
    "kind": lambda dice: dice.choice([WEB, WEB, SHARED, SHARED, SHARED, PLAIN]),
    "node": lambda dice: dice.choice(NODES),
    "number": lambda dice: dice.randrange(6),
    "delivered": lambda dice: dice.random() < 0.8,
    "seconds": lambda dice: dice.choice([60, SECONDS // 2, SECONDS + 1]),
}
ACTIONS = {  # when it makes sense, and what it takes
    "start": (_always, ("kind", "node", "trouble", "delivered")),
    "network_again": (lambda life: bool(life.sandboxes), ("number", "trouble")),
    "end": (lambda life: bool(life.sandboxes), ("number", "trouble")),
    "end_and_remove": (KeptLife.up, ("number", "trouble")),
    "end_by_the_original": (KeptLife.up, ("number",)),
    "lose": (lambda life: bool(life.sandboxes), ("number",)),
    "leaks": (_always, ()),
    "collect": (_always, ("trouble",)),
    "wait": (_always, ("seconds",)),
    "switch": (_always, ()),
    "turn_strict": (_always, ()),
}
_OFTEN = {"start": 6, "network_again": 2, "end": 3, "end_and_remove": 4, "lose": 2, "wait": 2}
NAMES = [name for name in ACTIONS for _ in range(_OFTEN.get(name, 1))]


def counted_life(seed: int) -> Counter[str]:
    """Any exception is a life that went wrong."""
    try:
        random_life(seed)
    except Exception:  # noqa: BLE001 - whatever it is
        raise AssertionError(traceback.format_exc()) from None
    return Counter()


if __name__ == "__main__":
    sys.exit(command(__doc__, counted_life, "lives"))
