"""What judges a cluster under chaos says what is wrong, and nothing about what is right; and a seed is one schedule.

A judge that overlooks everything would pass every run: so faults are planted here, one of each kind.
"""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from integration.runtimes.chaos import Chaos, counted, healed, verdict
from integration.runtimes.leftovers import Found, leftovers
from integration.runtimes.schedule import APPS, NODES, WEIGHTS, chosen, deed
from integration.runtimes.sightings import Sightings, quantile, summary, table

SOUND = (0, "no problem")
EMPTY = {"node-a": Found([], []), "node-b": Found([], [])}
_uids = count()


def pod(name: str, *addresses: str, phase: str = "Running", ready: bool = True, **metadata: Any) -> dict[str, Any]:
    uid = metadata.pop("uid", f"uid-{next(_uids)}")
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": phase, "podIPs": [{"ip": one} for one in addresses], "conditions": conditions}
    return {"metadata": {"name": name, "uid": uid, **metadata}, "spec": {"nodeName": "node-a"}, "status": status}


def seen(*lists: list[dict[str, Any]]) -> Sightings:
    sightings = Sightings()
    for second, pods in enumerate(lists):
        sightings.see(pods, float(second))
    return sightings


# Two pods, one address


@pytest.mark.parametrize("address", ["10.44.0.1", "fd44::1"])
def test_an_address_of_two_running_pods_is_told(address):
    one, other = pod("one", "10.44.0.1", "fd44::1"), pod("other", address, ready=False)
    (line,) = seen([one, other]).doubled
    assert line.startswith(f"{address}: one (")
    assert "other (" in line


def test_a_doubling_that_stays_is_told_once_and_one_that_has_gone_stays_told():
    one, other = pod("one", "10.44.0.1"), pod("other", "10.44.0.1")
    assert len(seen([one, other], [one, other], [one]).doubled) == 1


def test_pods_of_one_name_are_two_pods():
    """As of a StatefulSet, on a node that has gone and on another."""
    assert len(seen([pod("db-0", "10.44.0.1"), pod("db-0", "10.44.0.1")]).doubled) == 1


@pytest.mark.parametrize(
    "other",
    [
        pod("other", "10.44.0.2"),
        pod("other"),
        pod("other", "10.44.0.1", phase="Failed"),
        pod("other", "10.44.0.1", phase="Succeeded"),
        pod("other", "10.44.0.1", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["another address", "none", "failed", "done", "ending"],
)
def test_who_does_not_hold_the_address_is_no_doubling(other):
    assert seen([pod("one", "10.44.0.1"), other]).doubled == []


def test_an_address_may_go_from_one_pod_to_the_next():
    assert seen([pod("one", "10.44.0.1")], [pod("other", "10.44.0.1")]).doubled == []


# How long pods take


def test_a_start_is_from_the_first_sight_to_the_first_that_is_ready():
    steps = [pod("one", uid="u", ready=ready) for ready in (False, False, True, False, True)]
    (start,) = seen(*[[step] for step in steps]).starts().values()
    assert (start.pod, start.node, start.seconds) == ("one", "node-a", 2.0)


def test_the_table_has_each_pod_with_the_plugins_share_and_the_slowest_first():
    before, after = [pod(name, uid=name, ready=False) for name in "abc"], [pod(name, uid=name) for name in "abc"]
    starts = seen(before, [after[0], *before[1:]], [*after[:2], before[2]], after).starts()
    networked = {"a": 0.25, "b": 0.5, "another's": 1.0}
    assert table(starts, networked).splitlines()[2:] == [
        "| b | node-a | 2.00 | 0.500 | 25% |",
        "| a | node-a | 1.00 | 0.250 | 25% |",
    ]
    assert summary(starts, networked).splitlines() == [
        "| 2 pods | median | 90 of 100 below | most |",
        "|---|---|---|---|",
        "| until ready, s | 1.00 | 2.00 | 2.00 |",
        "| in the plugin, s | 0.25 | 0.50 | 0.50 |",
        "| the plugin's share, % | 25.00 | 25.00 | 25.00 |",
    ]


def test_quantiles_are_among_what_was_seen():
    tenths = [one / 10 for one in range(10, 0, -1)]
    assert [quantile(tenths, part) for part in (0.0, 0.5, 0.9, 1.0)] == [0.1, 0.5, 0.9, 1.0]
    assert quantile([3.0], 0.5) == 3.0


# What is left


def test_nothing_left_is_nothing_told():
    assert leftovers(SOUND, [], EMPTY) == []


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (((1, "address 10.44.0.1 leaked"), [], EMPTY), "ipam check: address 10.44.0.1 leaked"),
        ((SOUND, ["k8s-pod-network.1"], EMPTY), "handle k8s-pod-network.1"),
        ((SOUND, [], EMPTY | {"node-b": Found(["cali1"], [])}), "node-b: link cali1"),
        ((SOUND, [], EMPTY | {"node-a": Found([], ["net-1-eth0"])}), "node-a: result net-1-eth0"),
    ],
    ids=["check", "handle", "link", "result"],
)
def test_each_kind_of_leftover_is_told_with_its_place(found, line):
    assert leftovers(*found) == [line]


