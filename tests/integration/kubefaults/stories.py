"""Small stories of pods and addresses that together ask for all that the plugins ever ask of an API server.

Each has a node, pods and, where a pool has to be full or is given up, a pool of its own, so that several can be told at
once. A story that cannot be told as it should be is an AssertionError.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from integration.kubefaults.kube_rig import NETWORK, SPACE, KubeRig
from integration.plugin.store import IPAM, pool_record
from services.custom_resources import GROUPS
from services.kube_client import Object

Story = Callable[[KubeRig], None]
STORIES: dict[str, Story] = {}


def story(told: Story) -> Story:
    STORIES[told.__name__.replace("_", " ")] = told
    return told


@story
def a_pod(rig: KubeRig) -> None:
    """The first of its node, checked and deleted."""
    rig.new_node()
    sandbox = rig.pod()
    result = rig.add(sandbox)
    rig.networked(sandbox, result)
    rig.call("CHECK", sandbox, prevResult=json.loads(result.stdout)).silent()
    rig.delete(sandbox).silent()
    rig.gone(sandbox)


@story
def the_group_is_found_out(rig: KubeRig) -> None:
    rig.new_node()
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox, calico_api_group=None))
    rig.delete(sandbox, calico_api_group=None).silent()
    rig.gone(sandbox)


@story
def the_connection_is_tested(rig: KubeRig) -> None:
    answer = rig.raw({}, json.dumps(rig.netconf()), "-t")
    assert answer.exit == 0, answer


@story
def an_address_of_calico_ipam(rig: KubeRig) -> None:
    """Alone, as Multus and others call it."""
    rig.new_node()
    sandbox = rig.pod()
    sandbox.args = f"IgnoreUnknown=1;{sandbox.args}"
    result = rig.call("ADD", sandbox, program="calico-ipam").result()
    rig.call("CHECK", sandbox, program="calico-ipam", prevResult=result).silent()
    rig.call("DEL", sandbox, program="calico-ipam").silent()
    rig.holds_nothing(sandbox)


@story
def an_address_of_the_nodes_range(rig: KubeRig) -> None:
    node = rig.new_node()
    rig.give_pod_cidrs(node, ["10.30.0.0/24"])
    ipam = {"type": "host-local", "subnet": "usePodCidr", "dataDir": str(rig.folder / "networks")}
    sandbox = rig.pod()
    rig.add(sandbox, ipam=ipam).result()
    rig.delete(sandbox, ipam=ipam).silent()
    rig.offline(sandbox)


@story
def an_address_of_its_own_wish(rig: KubeRig) -> None:
    """In a block that nobody has claimed."""
    pool = own_pool(rig)
    wish = json.dumps([pool.replace("0/26", "5")])
    sandbox = rig.pod(annotations={"cni.projectcalico.org/ipAddrs": wish})
    result = rig.add(sandbox)
    assert result.result()["ips"][0]["address"].startswith(pool.replace("0/26", "5"))
    rig.delete(sandbox).silent()
    rig.gone(sandbox)


@story
def a_second_address(rig: KubeRig) -> None:
    """A runtime that asks again gets one more under the same handle."""
    rig.new_node()
    sandbox = rig.pod()
    for _ in range(2):
        rig.add(sandbox).result()
    assert len(rig.holds(sandbox, NETWORK)) == 2
    rig.delete(sandbox).silent()
    rig.gone(sandbox)


@story
def a_borrowed_address(rig: KubeRig) -> None:
    """The pool's one block is another node's."""
    pool = own_pool(rig)
    foreign_block(rig, pool, holder="somebody")
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox, ipam=from_pool(pool)))
    rig.delete(sandbox, ipam=from_pool(pool)).silent()
    rig.gone(sandbox)


@story
def a_reclaimed_block(rig: KubeRig) -> None:
    """The pool's one block is another node's, and empty."""
    pool = own_pool(rig)
    foreign_block(rig, pool)
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox, ipam=from_pool(pool)))
    assert rig.store.blocks()[block_key(pool)]["affinity"] == f"host:{rig.node}"
    rig.delete(sandbox, ipam=from_pool(pool)).silent()
    rig.gone(sandbox)


@story
def a_lost_handle(rig: KubeRig) -> None:
    """Its addresses are found in the node's blocks."""
    rig.new_node()
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox))
    rig.store.drop(f"{IPAM}/handle/{NETWORK}.{sandbox.identity}")
    rig.delete(sandbox).silent()
    rig.gone(sandbox)


