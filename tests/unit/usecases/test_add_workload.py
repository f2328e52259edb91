"""ADD of the network plugin (spec: cni-plugin 4, 9, 11).

CNI-010, CNI-012, CNI-025, CNI-028 to CNI-031, L01, D05, D07, K03; G1, G2, G5, G7 to G9, G11, G15, G17, G18, G26.
"""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, PolicySettings
from domain.cni.request import CniArgs
from domain.cni.result import Dns, Result, ResultInterface, ResultIp, ResultRoute
from domain.ipam.address import Address, Cidr
from domain.linux.steps import AddAddress, CreatePair, EnsureRoute
from domain.resource import Metadata
from domain.workload.endpoint import Rule, WorkloadEndpoint
from ports.datastore import (
    BlockKey,
    ClusterInformationKey,
    NodeKey,
    ProfileKey,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from ports.errors import BadConfiguration, Conflict, Expired, PortError, Refused, Unauthorized, Unavailable
from usecases.add_workload import add_workload
from worlds.one_node import NEVER, NODE, POOL4, OneNode, netns

DUAL = IpamSettings(type="calico-ipam", assign_ipv6="true")
HOST_LOCAL = IpamSettings(type="host-local")
FOUR, SIX = Cidr.parse("10.22.0.7/16"), Cidr.parse("fd22::7/64")
KEY = WorkloadEndpointKey("default", "node1-cni-c1-eth0")


@pytest.fixture
def scripted():
    """Another IPAM plugin than our own, which answers with two addresses."""
    node = OneNode(own_ipam=False)
    node.plugin.answers("host-local", Result(ips=(ResultIp(FOUR, 2, Address.parse("10.22.0.1")), ResultIp(SIX))))
    return node


def refusal(node, kind: type[Exception] = CniError, **fields) -> str:
    """The error's text; nothing is left behind."""
    before = node.leftovers()
    with pytest.raises(kind) as caught:
        node.add(**fields)
    assert node.leftovers() == before
    if node.own_ipam:
        assert node.counts_match()
    return str(caught.value)


def texts(result: Result) -> list[str]:
    return [str(ip.address) for ip in result.ips]


# --- a first ADD -----------------------------------------------------------------------------------------------------


def test_a_container_gets_one_address_one_route_and_one_handle(node):
    """CNI-028."""
    result = node.add()
    assert texts(result) == ["10.244.0.128/32"]
    assert [str(route.dst.address) for route in result.routes] == ["10.244.0.128"]
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    (endpoint,) = node.endpoints()
    assert [str(network) for network in endpoint.ip_networks] == ["10.244.0.128/32"]
    assert (endpoint.pod, endpoint.workload, endpoint.orchestrator) == ("", "", "cni")
    assert (endpoint.node, endpoint.container_id, endpoint.endpoint) == (NODE, "c1", "eth0")
    assert endpoint.profiles == ("net1",)
    assert endpoint.metadata.labels == {
        "projectcalico.org/namespace": "default",
        "projectcalico.org/orchestrator": "cni",
    }


def test_the_answer_names_both_ends_and_every_address_is_the_containers(node):
    """D07."""
    result = node.add(ipam=DUAL)
    host, container = result.interfaces
    assert (host, container.name, container.sandbox) == (ResultInterface("calic1"), "eth0", netns("c1"))
    assert container.mac == node.endpoints()[0].mac
    assert [(str(ip.address), ip.interface, ip.gateway) for ip in result.ips] == [
        ("10.244.0.128/32", 1, None),
        ("fd00:10:244::80/128", 1, None),
    ]


def test_the_device_is_what_the_configuration_asks_for(node):
    node.node.files["/var/lib/calico/mtu"] = "1430\n"
    node.add(num_queues=3, device_type="netkit", allow_ip_forwarding=True)
    (attachment,) = node.dataplane.connected
    assert (attachment.mtu, attachment.num_queues, attachment.device_type) == (1430, 3, "netkit")
    assert attachment.allow_ip_forwarding
    assert (attachment.host_name, attachment.ifname, attachment.netns) == ("calic1", "eth0", netns("c1"))
    assert [str(route) for route in attachment.routes] == ["0.0.0.0/0", "::/0"]
    assert node.dataplane.network.link("", "calic1").mtu == 1430


def test_another_ipam_plugin_is_asked_with_the_original_text(scripted):
    """CNI-028 with host-local: its addresses lose mask and gateway, its own interfaces come first."""
    dns = Dns(("10.0.0.10",))
    extra = Result((ResultInterface("dummy"),), (ResultIp(FOUR, 0),), (ResultRoute(Cidr.parse("0.0.0.0/0")),), dns)
    scripted.plugin.answers("host-local", extra)
    result = scripted.add(ipam=HOST_LOCAL)
    (ran,) = scripted.plugin.calls
    assert (ran.verb, ran.call.netconf_text) == ("ADD", '{"the": "text"}')
    assert texts(result) == ["10.22.0.7/32"]
    assert [one.name for one in result.interfaces] == ["dummy", "calic1", "eth0"]
    assert (result.routes, result.dns) == (extra.routes, dns)


def test_the_plugins_gateways_reach_the_dataplane_but_not_the_answer(scripted):
    result = scripted.add(ipam=HOST_LOCAL)
    assert scripted.dataplane.connected[0].gateways == (Address.parse("10.22.0.1"), None)
    assert [ip.gateway for ip in result.ips] == [None, None]


def test_mesos_labels_name_the_namespace_and_label_the_endpoint(node):
    """G7."""
    node.add(mesos_labels=(("projectcalico.org/namespace", "prod"), ("a/b", "v")))
    (endpoint,) = node.endpoints()
    assert endpoint.metadata.namespace == "prod"
    assert endpoint.metadata.labels["a.b"] == "v"


# --- the network's profile -------------------------------------------------------------------------------------------


def test_a_network_without_a_profile_gets_one(node):
    """spec: cni-plugin 9."""
    node.add()
    profile = node.get(ProfileKey("net1"))
    assert (profile.ingress, profile.egress) == ((Rule("Allow", "has(net1)"),), (Rule("Allow"),))
    assert profile.labels_to_apply == {"net1": ""}


def test_an_existing_profile_is_never_changed(node):
    node.add()
    stored = node.datastore.get(ProfileKey("net1"), NEVER)
    node.add("c2")
    assert node.datastore.get(ProfileKey("net1"), NEVER) == stored


def test_with_a_policy_type_no_profile_is_made(scripted):
    scripted.add(policy=PolicySettings(type="k8s"), ipam=HOST_LOCAL)
    assert scripted.profiles() == []


def test_losing_the_race_for_the_profile_is_success(node):
    """G18."""
    with node.rival("create", ProfileKey, lambda _key: node.add("c2")):
        result = node.add()
    assert texts(result) == ["10.244.0.128/32"]
    assert node.profiles() == ["net1"]
    assert node.log.shown("debug")[-1] == "Profile was created by another ADD profile=net1"


# --- a repeated ADD --------------------------------------------------------------------------------------------------


def test_a_second_add_answers_the_same_without_asking_ipam(node):
    """CNI-029."""
    first = node.add(ipam=DUAL)
    held = node.holders()
    second = node.add(ipam=DUAL)
    assert second == first.replace(routes=())
    assert (len(node.endpoints()), node.endpoints()[0].profiles) == (1, ("net1",))
    assert node.holders() == held
    assert len(node.dataplane.connected) == 1


def test_a_second_add_of_another_network_adds_its_profile(node):
    """CNI-030."""
    first = node.add()
    assert node.add(name="net2") == first.replace(routes=())
    assert node.endpoints()[0].profiles == ("net1", "net2")
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    assert node.profiles() == ["net1", "net2"]


def test_a_second_add_succeeds_though_the_host_device_has_another_name(node):
    """CNI-031."""
    first = node.add()
    links = node.dataplane.network.namespaces[""]
    links["salic1"] = links.pop("calic1")
    links["salic1"].name = "salic1"
    assert node.add() == first.replace(routes=())
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    node.delete()
    assert node.leftovers() == {}


def without_devices(node):
    """As after the machine has started again: new namespaces, the old records."""
    for links in node.dataplane.network.namespaces.values():
        links.pop("calic1", None)
        links.pop("eth0", None)


def test_a_second_add_connects_a_container_whose_device_is_gone(node):
    """No runtime's DEL has come between, so the container would have an address and no network."""
    first = node.add(ipam=DUAL)
    without_devices(node)
    second = node.add(ipam=DUAL)
    assert second.ips == first.ips
    assert node.holders() == {"10.244.0.128": "net1.c1", "fd00:10:244::80": "net1.c1"}
    assert "calic1" in node.dataplane.network.namespaces[""]
    assert [one.mac for one in node.endpoints()] == [second.interfaces[-1].mac]
    node.delete()
    assert node.leftovers() == {}


def test_a_device_that_was_made_again_goes_if_the_call_fails(node):
    node.add()
    without_devices(node)
    node.remove(ProfileKey("net1"))

    def gone(_key):
        raise Unavailable("away")

    with node.rival("create", ProfileKey, gone), pytest.raises(Unavailable):
        node.add()
    assert "calic1" not in node.dataplane.network.namespaces[""]
    assert node.holders() == {"10.244.0.128": "net1.c1"}


def test_a_second_add_under_another_interface_name_adopts_the_first(node):
    """G17: DEL finds it as ADD does."""
    node.add(ifname="eth0")
    result = node.add(ifname="net1")
    assert texts(result) == ["10.244.0.128/32"]
    assert len(node.endpoints()) == 1


def test_a_rival_that_adds_another_profile_meanwhile_loses_nothing(node):
    node.add()
    with node.rival(
        "update",
        WorkloadEndpointKey,
        lambda key: node.put(key, node.get(key).replace(profiles=("net1", "net3"))),
    ):
        node.add(name="net2")
    assert node.endpoints()[0].profiles == ("net1", "net3", "net2")


def test_an_endpoint_that_is_deleted_while_it_is_adopted_ends_the_call(node):
    node.add()
    with (
        node.rival("update", WorkloadEndpointKey, node.remove),
        pytest.raises(Refused, match="WorkloadEndpoint node1-cni-c1-eth0 was deleted while it was being updated"),
    ):
        node.add(name="net2")


def test_a_failure_after_adopting_leaves_an_endpoint_of_another_incarnation_alone(node):
    """The container was deleted and added again before our undo runs."""
    node.add()

    def again(_key):
        node.delete()
        node.add(name="net2")
        raise Unavailable("away")

    with node.rival("create", ProfileKey, again), pytest.raises(Unavailable):
        node.add(name="net2")
    assert [endpoint.profiles for endpoint in node.endpoints()] == [("net2",)]


def test_a_failure_after_adopting_leaves_no_endpoint_where_there_is_none(node):
    node.add()

    def gone(_key):
        node.delete()
        raise Unavailable("away")

    with node.rival("create", ProfileKey, gone), pytest.raises(Unavailable):
        node.add(name="net2")
    assert node.leftovers() == {}


def test_a_failure_after_adopting_takes_nothing_from_the_running_container(node):
    """G15."""
    node.add()
    node.fail("create", ProfileKey)
    assert refusal(node, Unavailable, name="net2") == "the datastore is away"
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    assert (node.host_links(), node.pod_links()) == (["calic1"], ["eth0"])


# --- refused before anything is done ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", [False, None])
def test_a_cluster_that_is_not_ready_is_refused(node, ready):
    """CNI-010, G1."""
    node.set_ready(ready=ready)
    assert refusal(node) == "Calico is currently not ready to process requests"


def test_a_cluster_without_information_is_refused(node):
    """CNI-012."""
    node.remove(ClusterInformationKey("default"))
    assert refusal(node).startswith("error getting ClusterInformation: resource does not exist")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param(
            {"ip_addrs_no_ipam": True},
            "requested feature is not supported for this runtime: ip_addrs_no_ipam",
            id="CNI-025",
        ),
        pytest.param(
            {"device_type": "foo"},
            'unknown device_type "foo" in CNI config (supported: "veth", "netkit")',
            id="D08",
        ),
        pytest.param({"policy_setup_timeout_seconds": -1}, "invalid pod startup delay of -1", id="G11"),
        pytest.param({"require_mtu_file": True}, "failed to read MTU file: open /var/lib/calico/mtu", id="D01"),
        pytest.param({"nodename_file": "/x"}, "stat /x: no such file or directory", id="C11"),
        pytest.param({"netns": "/proc/self/ns/net"}, "plugin's netns and netns from CNI_NETNS", id="G2"),
        pytest.param({"container": "c.1"}, "error with field containerID = 'c.1'", id="G5 container ID"),
        pytest.param({"num_queues": 4097}, "num_queues 4097 is more than a device can have (4096)", id="queues"),
        pytest.param({"mtu": 65536}, 'MTU 65536 is more than a device can have (65535); change "mtu"', id="MTU"),
        pytest.param({"ifname": "eth-"}, "error constructing WorkloadEndpoint name", id="G5 interface name"),
        pytest.param({"name": "Net"}, "error with field profiles = 'Net'", id="G5 network name"),
        pytest.param({"args": CniArgs(test_namespace="a/b")}, "error with field namespace = 'a/b'", id="G5 namespace"),
    ],
)
def test_what_can_be_refused_is_refused_before_anything_is_done(node, fields, text):
    calls = dict(node.datastore.calls)
    assert refusal(node, **fields).startswith(text)
    assert {verb: node.datastore.calls.get(verb) for verb in ("create", "update", "delete")} == {
        verb: calls.get(verb) for verb in ("create", "update", "delete")
    }
    assert node.dataplane.connected == []


