"""The upgrade from host-local to calico-ipam: what moves, what stays, and in which order."""

from __future__ import annotations

import pytest

from domain.cluster import Node
from domain.ipam.block import HOST, Affinity, Attribute, Owner, new_block
from domain.ipam.pools import AllocationConfig
from domain.ipam.upgrade import LOCK, NETWORK, Left
from domain.resource import Metadata
from ports.clock import Deadline
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    Blocks,
    ClusterInformationKey,
    HandleKey,
    NodeKey,
)
from ports.errors import BadConfiguration, Conflict, Expired, Missing, PortError, Refused, Unavailable
from usecases.ipam.take_over import take_over
from usecases.upgrade.reservations import Outcome
from usecases.upgrade_ipam import foresee_upgrade, upgrade_ipam
from worlds.one_node import NEVER, NODE
from worlds.upgrading_node import PROGRAMS, TUNNEL, UpgradingNode

B0, B1 = "10.244.0.0/26", "10.244.0.64/26"
OTHER = Owner(HOST, "node2")


@pytest.fixture
def node():
    return UpgradingNode()


def reasons(outcome: Outcome) -> dict[str, str]:
    return {one.name: one.why for one in outcome.left}


# --- what moves -------------------------------------------------------------------------------------------------------


def test_without_a_directory_nothing_is_touched(node):
    before = node.datastore.records_text()
    assert node.upgrade() == Outcome()
    assert node.datastore.records_text() == before
    assert set(PROGRAMS) <= set(node.node.files)


def test_an_empty_directory_goes_and_the_cluster_is_not_stopped(node):
    node.files.texts = {}
    node.rival_writes = []
    node.datastore.before = lambda verb, key: node.rival_writes.append(key) if verb == "update" else None
    assert node.upgrade() == Outcome()
    assert node.files.texts is None
    assert ClusterInformationKey("default") not in node.rival_writes
    assert set(PROGRAMS) <= set(node.node.files)


def test_every_reservation_of_a_pod_becomes_its_containers(node):
    addresses = ["10.244.0.2", "10.244.0.70", "10.244.0.3", "fd00:10:244::5"]
    containers = {address: node.reserve(address) for address in addresses}
    node.files.texts |= {"10.244.0.9": "gone\r\neth0", "last_reserved_ip.0": "10.244.0.9"}
    outcome = node.upgrade()
    assert set(outcome.moved) == set(addresses)
    assert set(outcome.stale) == {"10.244.0.9", "last_reserved_ip.0"}
    assert (outcome.before, outcome.left) == ((), ())
    node.is_upgraded(containers)
    assert node.holders()["10.244.0.1"] == TUNNEL
    assert node.affinities() == {B0: "confirmed", B1: "confirmed", "fd00:10:244::/122": "confirmed"}


def test_who_waits_hears_what_is_being_done(node):
    for address in ("10.244.0.2", "10.244.0.3", "10.244.0.70"):
        node.reserve(address)
    runtime, said = node.upgrade_runtime(), []
    runtime.doing = said.append
    foresee_upgrade(runtime, node.wish)
    upgrade_ipam(runtime, node.wish, node.undo())
    assert said == [
        "comparing reservations with pods",
        "comparing reservations with pods",
        "waiting 5 s for programs that still run",
        "waiting for host-local's lock",
        *[f"moved {number} of 3 reservations" for number in (0, 2, 3)],
        "making the datastore ready again",
    ]


def test_records_are_those_of_as_many_calls_of_the_original(node):
    node.reserve("10.244.0.2", "c1")
    node.reserve("10.244.0.3", "c2")
    node.upgrade()
    block = node.block(B0)
    assert block.attributes == (
        Attribute(TUNNEL, {"node": NODE, "type": "ipipTunnelAddress"}),
        Attribute("k8s-pod-network.c1", {"namespace": "web", "node": NODE, "pod": "pod-10.244.0.2"}),
        Attribute("k8s-pod-network.c2", {"namespace": "web", "node": NODE, "pod": "pod-10.244.0.3"}),
    )
    first = block.sequences[1]
    assert (block.sequences, block.sequence) == ({1: first, 2: first + 1, 3: first + 2}, first + 3)


