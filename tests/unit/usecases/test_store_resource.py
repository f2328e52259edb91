"""`tortie create` and `tortie apply`: what is checked, and what an apply keeps."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from domain.cluster import ClusterInformation, Node
from domain.ipam.pool_rules import BadPool
from domain.ipam.pools import IPAMConfiguration, IPReservation, Pool
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.identity import InvalidField
from ports.datastore import (
    ClusterInformationKey,
    IPAMConfigurationKey,
    IPPoolKey,
    IPReservationKey,
    NodeKey,
    WorkloadEndpointKey,
)
from ports.errors import AlreadyExists, Conflict
from usecases.store_resource import MAX_TRIES, apply_resource, create_resource

CLOCK = MemoryClock()
DEADLINE = CLOCK.deadline(60)
NODE = NodeKey("n")


@pytest.fixture
def datastore():
    return MemoryDatastore(CLOCK)


def node(**labels):
    return Node(Metadata("n", labels=labels))


def pool(cidr, name="p", **more):
    return Pool(Metadata(name), cidr, **more)


def apply(datastore, key, record, replaces=None):
    return apply_resource(datastore, key, record, replaces, DEADLINE)


def test_create_refuses_what_exists(datastore):
    create_resource(datastore, NODE, node(), DEADLINE)
    with pytest.raises(AlreadyExists):
        create_resource(datastore, NODE, node(), DEADLINE)


def test_apply_creates_and_then_replaces_keeping_uid_and_creation_time(datastore):
    first = apply(datastore, NODE, node(zone="a"))
    second = apply(datastore, NODE, node(zone="b"))
    assert second.record.metadata.labels == {"zone": "b"}
    assert second.record.metadata.uid == first.record.metadata.uid != ""
    assert second.record.metadata.created == first.record.metadata.created != ""


def test_apply_at_a_revision_replaces_only_that_one(datastore):
    first = apply(datastore, NODE, node(zone="a"))
    second = apply(datastore, NODE, node(zone="b"), first.revision)
    with pytest.raises(Conflict):
        apply(datastore, NODE, node(zone="c"), first.revision)
    assert datastore.get(NODE, DEADLINE) == second
    with pytest.raises(Conflict):
        apply(datastore, NodeKey("m"), Node(Metadata("m")), "1")


def test_apply_tries_again_when_a_rival_writes_in_between(datastore):
    def rival(verb, need):
        if verb in ("create", "update"):
            datastore.before = lambda verb, need: None
            datastore.create(NODE, node(zone="rival"), DEADLINE)

    datastore.before = rival
    assert apply(datastore, NODE, node(zone="mine")).record.metadata.labels == {"zone": "mine"}


def test_apply_gives_up_when_rivals_never_stop(datastore):
    datastore.create(NODE, node(), DEADLINE)

    def rival(verb, need):
        if verb == "update":
            datastore.update(NODE, node(), datastore.revision_of(NODE), DEADLINE)

    datastore.before = rival
    with pytest.raises(Conflict):
        apply(datastore, NODE, node(zone="mine"))
    assert datastore.calls["update"] == MAX_TRIES


def test_pools_are_checked_alone_and_among_the_others(datastore):
    apply(datastore, IPPoolKey("p"), pool("10.0.0.0/16"))
    apply(datastore, IPPoolKey("p"), pool("10.0.0.0/16", disabled=True))
    before = datastore.records_text()
    for key, bad in (
        (IPPoolKey("q"), pool("10.0.0.0/8", "q")),
        (IPPoolKey("q"), pool("nonsense", "q")),
        (IPPoolKey("p"), pool("10.1.0.0/16")),
        (IPPoolKey("p"), pool("10.0.0.0/16", block_size=28)),
    ):
        with pytest.raises(BadPool):
            apply(datastore, key, bad)
    with pytest.raises(BadPool):
        create_resource(datastore, IPPoolKey("q"), pool("10.0.0.0/24", "q"), DEADLINE)
    assert datastore.records_text() == before


def test_endpoints_are_checked_and_get_their_forced_labels(datastore):
    sound = WorkloadEndpoint(
        Metadata("n-cni-cid-eth0", "default"),
        orchestrator="cni",
        node="n",
        container_id="cid",
        endpoint="eth0",
        interface_name="calicid",
    )
    stored = apply(datastore, WorkloadEndpointKey("default", "n-cni-cid-eth0"), sound)
    assert stored.record.metadata.labels == {
        "projectcalico.org/namespace": "default",
        "projectcalico.org/orchestrator": "cni",
    }
    with pytest.raises(InvalidField, match="containerID"):
        apply(datastore, WorkloadEndpointKey("default", "n-cni-cid-eth0"), sound.replace(container_id=""))


@pytest.mark.parametrize(
    ("key", "bad", "field"),
    [
        (NodeKey("N"), Node(Metadata("N")), "name"),
        (IPReservationKey("r"), IPReservation(Metadata("r"), ("10.0.0.0/33",)), "reservedCIDRs"),
        (ClusterInformationKey("x"), ClusterInformation(Metadata("x")), "name"),
        (IPAMConfigurationKey("x"), IPAMConfiguration(Metadata("x")), "name"),
        (
            IPAMConfigurationKey("default"),
            IPAMConfiguration(Metadata("default"), max_blocks_per_host=-1),
            "maxBlocksPerHost",
        ),
        (
            IPAMConfigurationKey("default"),
            IPAMConfiguration(Metadata("default"), cooldown_seconds=1201),
            "ipCooldownSeconds",
        ),
    ],
)
def test_other_kinds_are_refused_naming_the_field(datastore, key, bad, field):
    with pytest.raises(InvalidField) as caught:
        apply(datastore, key, bad)
    assert caught.value.field == field
    assert datastore.records_text() == {}


@pytest.mark.parametrize(
    ("key", "good"),
    [
        (IPReservationKey("r"), IPReservation(Metadata("r"), ("10.0.0.0/28", "10.0.1.1"))),
        (ClusterInformationKey("default"), ClusterInformation(Metadata("default"))),
        (IPAMConfigurationKey("default"), IPAMConfiguration(Metadata("default"), cooldown_seconds=1200)),
    ],
)
def test_other_kinds_are_stored(datastore, key, good):
    apply(datastore, key, good)
    assert datastore.get(key, DEADLINE) is not None
