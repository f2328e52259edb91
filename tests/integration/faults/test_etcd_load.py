"""Many calls at once on a real etcd, DELs among them and some of them killed (P03).

Invariant: no call fails, no address is given twice, and what blocks and handles count are the containers that live.
"""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from integration.faults.rig import Rig
from integration.plugin.host import Answer, Container
from integration.plugin.mortal import spread, typical_life

NOWHERE = "/var/run/netns/none"


def given(answer: Answer) -> str:
    (ip,) = answer.result()["ips"]
    return str(ip["address"].partition("/")[0])


def mixed_load(rig: Rig, program: str, containers: list[Container], at_once: int) -> None:
    """An ADD of each; half of them are deleted again while the rest is still being added."""
    half = len(containers) // 2

    def attempt(work: tuple[str, Container]) -> Answer:
        verb, container = work
        return rig.host.call(verb, container, program=program)

    with ThreadPoolExecutor(at_once) as pool:
        first = list(pool.map(attempt, [("ADD", one) for one in containers[:half]]))
        both = [
            work for pair in zip(containers[:half], containers[half:]) for work in (("DEL", pair[0]), ("ADD", pair[1]))
        ]
        second = list(pool.map(attempt, both))
    for (verb, _), answer in zip(both, second):
        assert answer.exit == 0 or verb == "ADD", answer
    addresses = [given(answer) for (verb, _), answer in zip(both, second) if verb == "ADD"]
    assert len({given(answer) for answer in first}) == half
    assert len(set(addresses)) == half
    assert sorted(addresses) == sorted(rig.address(one) for one in containers[half:])
    assert set(rig.store.allocated()) == {rig.handle(one) for one in containers[half:]}
    assert sum(sum(handle["block"].values()) for handle in rig.store.handles().values()) == half
    rig.store.check()


def test_p03_120_adds_from_40_processes_with_60_dels_mixed_in(rig: Rig) -> None:
    rig.reset()
    containers = [Container(f"load{number:04d}", NOWHERE) for number in range(120)]
    mixed_load(rig, "calico-ipam", containers, 40)


def test_p03_with_devices(rig: Rig) -> None:
    rig.reset()
    containers = [rig.host.container("p") for _ in range(24)]
    mixed_load(rig, "calico", containers, 12)
    rig.clean()
    living = containers[len(containers) // 2 :]
    assert rig.host.devices() == {one.host_name for one in living}
    for one in living:
        assert one.inside.addresses("eth0") == [f"{rig.address(one)}/32"]
    assert len(rig.store.endpoints()) == len(living)
    rig.operator_checks()


def test_calls_killed_at_random_moments_leave_nothing_after_del(rig: Rig) -> None:
    rig.reset()
    containers = [rig.host.container("k") for _ in range(16)]
    seed = int.from_bytes(os.urandom(4), "big")
    chance = random.Random(seed)
    life = typical_life(rig.host, "calico", containers[0]) / 4 * 2.5  # of one that runs beside three others

    def kill(work: tuple[str, Container, float]) -> int:
        verb, container, delay = work
        process = rig.host.start(rig.host.environment(verb, container))
        assert process.stdin
        process.stdin.write(json.dumps(rig.host.netconf()).encode())
        process.stdin.close()
        time.sleep(delay)
        process.kill()
        return process.wait(60)

    with ThreadPoolExecutor(4) as pool:
        for verb, some in (("ADD", containers), ("DEL", containers[::2])):
            delays = spread(chance, life, len(some))
            ended = list(pool.map(kill, [(verb, *plan) for plan in zip(some, delays)]))
            assert -9 in ended, (seed, ended)
        for answer in pool.map(rig.host.delete, containers):
            answer.silent()
    assert rig.host.left() == {}, seed
    assert all(one.inside.names() == {"lo"} for one in containers), seed
    rig.clean(claiming=True)
    rig.networked(containers[0], rig.host.add(containers[0]))