def test_a_pods_two_addresses_are_one_containers(node):
    node.reserve("10.244.0.2", "c1", name="both")
    node.reserve("fd00:10:244::5", "c1", name="both", ips=("10.244.0.2", "fd00:10:244::5"))
    node.upgrade()
    assert node.moved() == {"10.244.0.2": "c1", "fd00:10:244::5": "c1"}
    assert node.counts()["k8s-pod-network.c1"] == {B0: 1, "fd00:10:244::/122": 1}


def test_a_second_address_in_no_pool_is_forgotten_as_by_the_original(node):
    node.reserve("10.244.0.2", "c1", name="both")
    node.reserve("fd99::5", "c1", name="both", ips=("10.244.0.2", "fd99::5"))
    assert node.upgrade().stale == ("fd99::5",)
    node.is_upgraded({"10.244.0.2": "c1"})


def test_a_block_of_another_node_lends_its_addresses(node):
    node.add_block(B0, OTHER)
    container = node.reserve("10.244.0.2")
    node.upgrade()
    assert node.moved() == {"10.244.0.2": container}
    assert node.block(B0).affinity == "host:node2"
    assert node.affinities() == {}


def test_a_reservation_of_an_operator_keeps_nothing_from_moving(node):
    """Only automatic assignment looks at IPReservations."""
    from domain.ipam.pools import IPReservation
    from ports.datastore import IPReservationKey

    node.put(IPReservationKey("r"), IPReservation(Metadata("r"), (B0,)))
    container = node.reserve("10.244.0.2")
    node.upgrade()
    node.is_upgraded({"10.244.0.2": container})


def test_a_large_block_is_written_some_addresses_at_a_time():
    node = UpgradingNode(pools=())
    node.add_pool("wide", "10.244.0.0/20", block_size=22)
    containers = {}
    for number in range(2, 602):
        address = f"10.244.{number // 256}.{number % 256}"
        containers[address] = node.reserve(address)
    writes = []
    node.datastore.after = lambda verb, key: writes.append(verb) if verb == "update" and hasattr(key, "cidr") else None
    node.upgrade()
    node.heal()
    node.is_upgraded(containers)
    assert len(writes) == 5  # confirmation of the claim, the tunnel, and three pieces


# --- order ------------------------------------------------------------------------------------------------------------


def test_the_order_is_the_originals(node):
    node.reserve("10.244.0.2")
    seen = []
    node.datastore.after = lambda verb, key: seen.append(f"{verb} {type(key).__name__}") if verb != "fetch" else None
    node.files.before = lambda verb, name: seen.append(f"{verb} {name}".strip())
    assert node.is_ready() is True
    node.upgrade()
    assert seen == [
        "create AffinityKey",
        "create BlockKey",
        "update AffinityKey",
        "create HandleKey",
        "update BlockKey",
        "update NodeKey",
        "update ClusterInformationKey",
        "create HandleKey",
        "update BlockKey",
        "remove 10.244.0.2",
        "update ClusterInformationKey",
        "remove_all",
    ]
    assert node.clock.slept == [5.0]


def test_the_cluster_is_not_ready_while_addresses_move_and_ready_afterwards(node):
    node.reserve("10.244.0.2")
    states = []
    node.files.before = lambda _verb, _name: states.append((node.is_ready(), set(PROGRAMS) & set(node.node.files)))
    node.upgrade()
    assert states == [(False, set()), (True, set())]


def test_a_cluster_that_is_unset_counts_as_ready(node):
    node.set_ready(ready=None)
    node.reserve("10.244.0.2")
    node.upgrade()
    assert node.is_ready() is True


def test_programs_that_are_not_there_are_no_matter(node):
    del node.node.files[PROGRAMS[0]]
    node.reserve("10.244.0.2")
    node.upgrade()
    assert node.files.texts is None


def test_a_program_that_cannot_be_removed_is_named(node):
    node.node.broken.add(PROGRAMS[1])
    node.reserve("10.244.0.2")
    with pytest.raises(Refused, match=rf"^failed to remove binary {PROGRAMS[1]}: remove .*permission denied$"):
        node.upgrade()


# --- what is left -----------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(node):
    """Something of everything."""
    node.reserve("10.244.0.2", "c1")
    node.reserve("192.0.2.7", "c2")
    node.reserve("10.244.0.3", "c3")
    node.files.unreadable.add("10.244.0.3")
    node.files.texts["10.244.0.3"] = "open f: permission denied"
    node.files.texts["notes.txt"] = ""
    node.hold("10.244.0.0", "other.c9")
    node.reserve("10.244.0.0", "c4")
    return node


