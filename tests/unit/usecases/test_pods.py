"""Pods: what an orchestrator's pod gets, and how it is given back (spec: cni-plugin 5, 6.4; K8S-001 to K8S-047)."""

from __future__ import annotations

import json

import pytest

from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, KubernetesSettings, PolicySettings
from domain.cni.request import CniArgs
from domain.cni.result import Result, ResultIp, result_text
from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.workload.endpoint import Nat, WorkloadEndpoint
from domain.workload.pod import ContainerPort, Pod
from ports.cluster import NoSuchObject
from ports.datastore import BlockKey, WorkloadEndpointKey, WorkloadEndpoints
from ports.errors import BadConfiguration, Conflict, Missing, Refused, Unauthorized, Unavailable
from usecases.add_workload import add_workload
from usecases.calls.effects import DEVICE_SHARE
from usecases.delete_workload import delete_workload
from usecases.pods.azure_state import endpoint_path
from worlds.one_node import NEVER, NODE, OneNode, netns

ANNOTATION = "cni.projectcalico.org/"
DUAL = IpamSettings(type="calico-ipam", assign_ipv6="true")
HOST_LOCAL = IpamSettings(type="host-local")
NAME = f"{NODE}-k8s-web--0-eth0"
KEY = WorkloadEndpointKey("shop", NAME)
HOST_LINK = "calia4fc3c48bd8"  # from SHA-1 of shop.web-0
GIVEN = Result(ips=(ResultIp(Cidr.parse("10.30.1.2/24")),))


class Pods(OneNode):
    """`node1` with the pod `shop/web-0`, whose owner's wishes are `annotations`."""

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.cluster.namespaces = {"shop": {"team": "blue"}}
        self.annotate()

    def annotate(self, **annotations: object) -> None:
        """Each by the end of its name; what is no text becomes JSON."""
        texts = {
            ANNOTATION + name: text if isinstance(text, str) else json.dumps(text) for name, text in annotations.items()
        }
        self.pod = Pod(
            "web-0",
            "shop",
            uid="u1",
            labels={"app": "web"},
            annotations=texts,
            node=NODE,
            service_account="seller",
            generate_name="web-",
            ports=(ContainerPort(8080, "http"),),
        )
        self.cluster.pods["shop", "web-0"] = self.pod

    def call(self, verb="ADD", container="c1", ifname="eth0", **fields):
        given = {
            "args": CniArgs(pod_name="web-0", pod_namespace="shop"),
            "policy": PolicySettings(type="k8s"),
            "text": '{"ipam": {}}',
            **fields,
        }
        call = super().call(verb, container, ifname, **given)
        args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
        return call.replace(request=call.request.replace(args=args))

    def endpoint(self) -> WorkloadEndpoint:
        (endpoint,) = self.endpoints()
        return endpoint


@pytest.fixture
def node():
    return Pods()


def refusal(node, kind: type[Exception] = CniError, **fields) -> str:
    """The error's text; nothing is left behind."""
    with pytest.raises(kind) as caught:
        node.add(**fields)
    assert node.leftovers() == {}
    return str(caught.value)


def addresses(result: Result) -> list[str]:
    return [str(ip.address) for ip in result.ips]


# --- ADD -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", ["cluster", "ipam_plugin"])
def test_what_cannot_be_opened_is_told_by_whoever_needs_it_and_not_ahead_of_that(node, port):
    """A cluster that is not ready is told before half a configuration is."""
    node.set_ready(ready=False)
    runtime = node.runtime()

    def refuse():
        raise BadConfiguration("half a configuration")

    runtime._open[port] = refuse
    with pytest.raises(CniError, match="not ready"):
        add_workload(node.call(ipam=DUAL), runtime, node.undo())
    assert "half a configuration" in " ".join(node.log.shown("debug"))


