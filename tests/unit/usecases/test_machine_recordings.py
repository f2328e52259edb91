"""The original's virtual machine, start to end, replayed on the memory adapters: its answers and its records (D09).

Compared are the answers to the letter, and what IPAM stored but for the times and the sequence number that a block
began with.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adapters.memory.cluster import MemoryCluster
from adapters.records.custom_resources import decode_object
from adapters.records.kubernetes_objects import decode_pod
from domain.cluster import Node
from domain.cni.netconf import parse_netconf
from domain.cni.request import Request, parse_args
from domain.cni.result import result_text
from domain.ipam.block import HOST, Owner
from domain.resource import Metadata
from domain.workload.kubevirt import API_VERSION, MACHINE
from domain.workload.pod import OwnerReference, VirtualMachineObject
from ports.datastore import Affinities, Blocks, Handles, IPPoolKey, NodeKey
from usecases.assign_addresses import assign_addresses
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo
from usecases.release_addresses import release_addresses
from worlds.ipam_world import NEVER
from worlds.machine_world import MachineWorld

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
RECORDINGS = ("kubevirt-persist.json", "kubevirt3-persist.json")
OURS = ("ipamblocks", "ipamhandles", "blockaffinities")
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( \+0000 UTC|Z)")


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_original_is_followed_step_by_step(name):
    recording = json.loads((GOLDEN / name).read_text())
    world = prepared(recording)
    assert len(recording["steps"]) == 6
    for number, step in enumerate(recording["steps"]):
        take_over_pods(world, step["datastore"])
        assert call(world, step["call"]) == step["call"]["stdout"], number
        group = json.loads(step["call"]["stdin"]).get("calico_api_group", "crd.projectcalico.org/v1")
        assert stored_here(world) == stored_there(step["datastore"], group), number


def prepared(recording) -> MachineWorld:
    world = MachineWorld()
    for key in (IPPoolKey("p4"), IPPoolKey("p6")):
        world.store.delete(key, None, NEVER)
    before = recording["datastore_before"]
    pool = before["ippools/p4"]
    found = decode_object(pool, pool["apiVersion"])
    world.store.create(found.key, found.record, NEVER)
    for node in ("node-a", "node-b"):
        if world.store.get(NodeKey(node), NEVER) is None:
            world.store.create(NodeKey(node), Node(Metadata(node)), NEVER)
    block = next(value for key, value in recording["steps"][0]["datastore"].items() if key.startswith("ipamblocks/"))
    uids = block["spec"]["attributes"][0]["secondary"]
    above = OwnerReference(API_VERSION, MACHINE, "db", uids["vm-uid"], controller=True)
    world.cluster = MemoryCluster({"gold": {}})
    world.cluster.machines["gold", "db"] = VirtualMachineObject("db", "gold", uids["vm-uid"])
    world.cluster.instances["gold", "db"] = VirtualMachineObject("db", "gold", uids["vmi-uid"], owners=(above,))
    return world


def take_over_pods(world, datastore) -> None:
    """Whoever made the recording made a pod before the call about it."""
    pods = [decode_pod(value) for key, value in datastore.items() if key.startswith("pods/")]
    world.cluster.pods = {(pod.namespace, pod.name): pod for pod in pods}


def call(world, recorded) -> str:
    env, stdin = recorded["env"], recorded["stdin"]
    request = Request(env["CNI_COMMAND"], env["CNI_CONTAINERID"], "", env["CNI_IFNAME"], env["CNI_ARGS"], ())
    netconf = parse_netconf(stdin)
    asked = Call(request, parse_args(env["CNI_ARGS"]), netconf, stdin, NEVER)
    runtime = world.runtime()
    if env["CNI_COMMAND"] == "DEL":
        release_addresses(asked, runtime)
        return ""
    return result_text(assign_addresses(asked, runtime, Undo(runtime.clock, runtime.log)), netconf.cni_version)


def stored_here(world) -> list[object]:
    listings = (Blocks(), Handles(), *[Affinities(Owner(HOST, node)) for node in ("node-a", "node-b")])
    return comparable([one for listing in listings for one in world.store.list(listing, NEVER)])


def stored_there(datastore, group) -> list[object]:
    return comparable(
        [decode_object(value, group) for key, value in datastore.items() if key.partition("/")[0] in OURS]
    )


def comparable(stored) -> list[object]:
    """Keys and records; numbers count from what the block's first allocation was given."""
    found = []
    for one in stored:
        record = one.record
        if hasattr(record, "sequences"):
            first = min(record.sequences.values())
            sequences = {at: number - first for at, number in record.sequences.items()}
            record = record.replace(sequence=record.sequence - first, sequences=sequences, claimed_at="T")
        found.append(TIME.sub("T", f"{one.key} {record}"))
    return sorted(found)