def test_what_cannot_be_moved_is_named_and_the_rest_moves_first(mixed):
    outcome = mixed.upgrade()
    assert outcome.moved == ("10.244.0.2",)
    assert set(mixed.files.texts) == {LOCK, "192.0.2.7", "10.244.0.3", "notes.txt", "10.244.0.0"}
    assert reasons(outcome) == {
        "notes.txt": "failed to parse IP notes.txt: no reservation has that name; remove it",
        "10.244.0.3": "open f: permission denied; mend it, or delete pod web/pod-10.244.0.3 and remove it",
        "192.0.2.7": (
            "192.0.2.7 is in no enabled IP pool (IPv4 pools: IPPool pool0 (10.244.0.0/24)); "
            "make a pool that has it, or delete its pod"
        ),
        "10.244.0.0": ("10.244.0.0 cannot be recorded: it is assigned to other.c9 already; delete one of the two pods"),
    }
    assert mixed.is_ready() is True
    assert mixed.moved()["10.244.0.2"] == "c1"
    assert mixed.counts_match()


def test_the_cluster_is_not_stopped_again_for_what_cannot_be_moved(mixed):
    first = mixed.upgrade()
    before, mixed.clock.slept[:] = mixed.datastore.records_text(), []
    again = mixed.upgrade()
    assert reasons(again) == reasons(first)
    assert mixed.datastore.records_text() == before
    assert mixed.clock.slept == []


def test_but_a_cluster_that_was_left_unready_is_made_ready(mixed):
    mixed.upgrade()
    mixed.set_ready(ready=False)
    assert mixed.upgrade().left
    assert mixed.is_ready() is True


def test_when_the_cause_is_mended_the_rest_moves(mixed):
    mixed.upgrade()
    mixed.add_pool("more", "192.0.2.0/24")
    mixed.files.unreadable.clear()
    mixed.files.texts["10.244.0.3"] = "c3\r\neth0"
    del mixed.files.texts["notes.txt"]
    mixed.release("c9", name="other")
    assert set(mixed.upgrade().moved) == {"192.0.2.7", "10.244.0.3", "10.244.0.0"}
    mixed.is_upgraded({"10.244.0.2": "c1", "192.0.2.7": "c2", "10.244.0.3": "c3", "10.244.0.0": "c4"})


def test_a_disabled_pool_and_one_with_blocks_of_no_size_are_named(node):
    node.add_pool("off", "192.0.2.0/24", disabled=True)
    node.add_pool("odd", "198.51.100.0/24", block_size=8)
    node.reserve("192.0.2.7")
    node.reserve("198.51.100.7")
    found = reasons(node.upgrade())
    assert "IPPool off (192.0.2.0/24) has it, but is disabled" in found["192.0.2.7"]
    assert "IPPool odd has blockSize 8" in found["198.51.100.7"]


def test_strict_affinity_keeps_to_its_blocks(node):
    node.put(AllocationConfigKey(), AllocationConfig(strict_affinity=True))
    node.add_block(B1, OTHER)
    first = node.reserve("10.244.0.2")
    node.reserve("10.244.0.70")
    outcome = node.upgrade()
    assert node.moved() == {"10.244.0.2": first}
    assert reasons(outcome)["10.244.0.70"] == (
        "10.244.0.70 cannot be recorded: block 10.244.0.64/26 belongs to host:node2, and strictAffinity is set; "
        "unset it meanwhile"
    )


def test_foreseeing_says_the_same_and_changes_nothing(mixed):
    before, files = mixed.datastore.records_text(), dict(mixed.files.texts)
    foreseen = mixed.foresee()
    assert mixed.datastore.records_text() == before
    assert mixed.files.texts == files
    assert foreseen == mixed.upgrade()
    assert UpgradingNode().foresee() == Outcome()


# --- the tunnel -------------------------------------------------------------------------------------------------------


def test_the_tunnels_address_is_recorded_and_told(node):
    node.reserve("10.244.0.2")
    node.upgrade()
    assert node.tunnel() == "10.244.0.1"
    assert node.holders()["10.244.0.1"] == TUNNEL
    assert node.counts()[TUNNEL] == {B0: 1}