def test_a_pod_gets_addresses_a_device_and_an_endpoint(node):
    """K8S-001, K8S-003, K8S-038, K8S-039."""
    result = node.add(ipam=DUAL)
    assert [one.name for one in result.interfaces] == [HOST_LINK, "eth0"]
    assert len(result.ips) == len(result.routes) == 2
    endpoint = node.endpoint()
    assert endpoint.ip_networks == tuple(ip.address for ip in result.ips)
    assert (endpoint.metadata.name, endpoint.metadata.generate_name) == (NAME, "web-")
    assert endpoint.metadata.labels == {
        "app": "web",
        "projectcalico.org/namespace": "shop",
        "projectcalico.org/orchestrator": "k8s",
        "projectcalico.org/serviceaccount": "seller",
    }
    assert (endpoint.profiles, endpoint.container_id) == (("kns.shop", "ksa.shop.seller"), "c1")
    assert [(port.name, port.port) for port in endpoint.ports] == [("http", 8080)]
    assert endpoint.interface_name == HOST_LINK
    assert endpoint.mac == result.interfaces[1].mac != ""
    assert node.profiles() == []
    (attachment,) = node.dataplane.connected
    assert attachment.host_routes
    assert attachment.replace_host_link
    assert (attachment.pod, attachment.labels["app"], attachment.ports) == ("web-0", "web", endpoint.ports)


def test_without_a_policy_for_kubernetes_the_orchestrator_is_not_asked(node):
    """Recording etcd-k8s-policy-name has the rest: the network's profile lets everybody in."""
    node.cluster.namespaces = None
    node.add(policy=PolicySettings())
    endpoint = node.endpoint()
    assert (endpoint.profiles, endpoint.ports) == (("net1",), ())
    assert node.profiles() == ["net1"]


def test_a_pod_that_is_not_there_is_the_api_servers_own_error(node):
    """Recording kdd-missing-pod."""
    node.cluster.pods.clear()
    assert refusal(node, NoSuchObject) == 'pods "web-0" not found'


def test_a_pod_that_cannot_be_an_endpoint_is_refused(node):
    node.annotate(allowedSourcePrefixes="8.8.8.8")
    assert refusal(node).startswith("failed to parse '8.8.8.8' as JSON")


def test_r08_a_node_name_that_is_not_the_pods_is_refused_before_anything_is_written(node):
    node.cluster.pods["shop", "web-0"] = node.pod.replace(node="node-new")
    text = refusal(node, datastore_type="kubernetes")
    assert text == 'the plugin\'s node name is "node1" but pod shop/web-0 is on node "node-new"'
    node.add(datastore_type="etcdv3")  # where a node may have a name of its own


def test_r01_the_late_sandbox_of_a_pod_that_is_gone_leaves_its_namesake_alone(node):
    """They have one host device between them."""
    late = CniArgs(pod_name="web-0", pod_namespace="shop", pod_uid="u0")
    assert refusal(node, args=late) == "pod shop/web-0 is another one by now: its uid is u1, not u0"
    node.add(args=late.replace(pod_uid="u1"))


def test_a_static_pod_is_known_by_its_mirror(node):
    node.cluster.pods["shop", "web-0"] = node.pod.replace(annotations={"kubernetes.io/config.mirror": "u0"})
    node.add(args=CniArgs(pod_name="web-0", pod_namespace="shop", pod_uid="u0"))


def test_the_names_of_devices_follow_felix(node):
    call = node.call()
    call = call.replace(request=call.request.replace(interface_prefixes="eni,veth"))

    result = add_workload(call, node.runtime(), node.undo())
    assert result.interfaces[0].name == "eni" + HOST_LINK.removeprefix("cali")


@pytest.mark.parametrize("mac", ["invalid MAC address", ""])
def test_a_mac_that_is_none_is_refused_before_anything_is_allocated(node, mac):
    """K8S-045."""
    node.annotate(hwAddr=mac)
    assert refusal(node).startswith(f"failed to parse MAC address {mac} provided via {ANNOTATION}hwAddr: ")


def test_a_mac_can_be_asked_for(node):
    """K8S-044."""
    node.annotate(hwAddr="ca:fe:ca:fe:ca:fe")
    assert node.add().interfaces[1].mac == "ca:fe:ca:fe:ca:fe"


