"""What is left of a virtual machine that is gone is found and collected; what one may still want is not (F06, L12)."""

from __future__ import annotations

import pytest

from adapters.memory.log import RecordingLog
from domain.ipam.address import Address
from domain.ipam.audit import is_clean
from domain.ipam.audit_addresses import ANOTHERS, TWICE, VANISHED_MACHINE
from domain.ipam.block import HOST, Owner
from domain.ipam.inventory import LEAK
from domain.ipam.release import Release
from domain.ipam.request import AssignRequest
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import WorkloadEndpointKey
from ports.errors import BadConfiguration, Unavailable
from usecases.calls.safeguards import Undo
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, KEPT, Sweep, collect_ipam
from usecases.ipam.assign_specific import assign_specific
from usecases.ipam.release_listed import release_listed
from worlds.ipam_world import NEVER
from worlds.machine_world import SPACE, MachineWorld, handle_of

DUAL = {"assign_ipv6": "true"}
LEAKED = Sweep(leaked=True)


@pytest.fixture
def world():
    """A machine that was stopped an hour ago, by a DEL that came while its pod was there."""
    made = MachineWorld()
    made.create()
    pod = made.pod("a")
    made.start(pod, **DUAL)
    made.end(pod)
    made.remove_pod(pod)
    made.stop()
    made.clock.advance(3600)
    return made


def leaks(world, cluster=None):
    findings = check_ipam(world.work(), cluster or world.cluster).findings
    assert {finding.kind for finding in findings} <= {VANISHED_MACHINE}
    return [finding for finding in findings if finding.level == LEAK]


def give_endpoint(world, pod, container, *addresses):
    metadata = Metadata(f"n-k8s-{pod.replace('-', '--')}-eth0", SPACE)
    networks = tuple(Address.parse(one).host_cidr for one in addresses)
    record = WorkloadEndpoint(
        metadata, orchestrator="k8s", node="node-a", container_id=container, pod=pod, ip_networks=networks
    )
    world.store.create(WorkloadEndpointKey(SPACE, metadata.name), record, NEVER)


def test_a_machine_that_is_off_keeps_its_addresses(world):
    assert leaks(world) == []
    assert collect_ipam(world.work(), LEAKED, world.cluster) == ()


def test_what_is_left_of_a_machine_that_is_gone_is_collected(world):
    world.forget()
    found = leaks(world)
    assert [(one.subject, one.repairable, one.handle) for one in found] == [
        (address, True, handle_of("db")) for address in sorted(world.owners())
    ]
    assert check_ipam(world.work()).findings == ()
    assert collect_ipam(world.work(), Sweep(), world.cluster) == ()
    assert [one.outcome for one in collect_ipam(world.work(), LEAKED, world.cluster)] == [DONE, DONE]
    assert is_clean(check_ipam(world.work(), world.cluster).findings)
    world.check_at_rest(set())


def test_an_instance_alone_is_a_machine(world):
    world.forget()
    world.run(alone=True)
    assert leaks(world) == []


def test_a_pod_that_is_there_still_owns_what_the_machine_had(world):
    world.create()
    pod = world.pod("b")
    world.start(pod, **DUAL)
    give_endpoint(world, pod, f"c-{pod}")
    world.clock.advance(3600)
    world.forget()
    assert leaks(world) == []


@pytest.mark.parametrize("migration", ["", "j1"])
def test_a_call_that_may_be_at_work_is_left_alone(world, migration):
    world.create()
    pod = world.pod("b", migration=migration)
    world.start(pod, **DUAL)
    world.forget()
    assert leaks(world) == []
    world.clock.advance(3600)
    assert len(leaks(world)) == 2


def test_a_machine_that_starts_again_in_time_keeps_its_addresses(world):
    """When it is about to be released."""
    world.forget()

    def started(verb, key):
        if verb == "update":
            world.store.before = lambda _verb, _key: None
            world.create()
            world.start(world.pod("b"), **DUAL)

    world.store.before = started
    outcomes = collect_ipam(world.work(), LEAKED, world.cluster)
    assert [one.outcome for one in outcomes] == [KEPT, KEPT]
    assert len(world.owners()) == 2


def test_an_address_that_somebody_else_has_by_now_is_kept(world):
    world.forget()
    (address, *_) = world.owners()

    def given_away(verb, key):
        if verb == "update":
            world.store.before = lambda _verb, _key: None
            release_listed(world.work(), [Release(Address.parse(one)) for one in world.owners()])

    world.store.before = given_away
    outcomes = collect_ipam(world.work(), LEAKED, world.cluster)
    assert {one.outcome for one in outcomes} == {KEPT}
    assert address not in world.owners()


def hold(world, handle, **secondary):
    """An address under a handle of another form."""
    request = AssignRequest(Owner(HOST, "node-a"), handle, secondary, {4: 1})
    assign_specific(world.work(), request, Address.parse("10.9.0.14"), Undo(world.clock, RecordingLog()))


def test_a_hashed_handle_says_nothing_unless_an_owner_does(world):
    handle = "net.vmi._oSfRUM-RZPVw5e9aDSRFECWLS8RX4ajx"
    hold(world, handle)
    assert leaks(world) == []
    world = MachineWorld()
    hold(world, handle, **{"namespace": SPACE, "vmi-name": "gone", "pod": "virt-launcher-gone-a"})
    assert [one.handle for one in leaks(world)] == [handle]


@pytest.mark.parametrize("error", [Unavailable("away"), BadConfiguration("none")])
def test_a_cluster_that_cannot_be_asked_makes_no_machine_vanish(world, error):
    class Away:
        def virtual_machine(self, *_):
            raise error

    world.forget()
    assert leaks(world, Away()) == []


def test_source_and_target_may_have_one_address(world):
    """A live migration is no mistake; two machines with one address are one."""
    world.create()
    source, target = world.pod("b"), world.pod("t", migration="j1")
    world.start(source)
    world.start(target, "node-b")
    address = min(world.owners())
    give_endpoint(world, source, f"c-{source}", address)
    give_endpoint(world, target, f"c-{target}", address)
    assert leaks(world) == []
    give_endpoint(world, "other", "c9", address)
    kinds = {finding.kind for finding in check_ipam(world.work(), world.cluster).findings}
    assert kinds == {TWICE, ANOTHERS}