def test_a_node_that_says_its_tunnel_keeps_it(node):
    node.put(NodeKey(NODE), Node(Metadata(NODE)).with_tunnel_address("10.244.0.99"))
    container = node.reserve("10.244.0.2")
    node.upgrade()
    assert node.holders() == {"10.244.0.2": f"{NETWORK}.{container}"}
    assert node.tunnel() == "10.244.0.99"


def test_an_ipv6_range_has_no_tunnel(node):
    node.cluster.nodes[NODE] = ("fd00:10:244::/64",)
    node.reserve("10.244.0.2")
    assert node.upgrade().left == ()
    assert node.tunnel() == ""


@pytest.mark.parametrize("ranges", [(), ("10.244",)])
def test_a_node_without_a_range_is_named_when_the_rest_has_moved(node, ranges):
    """The original would try for ever."""
    node.cluster.nodes[NODE] = ranges
    node.reserve("10.244.0.2")
    foreseen = node.foresee()
    outcome = node.upgrade()
    assert foreseen == outcome
    cidr = ranges[0] if ranges else ""
    assert outcome.left == (
        Left(
            f"IPIP device of node {NODE}",
            f"PodCIDR {cidr} did not parse successfully: invalid CIDR address: {cidr}; give the node its podCIDR",
        ),
    )
    assert outcome.moved == ("10.244.0.2",)
    assert set(node.files.texts) == {LOCK}
    node.cluster.nodes[NODE] = ("10.244.0.0/25",)
    assert node.upgrade().left == ()
    assert node.files.texts is None


def test_a_tunnel_in_no_pool_is_left(node):
    node.cluster.nodes[NODE] = ("192.0.2.0/24",)
    node.files.texts = {}
    foreseen = node.foresee().left
    (left,) = node.upgrade().left
    assert foreseen == (left,)
    assert left.why.startswith("192.0.2.1 is in no enabled IP pool")
    assert node.files.texts == {}


def test_a_tunnel_whose_address_is_somebody_elses_is_left_to_calico_node(node):
    node.hold("10.244.0.1", "other.c9")
    node.reserve("10.244.0.2")
    assert node.upgrade().left == ()
    assert node.tunnel() == ""
    assert node.holders()["10.244.0.1"] == "other.c9"


def test_a_pod_that_has_the_tunnels_address_keeps_it(node):
    container = node.reserve("10.244.0.1")
    assert node.upgrade().left == ()
    assert node.moved() == {"10.244.0.1": container}
    assert node.tunnel() == ""


def test_a_missing_node_is_an_error(node):
    node.remove(NodeKey(NODE))
    node.reserve("10.244.0.2")
    with pytest.raises(Refused, match=r"^failed to get calico node resource: resource does not exist: Node\(node1\)"):
        node.upgrade()


def test_losing_the_race_for_the_node_five_times_is_no_error(node):
    node.reserve("10.244.0.2")
    with node.rival("update", NodeKey, node.touch, times=5):
        node.upgrade()
    assert node.tunnel() == ""
    assert node.clock.slept == [1.0] * 5 + [5.0]
    assert node.files.texts is None


# --- races and failures -----------------------------------------------------------------------------------------------


def test_a_lost_race_for_the_cluster_is_tried_again(node):
    node.reserve("10.244.0.2")
    with node.rival("update", ClusterInformationKey, node.touch, times=2):
        node.upgrade()
    assert node.is_ready() is True
    assert node.clock.slept == [1.0, 1.0, 5.0]


def test_five_lost_races_for_the_cluster_are_an_error_that_leaves_it_ready(node):
    node.reserve("10.244.0.2")
    undo = node.undo()
    with node.rival("update", ClusterInformationKey, node.touch, times=5), pytest.raises(Conflict):
        node.upgrade(undo=undo)
    undo.run()
    assert node.is_ready() is True


def test_a_lost_race_for_readiness_at_the_end(node):
    node.reserve("10.244.0.2")

    def touching(_verb, _name):
        node.files.before = lambda _verb, _name: None
        node.datastore.before = hook

    left = [2]

    def hook(verb, key):
        if left[0] and verb == "update" and isinstance(key, ClusterInformationKey):
            left[0] -= 1
            node.touch(key)

    node.files.before = touching
    node.upgrade()
    assert (left, node.is_ready()) == ([0], True)