def test_a_dataplane_that_names_no_mac_fails_the_call(node):
    connect = node.dataplane.connect
    node.dataplane.connect = lambda attachment, deadline: connect(attachment, deadline).replace(mac="")
    assert refusal(node) == "invalid MAC address"


# --- addresses -------------------------------------------------------------------------------------------------------


def test_pools_can_be_asked_for(node):
    """K8S-016, K8S-020, K8S-046."""
    node.add_pool("mine", "50.80.0.0/24")
    node.cluster.annotations["shop"] = {ANNOTATION + "ipv4pools": '["50.90.0.0/24"]'}
    node.annotate(ipv4pools=["mine"])
    assert addresses(node.add())[0].startswith("50.80.0.")


def test_c02_a_list_of_pools_that_cannot_be_read_says_what_could_stand_there(node):
    node.annotate(ipv4pools="[new-pool]")
    with pytest.raises(CniError) as caught:
        node.add()
    assert caught.value.code == 7
    assert caught.value.details == (
        f"annotation {ANNOTATION}ipv4pools of pod shop/web-0 or its namespace is [new-pool]; IP pools: pool0, pool1"
    )


def test_fixed_addresses_come_from_ipam(node):
    """K8S-029; as recorded in kdd-ipaddrs without routes, so that Felix makes the host's."""
    node.annotate(ipAddrs=["10.244.0.111", "fd00:10:244::6f"])
    result = node.add()
    assert addresses(result) == ["10.244.0.111/32", "fd00:10:244::6f/128"]
    assert result.routes == ()
    assert not node.dataplane.connected[0].host_routes
    assert node.holders() == {"10.244.0.111": "net1.c1", "fd00:10:244::6f": "net1.c1"}


def test_a_fixed_address_that_is_taken_gives_the_other_back(node):
    """G9."""
    node.add_block("fd00:10:244::/122", None, ("x", 1), state="")
    held = node.holders()
    node.annotate(ipAddrs=["10.244.0.111", "fd00:10:244::"])
    with pytest.raises(CniError, match="error getting IP from IPAM: ") as caught:
        node.add()
    assert caught.value.code == 999
    assert node.holders() == held


def test_an_outage_in_the_middle_of_fixed_addresses_stays_an_outage(node):
    node.annotate(ipAddrs=["10.244.0.111"])
    node.fail("create", BlockKey)
    with pytest.raises(Unavailable):
        node.add()


def test_addresses_without_ipam_are_taken_as_they_are(node):
    """K8S-026, K8S-027."""
    node.annotate(ipAddrsNoIpam=["10.99.0.9"])
    assert refusal(node) == "requested feature is not enabled: ip_addrs_no_ipam"
    result = node.add(ip_addrs_no_ipam=True)
    assert (addresses(result), result.routes, node.holders()) == (["10.99.0.9/32"], (), {})
    assert node.endpoint().ip_networks == (Cidr.parse("10.99.0.9/32"),)


def test_floating_addresses_are_translated(node):
    """K8S-024, K8S-025, K8S-030."""
    node.annotate(floatingIPs=["1.1.1.1", "2001:647f::21"])
    assert refusal(node) == "requested feature is not enabled: floating_ips"
    result = node.add(floating_ips=True, ipam=DUAL)
    v4, v6 = (text.partition("/")[0] for text in addresses(result))
    assert node.endpoint().ip_nats == (Nat(v4, "1.1.1.1"), Nat(v6, "2001:647f::21"))


def test_floating_addresses_that_cannot_be_read_are_refused_first(node):
    node.annotate(floatingIPs="1.1.1.1")
    assert refusal(node, floating_ips=True).startswith("failed to parse '1.1.1.1' as JSON")


def test_a_floating_address_of_a_version_that_the_pod_has_not_got_is_refused(node):
    node.annotate(floatingIPs=["2001:647f::21"])
    assert "<nil>" in refusal(node, floating_ips=True)


def test_other_ipam_plugins_are_asked_as_they_are_configured(node):
    node.own_ipam = False
    node.plugin.answers("dhcp")
    node.annotate(ipv4pools=["ignored"])
    assert refusal(node, ipam=IpamSettings(type="dhcp")) == "IPAM plugin returned missing IP config"


