"""What the calls on a host leave for the next ones, and that notes which are lost, old or wrong cost requests only."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.kubernetes.notes import Notes
from contracts.kubernetes_pods import PODS
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Handle, Owner
from ports.datastore import Affinities, AffinityKey, BlockKey, HandleKey, Stored
from worlds.kubernetes_node import FIELDS, KubernetesNode
from worlds.one_node import NEVER, NODE, OWNER

SERVER = "Kubernetes API server https://api.test:6443"
HANDLE = "k8s-pod-network.c{}"


@pytest.fixture
def node():
    node = KubernetesNode("v1")
    node.pod_call("ADD", 1)
    node.pod_call("ADD", 2)
    return node


def lines(node, kind: str) -> list[str]:
    return [line for line in node.lock.left.split("\n") if line.startswith(f"{kind} ")]


def consistent(node, *pods: int) -> None:
    """Just these pods are networked, each with an address of its own, and handles count what blocks hold."""
    node.forget()
    assert sorted(node.holders().values()) == [HANDLE.format(pod) for pod in pods]
    assert node.counts_match()
    for pod in (1, 2, 3):
        annotations = node.server.find(f"{PODS}/web-{pod}")["metadata"].get("annotations", {})
        assert bool(annotations.get("cni.projectcalico.org/podIPs")) == (pod in pods), pod


def life(node) -> None:
    """A pod comes, another goes, and both are what they should be."""
    node.pod_call("ADD", 3)
    consistent(node, 1, 2, 3)
    node.pod_call("DEL", 1)
    consistent(node, 2, 3)


def test_the_notes_say_what_the_last_calls_have_left(node):
    first, own, block, *handles, last = node.lock.left.split("\n")
    assert (first, last) == (f"tortie 1 crd.projectcalico.org/v1 {SERVER}", "")
    assert own.split(" ")[2:] == ["4", f"host:{NODE}", *node.blocks()]
    assert block.startswith(f"block {node.blocks()[0]} {{")
    assert [line.split(" ")[1] for line in handles] == [HANDLE.format(1), HANDLE.format(2)]
    node.pod_call("DEL", 1)
    assert [line.split(" ")[1] for line in lines(node, "handle")] == [HANDLE.format(2)]


def test_a_block_of_many_addresses_is_left_out_so_that_there_is_room_for_the_rest():
    full = Notes(SERVER, "")
    for number in range(600):
        counts = Handle({Cidr.parse("10.244.0.0/22"): 1, Cidr.parse("fd00:10:244::/118"): 1})
        key = HandleKey(f"k8s-pod-network.{number:064}")
        full.saw(Stored(key, counts, "1234567"), {"metadata": {"uid": "u" * 36}}, "v1")
    for cidr, size in (("10.244.0.0/22", 1000), ("fd00:10:244::/118", 100)):
        key = BlockKey(Cidr.parse(cidr))
        value = {"kind": "IPAMBlock", "metadata": {"uid": "u" * 36}, "spec": {"attributes": ["x" * 300] * size}}
        full.saw(Stored(key, None, "1"), value, "v1")
    left = full.text("v1")
    assert [line.split(" ")[1] for line in left.split("\n") if line.startswith("block ")] == ["fd00:10:244::/118"]
    assert left.count("handle ") == 512
    assert len(left) < 1 << 18


def test_they_save_the_reading_of_affinities_block_and_handle(node):
    assert not [line for line in node.cost("ADD", 3) if line.startswith("GET") and "ipamblock" in line]
    assert not [
        line for line in node.cost("DEL", 1) if line.startswith("GET") and ("block" in line or "handle" in line)
    ]
    life_without_notes = KubernetesNode("v1")
    life_without_notes.lock.left = None
    for verb, pod in (("ADD", 1), ("ADD", 2), ("ADD", 3)):
        asked = life_without_notes.cost(verb, pod)
    assert [line for line in asked if line.startswith("GET") and "ipamblock" in line]
    consistent(life_without_notes, 1, 2, 3)


def older(node) -> None:
    """Of a moment before the last two calls."""
    before = node.lock.left
    node.pod_call("DEL", 2)
    node.pod_call("ADD", 2)
    node.lock.left = before


def without_an_end(node) -> None:
    node.lock.left = node.lock.left[:-40]


def lost(node) -> None:
    node.lock.left = ""


def of_another_server(node) -> None:
    node.lock.left = node.lock.left.replace("api.test", "other.test")


def of_the_other_group(node) -> None:
    node.lock.left = node.lock.left.replace("crd.projectcalico.org/v1", "projectcalico.org/v3")


@pytest.mark.parametrize("lie", [older, without_an_end, lost, of_another_server, of_the_other_group])
def test_notes_that_are_wrong_change_nothing(node, lie):
    lie(node)
    life(node)


def test_an_object_of_the_same_version_in_a_cluster_that_was_made_anew_is_another_one(node):
    """All that the notes name of its block is the same, but for the uid."""
    (cidr,) = node.blocks()
    (noted,) = lines(node, "block")
    node.fill_all_but(cidr, left=10)
    (block,) = [value for (_, plural, *_), value in node.server.objects.items() if plural == "ipamblocks"]
    block["metadata"]["uid"] = "00000000-0000-4000-8000-00000000000f"
    block["metadata"]["resourceVersion"] = json.loads(noted.split(" ", 2)[2])["metadata"]["resourceVersion"]
    before = node.holders()
    node.pod_call("ADD", 3)
    node.forget()
    after = node.holders()
    assert {address: after[address] for address in before} == before
    assert len(after) == len(before) + 1


def test_what_is_written_by_a_note_names_the_object(node):
    node.cost("DEL", 1)
    put, delete = (one for one in node.recorded.requests if one.method in ("PUT", "DELETE"))
    assert json.loads(put.body)["metadata"]["uid"]
    assert sorted(json.loads(delete.body)["preconditions"]) == ["resourceVersion", "uid"]


def test_a_block_that_was_given_away_is_not_used(node):
    """Its owner is another node by now, which leaves the addresses to those who have them."""
    (cidr,) = node.blocks()
    key = BlockKey(Cidr.parse(cidr))
    block = node.get(key)
    node.put(key, block.replace(affinity="host:other", sequence=block.sequence + 1))
    node.pod_call("ADD", 3)
    consistent(node, 1, 2, 3)
    assert len(node.blocks()) == 2


def test_a_handle_that_has_got_more_since_is_released_whole(node):
    """By a call that could leave no notes."""
    before = node.lock.left
    node.lock.left = None
    (cidr,) = node.blocks()
    node.fill_all_but(cidr, left=0)
    node.pod_call("ADD", 1)
    assert len(node.counts()[HANDLE.format(1)]) == 2
    node.lock.left = before
    node.pod_call("DEL", 1)
    assert HANDLE.format(1) not in node.counts()
    assert HANDLE.format(1) not in node.holders().values()


def test_what_a_handle_of_old_has_is_released_though_the_notes_tell_of_todays(node):
    """The handle's name was another one before an upgrade."""
    key, old = HandleKey(HANDLE.format(1)), HandleKey("gold.web-1")
    (cidr,) = node.blocks()
    block = BlockKey(Cidr.parse(cidr))
    node.put(old, node.get(key))
    node.remove(key)
    found = node.get(block)
    holders = [one.replace(handle=old.handle) if one.handle == key.handle else one for one in found.attributes]
    node.put(block, found.replace(attributes=tuple(holders), sequence=found.sequence + 1))
    node.pod_call("DEL", 1)
    consistent(node, 2)


