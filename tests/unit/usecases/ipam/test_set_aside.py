"""Damaged records of IPAM are copied and written anew; no container loses its address, and each can end (K03)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.audit import is_clean
from domain.ipam.block import HOST, Affinity, Attribute, Handle, Owner
from ports.datastore import AffinityKey, BlockKey, Blocks, HandleKey, WorkloadEndpointKey
from strategies import json_values
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, FAILED, KEPT, Sweep, collect_ipam
from usecases.ipam.repair import repair
from worlds.one_node import NEVER, NODE, OWNER, OneNode

IPAM = "/calico/ipam/v2/"
CONTAINERS = ("c1", "c2", "c3")


@pytest.fixture
def node():
    return busy()


def busy():
    """Three containers with an address of each version; whatever a call may still be at work on is long over."""
    made = OneNode()
    for container in CONTAINERS:
        made.add(container)
    made.clock.advance(600)
    return made


def texts(node, part):
    """Stored texts whose keys have that part, by key."""
    return {key: text for key, text in node.datastore.records_text().items() if part in key}


def sweep(node, **fields):
    copies = []
    outcomes = collect_ipam(node.work(), Sweep(keep=copies.append, **fields))
    return outcomes, copies


def addresses(node):
    return sorted(str(one) for endpoint in node.endpoints() for one in endpoint.addresses)


def assert_sound(node):
    """Every endpoint's address is held for its container, handles count right, and each container can end."""
    findings = check_ipam(node.work()).findings
    assert is_clean(findings), findings
    assert sorted(node.holders()) == addresses(node)
    assert node.counts_match()
    for container in CONTAINERS:
        node.delete(container)
    assert node.holders() == {}
    assert node.counts() == {}


KEYS = sorted(key for key in busy().datastore.records_text() if key.startswith(IPAM) and not key.endswith("/config"))
DAMAGE = ["<html>", "", "[]", "{}", "7", '{"cidr":7}', '{"block":[]}', '{"state":7}', '{"cidr":"10.9.9.0/26"}']


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("key", KEYS)
def test_any_record_of_ipam_may_be_damaged(key, damage):
    node = busy()
    before = node.holders()
    node.datastore.load({key: damage})
    unreadable = [one for one in check_ipam(node.work()).findings if one.kind == "record-unreadable"]
    outcomes, copies = sweep(node)
    if unreadable:
        assert [one.text for one in copies] == [damage]
        assert {one.outcome for one in outcomes} == {DONE}
    else:  # an empty text is an affinity of old, an empty object a handle that counts nothing
        assert copies == []
        sweep(node)
    assert set(before.items()) <= set(node.holders().items()) or key.rpartition("/")[2] in str(copies)
    assert_sound(node)


def test_all_of_them_at_once(node):
    node.datastore.load(dict.fromkeys(KEYS, "<html>"))
    outcomes, copies = sweep(node)
    assert len(copies) == len(KEYS)
    assert {one.outcome for one in outcomes} == {DONE}
    sweep(node)
    assert_sound(node)


@settings(max_examples=50)
@given(st.data())
def test_whatever_is_put_in_the_place_of_a_member(data):
    """One member of one record, at any depth, is something else; what the rest says is kept."""
    node = busy()
    key = data.draw(st.sampled_from(KEYS))
    value = json.loads(node.datastore.records_text()[key])
    place = value
    while isinstance(place, (dict, list)) and place:
        step = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[step], (dict, list)) or not place[step] or data.draw(st.booleans()):
            place[step] = data.draw(json_values)
            break
        place = place[step]
    node.datastore.load({key: json.dumps(value)})
    others = {one: text for one, text in node.datastore.records_text().items() if not one.startswith(IPAM)}
    for _ in range(3):
        sweep(node)
    findings = check_ipam(node.work()).findings
    assert not [one for one in findings if one.kind == "record-unreadable"]
    assert {one: text for one, text in node.datastore.records_text().items() if not one.startswith(IPAM)} == others
    blocks = [one.record for one in node.datastore.list(Blocks(), NEVER)]
    for address in {one for endpoint in node.endpoints() for one in endpoint.addresses}:
        holding = [block for block in blocks if address in block.cidr and block.holder(block.ordinal(address))]
        assert holding or [one for one in findings if one.subject == str(address)], address
        assert holding or not [one for one in blocks if address in one.cidr and one.ordinal(address) in one.unallocated]


def test_what_the_text_still_says_is_kept_although_no_endpoint_proves_it(node):
    """Tunnels, load balancers and machines that are off have no endpoint."""
    (key,) = texts(node, "ipv4/block/").keys() - texts(node, "/host/").keys()
    block = json.loads(node.datastore.records_text()[key])
    cidr = Cidr.parse(block["cidr"])
    tunnel = Attribute("vxlan-tunnel-addr-node1", {"node": NODE, "type": "vxlanTunnelAddress"})
    node.put(BlockKey(cidr), node.get(BlockKey(cidr)).take((9,), tunnel))
    node.put(HandleKey("vxlan-tunnel-addr-node1"), Handle({cidr: 1}))
    value = json.loads(node.datastore.records_text()[key])
    value["unallocated"].append(9)
    node.datastore.load({key: json.dumps(value)})
    sweep(node)
    assert node.holders()[str(cidr.at(9))] == "vxlan-tunnel-addr-node1"
    assert is_clean(check_ipam(node.work()).findings)