def test_a_plugin_that_answers_nothing_for_a_fixed_address_fails_the_call(node):
    node.own_ipam = False
    node.plugin.answers("calico-ipam")
    node.annotate(ipAddrs=["10.244.0.111"])
    assert refusal(node) == "IPAM plugin returned missing IP config"


def test_host_local_gets_the_nodes_own_ranges_and_the_pod_the_configured_routes(node):
    """K8S-007, K8S-010."""
    node.own_ipam = False
    node.plugin.answers("host-local", GIVEN)
    node.cluster.nodes["node-2"] = ("10.30.1.0/24",)
    text = {
        "name": "net1",
        "ipam": {"type": "host-local", "subnet": "usePodCidr", "routes": [{"dst": "10.123.0.0/16"}]},
    }
    kubernetes = KubernetesSettings(node_name="node-2")
    node.add(ipam=HOST_LOCAL, text=json.dumps(text), kubernetes=kubernetes, include_default_routes=True)
    assert json.loads(node.plugin.calls[0].call.netconf_text)["ipam"]["subnet"] == "10.30.1.0/24"
    (attachment,) = node.dataplane.connected
    assert [str(route) for route in attachment.routes] == ["0.0.0.0/0", "::/0", "10.123.0.0/16"]
    assert attachment.host_routes


def test_host_local_with_ranges_of_its_own_needs_no_node(node):
    node.own_ipam = False
    node.plugin.answers("host-local", GIVEN)
    node.add(ipam=HOST_LOCAL, text='{"ipam": {"subnet": "10.9.0.0/24"}}')


def test_a_host_local_section_of_an_odd_shape_is_refused(node):
    node.own_ipam = False
    assert refusal(node, ipam=HOST_LOCAL, text='{"ipam": 7}').startswith("failed to parse host-local IPAM data")


def test_azure_keeps_its_state_around_the_call(node):
    azure = IpamSettings(type="azure-vnet-ipam")
    node.own_ipam = False
    node.plugin.answers("azure-vnet-ipam", GIVEN)
    node.add(ipam=azure)
    path = endpoint_path("net1", "c1", "eth0")
    assert path in node.node.files
    node.delete(ipam=azure)
    assert path not in node.node.files
    asked = len(node.plugin.calls)
    node.delete(ipam=azure)
    assert len(node.plugin.calls) == asked


# --- an earlier sandbox of the same pod ------------------------------------------------------------------------------


def test_a_new_sandbox_takes_the_pods_place_and_the_old_ones_del_leaves_it_alone(node):
    """R01, K8S-031, K8S-032; recording kdd-late-del."""
    first = node.add("c1")
    uid = node.endpoint().metadata.uid
    second = node.add("c2")
    assert addresses(first) != addresses(second)
    assert (node.endpoint().container_id, node.endpoint().metadata.uid) == ("c2", uid)
    node.delete("c1")
    assert node.endpoint().container_id == "c2"
    assert set(node.holders().values()) == {"net1.c2"}
    assert node.pod_links("c2") == ["eth0"]
    node.delete("c2")
    assert node.leftovers() == {}


def test_l08_a_fixed_address_moves_to_the_new_sandbox(node):
    node.annotate(ipAddrs=["10.244.0.111"])
    node.add("c1")
    node.add("c2")
    assert node.holders() == {"10.244.0.111": "net1.c2"}
    node.delete("c1")
    assert node.holders() == {"10.244.0.111": "net1.c2"}


def test_another_interface_name_finds_the_same_endpoint(node):
    """K8S-036: the endpoint keeps its name."""
    node.add("c1")
    node.dataplane.network.namespaces[netns("c1")].pop("eth0")
    node.add("c1", ifname="eth1")
    assert (node.endpoint().metadata.name, node.endpoint().endpoint) == (NAME, "eth0")


def test_r07_a_write_that_loses_its_race_is_tried_again(node):
    node.add("c1")
    with node.rival("update", WorkloadEndpointKey, label(node), times=4):
        node.add("c2")
    assert node.endpoint().container_id == "c2"


