"""DEL of the network plugin (spec: cni-plugin 6; CNI-011, CNI-013, CNI-026, CNI-027, CNI-032, K01, K02, C11)."""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings
from domain.cni.request import CniArgs
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Cidr
from ports.datastore import BlockKey, ClusterInformationKey, HandleKey, WorkloadEndpointKey, WorkloadEndpoints
from ports.errors import Expired, Missing, Refused, Unauthorized, Unavailable
from usecases.delete_workload import delete_workload
from worlds.one_node import OneNode, netns

DUAL = IpamSettings(type="calico-ipam", assign_ipv6="true")
HOST_LOCAL = IpamSettings(type="host-local")


def refusal(node, kind: type[Exception] = CniError, **fields) -> str:
    with pytest.raises(kind) as caught:
        node.delete(**fields)
    return str(caught.value)


def refusal_of_add(node, **fields) -> str:
    with pytest.raises(CniError) as caught:
        node.add(**fields)
    return str(caught.value)


# --- what a container has is taken back ------------------------------------------------------------------------------


def test_everything_a_container_has_is_taken_back(node):
    node.add(ipam=DUAL)
    node.delete(ipam=DUAL)
    assert node.leftovers() == {}
    assert node.profiles() == ["net1"]  # the network's profile is not the container's


def test_others_keep_what_they_have(node):
    node.add("c1")
    node.add("c2")
    node.delete("c1")
    assert node.holders() == {"10.244.0.129": "net1.c2"}
    assert [endpoint.container_id for endpoint in node.endpoints()] == ["c2"]
    assert (node.host_links(), node.pod_links("c2")) == (["calic2"], ["eth0"])


def test_the_other_ipam_plugin_is_asked_with_the_original_text():
    node = OneNode(own_ipam=False)
    node.plugin.answers("host-local", Result(ips=(ResultIp(Cidr.parse("10.22.0.7/16")),)))
    node.add(ipam=HOST_LOCAL)
    node.delete(ipam=HOST_LOCAL)
    assert [ran.verb for ran in node.plugin.calls] == ["ADD", "DEL"]
    assert node.plugin.calls[1].call.netconf_text == '{"the": "text"}'
    assert node.leftovers() == {}


def test_an_endpoint_is_found_whatever_interface_name_the_del_speaks_of(node):
    """G17."""
    node.add(ifname="eth0")
    node.dataplane.disconnect(netns("c1"), "eth0", node.call().deadline)
    node.delete(ifname="net1")
    assert node.leftovers() == {}


def test_d06_a_del_of_another_interface_leaves_the_one_that_is_there(node):
    """A second network adopted the container's endpoint; its DEL must not take what the first one still uses."""
    node.add(ifname="eth0")
    node.delete(ifname="net1", name="net2")
    node.delete(ifname="net1")
    assert [endpoint.endpoint for endpoint in node.endpoints()] == ["eth0"]
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    assert node.pod_links("c1") == ["eth0"]
    node.delete(ifname="eth0")
    assert node.leftovers() == {}


def test_without_a_namespace_an_endpoint_of_another_interface_name_is_a_leftover(node):
    node.add(ifname="eth0")
    node.dataplane.network.remove_namespace(netns("c1"))
    node.delete(ifname="net1", netns="")
    assert (node.endpoints(), node.holders()) == ([], {})


def test_an_endpoint_whose_namespace_is_gone_is_a_leftover(node):
    node.add(ifname="eth0")
    node.dataplane.network.remove_namespace(netns("c1"))
    node.delete(ifname="net1")
    assert (node.endpoints(), node.holders()) == ([], {})


def test_a_damaged_endpoint_is_deleted_too(node):
    """K03: no listing shows it."""
    node.add()
    key = WorkloadEndpointKey("default", "node1-cni-c1-eth0")
    node.datastore.load({key_text(key): "{"})
    node.delete()
    assert node.leftovers() == {}


def test_one_call_at_a_time_works_on_a_container(node):
    node.add()
    node.delete()
    assert node.lock.kept == [netns("c1"), netns("c1")]


def test_an_endpoint_in_a_mesos_namespace_is_found(node):
    """G7."""
    labels = (("projectcalico.org/namespace", "prod"),)
    node.add(mesos_labels=labels)
    node.delete(mesos_labels=labels)
    assert node.leftovers() == {}


# --- nothing there ---------------------------------------------------------------------------------------------------


def test_a_container_that_was_never_added_is_deleted(node):
    """CNI-026, K01."""
    node.delete()
    assert node.leftovers() == {}


@pytest.mark.parametrize("path", ["/not/a/real/path1234567890", "", "/etc/hostname"])
def test_a_namespace_that_is_gone_is_no_obstacle(node, path):
    """CNI-027, K01."""
    node.dataplane.network.files.add("/etc/hostname")
    node.add()
    node.dataplane.network.remove_namespace(netns("c1"))
    node.dataplane.network.add_namespace(netns("c1"))
    for _ in range(2):
        node.delete(netns=path)
    assert node.leftovers() == {}


