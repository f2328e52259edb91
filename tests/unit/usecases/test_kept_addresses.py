"""Addresses that stay with a name, whichever pod has them (F01, L08)."""

from __future__ import annotations

import json

import pytest

from adapters.memory.former import MemoryFormer
from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, KeepAddresses, PolicySettings
from domain.cni.request import CniArgs
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Address, Cidr
from domain.ipam.audit import is_clean
from domain.ipam.errors import BlockLimitReached, IpamError
from domain.ipam.inventory import INFO
from domain.ipam.pools import IPReservation, Pool
from domain.resource import Metadata
from domain.workload.annotations import KEEP_ADDRESSES
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.pod import OwnerReference, Pod
from ports.datastore import (
    BlockKey,
    Blocks,
    HandleKey,
    Handles,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    NodeKey,
    WorkloadEndpointKey,
)
from ports.errors import Damaged, Refused, Unauthorized, Unavailable
from usecases.add_workload import add_workload
from usecases.assign_addresses import assign_addresses
from usecases.calls.safeguards import Undo
from usecases.check_addresses import check_addresses
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, Sweep, collect_ipam
from usecases.configure_ipam import get_config, set_config
from usecases.delete_workload import delete_workload
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.repair import repair
from usecases.ipam.unused_kept import give_up_kept
from usecases.ipam.work import guarded_write
from worlds.ipam_world import NEVER, POOL
from worlds.kept_life import NETWORK, SECONDS, SETTINGS, SPACE, KeptWorld
from worlds.one_node import NODE, OneNode

BLOCK = Cidr.parse("10.9.0.8/30")
OWN_INTERFACE = "calia4fc3c48bd8"  # from SHA-1 of shop.web-0
HANDLE = f"{NETWORK}.kept.{SPACE}.web-0"


@pytest.fixture
def world():
    return KeptWorld()


def web(world, node="node-a", **fields):
    """The next pod of the StatefulSet, as the API server has it."""
    return world.pod("web-0", node, owner="StatefulSet", **fields)


@pytest.fixture
def left(world):
    """The first pod has been there, and has gone as pods go."""
    world.first = web(world)
    world.had = world.add_pod(world.first, assign_ipv6="true")
    world.del_pod(world.first)
    return world


def addresses(world, name="web-0"):
    return sorted(map(str, world.kept(name)))


# --- it stays --------------------------------------------------------------------------------------------------------


def test_the_next_pod_of_the_name_has_the_address_on_whichever_node(left):
    for node in ("node-a", "node-b", "node-c"):
        pod = web(left, node)
        assert left.add_pod(pod, assign_ipv6="true") == left.had
        (holder,) = {holder.secondary["node"] for holder in left.kept("web-0").values()}
        assert holder == node  # where Felix routes it to
        left.del_pod(pod)
    assert list(left.store.get(HandleKey(HANDLE), NEVER).record.blocks.values()) == [1, 1]


def test_nobody_else_gets_it_meanwhile(left):
    others = [left.add_pod(left.pod(f"plain-{number}"))[0] for number in range(15)]
    assert not {*left.had} & {*others}
    with pytest.raises(IpamError):
        left.add_pod(left.pod("plain-15"))


def test_a_pod_that_the_annotation_gives_a_name_has_the_address_of_the_one_before(world):
    first, second = world.pod("db-x7", keep="db"), world.pod("db-k2", "node-b", keep="db")
    had = world.add_pod(first)
    world.del_pod(first)
    assert world.add_pod(second) == had
    assert addresses(world, "db") == had


def test_of_two_pods_of_one_name_the_second_has_an_ordinary_address(world):
    first, second = world.pod("db-x7", keep="db"), world.pod("db-k2", "node-b", keep="db")
    had = world.add_pod(first)
    other = world.add_pod(second)
    assert other != had
    assert addresses(world, "db") == had
    assert world.held_by(f"{NETWORK}.c-{second.uid}") == [Address.parse(other[0])]
    world.del_pod(second)
    assert addresses(world, "db") == had
    assert not world.held_by(f"{NETWORK}.c-{second.uid}")