def label(node):
    def touch(key):
        stored = node.datastore.get(key, NEVER)
        node.datastore.update(key, stored.record, stored.revision, NEVER)

    return touch


def test_r07_a_write_that_always_loses_its_race_fails_the_call(node):
    node.add("c1")
    with node.rival("update", WorkloadEndpointKey, label(node), times=5), pytest.raises(Conflict):
        node.add("c2")
    assert set(node.holders().values()) == {"net1.c1"}


def test_an_endpoint_that_comes_or_goes_meanwhile_is_written_all_the_same(node):
    def make(key):
        node.datastore.create(key, node_endpoint, NEVER)

    node.add("c1")
    node_endpoint = node.endpoint()
    with node.rival("update", WorkloadEndpointKey, node.remove):
        node.add("c2")
    node.remove(KEY)
    with node.rival("create", WorkloadEndpointKey, make):
        node.add("c3")
    assert node.endpoint().container_id == "c3"


def test_a_pod_that_is_made_again_meanwhile_is_left_alone(node):
    """The late call fails, and takes back what it did; the new pod's endpoint stays."""
    node.put(KEY, WorkloadEndpoint(Metadata(NAME, "shop", uid="u1"), node=NODE, pod="web-0", endpoint="eth0"))
    newer = WorkloadEndpoint(
        Metadata(NAME, "shop", uid="u2"), node=NODE, pod="web-0", endpoint="eth0", container_id="c9"
    )

    def make_again(key):
        node.remove(key)
        node.put(key, newer)

    with (
        node.rival("update", WorkloadEndpointKey, make_again),
        pytest.raises(CniError, match=r"^pod shop/web-0 was made again during this call: its uid is u2, not u1$"),
    ):
        node.add("c1")
    assert node.endpoint().container_id == "c9"
    node.remove(KEY)
    assert node.leftovers() == {}


def test_a_pod_that_goes_while_it_is_networked_fails_the_call(node):
    node.fail("create", WorkloadEndpointKey, Missing(KEY))
    assert refusal(node, Missing).startswith("resource does not exist")


def test_an_answer_that_is_not_delivered_takes_a_first_endpoint_back(node):
    from usecases.add_workload import add_workload

    undo = node.undo()
    add_workload(node.call(), node.runtime(), undo)
    undo.run()
    assert node.leftovers() == {}


def test_an_answer_that_is_not_delivered_gives_the_earlier_sandbox_its_endpoint_again(node):
    from usecases.add_workload import add_workload

    node.add("c1")
    before = node.endpoint()
    undo = node.undo()
    add_workload(node.call(container="c2"), node.runtime(), undo)
    undo.run()
    assert node.endpoint() == before
    assert set(node.holders().values()) == {"net1.c1"}


def test_undoing_goes_by_the_container_where_the_pod_tells_of_earlier_addresses(node):
    """A Kubernetes datastore knows a pod's addresses from its kubelet, which has not heard of the new sandbox yet."""
    from usecases.add_workload import add_workload

    node.add("c1")
    before = node.endpoint()
    undo = node.undo()
    add_workload(node.call(container="c2"), node.runtime(), undo)
    stored = node.datastore.get(KEY, NEVER)
    node.datastore.update(KEY, stored.record.replace(ip_networks=before.ip_networks), stored.revision, NEVER)
    undo.run()
    assert node.endpoint() == before


def test_undoing_does_not_put_back_an_endpoint_that_had_no_address(node):
    """What a DEL leaves in a Kubernetes datastore; writing it back would change nothing there."""
    from usecases.add_workload import add_workload

    node.add("c1")
    stored = node.datastore.get(KEY, NEVER)
    node.datastore.update(KEY, stored.record.replace(ip_networks=()), stored.revision, NEVER)
    undo = node.undo()
    add_workload(node.call(container="c2"), node.runtime(), undo)
    undo.run()
    assert node.endpoints() == []


def test_the_device_is_undone_though_the_datastore_takes_all_the_time(node):
    from usecases.add_workload import add_workload

    undo = node.undo()
    add_workload(node.call(), node.runtime(), undo)
    node.datastore.before = lambda _verb, _key: node.clock.advance(11)
    undo.run()
    assert not {"host links", "pod links"} & node.leftovers().keys()