def test_a_second_del_succeeds(node):
    """CNI-032, K01."""
    node.add()
    node.delete()
    node.delete()
    assert node.leftovers() == {}


def test_a_container_that_is_half_gone_is_deleted(node):
    node.add()
    node.remove(WorkloadEndpointKey("default", "node1-cni-c1-eth0"))
    node.dataplane.disconnect(netns("c1"), "eth0", node.call().deadline)
    node.delete()
    assert node.leftovers() == {}


def test_an_endpoint_that_another_del_deletes_first_is_fine(node):
    node.add()
    with node.rival("delete", WorkloadEndpointKey, node.remove):
        node.delete()
    assert node.leftovers() == {}
    assert "The endpoint is gone already endpoint=WorkloadEndpoint(default/node1-cni-c1-eth0)" in node.log.shown(
        "debug"
    )


def test_an_endpoint_is_deleted_at_whatever_revision(node):
    """spec: cni-plugin 6.2, step 2."""
    node.add()
    with node.rival("delete", WorkloadEndpointKey, node.touch):
        node.delete()
    assert node.leftovers() == {}


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", [False, None])
def test_a_cluster_that_is_not_ready_keeps_everything(node, ready):
    """CNI-011."""
    node.add()
    before = node.leftovers()
    node.set_ready(ready=ready)
    assert refusal(node) == "Calico is currently not ready to process requests"
    assert node.leftovers() == before


def test_a_cluster_without_information_is_refused(node):
    """CNI-013."""
    node.add()
    node.remove(ClusterInformationKey("default"))
    assert refusal(node).startswith("error getting ClusterInformation: resource does not exist")
    assert node.host_links() == ["calic1"]


def test_the_plugins_own_namespace_is_refused_before_anything_is_done(node):
    """G2: a DEL in the plugin's own namespace would delete the host's device."""
    node.add()
    before = node.leftovers()
    assert refusal(node, netns="/proc/self/ns/net").startswith("plugin's netns and netns from CNI_NETNS")
    assert node.leftovers() == before


@pytest.mark.parametrize(
    "fields",
    [
        {"args": CniArgs(pod_name="-p", pod_namespace="n")},
        {"args": CniArgs(pod_name="a/b", pod_namespace="n")},
        {"args": CniArgs(pod_name="p", pod_namespace="n/m")},
        {"args": CniArgs(pod_name="p\udcff", pod_namespace="n")},
        {"args": CniArgs(test_namespace="n/m")},
        {"ifname": "eth-"},
    ],
)
def test_what_add_refuses_for_its_name_was_never_ours(node, fields):
    node.add()
    before = node.leftovers()
    with pytest.raises((CniError, Refused)):
        node.add("c2", **fields)
    node.delete(**fields)
    assert node.leftovers() == before
    (told,) = [line for line in node.log.shown("warning") if line.startswith("Nothing to delete: no ADD can have")]
    assert any(name in told for name in ("'-p'", "'a/b'", "'n/m'", "'p\\udcff'", "'eth-'"))


@pytest.mark.parametrize("nodename", ["node/a", "-node", "node\0"])
def test_what_goes_by_the_container_alone_goes_whatever_the_node_is_called_now(node, nodename):
    assert f"field node = '{nodename}'" in refusal_of_add(node, nodename=nodename)
    node.delete(nodename=nodename)
    node.add()
    node.delete(nodename=nodename)
    assert set(node.leftovers()) == {"endpoints"}
    node.delete()
    assert node.leftovers() == {}


def test_a_missing_nodename_file_is_told_when_the_rest_is_done(node):
    """The original's code and text; it does nothing."""
    node.add()
    assert refusal(node, nodename_file="/x").startswith("stat /x: no such file or directory")
    assert set(node.leftovers()) == {"endpoints"}


def test_what_only_add_needs_is_not_asked_for(node):
    """spec: cni-plugin 6.1."""
    node.add()
    node.delete(require_mtu_file=True, device_type="foo", readiness_gates=("http://never/",))
    assert node.leftovers() == {}


# --- a datastore that is away ----------------------------------------------------------------------------------------


def test_k02_the_device_goes_at_once_and_a_second_del_releases_the_rest(node):
    """K02."""
    node.add()
    node.fail("fetch", ClusterInformationKey)
    assert refusal(node, Unavailable) == "error getting ClusterInformation: the datastore is away"
    assert (node.host_links(), node.pod_links()) == ([], [])
    node.heal()
    assert node.holders() == {"10.244.0.128": "net1.c1"}
    node.delete()
    assert node.leftovers() == {}