def test_l01_a_missing_namespace_is_refused_before_an_address_is_taken(node):
    """L01: block and handle keys are as they were."""
    before = node.datastore.records_text()
    text = refusal(node, Refused, netns="/var/run/netns/absent")
    assert text == 'failed to Statfs "/var/run/netns/absent": no such file or directory'
    assert node.datastore.records_text() == before


def test_l01_a_device_of_that_name_in_the_container_is_refused_before_an_address_is_taken(node):
    """L01, D05."""
    node.dataplane.network.add_link(netns("c1"), "eth0")
    before = node.datastore.records_text()
    assert "file exists" in refusal(node, Refused)
    assert node.datastore.records_text() == before
    assert node.pod_links() == ["eth0"]


def test_d05_a_leftover_host_device_of_a_living_container_is_not_taken_away(node):
    """D05."""
    node.dataplane.network.add_pair(("", "calic1"), (netns("c2"), "eth0"))
    assert "is in use" in refusal(node, Refused)
    assert node.pod_links("c2") == ["eth0"]


def test_a_gate_is_waited_for_and_endpoints_are_looked_up_afterwards(node):
    """Another process may have networked the container while we waited."""
    node.readiness.make_ready("http://gate/", after=20)
    lookups = []
    node.datastore.before = lambda verb, need: (
        lookups.append(node.clock.monotonic()) if isinstance(need, WorkloadEndpoints) else None
    )
    node.add(readiness_gates=("http://gate/",), seconds=10)
    assert lookups == [0, 20]


