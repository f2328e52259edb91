"""A node in memory with nothing to complain of, as `tortie doctor` sees it; tests break one thing of it."""

from __future__ import annotations

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.host_view import MemoryHost
from adapters.memory.log import RecordingLog
from domain.cluster import ClusterInformation, Node
from domain.doctor.diagnosis import OK
from domain.doctor.seen import CredentialsSeen, FileSeen, Uplink
from domain.ipam.address import Cidr
from domain.ipam.pools import Pool
from domain.json_text import dumps, parse
from domain.linux.link import Link
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.clock import Deadline
from ports.datastore import ClusterInformationKey, IPPoolKey, NodeKey, WorkloadEndpointKey
from ports.errors import PortError
from ports.runtime import unheard
from usecases.doctor.patient import Folders, Patient, Ways
from usecases.examine_node import examine_node

ADDRESSES = (Cidr.parse("10.244.0.2/32"),)
NEVER = Deadline(1e9)
NODE = "node1"
NET, BIN = "/etc/cni/net.d", "/opt/cni/bin"
CONFIGURATION = f"{NET}/10-calico.conflist"
KUBECONFIG, LOG = f"{NET}/calico-kubeconfig", "/var/log/calico/cni/cni.log"
SECTION = {
    "type": "calico",
    "nodename": NODE,
    "datastore_type": "kubernetes",
    "kubernetes": {"kubeconfig": KUBECONFIG},
    "log_file_path": LOG,
    "ipam": {"type": "calico-ipam"},
}


class DoctorNode:
    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.doing = unheard
        self.host = MemoryHost(NODE, {KUBECONFIG: "…", LOG: "", "/var/run/calico/ipam.lock": ""})
        self.section: dict = {**SECTION}
        self.host.versions = {f"{BIN}/{name}": "v1" for name in ("calico", "calico-ipam", "tortie")}
        self.host.seen = {f"{BIN}/portmap": FileSeen("a regular file", 0o755)}
        self.host.devices = (Link(1, "lo", "", up=True, mtu=1500, mac=""), self.device("cali1"))
        self.host.default_routes = (Uplink(4, "eth0", 1500),)
        self.host.settings = {
            "net.ipv4.ip_forward": "1",
            "net.ipv6.conf.all.forwarding": "1",
            "net.ipv4.conf.all.rp_filter": "1",
        }
        self.datastore = MemoryDatastore(self.clock)
        self.credentials: CredentialsSeen | PortError = CredentialsSeen("https://10.96.0.1:443", "a client certificate")
        self.folders = Folders()
        self.own_datastore = False
        self.as_operator = None
        self.put(ClusterInformationKey("default"), ClusterInformation(Metadata("default"), datastore_ready=True))
        self.put(NodeKey(NODE), Node(Metadata(NODE)))
        self.put(IPPoolKey("pool"), Pool(Metadata("pool"), "10.244.0.0/16"))
        self.add_endpoint("a", "cali1")

    def put(self, key, record) -> None:
        self.datastore.create(key, record, NEVER)

    def delete(self, key) -> None:
        self.datastore.delete(key, None, NEVER)

    def device(self, name: str) -> Link:
        return Link(7, name, "veth", up=True, mtu=1500, mac="")

    def add_endpoint(self, pod: str, device: str, container: str = "c1") -> None:
        name = f"{NODE}-k8s-{pod}-eth0"
        endpoint = WorkloadEndpoint(
            Metadata(name, namespace="default"),
            node=NODE,
            interface_name=device,
            container_id=container,
            ip_networks=ADDRESSES,
        )
        self.put(WorkloadEndpointKey("default", name), endpoint)

    def configure(self, **members: object) -> None:
        """Members of the section of calico; None takes one out."""
        self.section = {name: value for name, value in {**self.section, **members}.items() if value is not None}

    def write(self) -> None:
        """The configuration, unless a test has put something in its place."""
        plugins = [self.section, {"type": "portmap"}]
        text = dumps(parse(dumps({"name": "k8s-pod-network", "cniVersion": "1.0.0", "plugins": plugins})))
        self.host.files.setdefault(CONFIGURATION, text)

    def examine(self):
        self.write()
        ways = Ways(
            datastore=lambda _netconf: self.datastore,
            as_operator=self.as_operator,
            credentials=self._credentials,
            own_datastore=self.own_datastore,
        )
        patient = Patient(self.host, self.clock, self.folders, ways)
        patient.doing = self.doing
        return examine_node(patient, self.log)

    def _credentials(self, _path: str) -> CredentialsSeen:
        if isinstance(self.credentials, PortError):
            raise self.credentials
        return self.credentials

    def complaints(self) -> list[tuple[str, str]]:
        """(check, state) of all that is not in order."""
        return [(one.check, one.state) for one in self.examine() if one.state != OK]
