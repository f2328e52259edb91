"""A node of a cluster with virtual machines: KubeVirt's objects, their pods, and who owns a machine's addresses.

    host.create_machine(); host.run_instance()         a VirtualMachine and its VirtualMachineInstance, which have UIDs
    source = host.launcher("source")                   the pod `virt-launcher-test-vm-source` and a sandbox of it
    host.assign(source); host.release(source)          calico-ipam's ADD and DEL
    host.delete_machine(); host.forget()               being deleted, then gone

There is no KubeVirt: what it would do to its objects, a test does. A finalizer keeps what is being deleted.
Invariant: what is asked about records is read past the product.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from adapters.kubernetes.api import Api
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.linux.clock import SystemClock
from adapters.memory.log import RecordingLog
from domain.ipam.owner_update import OwnerPod
from integration.plugin.host import Answer
from integration.plugin.kernel import NUMBERS, Namespace
from integration.plugin.kubernetes_store import KubernetesRecords, Served
from integration.plugin.store import NODE, Records, cluster_records, node_record
from integration.pods.world import K8S_POLICY, PodHost, Sandbox
from services.cluster import pods
from services.custom_resources import GROUPS, kinds
from services.etcd import EtcdServer
from services.kube_client import Object
from usecases.ipam.owners import promote_owner
from usecases.ipam.work import Work

SPACE, MACHINE = "test-kubevirt", "test-vm"
POOLS = ("192.168.0.0/16", "fd80:24e2:f998:72d6::/64")
BOTH = {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}
MIGRATION = "kubevirt.io/migrationJobUID"
FINALIZER = "tortie.test/prevent-deletion"
LONG_AGO = "2026-01-01 00:00:00 +0000 UTC"
_KUBEVIRT = GROUPS["kubevirt"]


class MachineRecords(KubernetesRecords):
    """Beside KubeVirt's resources. Nobody says which group Calico's are of: the plugin asks the server."""

    def __init__(self, served: Served, group: str, kubeconfig: Path) -> None:
        super().__init__(served, group, kubeconfig)
        del self.settings["calico_api_group"]
        self.settings |= {"policy": K8S_POLICY}

    def begin(self) -> None:
        self.served.fresh(self.group, "kubevirt")


class Launcher(Sandbox):
    """A sandbox of a machine's pod. Without a namespace it is for calico-ipam only, which looks at none."""

    def __init__(self, pod: str, inside: Namespace | None = None, identity: str = "") -> None:
        identity = identity or f"{next(NUMBERS):010x}" + "a" * 54
        super().__init__(identity, inside or "/var/run/netns/none", pod, SPACE)
        self.args = f"IgnoreUnknown=1;{self.args}"