def test_whether_the_node_still_has_its_blocks_is_asked_once_a_minute(node):
    node.clock.advance(59)
    assert not [line for line in node.cost("ADD", 3) if "affinities" in line]
    node.clock.advance(2)
    node.pod_call("DEL", 3)
    assert [line for line in node.cost("ADD", 3) if "affinities" in line]
    node.pod_call("DEL", 3)
    assert not [line for line in node.cost("ADD", 3) if "affinities" in line]


def test_a_block_that_nobody_uses_may_be_about_to_be_given_up(node):
    """So it is read with its affinity."""
    node.pod_call("DEL", 1)
    node.pod_call("DEL", 2)
    assert [line for line in node.cost("ADD", 3) if "affinities" in line]
    consistent(node, 3)


def test_a_full_block_is_followed_by_the_nodes_next(node):
    (cidr,) = node.blocks()
    node.fill_all_but(cidr, left=1)
    node.lock.left = ""
    for number in (1, 2, 3):
        node.pod_call("ADD", number)
    assert len(node.blocks()) == 2
    assert lines(node, "own")[0].split(" ")[4:] == node.blocks()


def test_a_signal_while_the_notes_are_read_frees_the_lock(node):
    node.lock.notes = interrupted
    with pytest.raises(KeyboardInterrupt):
        node.release("c1", **FIELDS)
    assert not node.lock.held_now


