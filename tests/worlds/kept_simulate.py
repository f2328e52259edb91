"""Random lives of names whose addresses are kept, reproducible by seed:
`python tests/worlds/kept_simulate.py --runs N --seed S`.

What can happen in them is in tests/worlds/kept_life.py, and how they are drawn in tests/worlds/seeded_lives.py.
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
from worlds.kept_life import PLAIN, RIVALS, SECONDS, SHARED, WEB, KeptLife
from worlds.seeded_lives import Lives, always
from worlds.seeded_runs import command

if TYPE_CHECKING:
    from collections import Counter

SCENES = (
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
DRAWS = {
    "kind": lambda dice: dice.choice([WEB, WEB, SHARED, SHARED, SHARED, PLAIN]),
    "node": lambda dice: dice.choice(NODES),
    "number": lambda dice: dice.randrange(6),
    "delivered": lambda dice: dice.random() < 0.8,
    "seconds": lambda dice: dice.choice([60, SECONDS // 2, SECONDS + 1]),
}
ACTIONS = {  # when it makes sense, and what it takes
    "start": (always, ("kind", "node", "trouble", "delivered")),
    "network_again": (lambda life: bool(life.sandboxes), ("number", "trouble")),
    "end": (lambda life: bool(life.sandboxes), ("number", "trouble")),
    "end_and_remove": (KeptLife.up, ("number", "trouble")),
    "end_by_the_original": (KeptLife.up, ("number",)),
    "lose": (lambda life: bool(life.sandboxes), ("number",)),
    "leaks": (always, ()),
    "collect": (always, ("trouble",)),
    "wait": (always, ("seconds",)),
    "switch": (always, ()),
    "turn_strict": (always, ()),
}
_OFTEN = {"start": 6, "network_again": 2, "end": 3, "end_and_remove": 4, "lose": 2, "wait": 2}
LIVES = Lives(
    KeptLife,
    SCENES,
    ACTIONS,
    _OFTEN,
    DRAWS,
    invariants=(KeptLife.records_are_sound, KeptLife.nobody_has_the_address_of_another),
    rivals=RIVALS,
    most_actions=20,
    last_moment=16,
)


def random_life(seed: int) -> None:
    seeded_lives.random_life(LIVES, seed)


def counted_life(seed: int) -> Counter[str]:
    """As a name of this module, since it is handed to other processes."""
    return seeded_lives.counted_life(LIVES, seed)


if __name__ == "__main__":
    sys.exit(command(__doc__, counted_life, "lives"))