def test_undoing_leaves_the_endpoint_of_a_still_newer_sandbox(node):
    from usecases.add_workload import add_workload

    undo = node.undo()
    add_workload(node.call(container="c1"), node.runtime(), undo)
    node.add("c2")
    undo.run()
    assert node.endpoint().container_id == "c2"


# --- policy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "warnings"), [(1.0, 0), (9.0, 1)])
def test_d03_a_pod_may_wait_for_its_policy(node, after, warnings):
    node.readiness.make_ready("/status/k8s shop%2Fweb-0 eth0", after)
    node.add(policy_setup_timeout_seconds=5, endpoint_status_dir="/status/")
    assert len([line for line in node.log.shown("warning") if "endpoint status file" in line]) == warnings
    assert node.endpoint()


# --- DEL -------------------------------------------------------------------------------------------------------------


def test_everything_a_pod_has_is_taken_back_and_again(node):
    """K8S-002, K01."""
    node.add(ipam=DUAL)
    node.delete(ipam=DUAL)
    assert node.leftovers() == {}
    node.delete(ipam=DUAL)
    node.delete(netns="", ipam=DUAL)


@pytest.mark.parametrize("error", [Unavailable("away"), Unauthorized("no token")])
def test_k02_c14_the_device_goes_though_the_datastore_cannot_be_asked(node, error):
    node.add()
    node.fail("fetch", WorkloadEndpoints, error)
    with pytest.raises(Unavailable):
        node.delete()
    assert (node.pod_links(), node.host_links(), node.dataplane.unfinished) == ([], [], [])
    node.heal()
    node.delete()
    assert node.leftovers() == {}


def test_records_go_while_the_system_has_still_to_do_with_the_device_and_the_call_ends_after_both(node):
    node.add()
    seen = []
    node.datastore.before = lambda verb, _key: seen.append((verb, node.pod_links(), node.dataplane.unfinished[:]))
    node.delete()
    assert {verb for verb, _, _ in seen} >= {"fetch", "update", "delete"}
    assert [links for _, links, _ in seen] == [[]] * len(seen)
    assert [unfinished for _, _, unfinished in seen] == [[(netns("c1"), "eth0")]] * len(seen)
    assert node.leftovers() == {}


def test_a_del_that_is_interrupted_waits_for_what_the_system_does_with_its_device(node):
    class Signal(BaseException):
        """As `entrypoints.termination.Interrupted`."""

    node.add()
    node.fail("delete", WorkloadEndpointKey, Signal())
    with pytest.raises(Signal):
        node.delete()
    assert (node.pod_links(), node.dataplane.unfinished) == ([], [])


def test_that_wait_has_time_though_the_datastore_has_used_up_the_whole_call(node):
    left = []

    class Slow(type(node.dataplane)):
        def begin_disconnect(self, netns, ifname, deadline):
            self.disconnect(netns, ifname, deadline)
            return lambda until: left.append(until.left(self._clock.monotonic()))

    node.dataplane = Slow(node.clock, node.log)
    for container in ("c1", "c2"):
        node.dataplane.network.add_namespace(netns(container))
    node.add()
    node.fail("fetch", WorkloadEndpoints)
    call = node.call("DEL")
    node.clock.advance(100)
    with pytest.raises(Unavailable):
        delete_workload(call, node.runtime())
    assert left == [DEVICE_SHARE]


def test_a_device_that_cannot_be_taken_away_leaves_nothing_to_wait_for_and_the_records_go(node):
    class Stuck(type(node.dataplane)):
        def begin_disconnect(self, netns, ifname, deadline):
            raise Unavailable("busy")

    node.dataplane = Stuck(node.clock, node.log)
    node.dataplane.network.add_namespace(netns("c1"))
    node.add()
    with pytest.raises(Unavailable, match="busy"):
        node.delete()
    assert (node.pod_links(), node.holders(), node.endpoints()) == (["eth0"], {}, [])


