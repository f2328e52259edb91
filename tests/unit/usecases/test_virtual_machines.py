"""A virtual machine keeps its address, whichever of its pods runs it (KV-001 to KV-016, D09; spec: ipam 14, 16)."""

from __future__ import annotations

import pytest

from adapters.memory.former import MemoryFormer
from domain.cni.errors import CniError
from domain.cni.netconf import PolicySettings
from domain.cni.request import CniArgs
from domain.ipam.address import Address, Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.errors import IpamError, StillContended
from domain.ipam.owner_update import OwnerUpdate
from domain.ipam.release import Release
from domain.workload.annotations import CONTAINER_ID, POD_IP
from domain.workload.kubevirt import API_VERSION, INSTANCE
from domain.workload.pod import OwnerReference
from ports.datastore import BlockKey, Blocks, HandleKey, IPAMConfigurationKey, IPPoolKey
from ports.errors import Refused, Unauthorized, Unavailable
from ports.former import Installed
from usecases.assign_addresses import assign_addresses
from usecases.calls.safeguards import Undo
from usecases.ipam.owners import set_owner_attributes
from usecases.ipam.release_listed import release_listed
from usecases.ipam.work import guarded_write
from worlds.ipam_world import NEVER
from worlds.machine_world import SPACE, MachineWorld, handle_of
from worlds.one_node import NODE, OneNode

DUAL = {"assign_ipv6": "true"}
HANDLE = handle_of("db")


@pytest.fixture
def world():
    made = MachineWorld()
    made.create()
    return made


@pytest.fixture
def running(world):
    """The machine runs in the pod `source`, with an address of each IP version."""
    world.source = world.pod("source")
    addresses, routed = world.start(world.source, **DUAL)
    world.addresses = sorted(address.partition("/")[0] for address in addresses)
    assert (len(addresses), routed) == (2, True)
    assert [address.partition("/")[2] for address in addresses] == ["30", "126"]
    return world


@pytest.fixture
def moving(running):
    """It is being moved to the pod `target` on another node."""
    running.target = running.pod("target", migration="j1")
    addresses, routed = running.start(running.target, "node-b", **DUAL)
    assert ([address.partition("/")[0] for address in addresses], routed) == (running.addresses, False)
    return running


def require_owners(world, active="", alternate=""):
    """Of exactly the addresses that the machine has had all the time."""
    assert world.owners() == dict.fromkeys(world.addresses, (active, alternate))


def require_nothing(world):
    assert world.owners() == {}
    assert not world.has_handle()


# --- ADD -------------------------------------------------------------------------------------------------------------


def test_the_pod_owns_the_machines_addresses(running):
    """KV-001; recording kubevirt-persist."""
    require_owners(running, running.source)
    for holder in running.holders(HANDLE).values():
        timestamp = holder.secondary["timestamp"]
        assert holder == Attribute(
            HANDLE,
            {
                "namespace": SPACE,
                "node": "node-a",
                "pod": running.source,
                "timestamp": timestamp,
                "vm-uid": running.machine().uid,
                "vmi-name": "db",
                "vmi-uid": running.instance().uid,
            },
        )


def test_kv_001_the_next_pod_has_the_same_addresses(running):
    """KV-001, D09."""
    running.end(running.source)
    require_owners(running)
    running.remove_pod(running.source)
    pod = running.pod("pod2")
    addresses, routed = running.start(pod, "node-c", **DUAL)
    assert (addresses, routed) == ([str(Address.parse(one).host_cidr) for one in running.addresses], True)
    require_owners(running, pod)


def test_kv_002_the_target_of_a_migration_shares_them_without_routes(moving):
    """KV-002, D09."""
    require_owners(moving, moving.source, moving.target)
    for holder in moving.holders(HANDLE).values():
        assert holder.alternate["vmim-uid"] == "j1"
        assert holder.alternate["node"] == "node-b"
        assert "vmim-uid" not in holder.secondary


def test_kv_003_kv_004_the_addresses_stay_when_source_and_target_go(moving):
    moving.end(moving.source)
    require_owners(moving, "", moving.target)
    moving.end(moving.target, "node-b")
    require_owners(moving)


