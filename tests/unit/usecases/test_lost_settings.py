"""DEL whose configuration has lost what ADD had, or names another IPAM plugin: a container can always end."""

from __future__ import annotations

import json

import pytest

from adapters.records.codec import key_text
from adapters.records.members import BadRecord
from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, KubernetesSettings, NetConf, PolicySettings
from domain.cni.request import CniArgs
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Cidr
from domain.workload.pod import Pod
from ports.datastore import ClusterInformationKey, HandleKey, WorkloadEndpointKey
from ports.errors import BadConfiguration, NoWay, Refused, Unauthorized, Unavailable
from ports.former import Installed
from usecases.calls.lost_settings import settings_of_add
from usecases.delete_workload import delete_workload
from usecases.release_addresses import release_addresses
from worlds.one_node import OneNode

FOLDER = "/etc/cni/net.d"
KUBECONFIG = f"{FOLDER}/calico-kubeconfig"
HOST_LOCAL, OWN, NONE = IpamSettings(type="host-local"), IpamSettings(type="calico-ipam"), IpamSettings()
ADDRESS = Cidr.parse("10.22.0.7/16")
TEXT = '{"ipam": {"type": "host-local"}}'
POD = CniArgs(pod_name="p", pod_namespace="gold")


@pytest.fixture
def node() -> OneNode:
    node = OneNode()
    node.plugin.answers("host-local", Result(ips=(ResultIp(ADDRESS),)))
    node.cluster.namespaces = {"gold": {}}
    node.cluster.pods["gold", "p"] = Pod("p", "gold", node="node1")
    return node


def install(node: OneNode, *configurations: object, kubeconfig: str = "") -> None:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in configurations]
    named = tuple([(f"{FOLDER}/{number}.conflist", text) for number, text in enumerate(texts)])
    node.former.files = Installed(FOLDER, named, kubeconfig)


def conf(**members: object) -> dict:
    return {"cniVersion": "1.0.0", "name": "net1", "type": "calico", **members}


def no_settings():
    raise BadConfiguration("no configuration has been provided, try setting KUBERNETES_MASTER environment variable")


def delete_without_settings(node: OneNode, **fields: object) -> None:
    delete_workload(node.call("DEL", type="calico", **fields), node.runtime(datastore=no_settings))


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [CniArgs(), POD])
def test_what_needs_no_settings_is_done_and_the_rest_can_be_tried_again(node, args):
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL, args=args, text=TEXT)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            delete_without_settings(node, ipam=HOST_LOCAL, args=args)
    assert str(caught.value) == (
        "no configuration has been provided, try setting KUBERNETES_MASTER environment variable; "
        f"DEL found no other settings in {FOLDER}: put back what ADD had"
    )
    assert (node.pod_links(), node.plugin.added) == ([], {})
    assert set(node.leftovers()) == {"endpoints"}
    node.delete(ipam=HOST_LOCAL, args=args)
    assert node.leftovers() == {}


@pytest.mark.parametrize("args", [CniArgs(), POD])
@pytest.mark.parametrize("ipam", [HOST_LOCAL, OWN])
def test_settings_are_those_that_are_installed_for_the_network(node, args, ipam):
    node.own_ipam = ipam is OWN
    node.add(ipam=ipam, args=args, text=TEXT)
    install(node, conf(datastore_type="etcdv3", etcd_endpoints="http://10.0.0.1:2379"))
    delete_without_settings(node, ipam=ipam, args=args)
    assert node.leftovers() == {}
    (used,) = node.former.opened
    assert (used.datastore_type, used.etcd_endpoints, used.ipam) == ("etcdv3", "http://10.0.0.1:2379", ipam)
    (told,) = [line for line in node.log.shown("warning") if line.startswith("DEL lacks settings")]
    assert f"used={FOLDER}/0.conflist" in told
    assert "KUBERNETES_MASTER" in told