def test_a_gate_that_stays_shut_leaves_nothing_behind(node):
    assert refusal(node, Expired, readiness_gates=("http://gate/",)) == (
        "deadline exceeded while waiting for readiness gate http://gate/"
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Refused("unknown datastore type: x", 7, "why"), "error creating calico client: unknown datastore type: x"),
        (Unavailable("away"), "away"),
        (BadConfiguration("no path"), "no path"),
    ],
)
def test_a_datastore_that_cannot_be_opened_is_named_as_the_original_names_it(node, error, text):
    def opening():
        raise error

    runtime = node.runtime(datastore=opening)
    with pytest.raises(type(error)) as caught:
        add_workload(node.call(), runtime, node.undo())
    assert str(caught.value) == text
    assert getattr(caught.value, "code", 0) == getattr(error, "code", 0)
    assert getattr(caught.value, "details", "") == getattr(error, "details", "")


def test_a_failing_datastore_ends_the_call_as_it_is(node):
    node.fail("fetch", ClusterInformationKey, Unauthorized("no"))
    assert refusal(node, Unauthorized) == "connection is unauthorized: no"


# --- undone when a later step fails ----------------------------------------------------------------------------------


def test_a_plugin_that_fails_leaves_nothing_to_undo(scripted):
    scripted.plugin.fails("host-local", "ADD", Refused("no addresses", 11))
    assert refusal(scripted, Refused, ipam=HOST_LOCAL) == "no addresses"
    assert [ran.verb for ran in scripted.plugin.calls] == ["ADD"]


