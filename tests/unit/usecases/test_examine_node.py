"""`tortie doctor` over memory: a sound node has no complaint, and each fault has one, its own."""

from __future__ import annotations

import pytest

from adapters.memory.datastore import MemoryDatastore
from domain.doctor.credentials import TOKEN
from domain.doctor.diagnosis import ERROR, OK, WARNING
from domain.doctor.seen import CredentialsSeen, FileSeen, Uplink
from domain.ipam.pools import Pool
from domain.resource import Metadata
from ports.datastore import ClusterInformationKey, IPPoolKey, NodeKey, WorkloadEndpointKey, WorkloadEndpoints
from ports.errors import BadConfiguration, Refused, Unauthorized, Unavailable
from usecases.doctor.look_at_leftovers import APART
from usecases.doctor.patient import Folders
from worlds.doctor_node import BIN, CONFIGURATION, KUBECONFIG, LOG, NET, NEVER, NODE, DoctorNode

EXPIRED = "x.eyJleHAiOjF9.y"
RESERVATIONS = "/var/lib/cni/networks/k8s-pod-network"
PROGRAM = FileSeen("a regular file", 0o755)


@pytest.fixture
def node():
    return DoctorNode()


def test_who_waits_hears_what_is_being_looked_at(node):
    said = []
    node.doing = said.append
    node.examine()
    assert (said[0], said[-1], len(said)) == ("looking at configuration", "looking at metrics-dir", 19)


def test_a_sound_node_has_no_complaint(node):
    assert node.complaints() == []
    assert [one.check for one in node.examine()] == [
        *(
            "configuration",
            "other-configurations",
            "plugins",
            "versions",
            "replaced",
            "node-name",
            "kubeconfig",
            "token",
        ),
        *("datastore", "node-record", "pools", "kernel", "forwarding", "rp-filter", "default-route", "mtu"),
        *("leftover-devices", "endpoints", "leftover-reservations", "lock-file", "log-file"),
    ]


def _mode(path, mode, kind="a regular file"):
    return lambda node: node.host.seen.update({path: FileSeen(kind, mode)})


def _pools(**fields):
    def change(node):
        node.delete(IPPoolKey("pool"))
        node.put(IPPoolKey("pool"), Pool(Metadata("pool"), "10.244.0.0/16", **fields))

    return change


def _both(*changes):
    def change(node):
        for one in changes:
            one(node)

    return change


