"""Conformance KV-001 to KV-016: calico-ipam on pods of virtual machines, with the API server deciding who runs what."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from integration.kubevirt.machines import MACHINE, SPACE, Launcher, MachineHost, handle


class Running(NamedTuple):
    """A machine in its first pod."""

    host: MachineHost
    source: Launcher
    addresses: list[str]
    machine_uid: str
    instance_uid: str


class Moving(NamedTuple):
    """The same, and a migration whose target pod has been networked."""

    host: MachineHost
    source: Launcher
    target: Launcher
    addresses: list[str]


@pytest.fixture
def running(host: MachineHost) -> Running:
    uids = host.running()
    source = host.launcher("source")
    addresses = host.assign(source)
    assert [":" in address for address in addresses] == [False, True]
    host.owned(addresses, source)
    return Running(host, source, addresses, *uids)


@pytest.fixture
def moving(running: Running) -> Moving:
    host = running.host
    target = host.launcher("target", migration=host.migrate())
    assert host.assign(target, routed=False) == running.addresses
    return Moving(host, running.source, target, running.addresses)


def test_the_owner_says_who_runs_the_machine(running: Running) -> None:
    host, source = running.host, running.source
    expected = {
        "namespace": SPACE,
        "pod": source.pod,
        "node": "node-a",
        "vmi-name": MACHINE,
        "vmi-uid": running.instance_uid,
        "vm-uid": running.machine_uid,
    }
    for active, alternate in host.slots().values():
        assert {name: text for name, text in active.items() if name != "timestamp"} == expected
        assert alternate == {}
    assert set(host.store.handles()) == {handle()}


def test_kv_001_the_next_pod_has_the_same_addresses(running: Running) -> None:
    """KV-001."""
    host = running.host
    host.release(running.source)
    host.owned(running.addresses)
    host.remove(running.source)
    pod = host.launcher("pod2")
    assert host.assign(pod) == running.addresses
    host.owned(running.addresses, pod)


def test_kv_002_a_migrations_target_shares_them_without_routes(running: Running) -> None:
    """KV-002."""
    host = running.host
    migration = host.migrate()
    target = host.launcher("target", migration=migration)
    assert host.assign(target, routed=False) == running.addresses
    host.owned(running.addresses, running.source, target)
    for active, alternate in host.slots().values():
        assert alternate["vmim-uid"] == migration
        assert "vmim-uid" not in active
        same = ("namespace", "vmi-name", "vmi-uid", "vm-uid")
        assert [active[name] for name in same] == [alternate[name] for name in same]
    host.clean()


def test_kv_003_kv_004_they_stay_when_first_the_source_and_then_the_target_goes(moving: Moving) -> None:
    """KV-003, KV-004."""
    host = moving.host
    host.release(moving.source)
    host.owned(moving.addresses, None, moving.target)
    host.release(moving.target)
    host.owned(moving.addresses)


def test_kv_005_an_instance_that_is_made_anew_keeps_them(running: Running) -> None:
    """KV-005; and the DEL of the old instance's pod, when it comes, takes nothing from the new one's."""
    host = running.host
    host.delete_instance()
    host.forget("virtualmachineinstances")
    host.owned(running.addresses, running.source)
    new = host.run_instance()
    assert new != running.instance_uid
    pod = host.launcher("src2")
    assert host.assign(pod) == running.addresses
    host.owned(running.addresses, pod)
    assert {active["vmi-uid"] for active, _ in host.slots().values()} == {new}
    host.release(running.source)
    host.owned(running.addresses, pod)


def test_kv_006_they_stay_when_the_pod_goes_and_the_machine_stays(running: Running) -> None:
    """KV-006; as often as the runtime asks."""
    host = running.host
    for _ in range(2):
        host.release(running.source)
        host.owned(running.addresses)


def test_kv_007_they_stay_when_only_the_instance_is_being_deleted(running: Running) -> None:
    """KV-007."""
    host = running.host
    host.delete_instance()
    host.release(running.source)
    host.owned(running.addresses)


def test_kv_008_they_go_with_the_machine(running: Running) -> None:
    """KV-008; as often as the runtime asks."""
    host = running.host
    host.delete_machine()
    for _ in range(2):
        host.release(running.source)
        host.nothing()
    host.clean()


@pytest.mark.parametrize("first", [pytest.param("source", id="KV-009"), pytest.param("target", id="KV-010")])
def test_kv_009_kv_010_the_last_of_two_owners_frees_them(moving: Moving, first: str) -> None:
    """KV-009, KV-010."""
    host = moving.host
    host.delete_machine()
    if first == "source":
        host.release(moving.source)
        host.owned(moving.addresses, None, moving.target)
        host.release(moving.target)
    else:
        host.release(moving.target)
        host.owned(moving.addresses, moving.source)
        host.release(moving.source)
    host.nothing()


def test_kv_011_del_of_a_pod_that_is_gone(running: Running) -> None:
    """KV-011; the machine goes on, so it keeps what it has."""
    host = running.host
    host.remove(running.source)
    host.release(running.source)
    assert list(host.slots()) == running.addresses


def test_kv_012_they_go_with_an_instance_that_has_no_machine(host: MachineHost) -> None:
    """KV-012."""
    uid = host.run_instance(alone=True)
    pod = host.launcher("alone")
    host.owned(host.assign(pod), pod)
    for active, _ in host.slots().values():
        assert active["vmi-uid"] == uid
        assert "vm-uid" not in active
    host.delete_instance()
    host.release(pod)
    host.nothing()


def test_kv_013_a_pod_whose_instance_does_not_exist_is_refused(host: MachineHost) -> None:
    """KV-013."""
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": MACHINE, "controller": True}
    pod = host.launcher("pod", ownerReferences=[reference | {"uid": "no-such-uid"}])
    host.ask("ADD", pod).error(999, "failed to get VMI info")
    host.nothing()
    host.release(pod)


def test_kv_014_a_target_is_refused_where_nothing_is_kept(host: MachineHost) -> None:
    """KV-014."""
    host.persist("Disabled")
    host.running()
    target = host.launcher("target", migration=host.migrate())
    answer = host.ask("ADD", target)
    answer.error(999, "not allowed when KubeVirtVMAddressPersistence is disabled")
    host.nothing()
    host.release(target)


def test_kv_015_kv_016_pods_have_addresses_of_their_own_where_nothing_is_kept(host: MachineHost) -> None:
    """KV-015, KV-016."""
    host.persist("Disabled")
    host.running()
    one, two = host.launcher("one"), host.launcher("two")
    first, second = host.assign(one), host.assign(two)
    assert len(first) == len(second) == 2
    assert not set(first) & set(second)
    assert host.slots() == {}
    assert set(host.store.handles()) == {f"net1.{one.identity}", f"net1.{two.identity}"}
    host.release(one)
    assert set(host.store.handles()) == {f"net1.{two.identity}"}
    host.release(two)
    host.nothing()
    host.clean()


def test_a_pod_that_is_only_named_as_a_launcher_is_like_any_other(host: MachineHost) -> None:
    host.running()
    pod = host.launcher("impostor", ownerReferences=[])
    host.assign(pod)
    assert host.slots() == {}
    assert set(host.store.handles()) == {f"net1.{pod.identity}"}
    host.release(pod)
    host.nothing()


def test_a_pod_of_an_earlier_instance_is_refused(running: Running) -> None:
    host = running.host
    late = host.launcher("late")
    host.delete_instance()
    host.forget("virtualmachineinstances")
    new = host.run_instance()
    text = f"VMI UID mismatch: pod ownerReference has {running.instance_uid} but VMI resource has {new}"
    host.ask("ADD", late).error(999, f"failed to get VMI info: {text}")
    host.owned(running.addresses, running.source)