@pytest.mark.parametrize("args", [CniArgs(), POD])
@pytest.mark.parametrize("ipam", [HOST_LOCAL, OWN])
def test_settings_for_which_the_original_has_another_code_are_looked_for_as_well(node, args, ipam):
    def none():
        raise NoWay("no etcd endpoints specified", details="set them")

    node.own_ipam = ipam is OWN
    node.add(ipam=ipam, args=args, text=TEXT)
    call = node.call("DEL", type="calico", datastore_type="etcdv3", ipam=ipam, args=args)
    with pytest.raises(Unavailable, match=r"no etcd endpoints specified; DEL found no .*: put back what ADD had"):
        delete_workload(call, node.runtime(datastore=none))
    install(node, conf(etcd_endpoints="http://10.0.0.1:2379"))
    delete_workload(call, node.runtime(datastore=none))
    assert (node.leftovers(), node.former.opened[0].etcd_endpoints) == ({}, "http://10.0.0.1:2379")


def test_settings_that_lead_nowhere_either_can_be_tried_again(node):
    node.add()
    install(node, conf(etcd_endpoints="http://x"))
    node.former._open = lambda _netconf: node.runtime(datastore=no_settings)
    with pytest.raises(Unavailable, match="put back what ADD had"):
        delete_without_settings(node)
    assert node.pod_links() == []


def test_an_outage_behind_settings_that_were_found_is_told_as_it_is(node):
    node.add()
    install(node, conf(etcd_endpoints="http://x"))
    node.fail("fetch", ClusterInformationKey)
    with pytest.raises(Unavailable, match=r"error getting ClusterInformation: the datastore is away$"):
        delete_without_settings(node)


def test_an_outage_is_no_lack_of_settings(node):
    install(node, conf(etcd_endpoints="http://x"))
    node.fail("fetch", ClusterInformationKey)
    with pytest.raises(Unavailable, match="the datastore is away"):
        node.delete(type="calico")
    assert node.former.opened == []


def test_an_embedded_datastore_that_is_not_there_may_be_a_path_that_is_lost(node):
    node.add()
    install(node, conf(sqlite_path="/srv/datastore.db"))

    def missing():
        raise Unavailable("datastore /var/lib/tortie/datastore.db: no such file or directory")

    delete_workload(node.call("DEL", type="calico", datastore_type="sqlite"), node.runtime(datastore=missing))
    assert node.leftovers() == {}
    assert node.former.opened[0].sqlite_path == "/srv/datastore.db"


@pytest.mark.parametrize("args", [CniArgs(), POD])
def test_credentials_that_are_lost_are_looked_for_too(node, args):
    node.add(args=args)

    def refused():
        raise Unauthorized("Unauthorized")

    with pytest.raises((Unauthorized, Unavailable), match="connection is unauthorized"):
        delete_workload(node.call("DEL", type="calico", args=args), node.runtime(datastore=refused))
    install(node, conf(policy={"type": "k8s", "k8s_auth_token": "secret"}))
    delete_workload(node.call("DEL", type="calico", args=args), node.runtime(datastore=refused))
    assert node.leftovers() == {}
    assert "secret" not in "".join(node.log.shown())


def test_a_lost_node_name_is_looked_for_too(node):
    fields = {"type": "calico", "nodename_file": "/gone"}
    node.add(nodename="node1")
    with pytest.raises(CniError, match="stat /gone: no such file"):
        node.delete(**fields)
    assert set(node.leftovers()) == {"endpoints"}
    install(node, conf(nodename="node1", nodename_file="/var/lib/calico/nodename"))
    delete_workload(node.call("DEL", **fields), node.runtime())
    assert node.leftovers() == {}


def test_the_ipam_plugin_looks_for_settings_by_itself(node):
    node.assign()
    call = node.call("DEL", type="bridge")
    with pytest.raises(Unavailable, match="put back what ADD had"):
        release_addresses(call, node.runtime(datastore=no_settings))
    install(node, conf(type="bridge", etcd_endpoints="http://x"))
    release_addresses(call, node.runtime(datastore=no_settings))
    assert node.leftovers() == {}


def found_for(node: OneNode, **fields: object) -> NetConf | None:
    found = settings_of_add(NetConf(name="net1", type="calico", **fields), node.runtime())
    return found and found.netconf


