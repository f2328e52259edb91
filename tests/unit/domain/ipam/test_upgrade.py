"""What becomes of each of host-local's files, and of a block that takes over many addresses at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Address, Cidr
from domain.ipam.block import Attribute, Owner, new_block
from domain.ipam.upgrade import Fates, Left, Move, Placement, ReservationFile, fates, place, tunnel_address
from domain.workload.pod import Pod

IP = "10.1.0.5"
SANDBOX = "cni.projectcalico.org/containerID"


def pod(name="web-0", **more) -> Pod:
    return Pod(name, "prod", **{"node": "node-a", "ips": (IP,), "phase": "Running", **more})


def fate(name=IP, content="c1\r\neth0", *pods, fault="") -> Fates:
    return fates([ReservationFile(name, content, fault)], pods)


def move(name=IP, container="c1", pod="web-0", main=True) -> Move:
    return Move(name, Address.parse(name), container, pod, "prod", main)


def why(found: Fates) -> str:
    assert (found.moves, found.stale) == ((), ())
    (left,) = found.left
    return left.why


@pytest.mark.parametrize("content", ["c1\r\neth0", "c1", "c1\n", " c1 \r\neth0\r\n"])
def test_a_reservation_of_a_pod_moves_in_every_form_that_host_local_has_written(content):
    assert fate(IP, content, pod()) == Fates((move(),))


def test_a_move_is_recorded_as_the_original_records_it():
    secondary = {"namespace": "prod", "node": "node-a", "pod": "web-0"}
    assert move().attribute("node-a") == Attribute("k8s-pod-network.c1", secondary)


@pytest.mark.parametrize("name", ["last_reserved_ip", "last_reserved_ip.0", "at last", ".tortie-4711", IP])
def test_counters_and_what_no_pod_has_are_stale(name):
    assert fate(name) == Fates(stale=(name,))


def test_the_lock_has_no_fate():
    assert fate("lock", "", pod()) == Fates()


def test_a_pod_on_the_hosts_network_has_no_reservation():
    assert fate(IP, "c1", pod(host_network=True)) == Fates(stale=(IP,))


@pytest.mark.parametrize("name", ["notes.txt", "10.1.0", "10.1.0.5~"])
def test_a_name_that_is_no_address_is_left(name):
    assert why(fate(name, "c1", pod())) == f"failed to parse IP {name}: no reservation has that name; remove it"


def test_what_cannot_be_read_is_left_if_a_pod_has_it():
    assert why(fate(IP, "", pod(), fault="open x: permission denied")) == (
        "open x: permission denied; mend it, or delete pod prod/web-0 and remove it"
    )
    assert fate(IP, "", fault="open x: permission denied") == Fates(stale=(IP,))


@pytest.mark.parametrize("content", ["", "\r\neth0", "a/b\r\neth0"])
def test_a_file_without_a_container_is_left(content):
    assert why(fate(IP, content, pod())) == "its first line is no container ID; delete pod prod/web-0 and remove it"


def test_the_sandbox_tells_pods_with_one_address_apart():
    first, second = pod("web-0", annotations={SANDBOX: "c1"}), pod("web-1", annotations={SANDBOX: "c2"})
    assert fate(IP, "c2", first, second) == Fates((move(container="c2", pod="web-1"),))


def test_a_pod_that_is_over_gives_way():
    assert fate(IP, "c1", pod("job", phase="Succeeded"), pod()) == Fates((move(),))


def test_of_pods_that_are_over_the_youngest_has_the_reservation():
    old, young = pod("a", phase="Failed", created="2026-01-02"), pod("b", phase="Succeeded", created="2026-01-03")
    assert fate(IP, "c1", young, old) == Fates((move(pod="b"),))


def test_two_pods_that_go_on_with_one_address_are_left():
    assert why(fate(IP, "c1", pod("web-0"), pod("web-1"))) == (
        "several pods have the address: prod/web-0, prod/web-1; delete all but one of them"
    )


def test_two_files_of_one_address_are_left_if_two_containers_claim_it():
    spelled, other = "fd00::1", "fd00:0::1"
    files = [ReservationFile(spelled, "c1"), ReservationFile(other, "c2")]
    found = fates(files, [pod(ips=(spelled,))])
    assert found.left == tuple(
        Left(name, "files of several containers claim fd00::1: remove those of containers that are gone")
        for name in (spelled, other)
    )
    files = [ReservationFile(spelled, "c1"), ReservationFile(other, "c1")]
    assert [one.name for one in fates(files, [pod(ips=(spelled,))]).moves] == [spelled, other]


def test_a_second_address_is_known_to_be_one():
    both = pod(ips=(IP, "fd00::5"))
    assert fate("fd00::5", "c1", both) == Fates((move("fd00::5", main=False),))
    assert fate(IP, "c1", both) == Fates((move(),))


def test_a_pod_whose_status_is_not_written_yet_says_its_address_in_annotations():
    annotations = {"cni.projectcalico.org/podIPs": f"{IP}/32,fd00::5/128", "cni.projectcalico.org/podIP": f"{IP}/32"}
    young = pod(ips=(), annotations=annotations)
    assert fate(IP, "c1", young) == Fates((move(),))
    assert fate("fd00::5", "c1", young).moves == (move("fd00::5", main=False),)


def test_an_address_in_a_status_that_is_none_is_nobodys():
    assert fate(IP, "c1", pod(ips=("nonsense",))) == Fates(stale=(IP,))


@pytest.mark.parametrize(
    ("pod_cidr", "address"),
    [("10.1.2.0/24", "10.1.2.1"), ("10.1.2.128/25", "10.1.2.129"), ("10.1.2.255/24", "10.1.2.0"), ("fd00::/64", None)],
)
def test_the_tunnel_device_has_the_address_that_felix_gave_it(pod_cidr, address):
    found = tunnel_address(pod_cidr)
    assert (found and str(found)) == address


def test_a_range_that_is_none():
    with pytest.raises(ValueError, match="invalid CIDR address: 10"):
        tunnel_address("10")


# --- a block ----------------------------------------------------------------------------------------------------------

BLOCK = new_block(Cidr.parse("10.1.0.0/26"), Owner("host", "node-a"), None, 100)


def placement(ordinal: int, container: str = "", **secondary: str) -> Placement:
    attribute = Attribute(f"k8s-pod-network.{container or ordinal}", {"node": "node-a", **secondary})
    return Placement(BLOCK.cidr.at(ordinal), attribute, str(ordinal))


def one_by_one(block, placements):
    """As that many calls of the original."""
    for one in placements:
        block = block.give(block.ordinal(one.address), one.attribute).replace(sequence=block.sequence + 1)
    return block


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 5)), unique_by=lambda pair: pair[0]), st.integers(0, 20))
def test_a_block_comes_out_as_if_each_address_had_been_assigned_by_itself(pairs, held_before):
    """Whatever containers share addresses, and whoever is in the block already."""
    before = one_by_one(BLOCK, [placement(at, "old") for at in range(held_before)])
    placements = [placement(at, f"c{container}") for at, container in pairs if at >= held_before]
    placed = place(before, placements)
    assert placed.block == one_by_one(before, placements)
    assert placed.block.is_consistent()
    assert placed.taken == tuple(placements)
    assert (placed.had, placed.refused) == ((), ())


def test_what_the_container_has_already_is_no_news():
    before = one_by_one(BLOCK, [placement(3)])
    assert place(before, [placement(3), placement(4), placement(4)]).had == (placement(3), placement(4))


def test_a_handle_of_an_old_version_is_the_same_container():
    before = one_by_one(BLOCK, [placement(3, "c1\r\neth0")])
    assert place(before, [placement(3, "c1")]).had == (placement(3, "c1"),)


@pytest.mark.parametrize(
    ("holder", "reason"),
    [
        (placement(3, "c9", pod="db", namespace="prod"), "it is assigned to k8s-pod-network.c9 of pod prod/db already"),
        (placement(3, "c9"), "it is assigned to k8s-pod-network.c9 already"),
    ],
)
def test_what_somebody_else_holds_stays_his(holder, reason):
    before = one_by_one(BLOCK, [holder])
    placed = place(before, [placement(3, "c1")])
    assert placed.block == before
    assert placed.refused == ((placement(3, "c1"), f"{reason}; delete one of the two pods"),)


def test_an_address_that_cools_down_waits():
    before = one_by_one(BLOCK, [placement(3)]).release((3,), 10**18, 60)
    ((_, reason),) = place(before, [placement(3)]).refused
    assert reason == "it was released at 2001-09-09T01:46:40Z and is cooling down; try again later"


def test_4096_addresses_are_no_matter_of_millions_of_comparisons():
    """A block may have as many; each step looks at its own handle only."""
    block = new_block(Cidr.parse("10.1.0.0/20"), Owner("host", "node-a"), None, 1)
    compared = []

    class Counting(Attribute):
        def __eq__(self, other):
            compared.append(1)
            return super().__eq__(other)

        __hash__ = Attribute.__hash__

    placements = [Placement(block.cidr.at(at), Counting(f"h{at}", {})) for at in range(4096)]
    placed = place(block, placements)
    assert len(placed.taken) == 4096
    assert len(compared) < 2 * 4096