def test_without_cni_netns_no_device_is_touched(node):
    node.add()
    node.delete(netns="")
    assert node.host_links() == [HOST_LINK]
    assert (node.holders(), node.endpoints()) == ({}, [])


def test_a_cluster_that_is_not_ready_refuses_to_release(node):
    node.add()
    node.set_ready(ready=False)
    with pytest.raises(CniError, match="not ready"):
        node.delete()
    assert node.holders()


@pytest.mark.parametrize("error", [Unavailable("away"), Unauthorized("expired")])
def test_an_endpoint_that_cannot_be_deleted_now_leaves_the_rest_for_later(node, error):
    node.add()
    node.fail("delete", WorkloadEndpointKey, error)
    with pytest.raises(Unavailable):
        node.delete()
    assert node.holders()


def test_credentials_that_end_during_the_release_make_the_runtime_try_again(node):
    node.own_ipam = False
    node.plugin.answers("calico-ipam", GIVEN)
    node.add()
    node.plugin.fails("calico-ipam", "DEL", Unauthorized("expired"))
    with pytest.raises(Unavailable):
        node.delete()


def test_an_endpoint_that_changes_meanwhile_is_looked_at_again(node):
    node.add()
    with node.rival("delete", WorkloadEndpointKey, node.touch, times=5):
        node.delete()
    assert node.leftovers() == {}


def test_an_endpoint_that_always_changes_is_an_error_and_the_addresses_go(node):
    node.add()
    with node.rival("delete", WorkloadEndpointKey, node.touch, times=6), pytest.raises(Refused) as caught:
        node.delete()
    assert str(caught.value).startswith(
        "error deleting endpoint: endpoint was modified before it could be deleted: update conflict"
    )
    assert node.holders() == {}


def test_an_endpoint_that_goes_meanwhile_is_fine(node):
    node.add()
    with node.rival("delete", WorkloadEndpointKey, node.remove):
        node.delete()
    assert node.leftovers() == {}


def test_d06_addresses_stay_until_the_containers_last_interface_goes(node):
    node.add()
    node.delete(ifname="net1")
    assert (node.pod_links(), len(node.holders()), len(node.endpoints())) == (["eth0"], 1, 1)
    assert "Keeping what another interface has" in node.log.shown("info")[-1]
    node.dataplane.network.namespaces[netns("c1")].pop("eth0")
    node.delete(ifname="net1")
    assert (node.holders(), node.endpoints()) == ({}, [])


def test_d06_an_interface_in_a_namespace_that_is_gone_keeps_nothing(node):
    node.add()
    del node.dataplane.network.namespaces[netns("c1")]
    node.delete(ifname="net1")
    assert (node.holders(), node.endpoints()) == ({}, [])


# --- CHECK -----------------------------------------------------------------------------------------------------------


def test_c10_a_healthy_pod_passes_and_its_missing_route_is_told(node):
    previous = result_text(node.add(ipam=DUAL), "1.0.0")
    node.check(prev_result=previous, ipam=DUAL)
    link = node.dataplane.network.link(netns("c1"), "eth0")
    link.routes = [(to, via) for to, via in link.routes if str(to) != "::/0"]
    with pytest.raises(CniError, match="route to ::/0 is missing"):
        node.check(prev_result=previous, ipam=DUAL)


def test_c10_the_routes_of_host_local_are_the_configured_ones(node):
    node.own_ipam = False
    node.plugin.answers("host-local", GIVEN)
    text = '{"ipam": {"subnet": "10.30.1.0/24", "routes": [{"dst": "10.123.0.0/16"}]}}'
    previous = result_text(node.add(ipam=HOST_LOCAL, text=text), "1.0.0")
    node.check(prev_result=previous, ipam=HOST_LOCAL, text=text)
    with pytest.raises(CniError, match=r"route to 0\.0\.0\.0/0 is missing"):
        node.check(prev_result=previous, ipam=HOST_LOCAL, text=text, include_default_routes=True)
    with pytest.raises(CniError, match="IPAM routes section"):
        node.check(prev_result=previous, ipam=HOST_LOCAL, text='{"ipam": {"routes": [7]}}')