def test_what_the_call_says_counts(node):
    install(node, conf(datastore_type="kubernetes", etcd_endpoints="http://other", calico_api_group="g", qps=5))
    found = found_for(node, datastore_type="etcdv3", etcd_endpoints="http://own")
    assert (found.datastore_type, found.etcd_endpoints) == ("etcdv3", "http://own")
    assert (found.calico_api_group, found.qps) == ("g", 0)


def test_a_path_whose_file_is_gone_says_nothing(node):
    node.node.files |= {"/new/key": "", "/new/config": "", "/own/cert": ""}
    install(
        node,
        conf(
            etcd_key_file="/new/key",
            etcd_cert_file="/new/cert",
            kubernetes={"kubeconfig": "/new/config"},
            policy={"k8s_client_key": "/new/key", "k8s_auth_token": "t"},
        ),
    )
    found = found_for(
        node,
        etcd_key_file="/gone/key",
        etcd_cert_file="/own/cert",
        kubernetes=KubernetesSettings(kubeconfig="/gone/a:/gone/b"),
        policy=PolicySettings(k8s_auth_token="own"),  # noqa: S106 - no secret
    )
    assert (found.etcd_key_file, found.etcd_cert_file) == ("/new/key", "/own/cert")
    assert found.kubernetes.kubeconfig == "/new/config"
    assert (found.policy.k8s_client_key, found.policy.k8s_auth_token) == ("/new/key", "own")


@pytest.mark.parametrize(
    "installed",
    [
        (),
        ("no JSON", "[]", '"x"'),
        (conf(name="net2", etcd_endpoints="http://x"),),
        (conf(type="portmap", etcd_endpoints="http://x"),),
        ({"name": "net1", "plugins": [7, {"type": "portmap"}]}, {"name": "net1", "plugins": {}}),
        (conf(etcd_endpoints=7),),
        (conf(),),
    ],
)
def test_nothing_is_found_in_what_is_not_the_networks(node, installed):
    install(node, *installed)
    assert found_for(node) is None


def test_a_list_is_read_as_a_runtime_reads_it(node):
    plugins = [{"type": "portmap"}, {"type": "calico", "nodename": "node1", "name": "x"}]
    install(node, "{", {"cniVersion": "1.0.0", "name": "net1", "plugins": plugins})
    found = found_for(node)
    assert (found.nodename, found.name) == ("node1", "net1")


def test_calicos_own_kubeconfig_serves_where_no_other_does(node):
    install(node, kubeconfig=KUBECONFIG)
    assert found_for(node).kubernetes.kubeconfig == KUBECONFIG
    assert found_for(node, kubernetes=KubernetesSettings(kubeconfig="/gone")).kubernetes.kubeconfig == KUBECONFIG
    assert found_for(node, kubernetes=KubernetesSettings(k8s_api_root="https://x")) is None
    assert found_for(node, datastore_type="etcdv3") is None
    node.node.files["/own"] = ""
    assert found_for(node, kubernetes=KubernetesSettings(kubeconfig="/own")) is None


# --- another IPAM plugin ---------------------------------------------------------------------------------------------


def reserve(node: OneNode, container: str, address: str = "10.22.0.7", network: str = "net1") -> None:
    node.node.files[f"/var/lib/cni/networks/{network}/{address}"] = f"{container}\r\neth0"


@pytest.mark.parametrize("args", [CniArgs(), POD])
@pytest.mark.parametrize("now", [HOST_LOCAL, NONE, IpamSettings(type="calico")])
def test_addresses_of_our_ipam_go_though_another_is_named_now(node, args, now):
    node.add(args=args)
    node.add("c2")
    node.own_ipam = False
    node.delete(ipam=now, args=args)
    assert node.holders() == {"10.244.0.129": "net1.c2"}
    assert [endpoint.container_id for endpoint in node.endpoints()] == ["c2"]
    asked = [ran.call.netconf.ipam.type for ran in node.plugin.calls]
    assert asked == (["host-local"] if now is HOST_LOCAL else [])
    assert "Releasing addresses of calico-ipam" in "".join(node.log.shown("warning"))


