"""Which deeds chaos does, in which order and with what.

    deed(seed=7, number=12)      the twelfth, with everything that chance decides about it

Invariant: a deed depends on the seed and its own number, and on nothing else: neither on how earlier ones ended nor on
what there was for them to do. So a seed is the same schedule on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

APPS = ("red", "green", "blue")
NODES = ("node-a", "node-b")
DAEMONS = ("kubelet", "containerd")
MOST_PODS = 12
# Out of all together. Pods have to come and go for the rest to hit anything.
WEIGHTS = {
    "scale": 10,
    "roll": 5,
    "end_pod": 5,
    "kill_plugin": 8,
    "kill_runtime": 3,
    "kill_kubelet": 3,
    "kill_apiserver": 2,
    "kill_etcd": 2,
    "pause_daemon": 3,
    "pause_apiserver": 1,
    "lose_packets": 2,
    "lose_replies": 3,
    "fill_disk": 2,
    "lose_node": 1,
}
One = TypeVar("One")


class Deed(NamedTuple):
    """What it is, and what it is done with; most take some of these only. Seconds, but for `share`, which is 0 to 1."""

    name: str
    node: str
    app: str
    replicas: int
    daemon: str
    grace: int
    share: float
    """Of those that there are, which one: see `chosen`."""
    delay: float
    """Between a plugin's start and its end."""
    away: float
    rest: float
    """Until the next deed."""
    mends: bool
    """Whether something that is broken is mended then."""


def deed(seed: int, number: int) -> Deed:
    chance = random.Random(f"{seed} {number}")
    return Deed(
        name=chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0],
        node=chance.choice(NODES),
        app=chance.choice(APPS),
        replicas=chance.randint(0, MOST_PODS),
        daemon=chance.choice(DAEMONS),
        grace=chance.choice((0, 1)),
        share=chance.random(),
        delay=chance.uniform(0.0, 0.03),
        away=chance.uniform(1.0, 12.0),
        rest=chance.uniform(0.2, 4.0),
        mends=chance.random() < 0.5,
    )


def chosen(share: float, there: Sequence[One]) -> One:
    """The one at that share of the way through."""
    return there[int(share * len(there))]