def test_a_plugin_that_was_cut_short_is_asked_to_take_back_what_it_may_have_given_out(scripted):
    """A deadline, or a signal, may come after it has reserved an address and before it says so."""
    scripted.plugin.fails("host-local", "ADD", Expired("IPAM plugin host-local"))
    assert refusal(scripted, Expired, ipam=HOST_LOCAL).endswith("IPAM plugin host-local")
    assert [ran.verb for ran in scripted.plugin.calls] == ["ADD", "WITHDRAW"]


def test_a_plugin_that_answers_without_an_address_is_taken_back(scripted):
    """G9."""
    scripted.plugin.answers("host-local")
    assert refusal(scripted, ipam=HOST_LOCAL) == "IPAM plugin returned no IP addresses in result"
    assert [ran.verb for ran in scripted.plugin.calls] == ["ADD", "WITHDRAW"]


@pytest.mark.parametrize("action", [CreatePair, AddAddress, EnsureRoute])
def test_l01_a_device_that_cannot_be_made_gives_the_address_back(node, action):
    """L01, G8: whatever step of connecting fails."""
    node.dataplane.fails(action, "operation not permitted")
    assert "operation not permitted" in refusal(node, Refused, ipam=DUAL)


@pytest.mark.parametrize("error", [Unavailable("away"), Conflict("x"), Refused("no")])
def test_an_endpoint_that_cannot_be_stored_takes_device_and_address_with_it(node, error):
    """G26."""
    node.fail("create", WorkloadEndpointKey, error)
    assert refusal(node, type(error), ipam=DUAL) == str(error)
    assert node.dataplane.connected != []  # it was there