def test_a_handle_that_cannot_be_read_is_one_all_the_same(node):
    node.add()
    node.datastore.load({key_text(HandleKey("net1.c1")): "{"})
    node.own_ipam = False
    node.delete(ipam=HOST_LOCAL)
    assert node.holders() == {}
    assert "net1.c1 is corrupt" in "".join(node.log.shown("error"))


def test_who_may_not_read_handles_has_none(node):
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL)
    node.fail("fetch", HandleKey, Unauthorized("handles are forbidden"))
    node.delete(ipam=HOST_LOCAL)
    node.heal()
    assert node.leftovers() == {}


@pytest.mark.parametrize("args", [CniArgs(), POD])
def test_host_locals_reservation_goes_though_our_ipam_is_named_now(node, args):
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL, args=args, text=TEXT)
    node.own_ipam = True
    reserve(node, "c1")
    node.delete(args=args)
    assert (node.leftovers(), node.plugin.added) == ({}, {})
    assert json.loads(node.plugin.calls[-1].call.netconf_text) == {
        "cniVersion": "1.0.0",
        "name": "net1",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "0.0.0.0/0"}], [{"subnet": "::/0"}]]},
    }


@pytest.mark.parametrize("network", ["net1", "net/1"])
def test_a_reservation_of_another_container_is_no_reason_to_release(node, network):
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL)
    node.own_ipam = True
    reserve(node, "c2", network=network)
    before = len(node.plugin.calls)
    node.delete(name=network)
    assert len(node.plugin.calls) == before


def test_a_pods_endpoint_stays_until_it_has_told_of_its_reservation(node):
    """It is the only lead, so what is released by it goes first."""
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL, args=POD, text=TEXT)
    node.own_ipam = True
    reserve(node, "c1")
    node.plugin.fails("host-local", "DEL", Refused("disk full"))
    with pytest.raises(Refused, match="disk full"):
        node.delete(args=POD)
    assert node.endpoints() != []
    node.plugin.fails("host-local", "DEL", None)
    node.delete(args=POD)
    assert (node.leftovers(), node.plugin.added) == ({}, {})


def test_a_call_without_an_ipam_section_uses_the_one_that_is_installed(node):
    node.own_ipam = False
    node.add(ipam=HOST_LOCAL)
    section = {"type": "host-local", "dataDir": "/srv", "ranges": [[{"subnet": "usePodCidr"}]]}
    install(node, conf(ipam="x"), conf(ipam={"type": 7}), conf(type="portmap"), conf(ipam=section))
    node.delete(ipam=NONE, type="calico")
    assert (node.leftovers(), node.plugin.added) == ({}, {})
    assert json.loads(node.plugin.calls[-1].call.netconf_text)["ipam"]["dataDir"] == "/srv"


def test_a_call_without_an_ipam_section_and_nothing_to_release_succeeds(node):
    install(node, conf(ipam={"type": "calico-ipam"}))
    node.delete(ipam=NONE, type="calico")
    assert node.plugin.calls == []


# --- damaged records that only pods have -----------------------------------------------------------------------------


def test_a_pods_damaged_endpoint_goes_since_no_add_could_replace_it(node):
    node.add(args=POD)
    key = WorkloadEndpointKey("gold", "node1-k8s-p-eth0")
    for _ in range(2):
        node.datastore.load({key_text(key): "{"})
        node.delete(args=POD)
        assert node.leftovers() == {}
    with node.rival("delete", WorkloadEndpointKey, node.remove):
        node.datastore.load({key_text(key): "{"})
        node.delete(args=POD)
    node.add("c2", args=POD)


def test_a_damaged_cluster_information_keeps_no_pod(node):
    node.add(args=POD)
    node.datastore.load({key_text(ClusterInformationKey("default")): "{"})
    node.delete(args=POD)
    assert node.leftovers() == {}


def test_a_damaged_pod_is_left_to_its_own_deletion(node):
    """Where it is the endpoint itself."""
    node.add(args=POD)
    key = WorkloadEndpointKey("gold", "node1-k8s-p-eth0")
    node.datastore.load({key_text(key): "{"})
    node.fail("delete", WorkloadEndpointKey, BadRecord(key, "spec must be an object"))
    node.delete(args=POD)
    assert node.holders() == {}
