"""Pods that come at the same time, and calls for them that die: no address twice, and nothing left after DEL."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from integration.plugin.mortal import Mortal, address, all_at_once, typical_life
from integration.plugin.store import IPAM
from integration.pods.checks import check_endpoint, check_gone
from integration.pods.world import PodHost, Sandbox

PROCESSES = 8


@pytest.fixture
def pool(pods: PodHost) -> PodHost:
    pods.pools("10.20.0.0/24")
    return pods


def check_clean(pods: PodHost, sandboxes: Sequence[Sandbox]) -> None:
    """Nobody has anything, and an operator's check agrees. A claim that was half made is finished by the next ADD."""
    check_gone(pods, *sandboxes)
    for key, affinity in pods.store.under(f"{IPAM}/host/").items():
        assert affinity["state"] in {"confirmed", "pending"}, key
    pods.add(sandboxes[0]).result()
    pods.clean()
    pods.delete(sandboxes[0]).silent()
    pods.clean()


def test_ten_pods_at_once(pool: PodHost) -> None:
    """Twice: the second time the node has its block, which all of them want to write."""
    sandboxes = [pool.pod() for _ in range(10)]
    for _ in range(2):
        answers = all_at_once(pool.add, sandboxes, PROCESSES)
        given = [address(answer) for answer in answers]
        assert len(set(given)) == 10
        for sandbox, one in zip(sandboxes, given):
            assert pool.holds(sandbox) == [one]
            assert sandbox.inside.addresses("eth0") == [f"{one}/32"]
            check_endpoint(pool, sandbox, [f"{one}/32"])
        pool.clean()
        for answer in all_at_once(pool.delete, sandboxes, PROCESSES):
            answer.silent()
        check_gone(pool, *sandboxes)
    pool.clean()


def test_calls_that_are_killed_at_any_moment_leave_nothing_after_del(pool: PodHost) -> None:
    """Half of the DELs are killed, too."""
    sandboxes = [pool.pod() for _ in range(16)]
    mortal = Mortal(pool, "calico", typical_life(pool, "calico", sandboxes[0]))
    added = mortal.round("ADD", sandboxes)
    mortal.round("DEL", sandboxes[::2])
    for answer in all_at_once(pool.delete, sandboxes, PROCESSES):
        answer.silent()
    check_clean(pool, sandboxes)
    assert {answer.exit for answer in added} & {-9, -15, 1}, mortal.seed


def test_sandboxes_of_one_pod_at_once(pool: PodHost) -> None:
    """A runtime that has lost count: whoever is last has the pod, and DELs in any order take everything back."""
    first = pool.pod()
    sandboxes = [first, *[pool.sandbox(first.pod) for _ in range(3)]]
    calls = [(verb, sandbox) for sandbox in sandboxes for verb in ("ADD", "DEL", "ADD")]
    answers = all_at_once(lambda call: pool.call(*call), calls, PROCESSES)
    assert all(answer.exit == 0 or json.loads(answer.stdout)["code"] in {11, 999} for answer in answers), answers
    for answer in all_at_once(pool.delete, sandboxes, PROCESSES):
        answer.silent()
    check_clean(pool, sandboxes)