def test_an_endpoint_whose_write_lost_its_answer_is_removed_too(node):
    """Otherwise a repeated ADD would adopt it and its address, which others may have by then."""
    node.fail("create", WorkloadEndpointKey, after=True)
    assert refusal(node, Unavailable) == "the datastore is away"
    assert node.endpoints() == []


def test_an_endpoint_that_a_rival_has_stored_stays(node):
    """Two ADDs of one container at once: the later one takes back its own device and address only."""

    def rival(_key):
        node.put(KEY, WorkloadEndpoint(Metadata(KEY.name, KEY.namespace), container_id="c1", mac="02:00:00:00:00:99"))

    with node.rival("create", WorkloadEndpointKey, rival), pytest.raises(PortError, match="resource already exists"):
        node.add()
    assert [endpoint.mac for endpoint in node.endpoints()] == ["02:00:00:00:00:99"]
    assert (node.holders(), node.host_links()) == ({}, [])


@pytest.mark.parametrize("error", [Unavailable("away"), Unauthorized("no")])
def test_a_profile_that_cannot_be_made_takes_everything_with_it(node, error):
    """G15, G26."""
    node.fail("create", ProfileKey, error)
    assert refusal(node, type(error), ipam=DUAL) == str(error)
    assert node.profiles() == []


def test_an_answer_that_cannot_be_delivered_takes_everything_with_it(node):
    undo = node.undo()
    add_workload(node.call(ipam=DUAL), node.runtime(), undo)
    assert node.leftovers() != {}
    undo.run()
    assert node.leftovers() == {}
    assert all(line.startswith("Undone ") for line in node.log.shown("info"))


def test_undo_goes_on_when_the_endpoint_is_gone_already(node):
    undo = node.undo()
    add_workload(node.call(), node.runtime(), undo)
    node.remove(KEY)
    undo.run()
    assert node.leftovers() == {}


def test_two_families_are_both_given_back(node):
    node.dataplane.fails(CreatePair, "no")
    refusal(node, Refused, ipam=DUAL)
    assert node.blocks() == ["10.244.0.128/26", "fd00:10:244::80/122"]  # empty, and still the node's
    assert node.block("10.244.0.128/26").is_empty()


def test_a_family_that_cannot_be_served_ends_the_call(node):
    """spec: ipam 3.2."""
    node.add_pool("pool1", "fd00:10:244::/120", disabled=True)
    assert refusal(node, Refused, ipam=DUAL) == "cannot find a qualified ippool"


def test_an_unregistered_node_is_refused(node):
    node.remove(NodeKey(NODE))
    assert refusal(node, PortError).startswith("resource does not exist: Node(node1)")


def test_containers_never_share_an_address(node):
    found = {texts(node.add(container))[0] for container in ("c1", "c2", "c3")}
    assert len(found) == 3
    assert all(Cidr.parse(text) in Cidr.parse(POOL4) for text in found)


def test_a_damaged_block_does_not_keep_containers_from_starting(node):
    """K03."""
    node.datastore.load({key_text(BlockKey(Cidr.parse("10.244.0.128/26"))): "[]"})
    assert texts(node.add()) == ["10.244.0.192/32"]


def test_k03_a_damaged_endpoint_stops_the_call_before_the_running_container_is_touched(node):
    node.add()
    key = WorkloadEndpointKey("default", "node1-cni-c1-eth0")
    node.datastore.load({key_text(key): "{"})
    assert "is corrupt" in refusal(node, Refused)
    assert node.pod_links("c1") == ["eth0"]
    assert node.holders() == {"10.244.0.128": "net1.c1"}