def test_d09_the_target_becomes_the_owner(moving):
    moving.promote(moving.target)
    require_owners(moving, moving.target, moving.source)
    moving.end(moving.source)
    require_owners(moving, moving.target)
    moving.promote(moving.target)
    assert [stored.record.cidr.size for stored in moving.store.list(Blocks(), NEVER)] == [4, 4]


def test_d09_an_aborted_migration_leaves_the_source_alone(moving):
    moving.end(moving.target, "node-b")
    require_owners(moving, moving.source)


def test_d09_the_same_pod_twice_has_one_address(running):
    running.start(running.source, container="c2", **DUAL)
    require_owners(running, running.source)
    counted = running.store.get(HandleKey(HANDLE), NEVER).record.blocks
    assert list(counted.values()) == [1, 1]


def test_kv_005_an_instance_that_is_made_anew_keeps_them(running):
    old = running.source
    running.stop()
    running.run()
    pod = running.pod("src2")
    assert len(running.start(pod, "node-b", **DUAL)[0]) == 2
    require_owners(running, pod)
    assert {one.secondary["vmi-uid"] for one in running.holders(HANDLE).values()} == {running.instance().uid}
    running.end(old)
    require_owners(running, pod)


def test_a_machine_that_is_made_by_itself_has_no_machine_uid(world):
    world.forget()
    world.run(alone=True)
    world.start(world.pod("a"))
    (holder,) = world.holders(HANDLE).values()
    assert "vm-uid" not in holder.secondary
    assert holder.secondary["vmi-uid"]


def test_two_targets_at_once_the_later_one_counts(moving):
    other = moving.pod("other", migration="j2")
    assert not moving.start(other, "node-c")[1]
    require_owners(moving, moving.source, other)
    moving.end(moving.target, "node-b")
    require_owners(moving, moving.source, other)
    moving.promote(other)
    moving.end(moving.source)
    require_owners(moving, other)


def test_a_target_without_a_source_is_refused(world):
    pod = world.pod("target", migration="j1")
    with pytest.raises(IpamError, match=rf"^migration target pod but no IP allocated to VM handle {HANDLE}$"):
        world.start(pod)
    world.store.create(HandleKey(HANDLE), Handle({Cidr.parse("10.9.0.0/30"): 1}), NEVER)
    with pytest.raises(IpamError, match="no IP allocated"):
        world.start(pod)


def test_a_version_that_the_machine_lacks_is_added(world):
    """A death between the two versions' writes, or a cluster that got a second version."""
    world.start(world.pod("a"))
    world.end(f"{'virt-launcher-'}db-a")
    pod = world.pod("b")
    addresses, _ = world.start(pod, **DUAL)
    assert [address.partition("/")[2] for address in addresses] == ["32", "126"]
    assert set(world.owners().values()) == {(pod, "")}
    pod = world.pod("c")
    assert len(world.start(pod)[0]) == 2, "what it has is answered, whatever the configuration asks for now"


def test_an_address_that_is_asked_for_is_the_machines(world):
    pod = world.pod("a")
    fixed = {"ip": "10.9.0.5"}
    assert world.start(pod, **fixed) == (["10.9.0.5/32"], True)
    assert world.start(pod, ip="fd09::5") == (["fd09::5/128"], True)
    assert set(world.owners()) == {"10.9.0.5", "fd09::5"}
    target = world.pod("b", migration="j1")
    assert world.start(target, "node-b", **fixed) == (["10.9.0.5/32"], False)
    assert world.start(target, "node-b", ip="fd09::5") == (["fd09::5/128"], False)
    assert set(world.owners().values()) == {(pod, target)}


def test_a_machine_keeps_its_address_whatever_is_asked_for_later(world):
    world.start(world.pod("a"), ip="10.9.0.5")
    runtime = world.runtime()
    call = world.launch(world.pod("b"), ip="10.9.0.9")
    result = assign_addresses(call, runtime, Undo(runtime.clock, runtime.log))
    assert [str(ip.address) for ip in result.ips] == ["10.9.0.5/32"]
    assert "keeps its address" in runtime.log.shown("warning")[-1]


def test_a_pool_that_is_being_drained_stops_no_restart_and_no_migration(running):
    """Spec: ipam 17.6."""
    running.switch_pool(disabled=True)
    target = running.pod("target", migration="j1")
    assert len(running.start(target, "node-b", **DUAL)[0]) == 2
    running.promote(target)
    running.end(running.source)
    require_owners(running, target)