OWN_IPAM = {"type": "calico-ipam"}
HOST_LOCAL = {"type": "host-local", "subnet": "usePodCidr"}
FAULTS = {
    "the file of another plugin before ours": (
        lambda node: node.host.files.update({f"{NET}/05-other.conf": '{"name": "o", "type": "flannel"}'}),
        ("other-configurations", ERROR),
    ),
    "a configuration that others can write": (_mode(CONFIGURATION, 0o666), ("configuration", ERROR)),
    "a readable configuration with a token in it": (
        _both(lambda node: node.configure(policy={"k8s_auth_token": "t"}), _mode(CONFIGURATION, 0o644)),
        ("configuration", WARNING),
    ),
    "a misspelt setting of kept addresses": (
        lambda node: node.configure(ipam={**OWN_IPAM, "keep_addresses": {"second": 60}}),
        ("configuration", WARNING),
    ),
    "a setting of kept addresses that cannot be": (
        lambda node: node.configure(ipam={**OWN_IPAM, "keep_addresses": {"seconds": 0}}),
        ("configuration", ERROR),
    ),
    "a flag that does not say what it means": (
        lambda node: node.configure(ipam={**OWN_IPAM, "assign_ipv4": "yes"}),
        ("configuration", WARNING),
    ),
    "a program that is missing": (lambda node: node.host.seen.pop(f"{BIN}/portmap"), ("plugins", ERROR)),
    "a program of another version": (
        lambda node: node.host.versions.update({f"{BIN}/calico-ipam": "v2"}),
        ("versions", WARNING),
    ),
    "a program that fails": (lambda node: node.host.versions.update({f"{BIN}/tortie": ""}), ("versions", ERROR)),
    "a program that cannot be tried in a container": (
        _both(
            lambda node: node.host.versions.update({f"{BIN}/tortie": ""}),
            lambda node: setattr(node, "folders", Folders(elsewhere=True)),
        ),
        ("versions", WARNING),
    ),
    "a readable copy of what was replaced": (_mode(f"{BIN}/.tortie-replaced", 0o777, "a folder"), ("replaced", ERROR)),
    "what an installation has kept, for all to write": (
        _mode(f"{NET}/.tortie-replaced", 0o777, "a folder"),
        ("replaced", ERROR),
    ),
    "what a killed installation has left": (
        lambda node: node.host.files.update({f"{BIN}/.tortie-0123.tmp/calico": ""}),
        ("replaced", WARNING),
    ),
    "another name in calico-node's file": (
        lambda node: node.host.files.update({"/var/lib/calico/nodename": "other\n"}),
        ("node-name", ERROR),
    ),
    "a readable kubeconfig": (_mode(KUBECONFIG, 0o644), ("kubeconfig", WARNING)),
    "no kubeconfig": (lambda node: node.host.files.pop(KUBECONFIG), ("kubeconfig", ERROR)),
    "an expired token": (
        lambda node: setattr(node, "credentials", CredentialsSeen("s", "a token", EXPIRED)),
        (TOKEN, ERROR),
    ),
    "a datastore that is not ready": (
        lambda node: node.delete(ClusterInformationKey("default")),
        ("datastore", ERROR),
    ),
    "no record of the node": (lambda node: node.delete(NodeKey(NODE)), ("node-record", ERROR)),
    "no pool": (lambda node: node.delete(IPPoolKey("pool")), ("pools", ERROR)),
    "a pool for other nodes": (_pools(node_selector="rack == 'b'"), ("pools", ERROR)),
    "a pool whose tunnels need what the kernel lacks": (
        _both(
            _pools(vxlan_mode="Always"),
            lambda node: node.host.not_to_be_had.update(vxlan="the kernel has none"),
            lambda node: node.configure(mtu=1450),
        ),
        ("kernel", ERROR),
    ),
    "a kernel without veth": (
        lambda node: node.host.not_to_be_had.update(veth="the kernel has none"),
        ("kernel", ERROR),
    ),
    "a bridge network on a kernel without bridges": (
        _both(
            lambda node: node.host.files.update({f"{NET}/20-b.conf": '{"name": "b", "type": "bridge"}'}),
            lambda node: node.host.not_to_be_had.update(bridge="the kernel has none"),
        ),
        ("kernel", ERROR),
    ),
    "no forwarding": (lambda node: node.host.settings.update({"net.ipv4.ip_forward": "0"}), ("forwarding", ERROR)),
    "a loose reverse path filter": (
        lambda node: node.host.settings.update({"net.ipv4.conf.all.rp_filter": "2"}),
        ("rp-filter", WARNING),
    ),
    "no default route": (lambda node: setattr(node.host, "default_routes", ()), ("default-route", ERROR)),
    "packets larger than the uplink's": (lambda node: node.configure(mtu=9000), ("mtu", WARNING)),
    "packets larger than the uplink's in a tunnel": (_pools(ipip_mode="Always"), ("mtu", WARNING)),
    "an uplink narrower than the file says": (
        lambda node: node.host.files.update({"/var/lib/calico/mtu": "1501"}),
        ("mtu", WARNING),
    ),
    "no MTU file where one is required": (lambda node: node.configure(require_mtu_file=True), ("mtu", ERROR)),
    "a device without endpoint": (
        lambda node: setattr(node.host, "devices", (*node.host.devices, node.device("cali2"))),
        ("leftover-devices", WARNING),
    ),
    "an endpoint without device": (lambda node: node.add_endpoint("b", "cali9"), ("endpoints", ERROR)),
    "reservations of a plugin that is no longer used": (
        lambda node: node.host.files.update({f"{RESERVATIONS}/10.0.0.2": "c1\r\neth0"}),
        ("leftover-reservations", WARNING),
    ),
    "a reservation of a container that is gone": (
        _both(
            lambda node: node.configure(ipam=HOST_LOCAL),
            lambda node: node.host.versions.update({f"{BIN}/host-local": "v1"}),
            lambda node: node.host.files.update(
                {
                    f"{RESERVATIONS}/10.0.0.2": "c1\r\neth0",
                    f"{RESERVATIONS}/10.0.0.3": "gone\r\neth0",
                    f"{RESERVATIONS}/lock": "",
                    "/var/lib/cni/results/k8s-pod-network-c1-eth0": "{}",
                }
            ),
        ),
        ("leftover-reservations", WARNING),
    ),
    "something else in the lock's place": (_mode("/var/run/calico/ipam.lock", 0o755, "a folder"), ("lock-file", ERROR)),
    "something else in the log's place": (_mode(LOG, 0o755, "a folder"), ("log-file", ERROR)),
    "a file in the place of the folder of metrics": (
        _both(lambda node: node.configure(metrics_dir="/run/m"), _mode("/run/m", 0o644)),
        ("metrics-dir", WARNING),
    ),
    "a folder of metrics that is no whole path": (
        lambda node: node.configure(metrics_dir="run/m"),
        ("metrics-dir", WARNING),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_nothing_else(fault, node):
    plant, expected = FAULTS[fault]
    plant(node)
    assert node.complaints() == [expected]


def test_without_a_configuration_only_the_host_is_judged(node):
    node.host.files[CONFIGURATION] = "{"
    assert node.complaints() == [("configuration", ERROR)]


def test_a_file_that_cannot_be_read_stands_in_the_way_and_a_folder_does_not(node):
    node.host.files[f"{NET}/05-folder.conf/f"] = ""
    assert node.complaints() == []
    node.host.files[f"{NET}/06-secret.conf"] = "{}"
    node.host.broken.add(f"{NET}/06-secret.conf")
    (found,) = [one for one in node.examine() if one.state != OK]
    assert (found.check, "06-secret.conf: permission denied" in found.seen) == ("other-configurations", True)


def test_a_configuration_with_a_wrong_type_is_named(node):
    node.configure(mtu="large")
    (found, *_) = [one for one in node.examine() if one.state != OK]
    assert (found.check, "mtu" in found.seen) == ("configuration", True)


def test_each_setting_that_an_add_minds_is_named(node):
    node.configure(ipam={**OWN_IPAM, "keep_addresses": {"second": 60, "max_pool_percent": 101}})
    found = [one.seen for one in node.examine() if one.state != OK]
    assert [text.partition(": ")[2].partition(";")[0].partition(" is ")[0] for text in found] == [
        'ipam.keep_addresses has no member "second"',
        "ipam.keep_addresses.max_pool_percent",
    ]


def test_a_bridge_network_alone_needs_no_datastore(node):
    node.host.files[CONFIGURATION] = '{"name": "b", "type": "my-custom-cni", "ipam": {"type": "host-local"}}'
    node.host.versions.update({f"{BIN}/my-custom-cni": "v1", f"{BIN}/host-local": "v1"})
    assert node.complaints() == []
    assert "datastore" not in [one.check for one in node.examine()]


def test_a_datastore_that_is_away_is_told_once(node):
    def away(_verb, _key):
        raise Unavailable("etcd: connection refused")

    node.datastore.before = away
    assert node.complaints() == [("datastore", ERROR)]


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (Unavailable("connection refused"), "see that it runs and that this host reaches it"),
        (BadConfiguration("kubeconfig /k: no such file"), "mend the file or setting that the text names"),
        (Unauthorized("pods is forbidden"), "give the plugins' account its rights, or the plugins new credentials"),
    ],
)
def test_what_is_advised_goes_by_why_the_datastore_gives_nothing(node, failure, advice):
    def fail(_verb, _key):
        raise failure

    node.datastore.before = fail
    (found,) = [one for one in node.examine() if one.check == "datastore"]
    assert advice in found.advice
    assert found.advice.endswith("docs/troubleshooting.md goes by the text")


