"""`tortie init`: what it makes, what it leaves alone, what it refuses."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from domain.cluster import ClusterInformation
from domain.ipam.pool_rules import BadPool
from domain.ipam.pools import Pool
from domain.resource import Metadata
from domain.workload.identity import InvalidField
from ports.datastore import ClusterInformationKey, IPPoolKey, IPPools, NodeKey
from ports.errors import AlreadyExists, Refused
from usecases.initialise_cluster import Initialised, Wish, initialise_cluster

CLOCK = MemoryClock()
DEADLINE = CLOCK.deadline(60)
GUID = "0123456789abcdef0123456789abcdef"
V4, V6 = "10.244.0.0/16", "fd00:10:244::/48"


@pytest.fixture
def datastore():
    return MemoryDatastore(CLOCK)


def init(datastore, *pools, node="node-a", sizes=None):
    return initialise_cluster(datastore, Wish(node, GUID, pools, sizes or {}), DEADLINE)


def pools_of(datastore):
    return {one.record.metadata.name: one.record.cidr_text for one in datastore.list(IPPools(), DEADLINE)}


def test_an_empty_datastore_gets_cluster_information_node_and_pools(datastore):
    outcomes = init(datastore, V4, V6, "10.245.0.0/16")
    assert outcomes == (
        Initialised("ClusterInformation", "default", True, "datastore ready"),
        Initialised("Node", "node-a", True),
        Initialised("IPPool", "default-ipv4-ippool", True, f"{V4}, blocks of /26"),
        Initialised("IPPool", "default-ipv6-ippool", True, f"{V6}, blocks of /122"),
        Initialised("IPPool", "ippool-10-245-0-0-16", True, "10.245.0.0/16, blocks of /26"),
    )
    information = datastore.get(ClusterInformationKey("default"), DEADLINE).record
    assert (information.cluster_guid, information.datastore_ready) == (GUID, True)
    assert datastore.get(NodeKey("node-a"), DEADLINE) is not None
    v4 = datastore.get(IPPoolKey("default-ipv4-ippool"), DEADLINE).record
    assert (v4.nat_outgoing, v4.ipip_mode, v4.node_selector) == (True, "Never", "all()")
    assert datastore.get(IPPoolKey("default-ipv6-ippool"), DEADLINE).record.nat_outgoing is False


def test_a_second_run_changes_nothing_and_says_so(datastore):
    init(datastore, V4, V6)
    before = datastore.records_text()
    again = initialise_cluster(datastore, Wish("node-a", "f" * 32, (V4, V6, V4), {}), DEADLINE)
    assert [outcome.made for outcome in again] == [False] * 4
    assert datastore.records_text() == before


def test_a_new_pool_and_a_new_node_are_added_to_what_exists(datastore):
    init(datastore, V4)
    outcomes = init(datastore, "10.245.0.0/16", node="node-b")
    assert [(one.name, one.made) for one in outcomes] == [
        ("default", False),
        ("node-b", True),
        ("ippool-10-245-0-0-16", True),
    ]


def test_a_pool_of_the_same_range_counts_whatever_its_name(datastore):
    pool = Pool(Metadata("mine"), V4, block_size=28)
    datastore.create(IPPoolKey("mine"), pool, DEADLINE)
    assert init(datastore, V4)[2] == Initialised("IPPool", "mine", False, f"{V4}, blocks of /28")


def test_block_sizes_are_per_ip_version(datastore):
    outcomes = init(datastore, V4, V6, sizes={4: 28, 6: 120})
    assert [one.note for one in outcomes[2:]] == [f"{V4}, blocks of /28", f"{V6}, blocks of /120"]


@pytest.mark.parametrize(
    ("pools", "sizes"),
    [
        ((V4, "10.244.128.0/17"), {}),
        ((V4, "10.0.0.0/27"), {}),
        ((V4, "nonsense"), {}),
        (("10.244.0.1/16",), {}),
        ((V4,), {4: 33}),
    ],
)
def test_a_bad_pool_is_refused_before_anything_is_written(datastore, pools, sizes):
    with pytest.raises(BadPool):
        init(datastore, *pools, sizes=sizes)
    assert datastore.records_text() == {}


def test_what_clashes_with_existing_pools_is_refused(datastore):
    init(datastore, V4)
    before = datastore.records_text()
    with pytest.raises(BadPool, match="overlaps"):
        init(datastore, "10.0.0.0/8", node="other")
    with pytest.raises(BadPool, match="its block size is 26 and cannot become 28"):
        init(datastore, V4, node="other", sizes={4: 28})
    assert datastore.records_text() == before


def test_a_bad_node_name_is_refused(datastore):
    with pytest.raises(InvalidField, match="error with field node = 'Node_A'"):
        init(datastore, V4, node="Node_A")
    assert datastore.records_text() == {}


@pytest.mark.parametrize("ready", [None, False])
def test_a_cluster_that_is_not_ready_stays_so_and_the_operator_is_told(datastore, ready):
    closed = ClusterInformation(Metadata("default"), datastore_ready=ready)
    datastore.create(ClusterInformationKey("default"), closed, DEADLINE)
    outcome = init(datastore, V4)[0]
    assert not outcome.made
    assert "datastoreReady is not true" in outcome.note
    assert datastore.get(ClusterInformationKey("default"), DEADLINE).record.datastore_ready is ready


class Rival:
    """Writes one record right before our create of the same key."""

    def __init__(self, datastore, key, record, *, vanishes=False):
        self.datastore, self.key, self.record, self.vanishes = datastore, key, record, vanishes
        datastore.before = self

    def __call__(self, verb, need):
        if verb == "create" and need == self.key and self.record is not None:
            record, self.record = self.record, None
            if self.vanishes:
                raise AlreadyExists(need)
            self.datastore.create(self.key, record, DEADLINE)


def test_a_rival_s_record_counts_as_existing(datastore):
    key = IPPoolKey("default-ipv4-ippool")
    Rival(datastore, key, Pool(Metadata("default-ipv4-ippool"), V4, nat_outgoing=False))
    assert init(datastore, V4)[2].made is False
    assert datastore.get(key, DEADLINE).record.nat_outgoing is False


def test_a_rival_that_gave_the_name_to_another_range_is_noticed(datastore):
    Rival(datastore, IPPoolKey("default-ipv4-ippool"), Pool(Metadata("default-ipv4-ippool"), "10.9.0.0/16"))
    with pytest.raises(BadPool, match=r"its range is 10\.9\.0\.0/16"):
        init(datastore, V4)


def test_a_record_that_comes_and_goes_is_reported(datastore):
    key = NodeKey("node-a")
    Rival(datastore, key, "anything", vanishes=True)
    with pytest.raises(AlreadyExists):
        init(datastore, V4)


class NodesOfAnotherMaker(MemoryDatastore):
    """As where an orchestrator makes the nodes."""

    def create(self, key, record, deadline):
        if isinstance(key, NodeKey):
            raise Refused(f"operation Create is not supported on {key}")
        return super().create(key, record, deadline)


def test_where_nodes_come_from_elsewhere_one_of_them_is_asked_for_before_anything_is_written():
    datastore = NodesOfAnotherMaker(CLOCK)
    with pytest.raises(Refused, match=r'no node "node-a" in this cluster.*--node'):
        init(datastore, V4)
    assert datastore.records_text() == MemoryDatastore(CLOCK).records_text()
