"""A Windows node in memory: `OneNode` whose containers are connected by HNS, with a pod `shop/web-0` on it.

Each call has the dataplane of its own container, as each process of a plugin has.
"""

from __future__ import annotations

from adapters.windows.dataplane import Host, WindowsDataplane
from adapters.windows.host_networking import WindowsHostNetworking
from adapters.windows.memory_hns import MemoryHns
from adapters.windows.memory_host import MemoryInterfaces, MemoryMutex, MemoryStamps
from adapters.windows.objects import Objects
from domain.cni.netconf import PolicySettings
from domain.cni.request import CniArgs
from domain.ipam.pools import AllocationConfig
from domain.windows.conf import read_windows_conf
from domain.workload.pod import ContainerPort, Pod
from entrypoints.wiring.own_ipam import OwnIpamPlugin
from ports.datastore import AllocationConfigKey
from ports.runtime import Runtime
from usecases.add_workload import add_workload
from usecases.assign_addresses import assign_addresses
from usecases.check_workload import check_workload
from usecases.delete_workload import delete_workload
from worlds.one_node import NODE, OneNode

POOL = "10.244.0.0/24"
ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={}"


class WindowsNode(OneNode):
    """`namespaces` are CNI_NETNS by container; containers that are not in it are dockershim's sandboxes."""

    def __init__(self, *, pools: tuple[str, ...] = (POOL,), **fields) -> None:
        self.hns, self.interfaces, self.mutex = MemoryHns(), MemoryInterfaces(), MemoryMutex()
        self.stamps = MemoryStamps()
        self.namespaces = {container: self.hns.make_namespace() for container in ("c1", "c2", "c3")}
        super().__init__(pools=pools, **fields)
        self.put(AllocationConfigKey(), AllocationConfig(strict_affinity=True))
        self.cluster.namespaces = {"shop": {}}
        for name in ("web-0", "web-1"):
            self.cluster.pods["shop", name] = Pod(
                name, "shop", uid=name, node=NODE, service_account="seller", ports=(ContainerPort(8080, "http"),)
            )

    def runtime(self, datastore=None, call=None) -> Runtime:
        if call is None:
            return super().runtime(datastore)
        conf, container = read_windows_conf(call.netconf), call.request.container_id
        host = Host(self.hns, self.interfaces, self.mutex, self.clock, self.log)
        runtime = Runtime(
            datastore=lambda: self.datastore,
            cluster=lambda: self.cluster,
            dataplane=lambda: WindowsDataplane(host, conf, container),
            ipam_plugin=lambda: OwnIpamPlugin(runtime) if self.own_ipam else self.plugin,
            node=lambda: self.node,
            lock=lambda: self.lock,
            readiness=lambda: self.readiness,
            former=lambda: self.former,
            host_networking=lambda: WindowsHostNetworking(host, self.stamps, conf, container),
            clock=self.clock,
            log=self.log,
        )
        return runtime

    def call(self, verb="ADD", container="c1", ifname="eth0", **fields):
        given = {"netns": self.namespaces.get(container, "none"), "text": '{"ipam": {}}', **fields}
        return super().call(verb, container, ifname, **given)

    def pod_call(self, verb="ADD", container="c1", pod="web-0", **fields):
        given = {"args": CniArgs(pod_name=pod, pod_namespace="shop"), "policy": PolicySettings(type="k8s"), **fields}
        call = self.call(verb, container, **given)
        return call.replace(request=call.request.replace(args=ARGS.format(pod)))

    def add(self, container="c1", **fields):
        return self._add(self.call("ADD", container, **fields))

    def add_pod(self, container="c1", pod="web-0", **fields):
        return self._add(self.pod_call("ADD", container, pod, **fields))

    def _add(self, call):
        return self.undoing(lambda undo: add_workload(call, self.runtime(call=call), undo))

    def delete(self, container="c1", **fields):
        call = self.call("DEL", container, **fields)
        delete_workload(call, self.runtime(call=call))

    def delete_pod(self, container="c1", pod="web-0", **fields):
        call = self.pod_call("DEL", container, pod, **fields)
        delete_workload(call, self.runtime(call=call))

    def check_pod(self, container="c1", pod="web-0", **fields):
        call = self.pod_call("CHECK", container, pod, **fields)
        check_workload(call, self.runtime(call=call))

    def assign(self, container="c1", **fields):
        call = self.call("ADD", container, **fields)
        return self.undoing(lambda undo: assign_addresses(call, self.runtime(call=call), undo))

    def hns_endpoint(self, name):
        return Objects(self.hns).older_endpoint(name)

    def hns_endpoints(self):
        """The containers' own."""
        return sorted(one["Name"] for one in self.hns.endpoints.values() if not one["Name"].endswith("_ep"))

    def leftovers(self):
        found = {
            "addresses": [address for address, holder in self.holders().items() if "reserved" not in holder],
            "handles": self.counts(),
            "endpoints": self.endpoints(),
            "HNS endpoints": self.hns_endpoints(),
        }
        return {what: left for what, left in found.items() if left}
