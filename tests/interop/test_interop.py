"""Two implementations share a host and an etcd: what one begins the other can go on with and end, record by record.

Invariant: whichever of the two made a call, records and kernel are as if one implementation had made them all.
"""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.plugin.host import Container
from interop.pair import BLOCK, ENDPOINT, NETWORK, Implementation, Pair, members

POOL = "10.20.0.0/24"
WAYS = pytest.mark.parametrize("way", [0, 1], ids=["ours first", "peer first"])
KILLED = -9


@WAYS
def test_add_by_one_and_del_by_the_other(pair: Pair, way: int) -> None:
    adder, other = pair.both_ways()[way]
    pair.reset(POOL)
    container = pair.host.container("i")
    address = pair.add(adder, container)
    assert container.inside.addresses("eth0") == [f"{address}/32"]
    pair.checks()
    assert pair.add(other, container) == address  # a repeated ADD adopts
    pair.checks()
    pair.delete(other, container)
    assert pair.host.left() == {}
    assert container.inside.names() == {"lo"}
    pair.delete(adder, container)
    pair.checks()


@WAYS
def test_an_address_taken_by_one_is_freed_by_the_other(pair: Pair, way: int) -> None:
    """`calico-ipam` alone."""
    adder, other = pair.both_ways()[way]
    pair.reset(POOL)
    containers = [pair.container(number) for number in range(3)]
    addresses = {pair.add(side, one, "calico-ipam") for side, one in zip((adder, other, adder), containers)}
    assert len(addresses) == 3
    assert len(pair.store.blocks()) == 1
    for side, one in zip((other, adder, other), containers):
        pair.delete(side, one, "calico-ipam")
    assert pair.host.left() == {}
    pair.checks()


# --- records --------------------------------------------------------------------------------------------------------


@WAYS
def test_a_block_is_rewritten_with_nothing_else_changed(pair: Pair, way: int) -> None:
    """Not even the order of members."""
    one, other = pair.both_ways()[way]
    pair.reset(POOL)
    first, second = pair.container(1), pair.container(2)
    pair.add(one, first, "calico-ipam")
    before = pair.text(BLOCK)
    pair.add(other, second, "calico-ipam")
    pair.delete(other, second, "calico-ipam")
    after = pair.text(BLOCK)
    assert names(before) == names(after)
    old, new = json.loads(before), json.loads(after)
    assert new.pop("sequenceNumber") > old.pop("sequenceNumber")
    freed = old["unallocated"][0]  # taken by the second container, now at the end of the queue
    assert new.pop("unallocated") == [*(number for number in old.pop("unallocated") if number != freed), freed]
    assert new == old
    pair.checks()


@WAYS
def test_an_address_is_added_to_a_block_as_the_block_has_the_others(pair: Pair, way: int) -> None:
    one, other = pair.both_ways()[way]
    pair.reset(POOL)
    first, second = pair.container(1), pair.container(2)
    pair.add(one, first, "calico-ipam")
    old = json.loads(pair.text(BLOCK))
    pair.add(other, second, "calico-ipam")
    new = json.loads(pair.text(BLOCK))
    place = old["unallocated"].pop(0)
    assert old["allocations"][place] is None
    old["allocations"][place] = len(old["attributes"])
    old["sequenceNumberForAllocation"][str(place)] = old["sequenceNumber"]
    assert new.pop("sequenceNumber") > old.pop("sequenceNumber")
    added, like = new["attributes"].pop(), old["attributes"][0]
    assert new == old
    assert added["handle_id"] == f"{NETWORK}.{second.identity}"
    assert [*added] == [*like]
    assert [*added["secondary"]] == [*like["secondary"]]
    pair.checks()


@WAYS
def test_handles_affinities_and_endpoints_of_both_look_alike(pair: Pair, way: int) -> None:
    one, other = pair.both_ways()[way]
    texts: dict[Implementation, dict[str, str]] = {}
    for side in (one, other):
        pair.reset(POOL)
        container = pair.host.container("r")
        pair.add(side, container)
        texts[side] = {
            key.replace(container.identity, "<container>"): text.replace(container.identity, "<container>")
            for key, text in pair.store.texts().items()
        }
        pair.delete(side, container)
    assert set(texts[one]) == set(texts[other])
    for key, text in texts[one].items():
        assert names(text) == names(texts[other][key]), key


def names(text: str) -> object:
    """The names of a record's members, in their order; of the lists of a block only that they are lists."""

    def walk(value: object) -> object:
        if isinstance(value, list) and all(isinstance(item, list) and len(item) == 2 for item in value):
            return [(name, walk(member)) for name, member in value]
        return type(value).__name__

    return walk(members(text))


@WAYS
def test_an_endpoint_gets_another_networks_profile_and_keeps_the_rest(pair: Pair, way: int) -> None:
    one, other = pair.both_ways()[way]
    pair.reset(POOL)
    container = pair.host.container("p")
    pair.add(one, container)
    before = json.loads(pair.text(ENDPOINT))
    pair.add(other, container, name="net2")
    after = json.loads(pair.text(ENDPOINT))
    assert after["spec"].pop("profiles") == [*before["spec"].pop("profiles"), "net2"]
    assert after == before
    pair.delete(one, container)
    assert pair.host.left() == {}


# --- blocks ---------------------------------------------------------------------------------------------------------


