"""A small cluster with virtual machines: KubeVirt's objects, their pods, and what a runtime asks for these."""

from __future__ import annotations

from adapters.memory.cluster import MemoryCluster
from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import CniArgs, Request
from domain.ipam.address import Address
from domain.ipam.owner_update import OwnerPod as Owner
from domain.ipam.pools import IPAMConfiguration
from domain.resource import Metadata
from domain.workload.kubevirt import API_VERSION, INSTANCE, LAUNCHER, MACHINE, MIGRATION
from domain.workload.pod import OwnerReference, Pod, VirtualMachineObject
from ports.datastore import Blocks, HandleKey, IPAMConfigurationKey
from usecases.assign_addresses import assign_addresses
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo
from usecases.ipam.owners import promote_owner
from usecases.release_addresses import release_addresses
from worlds.ipam_world import NEVER, World, answer_of

SPACE = "shop"
NETWORK = "net"


def handle_of(machine: str) -> str:
    return f"{NETWORK}.vmi.{SPACE}.{machine}"


class MachineWorld(World):
    """Machines, instances and pods are those of one namespace; `uids` counts what was ever made."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.cluster = MemoryCluster({SPACE: {}})
        self.made = 0

    def runtime(self, store=None, cluster=None):
        runtime = super().runtime(store)
        runtime.cluster = cluster or self.cluster
        return runtime

    # --- KubeVirt's objects ------------------------------------------------------------------------------------------

    def _uid(self) -> str:
        self.made += 1
        return f"uid-{self.made}"

    def create(self, machine: str = "db") -> None:
        """A VirtualMachine that runs."""
        self.cluster.machines[SPACE, machine] = VirtualMachineObject(machine, SPACE, self._uid())
        self.run(machine)

    def run(self, machine: str = "db", *, alone: bool = False) -> None:
        """An instance of it; `alone`: without a VirtualMachine above it."""
        above = () if alone else (OwnerReference(API_VERSION, MACHINE, machine, self.machine(machine).uid),)
        self.cluster.instances[SPACE, machine] = VirtualMachineObject(machine, SPACE, self._uid(), owners=above)

    def stop(self, machine: str = "db") -> None:
        """The instance is gone; its pods may still be there."""
        self.cluster.instances.pop((SPACE, machine), None)

    def delete_machine(self, machine: str = "db") -> None:
        """It is being deleted: a finalizer keeps the object."""
        self._delete(self.cluster.machines, machine)

    def delete_instance(self, machine: str = "db") -> None:
        self._delete(self.cluster.instances, machine)

    def _delete(self, objects, name: str) -> None:
        objects[SPACE, name] = objects[SPACE, name].replace(deleting=True)

    def forget(self, machine: str = "db") -> None:
        """Machine and instance are gone from the API server."""
        self.cluster.machines.pop((SPACE, machine), None)
        self.cluster.instances.pop((SPACE, machine), None)

    def machine(self, name: str = "db") -> VirtualMachineObject:
        return self.cluster.machines[SPACE, name]

    def instance(self, name: str = "db") -> VirtualMachineObject:
        return self.cluster.instances[SPACE, name]

    def pod(self, suffix: str, machine: str = "db", *, migration: str = "", **fields: object) -> str:
        """A pod that runs the machine's instance, or is to take it over; its name."""
        name = f"{LAUNCHER}{machine}-{suffix}"
        owner = OwnerReference(API_VERSION, INSTANCE, machine, self.instance(machine).uid, controller=True)
        labels = {MIGRATION: migration} if migration else {}
        given = {"owners": (owner,), "labels": labels, "uid": self._uid(), **fields}
        self.cluster.pods[SPACE, name] = Pod(name, SPACE, **given)
        return name

    def remove_pod(self, name: str) -> None:
        self.cluster.pods.pop((SPACE, name), None)

    def persist(self, setting: str | None) -> None:
        """What the cluster's setting says; None: nothing."""
        key = IPAMConfigurationKey("default")
        stored = self.store.get(key, NEVER)
        record = IPAMConfiguration(Metadata("default"), kubevirt_persistence=setting)
        if stored is None:
            self.store.create(key, record, NEVER)
        else:
            record = stored.record.replace(kubevirt_persistence=setting)
            self.store.update(key, record, stored.revision, NEVER)

    # --- calls -------------------------------------------------------------------------------------------------------

    def launch(self, pod: str, node: str = "node-a", verb: str = "ADD", container: str = "", **ipam: object) -> Call:
        """A call about a pod's sandbox. `ipam` is as in the configuration, but for `network` and CNI_ARGS' `ip`."""
        ip = ipam.pop("ip", "")
        netconf = NetConf(
            cni_version="1.0.0",
            name=ipam.pop("network", NETWORK),
            nodename=node,
            ipam=IpamSettings(type="calico-ipam", **ipam),
        )
        args = CniArgs(Address.parse(ip) if ip else None, pod_name=pod, pod_namespace=SPACE)
        return Call(Request(verb, container or f"c-{pod}", "", "eth0", "", ()), args, netconf, "", NEVER)

    def answer(self, call: Call, store=None, cluster=None, *, delivered: bool = True):
        """The result of one ADD; undone on failure, and if it cannot be delivered."""
        return answer_of(call, self.runtime(store, cluster), delivered=delivered)

    def unfinished(self, call: Call) -> Undo:
        """An ADD whose answer is not written yet; what undoes it."""
        runtime = self.runtime()
        undo = Undo(runtime.clock, runtime.log)
        assign_addresses(call, runtime, undo)
        return undo

    def start(self, pod: str, node: str = "node-a", **ipam: object):
        """ADD: (addresses as answered, whether with routes)."""
        result = self.answer(self.launch(pod, node, **ipam))
        assert not result.routes or [str(one.dst) for one in result.routes] == [str(ip.address) for ip in result.ips]
        return [str(ip.address) for ip in result.ips], bool(result.routes)

    def end(self, pod: str, node: str = "node-a", store=None, cluster=None, **fields: object) -> None:
        """DEL."""
        release_addresses(self.launch(pod, node, "DEL", **fields), self.runtime(store, cluster))

    def promote(self, pod: str, machine: str = "db", store=None) -> None:
        """Felix, when the migration is over."""
        promote_owner(self.work(store), handle_of(machine), Owner(SPACE, pod))

    # --- what is there -----------------------------------------------------------------------------------------------

    def holders(self, handle: str):
        """Each address of a handle, and who holds it as the block has it."""
        blocks = [stored.record for stored in self.store.list(Blocks(), NEVER)]
        return {
            str(block.cidr.at(ordinal)): block.holder(ordinal) for block in blocks for ordinal in block.held_by(handle)
        }

    def owners(self, machine: str = "db") -> dict[str, tuple[str, str]]:
        """Each address of a machine, and the pods that are its active and its alternate owner ("": none)."""
        return {
            address: (holder.secondary.get("pod", ""), (holder.alternate or {}).get("pod", ""))
            for address, holder in self.holders(handle_of(machine)).items()
        }

    def has_handle(self, machine: str = "db") -> bool:
        return self.store.get(HandleKey(handle_of(machine)), NEVER) is not None