def test_a_kubeconfig_that_makes_no_sense_is_told(node):
    node.credentials = BadConfiguration("kubeconfig /k (3 bytes): it is not a map")
    assert node.complaints() == [("kubeconfig", ERROR)]


def test_a_check_that_falls_over_hides_no_other(node):
    node.host.broken.add(LOG)
    node.host.broken.add(f"{BIN}/.tortie-replaced")
    found = [one for one in node.examine() if one.state != OK]
    assert [(one.check, one.state) for one in found] == [("replaced", ERROR), ("log-file", ERROR)]
    assert "permission denied" in found[0].seen


def test_who_may_not_try_the_kernel_is_only_warned(node):
    def refuse():
        raise Refused("cannot be tried: operation not permitted")

    node.host.lacking = refuse
    assert node.complaints() == [("kernel", WARNING)]


def test_what_comes_and_goes_between_two_looks_is_not_left_over(node):
    made = node.host.devices
    node.host.devices = (*made, node.device("cali2"))
    node.clock.sleep = lambda seconds: setattr(node.host, "devices", made if seconds == APART else ())
    assert node.complaints() == []


def test_without_a_name_file_the_advice_is_the_plugins(node):
    node.configure(nodename=None)
    (found, *_) = [one for one in node.examine() if one.state != OK]
    assert (found.check, "nodename_file_optional" in found.advice) == ("node-name", True)