@WAYS
def test_a_claim_that_one_has_begun_is_confirmed_by_the_other(pair: Pair, way: int) -> None:
    """As it is left by a call that was killed: with the block written, and without."""
    one, other = pair.both_ways()[way]
    for has_block in (True, False):
        pair.reset(POOL)
        pair.add(one, pair.container(1), "calico-ipam")
        pair.delete(one, pair.container(1), "calico-ipam")
        ((key, confirmed),) = [item for item in pair.store.texts().items() if "/host/" in item[0]]
        pair.store.write(key, confirmed.replace('"confirmed"', '"pending"'))
        if not has_block:
            (block,) = [key for key in pair.store.texts() if key.startswith(BLOCK)]
            pair.store.drop(block)
        pair.add(other, pair.container(2), "calico-ipam")
        assert len(pair.store.blocks()) == 1
        assert members(pair.store.texts()[key]) == members(confirmed)
        pair.checks()


@WAYS
def test_blocks_of_either_are_used_and_borrowed_from_by_the_other(pair: Pair, way: int) -> None:
    one, other = pair.both_ways()[way]
    pair.reset("10.20.0.0/28", block_size=29, nodes=("node-b",))  # two blocks of eight
    place = {one: "node-a", other: "node-b"}
    holders = [(one, "node-a"), (other, "node-b")]  # each claims a block on its node
    holders += [(other, "node-a"), (one, "node-b")]  # and takes of the other's block there
    holders += [(one, place[one])] * 10  # which fills node-a's block, and borrows six
    holders += [(other, place[other])] * 2
    addresses = {}
    for number, (side, node) in enumerate(holders):
        addresses[number] = pair.add(side, pair.container(number), "calico-ipam", nodename=node)
    assert len(set(addresses.values())) == 16
    owners = {block["cidr"]: block["affinity"] for block in pair.store.blocks().values()}
    assert sorted(owners.values()) == ["host:node-a", "host:node-b"]
    assert pair.affinities() == {f"{owner[5:]} {cidr}": "confirmed" for cidr, owner in owners.items()}
    codes = []
    for side in (one, other):
        answer = pair.call(side, "ADD", pair.container(99), "calico-ipam")
        assert answer.exit != 0
        codes.append(json.loads(answer.stdout)["code"])
    assert codes[0] == codes[1]
    for number, (side, node) in enumerate(holders):
        pair.delete(other if side is one else one, pair.container(number), "calico-ipam", nodename=node)
    assert pair.host.left() == {}
    pair.checks()


# --- at once --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "count"), [("calico-ipam", 32), ("calico", 16)])
def test_eight_processes_half_of_each_with_some_killed(pair: Pair, program: str, count: int) -> None:
    """In blocks of 16, so that some are claimed at the same time."""
    pair.reset(POOL, block_size=28)
    seed = int.from_bytes(os.urandom(4), "big")
    chance = random.Random(seed)
    devices = program == "calico"
    containers = [pair.host.container("x") if devices else pair.container(number) for number in range(count)]
    lives = {side: life(pair, side, program) for side in pair.sides}

    def attempt(work: tuple[Implementation, str, Container, float | None]) -> tuple[int, str]:
        """Exit code and address of an ADD that may be killed after some seconds."""
        side, verb, container, delay = work
        process = pair.host.start(pair.given(side, verb, container, program), program=side.bin / program)
        assert process.stdin
        process.stdin.write(json.dumps(pair.host.netconf()).encode())
        process.stdin.close()
        process.stdin = None
        if delay is not None:
            time.sleep(delay)
            process.kill()
        out, _ = process.communicate(timeout=120)
        address = json.loads(out)["ips"][0]["address"].partition("/")[0] if out and verb == "ADD" else ""
        return process.returncode, address

    def in_turn(verb: str, some: list[Container], deadly: float) -> list[tuple[int, str]]:
        plans = []
        for number, container in enumerate(some):
            side = pair.sides[number % 2]
            delay = chance.uniform(0, 4 * lives[side]) if chance.random() < deadly else None
            plans.append((side, verb, container, delay))
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(attempt, plans))

    added = in_turn("ADD", containers, 1 / 3)
    assert all(code in (0, KILLED) for code, _ in added), (seed, added)
    answered = [address for code, address in added if code == 0]
    assert len(set(answered)) == len(answered), seed
    taken = pair.store.allocated()
    for container, (code, _) in zip(containers, added):
        places = taken.get(f"{NETWORK}.{container.identity}", [])
        assert len(places) == 1 or code == KILLED, (seed, container.identity, places)
    deleted = in_turn("DEL", containers, 1 / 3)
    assert all(code in (0, KILLED) for code, _ in deleted), (seed, deleted)
    assert KILLED in {code for code, _ in added + deleted}, seed
    containers.insert(0, containers.pop())  # so that each is deleted by the other one, too
    assert {code for code, _ in in_turn("DEL", containers, 0)} == {0}, seed
    for container in containers:  # what the original leaves when it is killed only ours finds in the blocks
        if f"{NETWORK}.{container.identity}" in pair.store.handles():
            pair.delete(pair.sides[0], container, program)
    assert pair.host.left() == {}, seed
    pair.tortie("ipam", "gc", "--yes", "--grace", "0")  # claims that a kill has left half made
    pair.checks()


def life(pair: Pair, side: Implementation, program: str) -> float:
    """Seconds that an ADD takes by itself."""
    container = pair.host.container("m") if program == "calico" else pair.container(9999)
    began = time.monotonic()
    pair.add(side, container, program)
    took = time.monotonic() - began
    pair.delete(side, container, program)
    return took