def test_a_lost_nodes_pod_that_the_api_server_has_no_more_gives_way_and_its_late_del_takes_nothing(world):
    first = web(world)
    had = world.add_pod(first)
    again = web(world, "node-b")  # another UID
    assert world.add_pod(again) == had
    before = world.kept("web-0")
    world.del_pod(first)
    assert world.kept("web-0") == before


def test_a_late_add_of_the_lost_pod_takes_nothing_from_the_new_one(world):
    first = web(world)
    again = web(world, "node-b")
    had = world.add_pod(again)
    assert world.add_pod(first) != had
    assert [holder.secondary["node"] for holder in world.kept("web-0").values()] == ["node-b"]


def test_a_pod_is_on_one_node_whatever_a_call_says(world):
    first = web(world)
    had = world.add_pod(first)
    assert world.answer(world.call(first, "c2", node="node-b")) != frozenset(map(Address.parse, had))


def test_a_new_sandbox_of_the_pod_has_the_address_and_the_earlier_ones_del_comes_late(world):
    pod = web(world)
    had = world.add_pod(pod, "c1")
    assert world.add_pod(pod, "c2") == had
    world.del_pod(pod, "c1")
    assert [holder.secondary["kept-by"] for holder in world.kept("web-0").values()] == ["c2"]
    world.del_pod(pod, "c2")
    assert all("pod" not in holder.secondary for holder in world.kept("web-0").values())


def test_a_pod_that_ends_has_it_until_its_del_or_until_the_api_server_has_it_no_more(world):
    first, second, third = [world.pod(f"db-{number}", keep="db") for number in range(3)]
    had = world.add_pod(first)
    world.cluster.pods[SPACE, first.name] = first.replace(phase="Failed", deleting=True)
    assert world.add_pod(second) != had
    del world.cluster.pods[SPACE, first.name]
    assert world.add_pod(third) == had