def test_when_it_is_made_ready_by_somebody_else_there_is_nothing_to_do(node):
    node.reserve("10.244.0.2")
    node.files.before = lambda _verb, _name: node.set_ready(ready=True)
    node.upgrade()
    assert node.is_ready() is True


def test_failing_to_make_it_ready_says_so(node):
    node.reserve("10.244.0.2")

    def lose(verb, key):
        if verb == "update" and isinstance(key, ClusterInformationKey) and node.is_ready() is False:
            node.touch(key)

    node.datastore.before = lose
    with pytest.raises(Refused, match=r"^failed to re-enable cluster: update conflict"):
        node.upgrade()
    node.heal()
    node.upgrade()
    assert node.files.texts is None


def test_without_cluster_information_it_is_an_error(node):
    node.remove(ClusterInformationKey("default"))
    node.reserve("10.244.0.2")
    with pytest.raises(Missing, match=r"ClusterInformation\(default\)"):
        node.upgrade()


def test_what_fails_for_good_is_taken_back(node):
    node.reserve("10.244.0.2")
    node.node.broken.add(PROGRAMS[0])
    undo = node.undo()
    with pytest.raises(PortError):
        node.upgrade(undo=undo)
    assert node.is_ready() is False
    undo.run()
    assert node.is_ready() is True


@pytest.mark.parametrize("meanwhile", [True, None])
def test_taking_back_leaves_alone_what_others_have_made_of_it(node, meanwhile):
    node.reserve("10.244.0.2")
    node.node.broken.add(PROGRAMS[0])
    undo = node.undo()
    with pytest.raises(PortError):
        node.upgrade(undo=undo)
    node.set_ready(ready=meanwhile)
    undo.run()
    assert node.is_ready() is meanwhile
    node.remove(ClusterInformationKey("default"))
    undo.run()


def test_who_finds_it_unready_leaves_that_to_others(node):
    node.set_ready(ready=False)
    node.reserve("10.244.0.2")
    node.node.broken.add(PROGRAMS[0])
    undo = node.undo()
    with pytest.raises(PortError):
        node.upgrade(undo=undo)
    undo.run()
    assert node.is_ready() is False


def test_a_file_that_cannot_be_removed_stops_nobody(node):
    """The original would try for ever, with the cluster not ready: a folder among the files is enough."""
    first, second = node.reserve("10.244.0.2"), node.reserve("10.244.0.3")
    node.files.texts["10.244.0.9"] = "gone"

    def stay(verb, name):
        if name in ("10.244.0.2", "10.244.0.9"):
            raise Unavailable(f"remove d/{name}: is a directory")

    node.files.before = stay
    outcome = node.upgrade()
    assert (outcome.moved, outcome.stale) == (("10.244.0.3",), ())
    assert reasons(outcome) == {
        name: f"its file is of no use any more, and stays: remove d/{name}: is a directory"
        for name in ("10.244.0.2", "10.244.0.9")
    }
    assert node.is_ready() is True
    assert node.moved() == {"10.244.0.2": first, "10.244.0.3": second}
    node.files.before = lambda _verb, _name: None
    assert node.upgrade().before == ("10.244.0.2",)
    node.is_upgraded({"10.244.0.2": first, "10.244.0.3": second})


def test_a_directory_that_cannot_be_removed_is_no_failure(node):
    node.reserve("10.244.0.2")

    def stay(verb, _name):
        if verb == "remove_all":
            raise Unavailable("remove d: device or resource busy")

    node.files.before = stay
    assert node.upgrade().moved == ("10.244.0.2",)
    assert any("busy" in line for line in node.log.shown())
    node.files.before = lambda _verb, _name: None
    assert node.upgrade() == Outcome()
    assert node.files.texts is None


def test_the_lock_is_waited_for_a_minute(node):
    node.reserve("10.244.0.2")
    node.wish = node.wish.replace(wait=0.0)
    real = node.files.held
    asked = []
    node.files.held = lambda deadline: asked.append(deadline) or real(deadline)
    node.upgrade()
    assert asked == [Deadline(node.clock.monotonic() + 60.0)]