@pytest.mark.parametrize(
    ("members", "files", "source"),
    [
        ({}, {}, '"nodename" of the configuration'),
        ({"nodename": None}, {"/var/lib/calico/nodename": NODE}, "/var/lib/calico/nodename"),
        ({"nodename": None, "nodename_file_optional": True, "hostname": NODE}, {}, '"hostname" of the configuration'),
        ({"nodename": None, "nodename_file_optional": True}, {}, "the host's name"),
    ],
)
def test_it_says_where_the_name_is_from(members, files, source, node):
    node.configure(**members)
    node.host.files.update(files)
    (found,) = [one for one in node.examine() if one.check == "node-name"]
    assert (found.state, found.seen) == (OK, f"{NODE} ({source})")


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, f"the cluster of {KUBECONFIG}"),
        ({"datastore_type": "sqlite", "sqlite_path": "/db", "kubernetes": None}, "/db"),
        ({"datastore_type": "sqlite", "kubernetes": None}, "the embedded datastore"),
        ({"datastore_type": "etcdv3", "etcd_endpoints": "http://e:1", "kubernetes": None}, "http://e:1"),
        ({"datastore_type": None, "kubernetes": None}, "it"),
    ],
)
def test_the_datastore_is_named(members, shown, node):
    node.configure(**members)
    (found,) = [one for one in node.examine() if one.check == "datastore"]
    assert found.seen.startswith(f"{shown} answers in ")


def test_a_datastore_of_the_command_line_is_looked_at_without_a_configuration(node):
    node.own_datastore = True
    node.host.files[CONFIGURATION] = "{}"
    (found,) = [one for one in node.examine() if one.check == "datastore"]
    assert (found.state, "command line" in found.seen) == (OK, True)


def test_other_ipam_needs_no_pools_and_other_log_no_file(node):
    node.configure(ipam=HOST_LOCAL, log_file_path=None)
    node.host.versions[f"{BIN}/host-local"] = "v1"
    checks = [one.check for one in node.examine()]
    assert "pools" not in checks
    node.delete(WorkloadEndpointKey("default", f"{NODE}-k8s-a-eth0"))
    node.host.devices = ()
    node.host.files.pop("/var/run/calico/ipam.lock")
    assert node.complaints() == []


def test_metrics_are_looked_at_where_they_are_asked_for(node):
    node.configure(metrics_dir="/run/m")
    node.host.files["/run/m/tortie_cni.prom"] = "x"
    (found,) = [one for one in node.examine() if one.check == "metrics-dir"]
    assert (found.state, found.seen) == (OK, "/run/m/tortie_cni.prom, 1 bytes")


def test_containers_with_ipv6_alone_need_no_ipv4_route(node):
    node.configure(ipam={"type": "calico-ipam", "assign_ipv4": "false", "assign_ipv6": "true"})
    node.put(IPPoolKey("six"), Pool(Metadata("six"), "fd00::/48"))
    node.host.default_routes = (Uplink(6, "eth0", 1500),)
    assert node.complaints() == []


def test_pods_that_plugins_may_not_list_are_listed_as_the_operator_or_not_at_all(node):
    """In a cluster the plugins' account may get a pod and not list them."""
    wider = node.datastore
    plugins = MemoryDatastore(node.clock)
    for key in (ClusterInformationKey("default"), NodeKey(NODE), IPPoolKey("pool")):
        plugins.create(key, wider.get(key, NEVER).record, NEVER)

    def refuse(verb, key):
        if isinstance(key, WorkloadEndpoints):
            raise Unauthorized("pods is forbidden")

    plugins.before = refuse
    node.datastore = plugins
    (found,) = [one for one in node.examine() if one.check == "leftover-devices"]
    assert (found.state, "not looked at" in found.seen) == (OK, True)
    assert "endpoints" not in [one.check for one in node.examine()]
    node.as_operator = lambda _netconf: wider
    assert node.complaints() == []
    node.host.devices = ()
    assert node.complaints() == [("endpoints", ERROR)]