def test_a_race_that_is_lost_for_one_version_is_run_again_and_what_was_won_counts(left):
    pod = web(left)
    writes = []

    def rival(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            writes.append(key)
            if len(writes) == 2:  # that of the IPv6 address
                left.store.before = lambda _verb, _key: None
                earlier = left.pod("web-0", uid=pod.uid, owner="StatefulSet")
                assert left.add_pod(earlier, "c1", assign_ipv4="false", assign_ipv6="true") == left.had[1:]

    left.store.before = rival
    assert left.add_pod(pod, "c2", assign_ipv6="true") == left.had
    assert {holder.secondary["kept-by"] for holder in left.kept("web-0").values()} == {"c2"}


@pytest.mark.parametrize("error", [Refused("no"), Unauthorized("who are you?")])
def test_if_nobody_can_say_whether_a_pod_is_gone_it_is_not(world, error):
    had = world.add_pod(world.pod("db-x7", keep="db"))

    def refuse(*_about):
        raise error

    world.cluster.pod_now = refuse
    assert world.add_pod(world.pod("db-k2", keep="db")) != had


def test_a_pod_without_uid_cannot_be_told_from_its_namesake(world):
    had = world.add_pod(web(world, uid=""))
    assert world.add_pod(web(world), "other") != had


def test_an_address_that_an_interface_of_the_host_has_is_not_taken(left):
    """As when the old pod of a name still runs on this very node. The pod's own is taken over with its device."""
    left.node.routes = {Address.parse(left.had[0]): "calidead"}
    pod = web(left)
    assert left.add_pod(pod) != left.had[:1]
    left.del_pod(pod)
    left.node.routes = {Address.parse(left.had[0]): OWN_INTERFACE}
    assert left.add_pod(pod) == left.had[:1]


def test_an_adds_answer_that_is_lost_leaves_the_address_as_it_was(left):
    before = left.kept("web-0")
    assert left.answer(left.call(web(left), "c2"), delivered=False)
    assert left.kept("web-0") == before


def test_an_undone_call_frees_what_is_new_to_the_name_and_not_what_was_the_names_before(world):
    pod = web(world)
    had = world.add_pod(pod)
    world.del_pod(pod)
    before = world.kept("web-0")
    assert len(world.answer(world.call(web(world), "c2", assign_ipv6="true"), delivered=False)) == 2
    assert addresses(world) == had
    assert world.kept("web-0") == before
    world.check()


def test_a_new_address_whose_answer_is_lost_is_free_again(world):
    assert world.answer(world.call(web(world), "c1"), delivered=False)
    world.check_at_rest(set())


def test_an_undone_call_takes_nothing_from_who_has_taken_it_meanwhile(left):
    runtime = left.runtime()
    undo = Undo(left.clock, left.log)
    lost = web(left)
    assign_addresses(left.call(lost, "c2"), runtime, undo)
    again = web(left, "node-b")
    had = left.add_pod(again)
    before = left.kept("web-0")
    undo.run()
    assert had == left.had[:1]
    assert left.kept("web-0") == before


def test_a_rival_that_takes_it_first_has_it(left):
    """And the slower one, whose pod the API server does not know any more, gets an ordinary one."""
    slow = web(left)

    def rival(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            left.store.before = lambda _verb, _key: None
            left.fast = left.add_pod(web(left, "node-b"))

    left.store.before = rival
    got = left.add_pod(slow)
    assert left.fast == left.had[:1]
    assert got != left.fast


def test_a_pod_that_wants_one_version_gets_that_one(left):
    v6 = [address for address in left.had if ":" in address]
    assert left.add_pod(web(left), assign_ipv4="false", assign_ipv6="true") == v6


def test_a_version_that_is_new_to_the_name_is_kept_too(world):
    pod = web(world)
    had = world.add_pod(pod)
    world.del_pod(pod)
    both = world.add_pod(web(world), assign_ipv6="true")
    assert set(had) < set(both)
    assert addresses(world) == both


def test_check_accepts_it_for_the_sandbox_that_has_it(left):
    pod = web(left)
    left.add_pod(pod, "c2")
    held = f'{{"cniVersion":"1.0.0","ips":[{{"address":"{left.had[0]}/32"}}]}}'

    def checked(container):
        call = left.call(pod, container, "CHECK")
        check_addresses(call.replace(netconf=call.netconf.replace(prev_result=held)), left.runtime())

    checked("c2")
    with pytest.raises(CniError, match=r"is allocated to net\.kept\.shop\.web-0 instead of net\.c3"):
        checked("c3")


# --- where it cannot stay, the pod starts all the same ----------------------------------------------------------------


def test_with_strict_affinity_it_does_not_leave_its_node(left):
    left.make_strict(strict=True)
    said = len(left.log.entries)
    assert left.add_pod(web(left, "node-b"))[0] not in left.had
    assert len(left.log.entries) == said + 1
    assert "strictAffinity is set" in left.log.shown("warning")[-1]
    assert addresses(left) == left.had
    assert left.add_pod(web(left, "node-a")) == left.had[:1]


def test_of_a_pool_that_serves_no_more_it_is_given_up_for_another(left):
    left.store.create(IPPoolKey("other"), Pool(Metadata("other"), "10.8.0.0/28", 30), NEVER)
    left.switch_pool(disabled=True)
    (got,) = left.add_pod(web(left))
    assert got.startswith("10.8.0.")
    assert left.had[0] not in addresses(left)
    assert got in addresses(left)
    left.check()


def test_what_is_reserved_now_is_given_up(left):
    left.store.create(IPReservationKey("r"), IPReservation(Metadata("r"), (left.had[0],)), NEVER)
    assert left.add_pod(web(left)) != left.had[:1]
    assert left.had[0] not in addresses(left)


def test_what_a_rival_takes_meanwhile_is_not_given_up(left):
    """Between our look at it and the write that would free it the pool serves again, and a pod has it."""
    reads = []

    def rival(verb, key):
        if verb == "fetch" and key == BlockKey(BLOCK):
            reads.append(key)
            if len(reads) == 2:
                left.store.before = lambda _verb, _key: None
                left.switch_pool(disabled=False)
                left.fast = left.add_pod(web(left, "node-b"))

    left.store.create(IPPoolKey("other"), Pool(Metadata("other"), "10.8.0.0/28", 30), NEVER)
    slow = web(left)
    left.switch_pool(disabled=True)
    left.store.before = rival
    (got,) = left.add_pod(slow)
    assert left.fast == left.had[:1] != [got]
    assert {*left.had, got} == {*addresses(left)}


def test_a_pool_gives_a_share_to_them(world):
    """Of sixteen addresses eight."""
    for number in range(8):
        pod = world.pod(f"db-{number}", keep=f"db-{number}")
        world.add_pod(pod)
        world.del_pod(pod)
    over = world.pod("db-8", keep="db-8")
    world.add_pod(over)
    assert addresses(world, "db-8") == []
    assert "kept addresses are 50 % of p4" in world.log.shown("warning")[-1]
    world.clock.advance(SECONDS)  # the time of all is over, so that there is room
    world.del_pod(over)
    world.add_pod(over)
    assert len(addresses(world, "db-8")) == 1
    assert addresses(world, "db-0") == []


def test_the_share_is_each_pools(world):
    world.store.create(IPPoolKey("other"), Pool(Metadata("other"), "10.8.0.0/29", 30), NEVER)
    for number in range(12):
        world.add_pod(world.pod(f"db-{number}", keep=f"db-{number}"))
    kept = [address for number in range(12) for address in addresses(world, f"db-{number}")]
    assert sum(address.startswith("10.8.") for address in kept) == 4
    assert sum(address.startswith("10.9.") for address in kept) == 8
    full = world.pod("db-12", keep="db-12")
    world.add_pod(full)
    assert addresses(world, "db-12") == []


def test_a_node_has_a_limit_and_what_it_had_last_counts(world):
    world.settings = SETTINGS.replace(max_per_node=2)
    first, second, third = [world.pod(f"db-{number}", keep=f"db-{number}") for number in range(3)]
    for pod in (first, second):
        world.add_pod(pod)
    world.del_pod(first)
    world.add_pod(third)
    assert addresses(world, "db-2") == []
    assert "node node-a has 2 kept IPv4 addresses, and max_per_node is 2" in world.log.shown("warning")[-1]
    world.del_pod(third)
    world.add_pod(third.replace(node="node-b"))
    assert len(addresses(world, "db-2")) == 1


def test_a_handle_that_would_be_too_long_for_a_record(world):
    pod = world.pod("a" * 250, owner="StatefulSet")
    assert world.add_pod(pod)
    assert "a handle can have 253 characters, and this would have 264" in world.log.shown("warning")[-1]
    world.del_pod(pod)
    world.check_at_rest(set())


def test_without_any_pool_the_pod_is_refused_as_any_other(world):
    world.switch_pool(disabled=True)
    with pytest.raises(IpamError, match="cannot find a qualified ippool"):
        world.add_pod(web(world))
    world.check_at_rest(set())


def test_a_version_that_may_be_left_out_is(world):
    world.switch_pool(disabled=True)
    (got,) = world.add_pod(web(world), assign_ipv6="true", optional_families=True)
    assert addresses(world) == [got]


def test_where_every_version_may_be_left_out_the_pod_is_refused_as_any_other(world):
    world.switch_pool(disabled=True)
    with pytest.raises(IpamError, match="cannot find a qualified ippool"):
        world.add_pod(web(world), optional_families=True)


def test_if_the_only_pool_with_room_for_them_has_no_address_left_it_is_an_ordinary_one_of_another(world):
    world.store.create(IPPoolKey("other"), Pool(Metadata("other"), "10.8.0.0/29", 30), NEVER)
    for number in range(4):  # of the small pool half are kept …
        world.add_pod(world.pod(f"db-{number}", keep=f"db-{number}"), ipv4_pools=("10.8.0.0/29",))
    for number in range(16):  # … and the other one is full of others
        world.add_pod(world.pod(f"plain-{number}"), ipv4_pools=(str(POOL),))
    (got,) = world.add_pod(world.pod("last", keep="last"))
    assert got.startswith("10.8.")
    assert addresses(world, "last") == []
    world.check()


def test_a_damaged_record_of_the_name_costs_the_name_and_not_the_pod(left):
    def damaged(verb, need):
        if verb == "fetch" and need == HandleKey(HANDLE):
            raise Damaged("no JSON")

    left.store.before = damaged
    assert left.add_pod(web(left))[0] not in left.had
    assert "no JSON" in left.log.shown("warning")[-1]


def test_an_outage_is_no_reason_to_give_another_address(left):
    def away(verb, need):
        if verb == "fetch" and need == HandleKey(HANDLE):
            raise Unavailable("away")

    left.store.before = away
    with pytest.raises(Unavailable):
        left.add_pod(web(left))


def by_name(world, pod, address):
    call = world.call(pod, f"c-{pod.uid}", keep_as=None)
    return world.answer(call.replace(args=call.args.replace(ip=Address.parse(address))))


def test_a_pod_may_ask_by_name_for_what_is_kept_for_its_own(left):
    """It is the container's from then on, and ends with it."""
    pod = web(left)
    assert by_name(left, pod, left.had[0]) == {Address.parse(left.had[0])}
    assert left.held_by(f"{NETWORK}.c-{pod.uid}") == [Address.parse(left.had[0])]
    left.check()
    left.del_pod(pod)
    assert addresses(left) == left.had[1:]


def test_others_are_told_for_whom_it_is_kept(left):
    with pytest.raises(IpamError, match="Address already assigned in block") as told:
        by_name(left, left.pod("other"), left.had[0])
    assert told.value.details == "kept for shop/web-0; `tortie ipam release --kept shop/web-0` frees it"


# --- its time ---------------------------------------------------------------------------------------------------------


def test_when_its_time_is_over_it_is_given_up_for_who_is_short_of_addresses(left):
    for number in range(15):
        left.add_pod(left.pod(f"plain-{number}"))
    left.clock.advance(SECONDS - 1)
    with pytest.raises(IpamError):
        left.add_pod(left.pod("last"))
    left.clock.advance(1)
    assert left.add_pod(left.pod("last")) == left.had[:1]
    assert f"addresses={left.had[0]}" in left.log.shown("info")[-1]
    left.check()


def test_a_call_gives_up_once_and_is_short_if_a_rival_takes_what_that_has_freed(left):
    for number in range(15):
        left.add_pod(left.pod(f"plain-{number}"))
    left.clock.advance(SECONDS)

    def rival(_verb, _key):
        if "Gave up kept addresses" in "".join(left.log.shown("info")):
            left.store.before = lambda _verb, _key: None
            left.fast = left.add_pod(left.pod("fast"))

    left.store.before = rival
    with pytest.raises(IpamError):
        left.add_pod(left.pod("slow"))
    assert left.fast == left.had[:1]
    left.check()


def test_a_node_that_may_have_no_more_blocks_gives_up_what_its_own_keep(left):
    set_config(left.work(), get_config(left.work()).replace(max_blocks_per_host=1, strict_affinity=True))
    for number in range(3):
        left.add_pod(left.pod(f"plain-{number}"))
    with pytest.raises(BlockLimitReached):
        left.add_pod(left.pod("last"))
    left.clock.advance(SECONDS)
    assert left.add_pod(left.pod("last")) == left.had[:1]


def test_when_its_time_is_over_and_nobody_was_short_the_name_has_it_all_the_same(left):
    left.clock.advance(SECONDS * 10)
    assert left.add_pod(web(left)) == left.had[:1]


def many_over(world, number):
    for one in range(number):
        pod = world.pod(f"db-{one}", keep=f"db-{one}")
        world.add_pod(pod)
        world.del_pod(pod)
    world.clock.advance(SECONDS)


def test_a_plugin_lists_no_handles_to_give_up_many(world):
    """It has no right to."""
    listed = []
    many_over(world, 5)
    world.store.before = lambda _verb, need: listed.append(need) if isinstance(need, Handles) else None
    world.add_pod(world.pod("new", keep="new"))
    assert [name for name in range(5) if addresses(world, f"db-{name}")] == []
    assert listed == []


def test_of_very_many_some_are_given_up_at_once():
    world = KeptWorld()
    world.store.create(IPPoolKey("large"), Pool(Metadata("large"), "10.7.0.0/26", 26), NEVER)
    many_over(world, 20)
    world.add_pod(world.pod("new", keep="new"))
    assert sum(len(addresses(world, f"db-{name}")) for name in range(20)) == 4


def test_that_they_cannot_be_given_up_is_not_the_calls_failure(world):
    many_over(world, 2)

    def refuse(verb, need):
        if verb == "fetch" and isinstance(need, IPPools) and not need.may_lag and world.looked:
            raise Refused("no")
        world.looked = world.looked or isinstance(need, Blocks)

    world.looked = False
    world.store.before = refuse
    blocks = [stored.record for stored in world.store.list(Blocks(), NEVER)]
    assert not give_up_kept(world.work(), blocks)
    world.store.before = lambda _verb, _need: None
    assert give_up_kept(world.work(), blocks)


def test_a_pod_that_comes_back_while_it_is_given_up_keeps_it(left):
    """Who gives it up has read the block before; the sequence number is another one by now."""
    left.clock.advance(SECONDS)
    blocks = [stored.record for stored in left.store.list(Blocks(), NEVER)]
    had = left.add_pod(web(left))
    assert not give_up_kept(left.work(), blocks) or had[0] in addresses(left)
    assert had[0] in addresses(left)


# --- DEL --------------------------------------------------------------------------------------------------------------


def test_a_del_says_nothing_the_second_time_and_time_runs_from_the_first(left):
    before = left.kept("web-0")
    left.clock.advance(10)
    left.del_pod(left.first)
    assert left.kept("web-0") == before


def test_a_del_finds_the_name_that_an_annotation_gave_while_there_is_the_pod(world):
    pod = world.pod("db-x7", keep="db")
    world.add_pod(pod)
    world.del_pod(pod)
    assert not any("pod" in holder.secondary for holder in world.kept("db").values())


@pytest.mark.parametrize("paged", [False, True])
def test_a_del_finds_it_in_the_nodes_blocks_when_the_pod_is_gone(paged):
    world = KeptWorld(paged=paged)
    pod = world.pod("db-x7", keep="db")
    world.add_pod(pod)
    del world.cluster.pods[SPACE, "db-x7"]
    world.del_pod(pod)
    assert len(addresses(world, "db")) == 1
    assert not any("pod" in holder.secondary for holder in world.kept("db").values())
    assert world.log.shown("warning") == []
    (told,) = [line for line in world.log.shown("info") if line.startswith("Keeping")]
    assert told.endswith(f" name={SPACE}/db")


def test_a_del_without_the_setting_leaves_it_with_the_name(world):
    """An administrator has taken the setting away since the ADD."""
    pod = web(world)
    world.add_pod(pod)
    world.del_pod(pod, keep_addresses=None)
    (holder,) = world.kept("web-0").values()
    assert "pod" not in holder.secondary


def test_a_del_passes_over_a_damaged_block(left):
    had = left.add_pod(web(left), "c2")

    def damaged(verb, need):
        if verb == "fetch" and need == BlockKey(BLOCK):
            raise Damaged("no JSON")

    left.store.before = damaged
    left.del_pod(left.first, "c2")
    left.store.before = lambda _verb, _key: None
    assert had[0] in addresses(left)
    left.del_pod(left.first, "c2")
    assert "pod" not in left.kept("web-0")[Address.parse(had[0])].secondary


def test_the_originals_del_leaves_it_with_the_pod_and_the_next_pod_has_it(world):
    pod = web(world)
    had = world.add_pod(pod)
    assert not free_handle(world.work(), f"{NETWORK}.c-{pod.uid}")
    assert world.add_pod(web(world, "node-b")) == had


def test_a_pod_like_any_other_asks_no_more_than_without_the_setting(world):
    def asked(**wishes):
        pod = world.pod("plain")
        before = dict(world.store.calls)
        world.add_pod(pod, **wishes)
        world.del_pod(pod, **wishes)
        return {verb: count - before.get(verb, 0) for verb, count in world.store.calls.items()}

    asked()
    assert asked() == asked(keep_addresses=None)


# --- what an operator sees --------------------------------------------------------------------------------------------


def with_endpoint(world, pod, *networks):
    name = f"n-k8s-{pod.name.replace('-', '--')}-eth0"
    key = WorkloadEndpointKey(SPACE, name)
    record = WorkloadEndpoint(Metadata(name, SPACE), node=pod.node, pod=pod.name, container_id=f"c-{pod.uid}")
    record = record.replace(ip_networks=tuple([Address.parse(one).host_cidr for one in networks]))
    guarded_write(world.work(), key, lambda _found: record)
    return key


def findings(world):
    return {finding.subject: (finding.kind, finding.level) for finding in check_ipam(world.work()).findings}


def collected(world):
    outcomes = collect_ipam(world.work(), Sweep(grace=0))
    return {one.finding.subject: one.outcome for one in outcomes}


def test_what_is_kept_is_no_leak_and_gc_gives_it_up_when_its_time_is_over(left):
    left.clock.advance(SECONDS - 1)
    assert findings(left) == {}
    assert collected(left) == {}
    left.clock.advance(1)
    assert findings(left) == dict.fromkeys(left.had, ("kept-address-time-is-over", INFO))
    assert is_clean(check_ipam(left.work()).findings)
    assert collected(left) == dict.fromkeys(left.had, DONE)
    left.check_at_rest(set())


def test_what_a_pod_has_is_sound(world):
    pod = web(world)
    with_endpoint(world, pod, *world.add_pod(pod, assign_ipv6="true"))
    world.clock.advance(3600)
    assert findings(world) == {}


@pytest.mark.parametrize("node", ["node-a", "gone"])
def test_of_a_lost_pod_the_time_begins_with_gc(world, node):
    pod = web(world)
    (had,) = world.add_pod(pod)
    if node == "gone":
        world.store.delete(NodeKey("node-a"), None, NEVER)
    assert had not in findings(world)  # a call may be at work
    world.clock.advance(SECONDS * 2)
    assert findings(world)[had] == ("kept-address-without-pod", INFO)
    assert collected(world)[had] == DONE
    assert addresses(world) == [had]
    assert had not in findings(world)
    world.clock.advance(SECONDS)
    assert collected(world)[had] == DONE
    assert addresses(world) == []


def test_gc_leaves_what_a_pod_has_taken_since_it_was_found(world):
    (had,) = world.add_pod(web(world))
    world.clock.advance(SECONDS)
    found = check_ipam(world.work()).findings
    assert world.add_pod(web(world, "node-b")) == [had]
    before = world.kept("web-0")
    (finding,) = [one for one in found if one.subject == had]
    assert not repair(world.work(), finding, patient=True)
    assert world.kept("web-0") == before


def test_gc_finds_the_block_gone(world):
    (had,) = world.add_pod(web(world))
    world.clock.advance(SECONDS)
    (finding,) = [one for one in check_ipam(world.work()).findings if one.subject == had]
    world.store.delete(BlockKey(finding.block), None, NEVER)
    assert not repair(world.work(), finding, patient=True)


# --- in the network plugin --------------------------------------------------------------------------------------------


@pytest.fixture
def node():
    made = OneNode()
    made.cluster.namespaces = {"shop": {}}
    made.former = MemoryFormer(made.runtime_for, None, made.plugin)
    return made


KEEPING = IpamSettings(type="calico-ipam", keep_addresses=KeepAddresses())


def pod_call(node, verb, container="c1", ipam=KEEPING, text='{"ipam": {}}'):
    args = CniArgs(pod_name="web-0", pod_namespace="shop")
    policy = PolicySettings(type="k8s")
    call = node.call(verb, container, args=args, policy=policy, ipam=ipam, text=text)
    asked = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
    call = call.replace(request=call.request.replace(args=asked))
    if verb == "ADD":
        return node.undoing(lambda undo: add_workload(call, node.runtime(), undo))
    return delete_workload(call, node.runtime())


def network_pod(node, uid="u1", kind="StatefulSet", **annotations):
    owner = OwnerReference("apps/v1", kind, "web", "s1", controller=True)
    node.cluster.pods["shop", "web-0"] = Pod(
        "web-0", "shop", uid=uid, node=NODE, owners=(owner,), annotations=annotations
    )


def test_the_network_plugin_tells_the_ipam_plugin(node):
    network_pod(node)
    first = pod_call(node, "ADD")
    pod_call(node, "DEL")
    assert [*node.holders().values()] == ["net1.kept.shop.web-0"]
    network_pod(node, "u2")
    assert pod_call(node, "ADD", "c2").ips == first.ips


def test_a_plugin_of_its_own_process_is_told_in_the_text(node):
    node.own_ipam = False
    node.plugin.answers("calico-ipam", Result(ips=(ResultIp(Cidr.parse("10.244.0.9/26")),)))
    network_pod(node)
    pod_call(node, "ADD")
    told = json.loads(node.plugin.calls[0].call.netconf_text)
    assert told == {"ipam": {"keep_as": {"name": "web-0", "pod_uid": "u1", "owner": "StatefulSet/web s1"}}}


def test_a_pod_that_names_its_addresses_keeps_none(node):
    network_pod(node, **{"cni.projectcalico.org/ipAddrs": '["10.244.0.9"]'})
    pod_call(node, "ADD")
    assert [*node.holders().values()] == ["net1.c1"]


def test_without_the_setting_a_pods_wish_is_told_in_the_log(node):
    network_pod(node, kind="ReplicaSet", **{KEEP_ADDRESSES: "true"})
    pod_call(node, "ADD", ipam=IpamSettings(type="calico-ipam"))
    assert [*node.holders().values()] == ["net1.c1"]
    assert "Addresses are not kept: the network configuration has no ipam.keep_addresses" in node.log.shown("warning")


@pytest.mark.parametrize(
    ("settings", "annotation", "why"),
    [
        (KeepAddresses(seconds=0), "true", "ipam.keep_addresses.seconds is 0, and must be from 1"),
        (KeepAddresses(), "No Name", 'is "No Name": it must be true, false or a name'),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(node, settings, annotation, why):
    network_pod(node, **{KEEP_ADDRESSES: annotation})
    with pytest.raises(CniError, match=why) as told:
        pod_call(node, "ADD", ipam=KEEPING.replace(keep_addresses=settings))
    assert told.value.code == 7
    assert node.leftovers() == {}