# --- who runs a machine ----------------------------------------------------------------------------------------------


def test_kv_013_a_pod_whose_instance_is_not_there_is_refused(world):
    pod = world.pod("a")
    world.stop()
    with pytest.raises(CniError) as caught:
        world.start(pod)
    assert str(caught.value) == (
        "failed to get VMI info: failed to query VMI resource shop/db: "
        'virtualmachineinstances.kubevirt.io "db" not found'
    )
    assert caught.value.code == 999
    world.end(pod)


def test_a_pod_whose_machine_is_not_there_is_refused(world):
    pod = world.pod("a")
    del world.cluster.machines[SPACE, "db"]
    with pytest.raises(CniError, match=r'^failed to get VMI info: .* virtualmachines.kubevirt.io "db" not found$'):
        world.start(pod)


def test_a_pod_that_is_not_there_is_refused(world):
    with pytest.raises(CniError, match=r'^failed to get VMI info: pods "virt-launcher-db-a" not found$'):
        world.start("virt-launcher-db-a")


def test_a_pod_of_an_earlier_instance_is_refused(world):
    pod = world.pod("a")
    world.run()
    with pytest.raises(CniError, match=r"^failed to get VMI info: VMI UID mismatch: "):
        world.start(pod)
    world.end(pod)


def test_a_reference_that_names_no_instance_is_refused_and_can_be_deleted(world):
    owner = OwnerReference(API_VERSION, INSTANCE, "", "", controller=True)
    pod = world.pod("a", owners=(owner,))
    with pytest.raises(CniError, match="has invalid VMI ownerReference"):
        world.start(pod)
    world.end(pod)


@pytest.mark.parametrize("owners", [(), (OwnerReference("apps/v1", "ReplicaSet", "db", "x", controller=True),)])
def test_a_pod_that_is_only_named_as_a_launcher_is_like_any_other(world, owners):
    pod = world.pod("a", owners=owners)
    addresses, _ = world.start(pod)
    assert list(world.holders(f"net.c-{pod}")) == [addresses[0].partition("/")[0]]
    world.end(pod)
    world.check_at_rest(set())


def test_a_pod_by_another_name_costs_no_question(world):
    world.cluster.namespaces = None  # would raise
    world.start("web-0")
    world.end("web-0")
    world.check_at_rest(set())


def test_without_a_cluster_nobody_can_say_what_a_launcher_runs(world):
    world.cluster.namespaces = None
    with pytest.raises(CniError, match=r"^failed to get VMI info: invalid configuration"):
        world.start("virt-launcher-db-a")
    world.end("virt-launcher-db-a")


def test_a_cluster_that_a_del_has_lost_is_looked_for_where_add_would_have_it(running):
    spaces, running.cluster.namespaces = running.cluster.namespaces, None

    def found(_netconf):
        running.cluster.namespaces = spaces
        return running.runtime()

    running.former = MemoryFormer(found, None, None)
    installed = '{"name": "net", "type": "", "kubernetes": {"kubeconfig": "/kubeconfig"}}'
    running.former.files = Installed("/etc/cni/net.d", (("/etc/cni/net.d/10.conf", installed),))
    running.end(running.source)
    require_owners(running)


def test_a_name_that_is_too_long_for_a_handle_is_refused_before_anything_is_written(world):
    """Spec: ipam 17.3: the original crashes."""
    name = "v" * 125
    world.create(name)
    pod = world.pod("a", name)
    before = world.store.snapshot()
    with pytest.raises(CniError, match="would have 138 characters") as caught:
        world.start(pod)
    assert (caught.value.code, "shorter name" in caught.value.details) == (7, True)
    assert world.store.snapshot() == before
    world.end(pod)
    world.persist("Disabled")
    world.start(pod)
    world.end(pod)
    world.check_at_rest(set())


class Failing:
    """A cluster of which one verb fails."""

    def __init__(self, cluster, verb, error):
        self._cluster, self._verb, self._error = cluster, verb, error

    def __getattr__(self, verb):
        if verb == self._verb:
            raise self._error
        return getattr(self._cluster, verb)