class Cluster:
    """One that is asked and changed as `KubeCluster` is, and does what it is told to."""

    def __init__(self, *, heals: bool = True, left: tuple[str, ...] = ()) -> None:
        self._heals, self._left = heals, left
        self.changed: list[tuple[str, int]] = []

    def await_ready_nodes(self, number: int) -> None:
        assert number == len(NODES)

    def change(self, app: str, *, replicas: int) -> None:
        self.changed.append((app, replicas))

    def await_pods(self, app: str, number: int, seconds: float) -> None:
        if not self._heals:
            raise TimeoutError(f"{number} pods of {app}")

    def clear(self) -> None:
        pass

    def await_nothing(self, seconds: float) -> None:
        assert self.remains() == []

    def remains(self) -> list[str]:
        return list(self._left)


def judged(cluster: Cluster) -> list[str]:
    under = Chaos(cluster, 1)
    return healed(cluster, under) + counted(cluster, under)


def test_a_cluster_that_heals_and_leaves_nothing_passes(capsys):
    cluster = Cluster()
    assert judged(cluster) == []
    assert [app for app, _ in cluster.changed] == list(APPS)
    assert verdict([], "seed 1") == 0
    assert capsys.readouterr().out.endswith("RESULT: passed (seed 1)\n")


def test_a_cluster_that_does_not_heal_or_leaves_something_fails(capsys):
    violations = judged(Cluster(heals=False, left=("handle x", "node-a: link cali1")))
    assert violations == ["does not heal: 4 pods of red", "left: handle x", "left: node-a: link cali1"]
    assert verdict(violations, "seed 1") == 1
    assert "VIOLATION left: handle x\n" in capsys.readouterr().out


def test_a_cluster_that_cannot_be_emptied_fails_though_nothing_is_found_afterwards():
    stuck = Cluster()
    stuck.clear = lambda: (_ for _ in ()).throw(TimeoutError("not within 120 s: no pod is left"))
    assert judged(stuck) == ["does not empty: not within 120 s: no pod is left"]


# The schedule


def test_a_seed_is_one_schedule():
    deeds = [deed(7, number) for number in range(1, 301)]
    assert deeds == [deed(7, number) for number in range(1, 301)]
    assert deeds != [deed(8, number) for number in range(1, 301)]
    assert {one.name for one in deeds} == set(WEIGHTS)


def test_schedules_that_are_in_notes_stay_what_they_are():
    """A seed that somebody has noted beside a violation has to lead there, with the next version of Python too."""
    first = [(one.name, one.node, one.app, one.replicas) for one in (deed(7, number) for number in range(1, 5))]
    assert first == [
        ("fill_disk", "node-a", "green", 8),
        ("lose_replies", "node-b", "green", 5),
        ("end_pod", "node-a", "green", 7),
        ("kill_plugin", "node-a", "red", 9),
    ]


def test_each_deed_that_can_be_chosen_can_be_done():
    assert all(callable(getattr(Chaos, name)) for name in WEIGHTS)


class Deaf(Chaos):
    """Each deed fails, or succeeds, as it is told; and is noted."""

    def __init__(self, seed: int, *, fails: bool) -> None:
        seconds = count()
        super().__init__(SimpleNamespace(), seed, lambda: float(next(seconds)), lambda _: None)
        self.done: list[object] = []
        self._fails = fails

    def run_on(self, minutes: float) -> list[object]:
        self.run(minutes)
        return self.done

    def __getattribute__(self, name: str) -> Any:
        if name not in WEIGHTS:
            return super().__getattribute__(name)

        def do(one: object) -> str:
            self.done.append(one)
            if self._fails:
                raise OSError("away")
            self.broken[name] = lambda: None
            return name

        return do


def test_what_becomes_of_deeds_does_not_change_the_next_ones():
    done = [Deaf(7, fails=fails).run_on(2) for fails in (True, False)]
    length = min(map(len, done))
    assert length > 30
    assert done[0][:length] == done[1][:length]


def test_what_is_chosen_is_one_of_those():
    assert [chosen(share, "abc") for share in (0.0, 0.4, 0.99999)] == ["a", "b", "c"]
    with pytest.raises(IndexError):
        chosen(0.5, [])