class MachineHost(PodHost):
    """One node of a cluster; `beside` makes another."""

    def __init__(
        self, binaries: Path, folder: Path, undo: ExitStack, kind: str, served: Served, *, node: str = NODE
    ) -> None:
        super().__init__(binaries, folder, undo, kind, served, None)
        self.node = node
        self.ipam = BOTH

    def _records(self, kubeconfig: Path, etcd: EtcdServer | None) -> Records:
        assert etcd is None
        return MachineRecords(self.served, self.kind, kubeconfig)

    def beside(self, node: str) -> MachineHost:
        """A further node, with devices, files and a lock of its own."""
        self.store.put_all(node_record(node))
        folder = self.folder / node
        folder.mkdir()
        return MachineHost(self.bin, folder, self.undo, self.kind, self.served, node=node)

    def begin(self) -> None:
        """The cluster with a pool of each IP version, this node and the machines' namespace, and nothing else."""
        self.store.begin()
        self.store.put_all(cluster_records())
        self.pools(*POOLS)
        self.cluster.add_namespace(SPACE)

    def netconf(self, **more: Any) -> dict[str, Any]:
        return super().netconf(**{"nodename": self.node, **more})

    # --- KubeVirt's objects ------------------------------------------------------------------------------------------

    def create_machine(self, name: str = MACHINE) -> str:
        """Its UID."""
        return self._create("virtualmachines", name, {"running": True})

    def run_instance(self, name: str = MACHINE, *, alone: bool = False) -> str:
        """Its UID; `alone`: no VirtualMachine is above it."""
        above = [] if alone else [self._reference("virtualmachines", name)]
        return self._create("virtualmachineinstances", name, {}, ownerReferences=above)

    def running(self, name: str = MACHINE) -> tuple[str, str]:
        """A machine that has just been created and started: the UIDs of both objects."""
        return self.create_machine(name), self.run_instance(name)

    def migrate(self, name: str = MACHINE) -> str:
        """The UID of a new live migration of it."""
        return self._create("virtualmachineinstancemigrations", f"migration-{next(NUMBERS)}", {"vmiName": name})

    def delete_machine(self, name: str = MACHINE) -> None:
        """It and its instance are being deleted."""
        for plural in ("virtualmachines", "virtualmachineinstances"):
            self.cluster.client.drop(_path(plural, name))

    def delete_instance(self, name: str = MACHINE) -> None:
        """It is being deleted."""
        self.cluster.client.delete(_path("virtualmachineinstances", name))

    def forget(self, *plurals: str, name: str = MACHINE) -> None:
        """Those of the machine's objects (or both) that are being deleted are gone."""
        for plural in plurals or ("virtualmachines", "virtualmachineinstances"):
            if self.cluster.client.find(_path(plural, name)):
                self.cluster.client.patch(_path(plural, name), {"metadata": {"finalizers": None}})
            assert self.cluster.client.find(_path(plural, name)) is None

    def _create(self, plural: str, name: str, spec: Object, **metadata: Any) -> str:
        metadata |= {"namespace": SPACE, "finalizers": [FINALIZER]}
        uid: str = self.cluster.add("kubevirt", plural, name, spec, **metadata)["metadata"]["uid"]
        return uid

    def _reference(self, plural: str, name: str) -> Object:
        found = self.cluster.client.get(_path(plural, name))
        kind = kinds("kubevirt")[plural]
        return {
            "apiVersion": _KUBEVIRT,
            "kind": kind,
            "name": name,
            "uid": found["metadata"]["uid"],
            "controller": True,
        }

    # --- pods --------------------------------------------------------------------------------------------------------

    def launcher(
        self, suffix: str, *, machine: str = MACHINE, migration: str = "", inside: bool = False, **metadata: Any
    ) -> Launcher:
        """A pod on this node that runs the machine, or that a migration is to bring it to."""
        labels = {"kubevirt.io/domain": machine} | ({MIGRATION: migration} if migration else {})
        if "ownerReferences" not in metadata:
            metadata["ownerReferences"] = [self._reference("virtualmachineinstances", machine)]
        name = f"virt-launcher-{machine}-{suffix}"
        self.cluster.add_pod(SPACE, name, node=self.node, labels=labels, **metadata)
        return Launcher(name, Namespace(suffix, self.undo) if inside else None)

    def remove(self, launcher: Sandbox) -> None:
        self.cluster.client.delete(f"{pods(SPACE)}/{launcher.pod}")

    # --- calls -------------------------------------------------------------------------------------------------------

    def ask(self, verb: str, launcher: Sandbox, **more: Any) -> Answer:
        """calico-ipam."""
        return self.call(verb, launcher, program="calico-ipam", **{"cniVersion": "1.0.0", **more})

    def assign(self, launcher: Sandbox, *, routed: bool = True, **more: Any) -> list[str]:
        """ADD: the addresses. There is a route for each, or none at all."""
        result = self.ask("ADD", launcher, **more).result()
        addresses = [ip["address"] for ip in result["ips"]]
        assert [route["dst"] for route in result.get("routes", [])] == (addresses if routed else [])
        return [address.partition("/")[0] for address in addresses]

    def release(self, *launchers: Sandbox) -> None:
        for launcher in launchers:
            self.ask("DEL", launcher).silent()

    def promote(self, launcher: Sandbox, machine: str = MACHINE) -> None:
        """What Felix does when the migration is over."""
        clock = SystemClock()
        datastore = KubernetesDatastore(Api(self.served.transport, clock), clock, group=GROUPS[self.kind])
        work = Work(datastore, clock, RecordingLog(), clock.deadline(30))
        promote_owner(work, handle(machine), OwnerPod(SPACE, launcher.pod))

    # --- settings ----------------------------------------------------------------------------------------------------

    def persist(self, setting: str | None) -> None:
        """kubeVirtVMAddressPersistence; None: nobody has said anything."""
        plural = next(one for one in kinds(self.kind) if one.startswith("ipamconfig"))
        path = f"/apis/{GROUPS[self.kind]}/{plural}/default"
        if self.cluster.client.find(path) is None:
            self.cluster.add(self.kind, plural, "default", {"strictAffinity": False, "autoAllocateBlocks": True})
        self.cluster.client.patch(path, {"spec": {"kubeVirtVMAddressPersistence": setting}})

    # --- what is there -----------------------------------------------------------------------------------------------

    def slots(self, machine: str = MACHINE) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
        """Each address of the machine: the attributes of its active and of its alternate owner, empty for none."""
        found = {}
        for block in self.store.blocks().values():
            for ordinal, index in enumerate(block["allocations"]):
                attribute = {} if index is None else block["attributes"][index]
                if attribute.get("handle_id") == handle(machine):
                    address = str(ip_network(block["cidr"])[ordinal])
                    found[address] = attribute.get("secondary", {}), attribute.get("alternateOwnerAttrs", {})
        return dict(sorted(found.items()))

    def owned(self, addresses: list[str], active: Sandbox | None = None, alternate: Sandbox | None = None) -> None:
        """The machine has exactly these addresses, each counted once, and each is owned by these pods."""
        pair = tuple([one.pod if one else "" for one in (active, alternate)])
        slots = self.slots().items()
        seen = {address: tuple(owner.get("pod", "") for owner in owners) for address, owners in slots}
        assert seen == dict.fromkeys(addresses, pair)
        self.store.check()

    def nothing(self) -> None:
        """No machine and no container has an address or a handle, and nobody holds a lock."""
        assert self.left() == {}
        assert self.store.handles() == {}
        self.store.check()

    def age(self) -> None:
        """Whoever owns an address has done so for long: what calls have just written is never called garbage."""
        for block in self.cluster.client.list(f"/apis/{GROUPS[self.kind]}/ipamblocks"):
            for attribute in block["spec"]["attributes"]:
                for owner in (attribute.get("secondary"), attribute.get("alternateOwnerAttrs")):
                    if owner:
                        owner["timestamp"] = LONG_AGO
            self.cluster.client.put(f"/apis/{GROUPS[self.kind]}/ipamblocks/{block['metadata']['name']}", block)

    def collected(self) -> list[str]:
        """Sweep with `tortie ipam gc`: the addresses that it has freed."""
        answer = self.tortie("ipam", "gc", "--leaked", "--yes", "--grace", "0", "-o", "json")
        assert answer.exit == 0, answer
        return [one["address"] for one in json.loads(answer.stdout)["findings"] if one["outcome"] == "done"]


def handle(machine: str = MACHINE) -> str:
    return f"net1.vmi.{SPACE}.{machine}"


def _path(plural: str, name: str) -> str:
    return f"/apis/{_KUBEVIRT}/namespaces/{SPACE}/{plural}/{name}"