@story
def a_pool_that_is_not_for_the_node_any_more(rig: KubeRig) -> None:
    """The last DEL gives the block back."""
    pool = own_pool(rig)
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox, ipam=from_pool(pool)))
    rig.store.put_all(pool_record(pool, blockSize=26, nodeSelector="name == 'nobody'"))
    rig.delete(sandbox, ipam=from_pool(pool)).silent()
    rig.gone(sandbox)
    assert block_key(pool) not in rig.store.blocks()


@story
def a_virtual_machine(rig: KubeRig) -> None:
    """It keeps its address when a pod of it goes, and gives it back when it goes itself."""
    rig.new_node()
    name = f"vm-{rig.node}"
    machine = made(rig, "virtualmachines", name)
    instance = made(rig, "virtualmachineinstances", name, owner("VirtualMachine", machine))
    references = [owner("VirtualMachineInstance", instance)]
    sandbox = rig.pod(f"virt-launcher-{name}-aaaaa", ownerReferences=references)
    rig.add(sandbox).result()
    handle = f"{NETWORK}.vmi.{SPACE}.{name}"
    rig.delete(sandbox).silent()
    assert handle in rig.store.handles()
    for plural in ("virtualmachineinstances", "virtualmachines"):
        rig.cluster.client.delete(f"/apis/{GROUPS['kubevirt']}/namespaces/{SPACE}/{plural}/{name}")
    rig.delete(sandbox).silent()
    assert handle not in rig.store.handles()


def own_pool(rig: KubeRig) -> str:
    """A pool with room for one block, and a new node, which is the only one that it is for."""
    number = int(rig.new_node().partition("-")[2])
    pool = f"10.{40 + number // 256}.{number % 256}.0/26"
    rig.store.put_all(pool_record(pool, blockSize=26, nodeSelector=f"name == '{rig.node}'"))
    return pool


def from_pool(pool: str) -> dict[str, Any]:
    return {"type": "calico-ipam", "ipv4_pools": [pool]}


def block_key(cidr: str) -> str:
    return f"{IPAM}/assignment/ipv4/block/{cidr.replace('/', '-')}"


def foreign_block(rig: KubeRig, cidr: str, holder: str = "") -> None:
    node = f"other-of-{rig.node}"
    rig.cluster.add_node(node)
    block = {
        "cidr": cidr,
        "affinity": f"host:{node}",
        "strictAffinity": False,
        "allocations": [0 if holder else None, *[None] * 63],
        "unallocated": list(range(1 if holder else 0, 64)),
        "attributes": [{"handle_id": f"{NETWORK}.{node}", "secondary": {"node": node}}] if holder else [],
        "deleted": False,
        "sequenceNumber": 100,
        "sequenceNumberForAllocation": {"0": 99} if holder else {},
    }
    rig.store.put(block_key(cidr), block)
    deleted: object = "false" if rig.kind == "v1" else False
    affinity = {"cidr": cidr, "node": node, "type": "host", "state": "confirmed", "deleted": deleted}
    rig.store.put(f"{IPAM}/host/{node}/ipv4/block/{cidr.replace('/', '-')}", affinity)


def made(rig: KubeRig, plural: str, name: str, *owners: Object) -> Object:
    return rig.cluster.add("kubevirt", plural, name, {}, namespace=SPACE, ownerReferences=list(owners))


def owner(kind: str, one: Object) -> Object:
    named = {"name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
    return {"apiVersion": GROUPS["kubevirt"], "kind": kind, "controller": True, **named}