def interrupted():
    raise KeyboardInterrupt


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_notes_say_nothing_is_lost_by_it(data):
    """Octets changed, lines left out, doubled and exchanged, the lines of other notes between."""
    node = KubernetesNode("v1")
    texts = []
    for verb, pod in (("ADD", 1), ("ADD", 2), ("ADD", 3), ("DEL", 3)):
        node.pod_call(verb, pod)
        texts.append(node.lock.left)
    known = [line for text in texts for line in text.split("\n")]
    chosen = data.draw(st.lists(st.sampled_from(known), max_size=8))
    text = "\n".join([known[0], *chosen, ""])
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
    node.lock.left = text
    node.pod_call("ADD", 3)
    node.forget()
    assert sorted(node.holders().values()) == [HANDLE.format(pod) for pod in (1, 2, 3)]
    assert node.counts_match()
    node.lock.left = text
    for pod in (1, 2, 3):
        node.pod_call("DEL", pod)
    consistent(node)


def test_only_the_whole_list_of_a_nodes_confirmed_blocks_is_noted():
    def noted(listing: Affinities, *states: str) -> bool:
        notes = Notes(SERVER, "")
        keys = [AffinityKey(OWNER, Cidr(4, 167772160 + 64 * place, 26)) for place, _ in enumerate(states)]
        notes.listed(listing, tuple([Stored(key, Affinity(state), "1") for key, state in zip(keys, states)]), 1)
        return notes.find(listing, 1) is not None

    everything = Affinities(OWNER, 4)
    assert noted(everything)
    assert noted(everything, "confirmed", "confirmed")
    assert not noted(everything, "confirmed", "pendingDeletion")
    assert not noted(Affinities(OWNER, 4, to=Cidr.parse("10.0.0.0/26")), "confirmed")
    assert not noted(Affinities(Owner(HOST, ""), 4), "confirmed")


def test_a_list_of_both_versions_answers_for_either():
    notes = Notes(SERVER, "")
    four, six = (AffinityKey(OWNER, Cidr.parse(text)) for text in ("10.0.0.0/26", "fd00::/122"))
    notes.listed(Affinities(OWNER), tuple([Stored(key, Affinity("confirmed"), "1") for key in (four, six)]), 1)
    again = Notes(SERVER, notes.text("g"))
    assert [stored.key for stored in again.find(Affinities(OWNER, 6), 2)] == [six]
    assert [stored.key for stored in again.find(Affinities(OWNER), 2)] == [four, six]
    again.gone(six)
    assert again.find(Affinities(OWNER, 4), 2) is None


def test_what_was_seen_last_is_what_is_remembered(node):
    (cidr,) = node.blocks()
    key = BlockKey(Cidr.parse(cidr))
    node.forget()
    node.datastore.recall(node.lock.left)
    noted = node.datastore.remembered(key)
    assert node.datastore.remembered(key) is noted
    node.fill_all_but(cidr, left=5)
    now = node.datastore.get(key, NEVER)
    assert node.datastore.remembered(key) == now != noted


def test_handles_are_not_kept_without_end():
    notes = Notes(
        SERVER, "tortie 1 g " + SERVER + "\n" + "".join([f"handle h{n} 1 u 10.0.0.0/26=1\n" for n in range(999)])
    )
    kept = notes.text("g").split("\n")
    assert len(kept) == 1 + 512 + 1
    assert notes.find(HandleKey("h998"), 1).record.blocks == {Cidr.parse("10.0.0.0/26"): 1}
    assert kept[-2].startswith("handle h998 ")
