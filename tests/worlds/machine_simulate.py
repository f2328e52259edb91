"""Random lives of a virtual machine, reproducible by seed:
`python tests/worlds/machine_simulate.py --runs N --seed S`.

What can happen in them is in tests/worlds/machine_life.py, and how they are drawn in tests/worlds/seeded_lives.py.
Exit code 1, and the seed, when one goes wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":  # as a script: the project and the test modules beside it
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from worlds import seeded_lives
from worlds.ipam_world import NODES
from worlds.machine_life import RIVALS, Life
from worlds.seeded_lives import Lives, always
from worlds.seeded_runs import command

if TYPE_CHECKING:
    from collections import Counter

SCENES = (
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
DRAWS = {
    "node": lambda dice: dice.choice(NODES),
    "number": lambda dice: dice.randrange(6),
    "delivered": lambda dice: dice.random() < 0.8,
    "setting": lambda dice: dice.choice([None, None, "Enabled", "Disabled"]),
}
ACTIONS = {  # when it makes sense, and what it takes
    "start": (always, ("node", "trouble", "delivered")),
    "migrate": (Life.up, ("node", "trouble", "delivered")),
    "network_again": (Life.present, ("number", "trouble")),
    "end": (Life.present, ("number", "trouble")),
    "end_and_remove": (Life.up, ("number", "trouble")),
    "promote": (lambda life: any(one.target for one in life.up()), ("number", "trouble")),
    "collect": (always, ("trouble",)),
    "stop": (Life.runs, ()),
    "run_again": (always, ()),
    "delete": (Life.exists, ()),
    "vanish": (Life.is_over, ()),
    "remove_pod": (Life.present, ("number",)),
    "persist": (always, ("setting",)),
}
_OFTEN = {"start": 4, "migrate": 4, "network_again": 2, "end": 3, "end_and_remove": 2, "promote": 2, "persist": 2}
LIVES = Lives(
    Life,
    SCENES,
    ACTIONS,
    _OFTEN,
    DRAWS,
    invariants=(
        Life.records_are_sound,
        Life.the_machine_keeps_its_addresses,
        Life.owners_are_pods_of_the_machine,
        Life.nothing_is_freed_under_a_pod_that_owned_it,
    ),
    rivals=RIVALS,
    most_actions=16,
    last_moment=14,
)


def random_life(seed: int) -> None:
    seeded_lives.random_life(LIVES, seed)


def counted_life(seed: int) -> Counter[str]:
    """As a name of this module, since it is handed to other processes."""
    return seeded_lives.counted_life(LIVES, seed)


if __name__ == "__main__":
    sys.exit(command(__doc__, counted_life, "lives"))