VERBS = ["pod", "virtual_machine_instance", "virtual_machine"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_cluster_that_cannot_be_asked_is_something_to_retry(running, verb):
    away = Failing(running.cluster, verb, Unavailable("away"))
    with pytest.raises(Unavailable):
        running.answer(running.launch(running.pod("b")), cluster=away)
    with pytest.raises(Unavailable):
        running.end(running.source, cluster=away)
    require_owners(running, running.source)


@pytest.mark.parametrize("verb", VERBS)
def test_a_cluster_that_refuses_an_answer_fails_the_call(running, verb):
    refusing = Failing(running.cluster, verb, Refused("no such thing"))
    with pytest.raises(CniError, match=r"^failed to get VMI info: no such thing$"):
        running.answer(running.launch(running.pod("b")), cluster=refusing)
    with pytest.raises(CniError, match=r"^failed to get VMI info: no such thing$"):
        running.end(running.source, cluster=refusing)
    require_owners(running, running.source)


# --- DEL -------------------------------------------------------------------------------------------------------------


def test_kv_006_addresses_stay_when_the_pod_goes_and_the_machine_stays(running):
    running.end(running.source)
    require_owners(running)
    running.end(running.source)
    require_owners(running)
    assert running.has_handle()


def test_kv_007_an_instance_that_goes_is_not_the_machine(running):
    running.delete_instance()
    running.end(running.source)
    require_owners(running)


def test_kv_008_addresses_go_with_the_machine(running):
    running.delete_machine()
    running.end(running.source)
    require_nothing(running)
    running.end(running.source)
    running.check_at_rest(set())


@pytest.mark.parametrize("order", [pytest.param((0, 1), id="KV-009"), pytest.param((1, 0), id="KV-010")])
def test_kv_009_kv_010_the_last_of_two_owners_frees_them(moving, order):
    moving.delete_machine()
    pods = [(moving.source, "node-a"), (moving.target, "node-b")]
    first, last = (pods[at] for at in order)
    moving.end(*first)
    assert set(moving.owners()) == set(moving.addresses)
    moving.end(*last)
    require_nothing(moving)


def test_kv_011_a_pod_that_is_gone_leaves_what_the_machine_has(moving):
    """As the original: nothing is written; a slot that names a pod which is gone counts for nothing."""
    moving.remove_pod(moving.target)
    before = moving.store.snapshot()
    moving.end(moving.target, "node-b")
    assert moving.store.snapshot() == before
    moving.delete_machine()
    moving.end(moving.source)
    require_nothing(moving)


@pytest.mark.parametrize("gone", [MachineWorld.delete_machine, MachineWorld.forget])
def test_l12_a_pod_that_is_gone_frees_them_with_the_machine(running, gone):
    gone(running)
    running.remove_pod(running.source)
    running.end(running.source)
    require_nothing(running)


def test_l12_a_pod_that_is_gone_frees_nothing_while_another_owns_it(moving):
    moving.remove_pod(moving.source)
    moving.delete_machine()
    moving.end(moving.source)
    assert set(moving.owners()) == set(moving.addresses)
    moving.end(moving.target, "node-b")
    require_nothing(moving)


def test_l12_a_pod_that_is_gone_gives_back_what_its_container_has(world):
    world.persist("Disabled")
    pod = world.pod("a")
    world.start(pod)
    world.remove_pod(pod)
    world.end(pod)
    world.check_at_rest(set())


def test_kv_012_an_instance_that_was_made_alone_is_the_machine(world):
    world.forget()
    world.run(alone=True)
    pod = world.pod("a")
    world.start(pod)
    world.end(pod)
    assert world.has_handle()
    world.delete_instance()
    world.end(pod)
    require_nothing(world)


@pytest.mark.parametrize("stays", ["machine", "nothing", "instance"])
def test_a_del_ends_whatever_is_gone_already(running, stays):
    """The original fails until the pod's own object is gone, and then frees nothing."""
    if stays != "instance":
        running.stop()
    if stays != "machine":
        del running.cluster.machines[SPACE, "db"]
    running.end(running.source)
    if stays == "machine":
        require_owners(running)
    else:
        require_nothing(running)


def test_r01_the_late_del_of_an_earlier_sandbox_leaves_the_machine_alone(running):
    pod = running.cluster.pods[SPACE, running.source]
    running.cluster.pods[SPACE, running.source] = pod.replace(annotations={CONTAINER_ID: "c2", POD_IP: "10.9.0.1/32"})
    running.delete_machine()
    running.end(running.source, container="c1")
    require_owners(running, running.source)
    running.end(running.source, container="c2")
    require_nothing(running)


def test_addresses_cool_down_when_the_machine_goes():
    world = MachineWorld(cooldown=30)
    world.create()
    pod = world.pod("a")
    world.start(pod)
    world.delete_machine()
    world.end(pod)
    require_nothing(world)
    (block,) = [stored.record for stored in world.store.list(Blocks(), NEVER)]
    assert [one.released_at is not None for one in block.attributes] == [True]


def test_an_empty_block_of_a_pool_that_deselects_the_node_goes(running):
    stored = running.store.get(IPPoolKey("p4"), NEVER)
    running.store.update(stored.key, stored.record.replace(node_selector="!all()"), stored.revision, NEVER)
    running.delete_machine()
    running.end(running.source)
    assert [stored.key.cidr.version for stored in running.store.list(Blocks(), NEVER)] == [6]


def test_a_block_that_nobody_owns_goes_with_the_last_address(running):
    running.give_up("node-a", must_be_empty=False)
    running.delete_machine()
    running.end(running.source)
    assert running.store.list(Blocks(), NEVER) == ()
    require_nothing(running)


def test_an_owner_that_names_no_pod_keeps_the_address(running):
    """Somebody wrote it whose ways we do not know."""
    for address in running.addresses:
        set_alternate(running, address, {"note": "x"})
    running.delete_machine()
    running.end(running.source)
    assert running.owners() == dict.fromkeys(running.addresses, ("", ""))
    assert [one.alternate for one in running.holders(HANDLE).values()] == [{"note": "x"}] * 2


def set_alternate(world, address, attributes):
    set_owner_attributes(world.work(), Address.parse(address), HANDLE, OwnerUpdate(alternate=attributes))


# --- the setting -----------------------------------------------------------------------------------------------------


def test_kv_014_a_target_is_refused_while_addresses_are_not_kept(running):
    running.persist("Disabled")
    target = running.pod("target", migration="j1")
    with pytest.raises(CniError) as caught:
        running.start(target, "node-b")
    assert str(caught.value) == (
        "live migration target pod is not allowed when KubeVirtVMAddressPersistence is disabled"
    )
    assert caught.value.code == 999
    require_owners(running, running.source)


def test_kv_015_kv_016_while_addresses_are_not_kept_each_pod_has_its_own(world):
    world.persist("Disabled")
    pods = [world.pod("a"), world.pod("b")]
    found = {world.start(pod)[0][0] for pod in pods}
    assert len(found) == 2
    require_nothing(world)
    for pod in pods:
        world.end(pod)
        assert world.holders(f"net.c-{pod}") == {}
    world.check_at_rest(set())


@pytest.mark.parametrize("setting", [None, "Enabled"])
def test_addresses_are_kept_unless_somebody_says_no(world, setting):
    world.persist(setting)
    world.start(world.pod("a"))
    assert world.has_handle()


@pytest.mark.parametrize("error", [Unauthorized("no such right"), Refused("cannot be read")])
def test_a_setting_that_cannot_be_read_has_not_said_no(running, error):
    def hook(verb, key):
        if isinstance(key, IPAMConfigurationKey):
            raise error

    running.store.before = hook
    running.end(running.source)
    require_owners(running)
    pod = running.pod("b")
    running.start(pod)
    require_owners(running, pod)


def test_a_setting_that_cannot_be_read_for_now_is_something_to_retry(running):
    def hook(verb, key):
        if isinstance(key, IPAMConfigurationKey):
            raise Unavailable("away")

    running.store.before = hook
    with pytest.raises(Unavailable):
        running.start(running.pod("b"))
    with pytest.raises(Unavailable):
        running.end(running.source)


def test_l13_switched_off_between_add_and_del_the_machines_address_goes(running):
    running.persist("Disabled")
    running.end(running.source)
    running.check_at_rest(set())


def test_l13_switched_off_it_stays_while_another_pod_owns_it(moving):
    moving.persist("Disabled")
    moving.end(moving.source)
    require_owners(moving, "", moving.target)
    moving.end(moving.target, "node-b")
    moving.check_at_rest(set())


def test_l13_switched_on_between_add_and_del_the_containers_address_goes(world):
    world.persist("Disabled")
    old = world.pod("a")
    world.start(old)
    world.persist("Enabled")
    new = world.pod("b")
    world.start(new)
    world.end(old)
    assert world.holders(f"net.c-{old}") == {}
    assert set(world.owners().values()) == {(new, "")}
    world.delete_machine()
    world.end(new)
    world.check_at_rest(set())


# --- rivals, deaths and undoing --------------------------------------------------------------------------------------


def before_update(world, kind, move, *, times=1):
    """Somebody makes a move before the next writes of such records."""
    left = [times]

    def hook(verb, key):
        if verb == "update" and isinstance(key, kind) and left[0]:
            left[0] -= 1
            move()

    world.store.before = hook
    return left


def test_the_last_two_owners_may_leave_at_the_same_time(moving):
    """Each has seen the other one before its own name is off: whoever is second then frees the addresses."""
    moving.delete_machine()
    left = before_update(moving, BlockKey, lambda: moving.end(moving.target, "node-b"))
    moving.end(moving.source)
    assert left == [0]
    require_nothing(moving)
    moving.check_at_rest(set())


def test_an_answer_that_is_not_delivered_frees_what_was_new(world):
    world.answer(world.launch(world.pod("a"), **DUAL), delivered=False)
    world.check_at_rest(set())


def test_an_answer_that_is_not_delivered_gives_the_slot_back(running):
    before = running.holders(HANDLE)
    running.answer(running.launch(running.pod("b"), "node-b", **DUAL), delivered=False)
    assert running.holders(HANDLE) == before
    running.answer(running.launch(running.pod("t", migration="j1"), "node-b", **DUAL), delivered=False)
    assert running.holders(HANDLE) == before


def test_undoing_frees_the_new_version_and_keeps_the_old(world):
    world.start(world.pod("a"))
    before = world.holders(HANDLE)
    world.answer(world.launch(world.pod("b"), **DUAL), delivered=False)
    assert world.holders(HANDLE) == before
    world.switch_pool(disabled=False)
    stored = world.store.get(IPPoolKey("p6"), NEVER)
    world.store.update(stored.key, stored.record.replace(disabled=True), stored.revision, NEVER)
    with pytest.raises(IpamError):
        world.start(world.pod("c"), **DUAL)
    assert world.holders(HANDLE) == before


def test_undoing_frees_nothing_that_the_machine_had_before_though_a_slot_cannot_be_handed_back(running):
    undo = running.unfinished(running.launch(running.pod("b"), **DUAL))
    failing = [True]

    def hook(verb, key):
        if verb == "update" and failing[0]:
            raise Unavailable("away")
        if isinstance(key, HandleKey):
            failing[0] = False  # by the time of the last step

    running.store.before = hook
    undo.run()
    assert failing == [False]
    assert set(running.owners()) == set(running.addresses)


def test_undoing_leaves_a_slot_that_has_another_owner_by_now(running):
    undo = running.unfinished(running.launch(running.pod("b"), **DUAL))
    later = running.pod("c")
    running.start(later, **DUAL)
    undo.run()
    require_owners(running, later)


def test_undoing_a_first_start_leaves_what_the_next_pod_owns_by_now(world):
    """A runtime that gave up an ADD repeats it while the first one is still at work."""
    undo = world.unfinished(world.launch(world.pod("a"), **DUAL))
    pod = world.pod("b")
    world.start(pod, **DUAL)
    undo.run()
    assert set(world.owners().values()) == {(pod, "")}
    assert len(world.owners()) == 2


def test_undoing_after_the_address_went_changes_nothing(running):
    pod = running.pod("b")
    undo = running.unfinished(running.launch(pod, **DUAL))
    running.give_up("node-a", must_be_empty=False)
    running.delete_machine()
    running.remove_pod(running.source)
    running.end(pod)
    undo.run()
    assert running.store.list(Blocks(), NEVER) == ()


def test_two_first_starts_at_once_share_the_address(world):
    """D09: the one that is answered last owns it."""
    first, second = world.pod("a"), world.pod("b")
    answers = []
    left = before_update(world, BlockKey, lambda: answers.append(world.start(second)))
    answers.append(world.start(first))
    assert left == [0]
    assert len({address.partition("/")[0] for [address], _ in answers}) == 1
    assert set(world.owners().values()) == {(first, "")}


def test_an_adopted_address_that_is_freed_again_is_followed_by_another(world):
    first, second = world.pod("a"), world.pod("b")

    def freed():
        world.delete_machine()
        world.end(second)

    moves = [lambda: world.start(second), lambda: None, freed]

    def hook(verb, key):
        if verb == "update" and isinstance(key, BlockKey) and moves:
            moves.pop(0)()

    world.store.before = hook
    assert len(world.start(first)[0]) == 1
    assert moves == []
    assert set(world.owners().values()) == {(first, "")}


def test_a_start_that_goes_round_keeps_what_it_has_got(world):
    """Its IPv4 address is new; the IPv6 one is a rival's, and goes before it can be made ours."""
    first, second = world.pod("a"), world.pod("b")

    def start_elsewhere():
        world.start(second, ip="fd09::5")

    moves = [lambda: None, start_elsewhere, lambda: None]
    moves.append(lambda: release_listed(world.work(), [Release(Address.parse("fd09::5"))]))

    def hook(verb, key):
        if verb == "update" and isinstance(key, BlockKey) and moves:
            moves.pop(0)()

    world.store.before = hook
    undo = world.unfinished(world.launch(first, **DUAL))
    assert moves == []
    assert list(world.owners().values()) == [(first, "")] * 2
    undo.run()
    world.check_at_rest(set())


def test_an_address_that_is_freed_under_a_start_is_followed_by_a_new_one(running):
    """The old pod's DEL, when the machine is deleted, comes between our read and our write."""
    pod = running.pod("b")

    def freed():
        running.delete_machine()
        running.end(running.source)

    assert before_update(running, BlockKey, freed) == [1]
    addresses, _ = running.start(pod, **DUAL)
    assert len(addresses) == 2
    assert set(running.owners().values()) == {(pod, "")}
    running.end(pod)
    running.check_at_rest(set())


def test_an_address_that_is_freed_under_a_target_refuses_it(running):
    target = running.pod("target", migration="j1")

    def freed():
        running.delete_machine()
        running.end(running.source)

    before_update(running, BlockKey, freed)
    with pytest.raises(IpamError, match="no IP allocated"):
        running.start(target, "node-b", **DUAL)
    require_nothing(running)


def test_a_pod_that_becomes_an_owner_while_the_machine_is_freed_keeps_it(running):
    running.delete_machine()
    target = running.pod("target", migration="j1")
    before_update(running, BlockKey, lambda: running.start(target, "node-b", **DUAL))
    running.end(running.source)
    assert set(running.owners()) == set(running.addresses)
    assert all(target in owners for owners in running.owners().values())
    running.end(running.source)
    running.end(target, "node-b")
    running.check_at_rest(set())


def test_a_start_that_loses_every_race_is_told_so(world):
    """Each time the address that a rival was given goes again before it can be made ours."""
    first, second = world.pod("a"), world.pod("b")
    world.delete_machine()
    turn = [0]

    def hook(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            turn[0] += 1
            if turn[0] % 3 == 1:
                world.start(second)
            elif turn[0] % 3 == 0:
                world.end(second)

    world.store.before = hook
    with pytest.raises(StillContended):
        world.start(first)


def test_l04_a_start_that_died_after_counting_stops_no_later_one(world):
    """Spec: ipam 16 L4: the original's handle is wedged for ever."""
    pod = world.pod("a")

    def die(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            raise KeyboardInterrupt

    world.store.before = die
    with pytest.raises(KeyboardInterrupt):
        world.unfinished(world.launch(pod))
    world.store.before = lambda _verb, _key: None
    assert world.has_handle()
    assert world.owners() == {}
    assert len(world.start(world.pod("b"))[0]) == 1
    assert set(world.owners().values()) == {("virt-launcher-db-b", "")}


def test_l04_l07_a_handle_that_counts_too_much_goes_with_the_machine(world):
    world.store.create(HandleKey(HANDLE), Handle({Cidr.parse("10.9.0.0/30"): 1, Cidr.parse("10.9.0.4/30"): 1}), NEVER)
    pod = world.pod("a")
    world.start(pod)
    world.delete_machine()
    world.end(pod)
    world.check_at_rest(set())


def test_a_handle_that_counts_in_blocks_that_are_gone_goes_with_the_machine(world):
    world.store.create(HandleKey(HANDLE), Handle({Cidr.parse("10.9.0.0/30"): 1}), NEVER)
    pod = world.pod("a")
    world.end(pod)
    assert world.has_handle()
    world.delete_machine()
    world.end(pod)
    require_nothing(world)


def test_one_of_two_addresses_in_a_block_stays_with_who_owns_it(world):
    """Nobody of ours gives a machine two addresses of a version, but it may have them."""
    source, target = world.pod("source"), world.pod("target", migration="j1")
    world.start(source, ip="10.9.0.4")
    other = world.holders(HANDLE)["10.9.0.4"].replace(secondary={"namespace": SPACE, "pod": target})
    cidr = Cidr.parse("10.9.0.4/30")

    def given(found):
        return found.take((1,), other).replace(sequence=found.sequence + 1)

    world.delete_machine()
    world.remove_pod(target)
    before_update(world, BlockKey, lambda: guarded_write(world.work(), BlockKey(cidr), given))
    world.cluster.pods[SPACE, target] = world.cluster.pods[SPACE, source]
    world.end(source)
    assert world.owners() == {"10.9.0.5": (target, "")}


def test_a_bare_handle_goes_with_the_machine(world):
    world.store.create(HandleKey(HANDLE), Handle({}), NEVER)
    pod = world.pod("a")
    world.end(pod)
    assert world.has_handle()
    world.delete_machine()
    world.end(pod)
    require_nothing(world)


def test_a_handle_that_changes_while_the_machine_is_freed_is_settled(running):
    running.delete_machine()

    def touched():
        stored = running.store.get(HandleKey(HANDLE), NEVER)
        running.store.update(stored.key, stored.record, stored.revision, NEVER)

    before_update(running, BlockKey, touched)
    running.end(running.source)
    require_nothing(running)
    running.check_at_rest(set())


def test_a_bare_handle_that_somebody_uses_again_stays(world):
    world.store.create(HandleKey(HANDLE), Handle({}), NEVER)
    world.delete_machine()
    pod, other = world.pod("a"), world.pod("b")
    done = []

    def hook(verb, key):
        if verb == "delete" and isinstance(key, HandleKey) and not done:
            done.append(world.start(other))

    world.store.before = hook
    world.end(pod)
    assert world.has_handle()


class Networked(OneNode):
    """A node of the same cluster, with the network plugin and its own IPAM in one process."""

    def __init__(self, world):
        super().__init__()
        self.cluster = world.cluster

    def call(self, verb="ADD", container="c1", ifname="eth0", *, pod, **fields):
        args = CniArgs(pod_name=pod, pod_namespace=SPACE)
        call = super().call(verb, container, ifname, args=args, policy=PolicySettings(type="k8s"), **fields)
        text = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={SPACE};K8S_POD_NAME={pod}"
        return call.replace(request=call.request.replace(args=text))


def test_the_network_plugin_makes_no_host_route_to_a_target(world):
    """KV-002, F08."""
    node = Networked(world)
    source, target = world.pod("source", node=NODE), world.pod("target", migration="j1", node=NODE)
    first = node.add("c1", pod=source)
    second = node.add("c2", pod=target)
    assert [ip.address.address for ip in first.ips] == [ip.address.address for ip in second.ips]
    assert [one.host_routes for one in node.dataplane.connected] == [True, False]
    assert second.routes == ()
    node.delete("c1", pod=source)
    assert set(node.holders().values()) == {f"net1.vmi.{SPACE}.db"}
    world.delete_machine()
    node.delete("c2", pod=target)
    assert node.leftovers() == {}


def test_a_pod_that_cannot_be_connected_gives_the_slot_back(world):
    node = Networked(world)
    node.add("c1", pod=world.pod("source", node=NODE))
    before = node.block("10.244.0.128/26").attributes
    node.dataplane.connect = lambda attachment, deadline: None.nothing
    with pytest.raises(AttributeError):
        node.add("c2", pod=world.pod("target", migration="j1", node=NODE))
    assert node.block("10.244.0.128/26").attributes == before
