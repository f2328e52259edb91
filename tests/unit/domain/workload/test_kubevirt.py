"""Virtual machines in values: who runs one, its handle, its end (KV-005, KV-007, KV-008, KV-012; LIB-303)."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workload.annotations import CONTAINER_ID, POD_IP
from domain.workload.identity import KUBERNETES, Identity
from domain.workload.kubevirt import (
    API_VERSION,
    INSTANCE,
    MACHINE,
    MIGRATION,
    VirtualMachine,
    has_newer_sandbox,
    instance_name_in,
    instance_reference,
    is_ending,
    machine_handle,
    machine_reference,
    machines_named_by,
    virtual_machine,
)
from domain.workload.pod import OwnerReference, Pod, VirtualMachineObject

OWNER = OwnerReference(API_VERSION, INSTANCE, "db", "u1", controller=True)
POD = Pod("virt-launcher-db-aaaaa", "gold", owners=(OWNER,))
ABOVE = OwnerReference(API_VERSION, MACHINE, "db", "m1")
ALONE = VirtualMachineObject("db", "gold", "u1")
INSTANCE_OBJECT = ALONE.replace(owners=(ABOVE,))
MACHINE_OBJECT = VirtualMachineObject("db", "gold", "m1")


# --- who runs one ----------------------------------------------------------------------------------------------------


def test_only_a_pod_named_as_a_launcher_is_worth_a_question():
    assert Identity(KUBERNETES, pod="virt-launcher-db-aaaaa").is_named_as_launcher
    assert not Identity(KUBERNETES, pod="my-virt-launcher-db").is_named_as_launcher
    assert not Identity("cni", pod="virt-launcher-db-aaaaa").is_named_as_launcher


@pytest.mark.parametrize(
    "owner",
    [
        OWNER.replace(api_version="kubevirt.io/v2"),
        OWNER.replace(kind="VirtualMachine"),
        OWNER.replace(controller=False),
        OwnerReference("apps/v1", "ReplicaSet", "db", "u1", controller=True),
    ],
)
def test_a_pod_that_no_instance_controls_runs_no_machine(owner):
    assert instance_reference(POD.replace(owners=(owner,))) is None


def test_the_instance_may_be_one_owner_of_several():
    other = OwnerReference("v1", "Node", "n", "x")
    assert instance_reference(POD.replace(owners=(other, OWNER))) == OWNER


@pytest.mark.parametrize(
    ("owner", "told"), [(OWNER.replace(name=""), 'name="" uid="u1"'), (OWNER.replace(uid=""), 'name="db" uid=""')]
)
def test_a_reference_that_names_nothing_is_refused(owner, told):
    with pytest.raises(ValueError, match=r"^pod gold/virt-launcher-db-aaaaa has invalid VMI ownerReference: " + told):
        instance_reference(POD.replace(owners=(owner,)))


def test_a_machine_describes_itself_as_the_owner_of_an_address():
    """Recording kubevirt-persist."""
    target = POD.replace(labels={MIGRATION: "j1"})
    assert virtual_machine(POD, ALONE, None) == VirtualMachine("gold", "db", "u1")
    found = virtual_machine(target, INSTANCE_OBJECT, MACHINE_OBJECT)
    assert found == VirtualMachine("gold", "db", "u1", "m1", "j1")
    assert found.attributes == {"vmi-name": "db", "vmi-uid": "u1", "vm-uid": "m1", "vmim-uid": "j1"}
    assert virtual_machine(POD, ALONE, None).attributes == {"vmi-name": "db", "vmi-uid": "u1"}


def test_a_pod_of_an_instance_that_was_made_anew_does_not_run_it():
    """KV-005."""
    with pytest.raises(ValueError, match=r"^VMI UID mismatch: pod ownerReference has u1 but VMI resource has u2$"):
        virtual_machine(POD, ALONE.replace(uid="u2"), None)
    with pytest.raises(ValueError, match="UID mismatch"):
        virtual_machine(POD.replace(owners=()), ALONE, None)


def test_the_machine_above_an_instance_need_not_control_it():
    assert machine_reference(INSTANCE_OBJECT) == ABOVE
    assert machine_reference(ALONE) is None
    assert machine_reference(ALONE.replace(owners=(ABOVE.replace(kind="X"), ABOVE.replace(api_version="v1")))) is None


# --- its end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "machine", "ending"),
    [
        pytest.param(INSTANCE_OBJECT, MACHINE_OBJECT, False, id="it runs"),
        pytest.param(INSTANCE_OBJECT.replace(deleting=True), MACHINE_OBJECT, False, id="KV-007"),
        pytest.param(INSTANCE_OBJECT, MACHINE_OBJECT.replace(deleting=True), True, id="KV-008"),
        pytest.param(None, MACHINE_OBJECT, False, id="it is off"),
        pytest.param(None, MACHINE_OBJECT.replace(deleting=True), True, id="it was off and goes"),
        pytest.param(None, None, True, id="it is gone"),
        pytest.param(INSTANCE_OBJECT, None, True, id="its instance has yet to go"),
        pytest.param(ALONE, None, False, id="it was made alone"),
        pytest.param(ALONE.replace(deleting=True), None, True, id="KV-012"),
    ],
)
def test_a_machine_is_over_when_nothing_above_its_pods_stays(instance, machine, ending):
    assert is_ending(instance, machine) is ending


@pytest.mark.parametrize(
    ("annotations", "newer"),
    [
        ({}, False),
        ({CONTAINER_ID: "c1", POD_IP: "10.0.0.1/32"}, False),
        ({CONTAINER_ID: "c2", POD_IP: "10.0.0.1/32"}, True),
        ({CONTAINER_ID: "c2", POD_IP: ""}, False),
        ({POD_IP: "10.0.0.1/32"}, False),
    ],
)
def test_r01_a_newer_sandbox_is_known_by_the_pods_endpoint(annotations, newer):
    assert has_newer_sandbox(POD.replace(annotations=annotations), "c1") is newer


# --- its handle ------------------------------------------------------------------------------------------------------


def test_the_handle_is_made_of_names():
    """LIB-303."""
    assert machine_handle("k8s-pod-network", "default", "vm1") == "k8s-pod-network.vmi.default.vm1"
    assert machine_handle("", "test-ns", "test-vm") == "k8s-pod-network.vmi.test-ns.test-vm"
    assert machine_handle("multus-net1", "test-ns", "test-vm") == "multus-net1.vmi.test-ns.test-vm"


def test_a_handle_of_128_characters_is_kept_as_it_is():
    handle = machine_handle("", "n" * 54, "v" * 53)
    assert (len(handle), handle) == (128, f"k8s-pod-network.vmi.{'n' * 54}.{'v' * 53}")


@pytest.mark.parametrize(("network", "namespace", "name"), [("", "n" * 54, "v" * 54), ("x" * 78, "n" * 20, "v" * 30)])
def test_a_name_that_the_original_crashes_on_is_refused(network, namespace, name):
    """Spec: ipam 17.3."""
    text = rf"^the IPAM handle of virtual machine {namespace}/{name} would have 1\d\d characters, and no more than 128 "
    with pytest.raises(ValueError, match=text):
        machine_handle(network, namespace, name)


def test_a_network_that_leaves_no_room_for_a_hash_is_refused():
    with pytest.raises(ValueError, match="would have 129 characters"):
        machine_handle("n" * 122, "_", "")
    assert len(machine_handle("n" * 121, "prod", "db")) == 128


def test_a_longer_name_is_hashed_as_the_original_does():
    """Spec: ipam 14.2."""
    handle = machine_handle("n" * 90, "prod", "database-primary-0-with-a-long-name")
    assert handle == "n" * 90 + ".vmi._oSfRUM-RZPVw5e9aDSRFECWLS8RX4ajx"
    full = machine_handle("n" * 79, "prod", "v" * 40)
    assert full == "n" * 79 + ".vmi._" + _digest("prod." + "v" * 40)
    assert len(full) == 128


def test_a_name_that_looks_like_a_hash_is_hashed_when_there_is_no_room_to_tell_them_apart():
    suffix = "_x." + "v" * 30
    network = "n" * (128 - len(suffix) - 5)
    assert machine_handle(network, "_x", "v" * 30) == f"{network}.vmi._{_digest(suffix)[: len(suffix) - 1]}"


@given(st.text("abz019-", min_size=1, max_size=60), st.text("abz019-.", min_size=1, max_size=60))
def test_no_handle_is_longer_than_128_characters_and_each_says_whose_it_is(namespace, name):
    try:
        handle = machine_handle("n" * 60, namespace, name)
    except ValueError:
        return
    assert len(handle) <= 128
    assert (namespace, name) in machines_named_by(handle)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("handle", "named"),
    [
        ("net.vmi.gold.db", (("gold", "db"),)),
        ("net.vmi.gold.db.two", (("gold", "db.two"),)),
        ("net.vmi.x.vmi.gold.db", (("x", "vmi.gold.db"), ("gold", "db"))),
        ("net.vmi._oSfRUM-RZPVw5e9aDSRFECWLS8RX4ajx", ()),
        ("net.vmi.nothing", ()),
        ("net.c1", ()),
    ],
)
def test_a_handle_names_the_machine_it_may_be_the_one_of(handle, named):
    assert machines_named_by(handle) == named


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        ("virt-launcher-db-aaaaa", "db"),
        ("virt-launcher-test-vm-source", "test-vm"),
        ("virt-launcher-db", ""),
        ("web-0", ""),
    ],
)
def test_a_launchers_name_speaks_of_its_machine(pod, name):
    assert instance_name_in(pod) == name