def test_k02_a_datastore_that_cannot_even_be_opened_is_away_as_well(node):
    """K02."""

    def opening():
        raise Unavailable("no such server")

    node.add()
    with pytest.raises(Unavailable, match="no such server"):
        delete_workload(node.call("DEL"), node.runtime(datastore=opening))
    assert node.host_links() == []


def test_k02_an_outage_is_told_within_ten_seconds(node):
    """K02: the datastore has eight seconds for its first answer."""

    class Silent(type(node.datastore)):
        def fetch(self, *needs, deadline):
            node.clock.sleep(deadline.left(node.clock.monotonic()))
            raise Expired("the datastore")

    with pytest.raises(Unavailable):
        delete_workload(node.call("DEL", seconds=60), node.runtime(datastore=lambda: Silent(node.clock)))
    assert node.clock.monotonic() == 8


def test_k02_the_outage_is_told_even_if_the_device_cannot_be_removed(node):
    """K02: the runtime must get the code that makes it try again."""
    node.add()
    node.fail("fetch", ClusterInformationKey)

    class Stuck(type(node.dataplane)):
        def disconnect(self, netns, ifname, deadline):
            raise Refused("device busy")

    node.dataplane = Stuck(node.clock, node.log)
    with pytest.raises(Unavailable, match="error getting ClusterInformation"):
        node.delete()
    assert [line for line in node.log.shown("error") if line.startswith("DEL could not remove the device")]


def test_k02_the_device_goes_even_if_the_datastore_has_used_up_the_whole_call(node):
    """K02."""
    node.add()
    call = node.call("DEL", seconds=5)
    node.fail("fetch", ClusterInformationKey)
    node.clock.advance(6)
    with pytest.raises(Unavailable, match="error getting ClusterInformation"):
        delete_workload(call, node.runtime())
    assert node.host_links() == []


# --- a step that fails keeps no other from being tried ---------------------------------------------------------------


def test_addresses_that_cannot_be_released_keep_nothing_else(node):
    """spec: cni-plugin 6.2: the IPAM error is remembered."""
    node.add()
    node.fail("fetch", HandleKey)
    assert refusal(node, Unavailable) == "the datastore is away"
    node.heal()
    assert set(node.leftovers()) == {"addresses", "handles"}
    assert node.log.shown("error") == ["DEL could not release the addresses error=the datastore is away"]


def test_an_ipam_error_keeps_its_code(node):
    node = OneNode(own_ipam=False)
    node.plugin.fails("host-local", "DEL", Refused("no", 100, "why"))
    with pytest.raises(Refused) as caught:
        node.delete(ipam=HOST_LOCAL)
    assert (caught.value.code, caught.value.details) == (100, "why")


def test_an_endpoint_that_cannot_be_deleted_keeps_nothing_else_and_is_told_first(node):
    node.add()
    node.fail("delete", WorkloadEndpointKey, Unauthorized("no"))
    assert refusal(node, Unauthorized) == "connection is unauthorized: no"
    assert set(node.leftovers()) == {"endpoints"}


def test_the_endpoints_failure_is_told_before_the_addresses_failure(node):
    node.add()

    def hook(verb, key):
        if isinstance(key, WorkloadEndpoints):
            raise Unauthorized("endpoint")
        if isinstance(key, (HandleKey, BlockKey)):
            raise Unavailable("addresses")

    node.datastore.before = hook
    assert refusal(node, Unauthorized) == "connection is unauthorized: endpoint"
    assert node.host_links() == []


def test_past_the_deadline_all_steps_are_tried_and_a_repeated_del_finishes():
    node = OneNode(own_ipam=False)
    node.plugin.answers("host-local", Result(ips=(ResultIp(Cidr.parse("10.22.0.7/16")),)))
    node.add(ipam=HOST_LOCAL)
    node.plugin.takes("host-local", 5)
    assert refusal(node, Expired, ipam=HOST_LOCAL, seconds=3).startswith("deadline exceeded while waiting for")
    assert [line.partition(" error=")[0] for line in node.log.shown("error")] == [
        "DEL could not release the addresses",
        "DEL could not release what another IPAM plugin gave",
        "DEL could not delete the endpoint",
    ]
    assert node.host_links() == []
    node.plugin.takes("host-local", 0)
    node.delete(ipam=HOST_LOCAL)
    assert node.leftovers() == {}


def test_a_datastore_that_knows_pods_only_has_no_endpoint_of_a_plain_container(node):
    """spec: cni-plugin 6.2 on Kubernetes: what cannot be there need not be deleted."""
    node.assign()
    node.fail("fetch", WorkloadEndpoints, Missing("WorkloadEndpoint", "malformed WorkloadEndpoint name"))
    node.delete()
    node.heal()
    assert node.holders() == {}
