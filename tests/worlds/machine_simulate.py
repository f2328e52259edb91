"""Random lives of a virtual machine, reproducible by seed:
`python tests/worlds/machine_simulate.py --runs N --seed S`.

They are of the same kind as those that Hypothesis draws (tests/worlds/machine_life.py), but denser, and half of them
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
from worlds.machine_life import CALM, RIVALS, Life
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED
from worlds.seeded_runs import command

SCENES = (  # a call marked ~ is disturbed, and the answer of one marked ! not delivered
    "start delete ~end",
    "start migrate delete ~end ~end",
    "start migrate delete end ~end_and_remove",
    "~start ~start",
    "~start end ~network_again",
    "start ~start ~network_again",
    "start ~migrate ~promote ~end ~start",
    "start ~start! ~start!",
    "start migrate ~migrate!",
    "start end_and_remove delete vanish ~collect",
)


def random_life(seed: int) -> None:
    dice = random.Random(seed)
    life = Life()
    if dice.random() < 0.5:
        for name in dice.choice(SCENES).split():
            _act(life, dice, name, 0.9 if name.startswith("~") else 0.0)
        for _ in range(dice.randint(0, 4)):
            _act(life, dice, dice.choice(NAMES), 0.3)
    else:
        for _ in range(dice.randint(3, 16)):
            _act(life, dice, dice.choice(NAMES), 0.5)
    life.teardown()


def _act(life: Life, dice: random.Random, name: str, disturbed: float) -> None:
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
    life.the_machine_keeps_its_addresses()
    life.owners_are_pods_of_the_machine()
    life.nothing_is_freed_under_a_pod_that_owned_it()


def _trouble(dice: random.Random, disturbed: float, name: str):
    if dice.random() >= disturbed:
        return CALM
    if name == "collect":  # it reads everything twice before it acts
        return PROCEED, 0, dice.choice(["start", *RIVALS]), dice.randint(10, 17)
    fate = dice.choice([PROCEED, PROCEED, PROCEED, LOSE_REPLY, DIE_BEFORE, DIE_AFTER])
    return fate, dice.randint(1, 14), dice.choice(RIVALS), dice.randint(1, 14)


def _always(_life: Life) -> bool:
    return True


DRAWS = {
    "node": lambda dice: dice.choice(NODES),
    "number": lambda dice: dice.randrange(6),
    "delivered": lambda dice: dice.random() < 0.8,
    "setting": lambda dice: dice.choice([None, None, "Enabled", "Disabled"]),
}
ACTIONS = {  # when it makes sense, and what it takes
    "start": (_always, ("node", "trouble", "delivered")),
    "migrate": (Life.up, ("node", "trouble", "delivered")),
    "network_again": (Life.present, ("number", "trouble")),
    "end": (Life.present, ("number", "trouble")),
    "end_and_remove": (Life.up, ("number", "trouble")),
    "promote": (lambda life: any(one.target for one in life.up()), ("number", "trouble")),
    "collect": (_always, ("trouble",)),
    "stop": (Life.runs, ()),
    "run_again": (_always, ()),
    "delete": (Life.exists, ()),
    "vanish": (Life.is_over, ()),
    "remove_pod": (Life.present, ("number",)),
    "persist": (_always, ("setting",)),
}
_OFTEN = {"start": 4, "migrate": 4, "network_again": 2, "end": 3, "end_and_remove": 2, "promote": 2, "persist": 2}
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
