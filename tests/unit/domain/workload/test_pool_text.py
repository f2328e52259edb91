"""Pools and IP versions put into calico-ipam's configuration: K8S-016 to K8S-022, K8S-046, K8S-047."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.netconf import parse_netconf
from domain.workload.annotations import PoolWishes, pool_wishes
from domain.workload.pool_text import with_pools

GOLDEN = Path(__file__).parents[3] / "golden"
TEXT = json.dumps(
    {
        "name": "net1",
        "x": {"y": [1.50, "<é>"]},
        "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "ipv4_pools": ["old"], "z": None},
    }
)


def applied(wishes: PoolWishes, text: str = TEXT) -> dict[str, object]:
    """The `ipam` member of the text, which the values are checked to agree with."""
    netconf, changed = with_pools(parse_netconf(text), text, wishes)
    assert netconf == parse_netconf(changed)
    assert {key: value for key, value in json.loads(changed).items() if key != "ipam"} == {
        key: value for key, value in json.loads(text).items() if key != "ipam"
    }
    return json.loads(changed)["ipam"]


def test_without_wishes_the_configuration_stays_to_the_letter():
    netconf = parse_netconf(TEXT)
    assert with_pools(netconf, TEXT, PoolWishes()) == (netconf, TEXT)
    assert with_pools(netconf, "not even JSON", PoolWishes()) == (netconf, "not even JSON")


def test_pools_replace_those_of_the_network_and_leave_the_rest():
    """K8S-016, K8S-047."""
    assert applied(PoolWishes(("50.60.0.0/28",), ("fd80:50::/96",))) == {
        "type": "calico-ipam",
        "assign_ipv4": "true",
        "z": None,
        "ipv4_pools": ["50.60.0.0/28"],
        "ipv6_pools": ["fd80:50::/96"],
    }


def test_an_empty_list_takes_the_network_s_pools_away():
    assert applied(PoolWishes(()))["ipv4_pools"] == []


@pytest.mark.parametrize(
    ("families", "v4", "v6"),
    [((4,), "true", "false"), ((6,), "false", "true"), ((4, 6), "true", "true"), ((), "false", "false")],
)
def test_exactly_the_wished_versions_are_assigned(families, v4, v6):
    ipam = applied(PoolWishes(families=families))
    assert (ipam["assign_ipv4"], ipam["assign_ipv6"], ipam["ipv4_pools"]) == (v4, v6, ["old"])


def test_a_member_in_another_spelling_does_not_undo_the_wish():
    text = '{"ipam": {"ipv4_pools": ["a"], "IPv4_Pools": ["b"]}}'
    assert list(applied(PoolWishes(("q4",)), text).values()) == [["b"], ["q4"]]


@pytest.mark.parametrize("text", ["[]", "{}", '{"IPAM": {}}', '{"ipam": null}'])
def test_a_text_without_its_section_is_refused(text):
    with pytest.raises(ValueError, match=r"^data on stdin was of unexpected type$"):
        with_pools(parse_netconf("{}"), text, PoolWishes(("a",)))


pools = st.none() | st.lists(st.text(max_size=5), max_size=2).map(tuple)


@given(pools, pools, st.sampled_from([None, (), (4,), (6,), (4, 6)]))
def test_text_and_values_agree_whatever_is_wished(ipv4_pools, ipv6_pools, families):
    applied(PoolWishes(ipv4_pools, ipv6_pools, families))


@pytest.mark.parametrize(("name", "pool"), [("kdd-pool-pod", "q4"), ("kdd-pool-unknown", "nope")])
def test_a_recorded_pod_s_pool_reaches_ipam(name, pool):
    step = json.loads((GOLDEN / f"{name}.json").read_text())["steps"][0]
    annotations = step["datastore"]["pods/web-0"]["metadata"]["annotations"]
    assert applied(pool_wishes(annotations, {}), step["call"]["stdin"])["ipv4_pools"] == [pool]
