"""Plans made true with HNS: what is there afterwards, and what is left when something fails."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from adapters.windows.dataplane import Host, WindowsDataplane
from adapters.windows.documents import query
from adapters.windows.memory_hns import MemoryHns
from adapters.windows.memory_host import MemoryInterfaces, MemoryMutex
from adapters.windows.objects import Objects
from adapters.windows.seam import ENDPOINT, NETWORK
from domain.cni.result import Dns
from domain.ipam.address import Address, Cidr
from domain.windows.conf import WindowsConf
from domain.workload.attachment import DEFAULT_ROUTES, Attachment
from ports.errors import Expired, Refused

ADDRESS, OTHER = Cidr.parse("10.254.112.70/26"), Cidr.parse("10.254.112.71/26")
POOL = Cidr.parse("10.254.0.0/16")
NETWORK_NAME = "calico-10-254-112-64"
CONF = WindowsConf("calico", dns=Dns(("10.96.0.10",), "d", ("pod.cluster.local", "local"), ("ndots:5",)))
OVERLAY = CONF.replace(is_overlay=True, single_network=True)
DENY = {"Action": "Block", "Direction": "In", "RuleType": "Switch", "Priority": 65500}


class Machine:
    def __init__(self) -> None:
        self.clock, self.log = MemoryClock(), RecordingLog()
        self.hns, self.interfaces, self.mutex = MemoryHns(), MemoryInterfaces(), MemoryMutex()
        self.namespace = self.hns.make_namespace()

    def dataplane(self, conf: WindowsConf = CONF, container: str = "c1") -> WindowsDataplane:
        host = Host(self.hns, self.interfaces, self.mutex, self.clock, self.log)
        return WindowsDataplane(host, conf, container)

    def connect(self, conf=CONF, container="c1", address=ADDRESS, netns="", **more):
        wanted = Attachment(
            netns or self.namespace, "eth0", "cali1", (address,), DEFAULT_ROUTES, nat_exceptions=(POOL,), **more
        )
        return self.dataplane(conf, container).connect(wanted, self.soon())

    def disconnect(self, conf=CONF, container="c1", netns=None):
        netns = self.namespace if netns is None else netns
        self.dataplane(conf, container).disconnect(netns, "eth0", self.soon())

    def soon(self):
        return self.clock.deadline(60.0)

    def endpoint(self, name="c1_calico"):
        """As the newer generation shows it."""
        (identity,) = self.hns.enumerate(ENDPOINT, query(Name=name))
        return self.hns.query(ENDPOINT, identity, query())

    def older(self, name):
        return Objects(self.hns).older_endpoint(name)

    def tamper(self, name, **members):
        self.hns.endpoints[self.endpoint(name)["ID"]].update(members)

    def names(self):
        return sorted(one["Name"] for one in self.hns.endpoints.values())

    def verbs(self, *of: str):
        return [verb for verb, _ in self.hns.said if verb.startswith(of)]


@pytest.fixture
def machine():
    return Machine()


def test_a_bridged_container_has_all_that_the_plan_says(machine):
    """WFV-001 WFV-009"""
    connected = machine.connect()
    (network,) = machine.hns.networks.values()
    assert (network["Name"], network["Type"]) == (NETWORK_NAME, "L2Bridge")
    assert network["Subnets"] == [{"AddressPrefix": "10.254.112.64/26", "GatewayAddress": "10.254.112.65"}]
    host = machine.older(f"{NETWORK_NAME}_ep")
    assert (host["IPAddress"], machine.hns.on_host) == ("10.254.112.66", [host["ID"]])
    assert machine.interfaces.forwarding == [Address.parse("10.11.128.13"), Address.parse("10.254.112.66")]
    endpoint = machine.endpoint()
    assert endpoint["HostComputeNamespace"] == machine.namespace
    assert endpoint["IpConfigurations"] == [{"IpAddress": "10.254.112.70", "PrefixLength": 26}]
    assert endpoint["Routes"] == [{"NextHop": "10.254.112.66", "DestinationPrefix": "0.0.0.0/0"}]
    assert endpoint["Dns"] == {
        "Domain": "d",
        "Search": ["pod.cluster.local", "local"],
        "ServerList": ["10.96.0.10"],
        "Options": ["ndots:5"],
    }
    assert endpoint["Policies"] == [
        {"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.254.0.0/16", "10.11.128.0/19"]}},
        {"Type": "SDNRoute", "Settings": {"DestinationPrefix": "10.11.128.13/32", "NeedEncap": True}},
        {"Type": "ACL", "Settings": {"Protocols": "256", **DENY}},
    ]
    assert connected.mac == endpoint["MacAddress"].replace("-", ":").lower()
    assert (connected.host_interface, connected.addresses) == ("cali1", (ADDRESS,))
    assert machine.mutex.taken == 1


def test_an_overlaid_container(machine):
    """WFV-015"""
    connected = machine.connect(OVERLAY, nat_outgoing=False)
    (network,) = machine.hns.networks.values()
    assert (network["Name"], network["Type"]) == ("calico", "Overlay")
    assert network["Subnets"][0]["Policies"] == [{"Type": "VSID", "VSID": 4096}]
    assert "HostRoute" in [one["Type"] for one in machine.hns.query(NETWORK, network["ID"], query())["Policies"]]
    remote = machine.older("calico_ep")
    assert (remote["IPAddress"], remote["IsRemoteEndpoint"]) == ("10.254.112.66", True)
    assert remote["MacAddress"] == "00-15-5d-01-02-03"
    assert remote["Policies"] == [{"Type": "PA", "PA": "10.11.128.13"}]
    endpoint = machine.endpoint()
    assert endpoint["MacAddress"] == "0E-2A-0a-fe-70-46"
    assert connected.mac == "0e:2a:0a:fe:70:46"
    assert endpoint["Routes"][0]["NextHop"] == "10.254.112.65"
    assert endpoint["Policies"][0] == {"Type": "ProviderAddress", "Settings": {"ProviderAddress": "10.11.128.13"}}
    assert machine.interfaces.forwarding == []


@pytest.mark.parametrize("conf", [CONF, OVERLAY])
def test_what_is_there_already_is_left_alone(machine, conf):
    """WFV-013: containers of one block share one network."""
    machine.connect(conf)
    for other in (OTHER, OTHER):  # the second one replaces the first
        machine.connect(conf, "c2", other, machine.hns.make_namespace())
    assert len(machine.hns.networks) == 1
    assert len(machine.verbs("POST /networks/", "modify Network")) == len({conf.is_overlay, False})
    assert len(machine.names()) == 3
    assert machine.verbs("DELETE") == []


def test_each_block_has_its_network(machine):
    """WFV-012"""
    machine.connect()
    machine.connect(container="c2", address=Cidr.parse("10.254.112.130/26"), netns=machine.hns.make_namespace())
    assert sorted(one["Name"] for one in machine.hns.networks.values()) == [
        "calico-10-254-112-128",
        NETWORK_NAME,
    ]


@pytest.mark.parametrize("conf", [CONF.replace(single_network=True), OVERLAY])
def test_a_network_with_another_subnet_is_made_anew(machine, conf):
    """WFV-006"""
    machine.connect(conf)
    machine.connect(conf, "c2", Cidr.parse("20.0.0.9/8"), machine.hns.make_namespace())
    (network,) = machine.hns.networks.values()
    subnet = network["Subnets"][0]
    assert (subnet["AddressPrefix"], subnet["GatewayAddress"]) == ("20.0.0.0/8", "20.0.0.1")
    assert machine.older("calico_ep")["IPAddress"] == "20.0.0.2"


@pytest.mark.parametrize("other", [OVERLAY, OVERLAY.replace(vni=4099)])
def test_a_network_of_another_kind_or_number_is_made_anew(machine, other):
    machine.connect(CONF.replace(single_network=True) if other == OVERLAY else OVERLAY)
    machine.connect(other, "c2", OTHER, machine.hns.make_namespace())
    (network,) = machine.hns.networks.values()
    assert network["Subnets"][0]["Policies"] == [{"Type": "VSID", "VSID": other.vni}]


@pytest.mark.parametrize("conf", [CONF.replace(single_network=True), OVERLAY])
def test_the_hosts_endpoint_is_put_right(machine, conf):
    """WFV-007: missing, or at another address."""
    machine.connect(conf)
    host = machine.older("calico_ep")
    del machine.hns.endpoints[host["ID"]]
    machine.connect(conf, "c2", OTHER, machine.hns.make_namespace())
    assert machine.older("calico_ep")["IPAddress"] == "10.254.112.66"
    machine.tamper("calico_ep", IpConfigurations=[{"IpAddress": "10.254.112.99", "PrefixLength": 0}])
    machine.connect(conf, "c2", OTHER, machine.namespace)
    assert machine.older("calico_ep")["IPAddress"] == "10.254.112.66"


def test_the_remote_endpoint_follows_the_hosts_address(machine):
    machine.connect(OVERLAY)
    machine.tamper("calico_ep", Policies=[{"Type": "ProviderAddress", "Settings": {"ProviderAddress": "1.2.3.4"}}])
    machine.connect(OVERLAY, "c2", OTHER, machine.hns.make_namespace())
    assert machine.older("calico_ep")["Policies"] == [{"Type": "PA", "PA": "10.11.128.13"}]


def test_endpoints_in_the_way_go(machine):
    """WFV-003: of that name with another address, and of another name with that address."""
    machine.connect()
    machine.connect(container="c2", address=OTHER, netns=machine.hns.make_namespace())
    machine.connect(container="c1", address=OTHER, netns=machine.hns.make_namespace())
    assert machine.names() == ["c1_calico", f"{NETWORK_NAME}_ep"]
    assert machine.endpoint()["IpConfigurations"][0]["IpAddress"] == "10.254.112.71"


def test_a_container_of_dockershim(machine):
    machine.hns.run_container("c1")
    machine.connect(netns="none")
    endpoint = machine.older("c1_calico")
    assert machine.hns.containers["c1"] == [endpoint["ID"]]
    assert (endpoint["GatewayAddress"], endpoint["DNSServerList"]) == ("10.254.112.66", "10.96.0.10")
    assert endpoint["DNSSuffix"] == "pod.cluster.local,local"
    assert endpoint["Policies"] == [
        {"ExceptionList": ["10.254.0.0/16", "10.11.128.0/19"], "Type": "OutBoundNAT"},
        {"DestinationPrefix": "10.11.128.13/32", "NeedEncap": True, "Type": "ROUTE"},
        {"Type": "ACL", "Id": "CNIDefaultDenyAllPolicy", "Protocol": 256, **DENY},
    ]
    machine.connect(netns="none")
    machine.disconnect(netns="container:c1", container="c1")
    assert machine.hns.containers["c1"] == []
    assert machine.older("c1_calico") is not None, "it is the sandbox's"
    machine.disconnect(netns="none")
    machine.disconnect(netns="none")
    assert machine.names() == [f"{NETWORK_NAME}_ep"]


def test_a_container_that_does_not_run_yet_is_attached_when_it_does(machine):
    machine.connect(netns="none")
    assert machine.older("c1_calico") is not None
    assert any("not running" in line for line in machine.log.shown())


@pytest.mark.parametrize("netns", [None, ""])
def test_a_container_is_disconnected_by_name(machine, netns):
    """Also without a namespace, which may be gone by then; and as often as it is asked for."""
    machine.connect()
    for _ in range(2):
        machine.disconnect(netns=netns)
    assert machine.names() == [f"{NETWORK_NAME}_ep"]
    assert machine.hns.namespaces[machine.namespace] == []
    machine.disconnect(container="never")


def test_a_namespace_that_is_gone_keeps_no_endpoint(machine):
    machine.connect()
    machine.hns.fails("modify Namespace")
    machine.disconnect()
    assert machine.names() == [f"{NETWORK_NAME}_ep"]


def test_a_refusal_to_disconnect_is_told(machine):
    machine.connect()
    machine.hns.fails("delete Endpoint", record="busy")
    with pytest.raises(Refused, match=r'^failed to clean up the endpoint "c1_calico": delete Endpoint: busy'):
        machine.disconnect()


@pytest.mark.parametrize("netns", ["", "none"])
@pytest.mark.parametrize("step", ["attach", "deny"])
def test_what_fails_now_and_then_is_begun_again(machine, step, netns):
    """Each time from the start: nothing is left of an attempt."""
    failing = {
        ("attach", ""): "modify Namespace",
        ("attach", "none"): "attach_container",
        ("deny", ""): "modify Endpoint",
        ("deny", "none"): "POST /endpoints/0",
    }[step, netns]
    machine.connect(container="c2", address=OTHER)  # networks and the host's endpoint are there
    machine.hns.run_container("c1")
    machine.hns.fails(failing, times=3)
    began = machine.clock.monotonic()
    machine.connect(netns=netns or machine.hns.make_namespace())
    assert machine.clock.monotonic() - began == pytest.approx(3.0, abs=0.5)
    assert machine.names() == ["c1_calico", "c2_calico", f"{NETWORK_NAME}_ep"]


def test_between_two_attempts_nothing_is_connected(machine):
    """It would be open to everybody meanwhile."""
    machine.connect(container="c2", address=OTHER)
    pause, seen = machine.clock.sleep, []

    def sleep(seconds):
        seen.append("c1_calico" in machine.names())
        pause(seconds)

    machine.clock.sleep = sleep
    machine.hns.fails("modify Endpoint", times=2)
    machine.connect(netns=machine.hns.make_namespace())
    assert seen == [False, False]


@pytest.mark.parametrize("netns", ["", "none"])
@pytest.mark.parametrize("step", ["attach", "deny", "create"])
def test_nothing_is_connected_that_could_not_be_closed(machine, step, netns):
    """G23: where the original goes on after an error of the default deny, a container would be open to everybody."""
    failing = {
        ("create", ""): "create Endpoint",
        ("create", "none"): "POST /endpoints/",
        ("attach", ""): "modify Namespace",
        ("attach", "none"): "attach_container",
        ("deny", ""): "modify Endpoint",
        ("deny", "none"): "POST /endpoints/0",
    }[step, netns]
    machine.connect(container="c2", address=OTHER)
    machine.hns.run_container("c1")
    machine.hns.fails(failing, times=4, record="no")
    with pytest.raises(Refused, match=rf'^cannot connect the container to the HNS network "{NETWORK_NAME}": .*: no \('):
        machine.connect(netns=netns or machine.hns.make_namespace())
    assert machine.names() == ["c2_calico", f"{NETWORK_NAME}_ep"]


def test_a_namespace_that_is_not_there_is_not_waited_for(machine):
    with pytest.raises(Refused, match="deadbeef"):
        machine.connect(netns="deadbeef-0000-4000-8000-00155d000000")
    assert machine.names() == [f"{NETWORK_NAME}_ep"]
    assert machine.clock.monotonic() == pytest.approx(MemoryClock().monotonic(), abs=0.5)


def test_without_default_deny_nothing_is_blocked(machine):
    machine.connect(CONF.replace(default_deny=False))
    assert "ACL" not in [policy["Type"] for policy in machine.endpoint()["Policies"]]


def test_the_management_address_is_waited_for(machine):
    machine.hns.management = ""
    with pytest.raises(Refused, match="has no management IP: timed out after 30 seconds"):
        machine.connect()
    assert machine.names() == [f"{NETWORK_NAME}_ep"]


def test_an_overlay_has_its_management_address_at_once(machine):
    machine.hns.management = ""
    with pytest.raises(Refused, match='HNS network "calico" has no management IP'):
        machine.connect(OVERLAY)


@pytest.mark.parametrize("management", ["300.1.2.3", "10.1.1.1"])
def test_a_management_address_that_is_nobodys(machine, management):
    machine.hns.management = management
    with pytest.raises(Refused, match=management):
        machine.connect()


def test_forwarding_that_cannot_be_enabled(machine):
    machine.interfaces.refuses = "access denied"
    began = machine.clock.monotonic()
    with pytest.raises(Refused, match=r"^cannot enable forwarding: access denied"):
        machine.connect()
    assert machine.clock.monotonic() - began == pytest.approx(10.0, abs=1.0)


def test_an_interface_that_has_no_address_yet_is_waited_for(machine):
    pause = machine.clock.sleep
    machine.interfaces.refuses = "no such address"

    def sleep(seconds):
        machine.interfaces.refuses = ""
        pause(seconds)

    machine.clock.sleep = sleep
    machine.connect()
    assert len(machine.interfaces.forwarding) == 2


def test_an_endpoint_of_the_host_that_cannot_be_attached_is_gone(machine):
    machine.connect(container="c2", address=OTHER)
    machine.hns.endpoints.clear()
    machine.hns.fails("POST /endpoints/0", record="no")
    with pytest.raises(Refused, match="cannot make the host's endpoint"):
        machine.connect()
    assert machine.names() == []


def test_what_cannot_be_taken_back_is_logged(machine):
    machine.hns.fails("modify Namespace", times=4)
    machine.hns.fails("delete Endpoint", times=9)
    with pytest.raises(Refused):
        machine.connect()
    assert any("Cannot remove the endpoint" in line for line in machine.log.shown("error"))


def test_an_endpoint_without_a_mac_is_none(machine):
    machine.connect(container="c2", address=OTHER)
    with pytest.raises(Refused, match="no MAC address"):
        machine.connect(OVERLAY.replace(mac_prefix="zz-zz"))
    assert "c1_calico" not in machine.names()


def test_one_call_at_a_time(machine):
    machine.mutex.by_others = True
    with pytest.raises(Expired, match="TigeraCalicoCNINetworkMutex"):
        machine.connect()
    assert machine.hns.said == []


def test_nothing_is_begun_past_the_deadline(machine):
    dataplane, past = machine.dataplane(), machine.clock.deadline(0.0)
    wanted = Attachment(machine.namespace, "eth0", "cali1", (ADDRESS,), DEFAULT_ROUTES)
    for ask in (
        lambda: dataplane.connect(wanted, past),
        lambda: dataplane.disconnect(machine.namespace, "eth0", past),
        lambda: dataplane.examine(machine.namespace, "eth0", past),
    ):
        with pytest.raises(Expired, match=machine.namespace):
            ask()
    assert machine.hns.said == []


def test_a_namespace_is_looked_at_before_anything_is_allocated(machine):
    dataplane = machine.dataplane()
    for sound in (machine.namespace, "none", "container:c1"):
        dataplane.examine(sound, "eth0", machine.soon())
    with pytest.raises(Refused, match=r'^failed to open network namespace "deadbeef"'):
        dataplane.examine("deadbeef", "eth0", machine.soon())
    assert dataplane.look(machine.namespace, "eth0", machine.soon()) is None


def test_networks_are_touched_only_with_the_mutex(machine):
    """The original's calls on the same node hold it, too."""
    ask, outside = machine.hns._begin, []

    def begin(operation, request):
        if not machine.mutex.is_held:
            outside.append(operation)
        ask(operation, request)

    machine.hns._begin = begin
    machine.connect()
    assert outside == []


@pytest.mark.parametrize("odd", [None, {}, [None, 7], [{"Name": NETWORK_NAME, "Subnets": 1, "Type": 2}]])
def test_odd_answers_of_the_service_are_refused(machine, odd):
    """No network is found in them, or one that cannot be used."""
    ask = machine.hns.call
    machine.hns.call = lambda method, path, request=None: odd if path == "/networks/" else ask(method, path, request)
    with pytest.raises(Refused, match=r"HRESULT 0x"):
        machine.connect()
    assert machine.names() == []