def test_a_container_whose_handle_nobody_knows_gets_that_of_old_versions(node):
    for key in texts(node, "/handle/"):
        node.remove(HandleKey(key.rpartition("/")[2]))
    node.datastore.load(dict.fromkeys(texts(node, "assignment/"), "<html>"))
    sweep(node)
    assert set(node.holders().values()) == set(CONTAINERS)
    assert_sound(node)


def test_of_a_pod_the_old_handle_has_namespace_and_name(node):
    endpoint = node.endpoints()[0]
    node.put(WorkloadEndpointKey("default", endpoint.metadata.name), endpoint.replace(pod="web-0", orchestrator="k8s"))
    for key in texts(node, "/handle/"):
        node.remove(HandleKey(key.rpartition("/")[2]))
    node.datastore.load(dict.fromkeys(texts(node, "assignment/"), "<html>"))
    sweep(node)
    assert node.holders()[str(endpoint.addresses[0])] == "default.web-0"
    holder = node.block(node.blocks()[0]).attributes[0]
    assert holder.secondary == {"namespace": "default", "node": NODE, "pod": "web-0"}


def test_what_somebody_has_written_meanwhile_stays(node):
    key = next(iter(texts(node, "/handle/")))
    node.datastore.load({key: "<html>"})
    finding = next(one for one in check_ipam(node.work()).findings if one.kind == "record-unreadable")
    node.datastore.load({key: "<body>"})
    copies = []
    assert not repair(node.work(), finding, copies.append, patient=True)
    assert not repair(node.work(), finding, None, patient=True)
    node.remove(HandleKey(key.rpartition("/")[2]))
    assert not repair(node.work(), finding, copies.append, patient=True)
    assert copies == []


def test_without_a_copy_nothing_is_touched(node):
    node.datastore.load({KEYS[0]: "<html>"})
    before = node.datastore.records_text()

    def full(_bad):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        collect_ipam(node.work(), Sweep(keep=full))
    assert node.datastore.records_text()[KEYS[0]] == before[KEYS[0]]


def test_while_endpoints_cannot_be_read_blocks_stay_as_they_are(node):
    node.datastore.load(dict.fromkeys([*texts(node, "assignment/"), *texts(node, "workloadendpoints")], "<html>"))
    outcomes, copies = sweep(node)
    assert (outcomes, copies) == ((), [])
    advice = {one.advice for one in check_ipam(node.work()).findings if "ipamblock" in one.subject}
    assert all(text.startswith("mend the unreadable endpoint records first") for text in advice)


def test_an_affinity_beside_a_damaged_block_waits_for_it(node):
    """A block that is no more readable proves nothing; one that is too large for any pool is left to the operator."""
    huge = Cidr.parse("10.0.0.0/8")
    node.put(AffinityKey(OWNER, huge), Affinity("confirmed"))
    node.datastore.load(
        {f"{IPAM}assignment/ipv4/block/10.0.0.0-8": "{", f"{IPAM}host/{NODE}/ipv4/block/10.0.0.0-8": "<html>"}
    )
    outcomes, copies = sweep(node)
    assert [(one.finding.subject, one.outcome) for one in outcomes] == [(f"blockaffinity {NODE}-10-0-0-0-8", FAILED)]
    assert "ipamblock 10-0-0-0-8 is corrupt" in outcomes[0].why
    assert copies == []


def test_a_damaged_block_that_nobody_has_goes(node):
    node.datastore.load({f"{IPAM}assignment/ipv4/block/10.244.9.0-26": "<html>"})
    sweep(node)
    assert "10.244.9.0/26" not in node.blocks()
    assert_sound(node)


def test_a_block_without_a_word_about_its_owner_is_the_one_nodes_that_has_claimed_it(node):
    (cidr,) = [one for one in node.blocks() if "." in one]
    key = next(key for key in texts(node, "assignment/ipv4"))
    node.datastore.load({key: "<html>"})
    node.put(AffinityKey(Owner(HOST, "other"), Cidr.parse(cidr)), Affinity("pending"))
    sweep(node)
    assert node.block(cidr).affinity == str(OWNER)
    node.put(AffinityKey(Owner(HOST, "other"), Cidr.parse(cidr)), Affinity("confirmed"))
    node.datastore.load({key: "<html>"})
    sweep(node)
    assert node.block(cidr).affinity is None


def test_numbers_of_allocations_go_on_above_those_that_were_given(node):
    (cidr,) = [one for one in node.blocks() if "." in one]
    before = max(node.block(cidr).sequences.values())
    node.datastore.load({next(key for key in texts(node, "assignment/ipv4")): "<html>"})
    sweep(node)
    assert min(node.block(cidr).sequences.values()) > before


@pytest.mark.parametrize("outcome", [KEPT, DONE])
def test_a_rival_who_mends_it_first_wins(node, outcome):
    key = next(iter(texts(node, "/handle/")))
    whole = node.datastore.records_text()[key]
    node.datastore.load({key: "<html>"})
    if outcome == KEPT:
        node.datastore.before = lambda verb, _key: node.datastore.load({key: whole}) if verb == "update" else None
    outcomes, _ = sweep(node)
    assert [one.outcome for one in outcomes] == [outcome]


def test_the_handle_of_a_damaged_block_may_be_damaged_as_well(node):
    node.datastore.load(dict.fromkeys([*texts(node, "assignment/ipv4"), *texts(node, "/handle/")], "<html>"))
    sweep(node)
    assert [line for line in node.log.shown("warning") if "Cannot count" in str(line)]
    assert_sound(node)