def test_it_goes_on_until_it_is_done(node):
    """As the original does: every failure is logged, and a second later it begins anew."""
    container = node.reserve("10.244.0.2")
    failures = iter([Unavailable("away"), Expired("long"), Conflict("x")])

    def hook(verb, key):
        if verb == "create" and isinstance(key, HandleKey) and (error := next(failures, None)):
            raise error

    node.datastore.before = hook
    node.upgrade_until_done()
    node.heal()
    node.is_upgraded({"10.244.0.2": container})
    told = [line for line in node.log.shown("error") if "failed to migrate ipam, retrying..." in line]
    assert len(told) == 3 - 1  # a conflict is the loop's own business
    assert node.clock.slept.count(1.0) == 2


def test_settings_that_cannot_work_end_it(node):
    node.reserve("10.244.0.2")
    node.cluster.namespaces = None
    with pytest.raises(BadConfiguration):
        node.upgrade_until_done()


def test_progress_is_told_every_two_seconds(node):
    for number in range(2, 120):
        node.reserve(f"10.244.0.{number}")
    node.datastore.after = lambda verb, key: node.clock.advance(1.5) if verb == "update" else None
    node.upgrade()
    assert any("Moving reservations" in line for line in node.log.shown())


@pytest.mark.parametrize("left", [None, {}])
def test_when_somebody_else_clears_the_directory_the_cluster_is_made_ready(node, left):
    """A second upgrade of the node, or an operator, between two tries of ours."""
    node.reserve("10.244.0.2")
    node.node.broken.add(PROGRAMS[0])
    node.clock.sleep = lambda _seconds: setattr(node.files, "texts", left)
    assert node.upgrade_until_done() == Outcome()
    assert node.is_ready() is True
    assert node.files.texts is None


# --- many at once -----------------------------------------------------------------------------------------------------


@pytest.fixture
def placements(node):
    from domain.ipam.address import Address
    from domain.ipam.upgrade import Placement

    return [Placement(Address.parse(f"10.244.0.{n}"), Attribute(f"h{n}", {"node": NODE})) for n in (2, 3)]


def taken_over(node, placements):
    from domain.ipam.address import Cidr
    from worlds.one_node import OWNER

    return take_over(node.work(), OWNER, Cidr.parse(B0), placements, AllocationConfig())


def test_a_lost_answer_of_the_block_is_looked_up(node, placements):
    from ports.datastore import BlockKey

    lost = [1]

    def lose(verb, key):
        if verb == "update" and isinstance(key, BlockKey) and lost:
            lost.pop()
            raise Unavailable("reset")

    node.datastore.after = lose
    assert len(taken_over(node, placements).taken) == 2
    assert node.counts_match()


def test_a_block_that_was_not_written_is_an_error(node, placements):
    from ports.datastore import BlockKey

    node.add_block(B0)
    node.fail("update", BlockKey)
    with pytest.raises(Unavailable):
        taken_over(node, placements)
    node.heal()
    assert node.holders() == {}
    assert len(taken_over(node, placements).taken) == 2
    assert node.counts_match()


def test_a_block_that_vanishes_meanwhile_is_an_error_of_the_moment(node, placements):
    from ports.datastore import BlockKey

    node.add_block(B0)

    def vanish(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            node.remove(key)
            raise Unavailable("reset")

    node.datastore.before = vanish
    with pytest.raises(Unavailable):
        taken_over(node, placements)


def test_a_rival_that_takes_one_of_them_leaves_no_count_behind(node, placements):
    from ports.datastore import BlockKey

    node.add_block(B0)

    def take(key):
        block = node.get(key)
        node.put(key, block.give(2, Attribute("rival", {})).replace(sequence=block.sequence + 1))
        node.put(HandleKey("rival"), node.get(HandleKey("h2")).replace(blocks={block.cidr: 1}))

    with node.rival("update", BlockKey, take):
        placed = taken_over(node, placements)
    assert [one.handle for one in placed.taken] == ["h3"]
    assert [one.handle for one, _ in placed.refused] == ["h2"]
    assert node.counts_match()


def test_a_rival_that_claims_the_block_first_is_its_owner(node, placements):
    from ports.datastore import BlockKey

    def claim(key):
        node.put(key, new_block(key.cidr, OTHER, None, 1))
        node.put(AffinityKey(OTHER, key.cidr), Affinity("confirmed"))

    with node.rival("create", BlockKey, claim):
        assert len(taken_over(node, placements).taken) == 2
    assert node.block(B0).affinity == "host:node2"
    assert len(node.datastore.list(Blocks(), NEVER)) == 1
