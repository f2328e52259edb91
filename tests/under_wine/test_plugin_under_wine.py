"""calico.exe and calico-ipam.exe as a runtime calls them, under Wine: pointers, processes, files and registry for real.

HNS itself is a fake in C (`tests/fake_hns`). It notes each call, checks what it is given, and refuses on demand.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from wine import Wine, windows_path

from contracts.kubernetes_pods import pod_object
from services.etcd import Authority, Etcd
from services.fake_apiserver import FakeApiserver
from services.served_fake_apiserver import served
from under_wine.windows_node import NAMESPACE, SECOND, WindowsNode

OWN = "10.20.0.0/16"
PODS = "/api/v1/namespaces/gold/pods"


@pytest.fixture
def node(request: pytest.FixtureRequest, wine: Wine, built: Path, tmp_path: Path) -> Iterator[WindowsNode]:
    """On the embedded datastore unless a test asks for etcd, over TLS. Afterwards the fakes have no complaint."""
    if getattr(request, "param", "sqlite") == "etcd":
        with Etcd(tls=Authority(tmp_path / "authority")) as etcd:
            files = {"ca_cert": etcd.tls.ca, "cert": etcd.cert, "key": etcd.key}
            settings = {f"ETCD_{name.upper()}_FILE": str(path) for name, path in files.items()}
            settings |= {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": etcd.url, "TORTIE_TRANSPORT": "lean"}
            store = {f"etcd_{name}_file": windows_path(path) for name, path in files.items()}
            node = WindowsNode(wine, built, tmp_path, {**store, "etcd_endpoints": etcd.url}, settings)
            yield node
            assert node.complaints() == []
        return
    path = tmp_path / "datastore.db"
    store = {"datastore_type": "sqlite", "sqlite_path": windows_path(path)}
    node = WindowsNode(wine, built, tmp_path, store, {"TORTIE_SQLITE_PATH": str(path)})
    yield node
    assert node.complaints() == []


@pytest.fixture
def pod(request: pytest.FixtureRequest, wine: Wine, built: Path, tmp_path: Path) -> Iterator[WindowsNode]:
    """A node of a Kubernetes, whose API server is in memory; its calls are for the pod gold/web-1. The datastore is
    the API server, or a file.
    """
    apiserver = FakeApiserver("v3")
    apiserver.create("/api/v1/nodes", {"metadata": {"name": "winnode"}})
    apiserver.create("/api/v1/namespaces", {"metadata": {"name": "gold"}})
    apiserver.create(PODS, pod_object("web-1", node="winnode"))
    with served(apiserver) as url:
        config = tmp_path / "kubeconfig"
        config.write_text(_KUBECONFIG % url)
        settings = {
            "DATASTORE_TYPE": "kubernetes",
            "KUBECONFIG": str(config),
            "TORTIE_TRANSPORT": "lean",
            "CALICO_API_GROUP": "projectcalico.org/v3",
        }
        kubernetes = {"kubeconfig": windows_path(config)}
        store = {"datastore_type": "kubernetes", "calico_api_group": "projectcalico.org/v3"}
        if request.param == "sqlite":
            path = tmp_path / "datastore.db"
            settings = {"TORTIE_SQLITE_PATH": str(path)}
            store = {"datastore_type": "sqlite", "sqlite_path": windows_path(path)}
        store |= {"kubernetes": kubernetes, "policy": {"type": "k8s"}}
        node = WindowsNode(wine, built, tmp_path, store, settings)
        node.arguments = "K8S_POD_NAMESPACE=gold;K8S_POD_NAME=web-1;K8S_POD_INFRA_CONTAINER_ID=c1"
        yield node
        assert node.complaints() == []


_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts:
- name: it
  context:
    cluster: it
    user: it
clusters:
- name: it
  cluster:
    server: "%s"
users:
- name: it
  user:
    token: t
"""


def called(node: WindowsNode, function: str) -> list[str]:
    return [line for line in node.journal() if f" {function} " in f"{line} "]


@pytest.mark.parametrize("node", ["sqlite", "etcd"], indirect=True)
def test_a_pod_is_connected_and_disconnected(node: WindowsNode) -> None:
    """WFV-001: ADD networks the pod, DEL leaves what is the host's own."""
    nat = {"Name": "EndpointPolicy", "Value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]}}
    status, answer, log = node.call("ADD", conf={"policies": [nat]})
    assert status == 0, (answer, log)
    [network] = node.objects("Networks")
    assert (network["Name"], network["Type"]) == ("calico", "L2Bridge")
    [endpoint] = node.pods()
    address, _, length = answer["ips"][0]["address"].partition("/")
    assert endpoint["IpConfigurations"] == [{"IpAddress": address, "PrefixLength": int(length)}]
    assert endpoint["MacAddress"].replace("-", ":").lower() == answer["interfaces"][1]["mac"]
    assert endpoint["HostComputeNamespace"] == NAMESPACE
    exceptions, route, denial = endpoint["Policies"]
    assert exceptions["Settings"]["Exceptions"][:2] == ["10.96.0.0/12", OWN]
    assert route == {
        "Type": "SDNRoute",
        "Settings": {"DestinationPrefix": "192.0.2.10/32", "NeedEncap": True},
    }
    assert denial["Settings"]["Action"] == "Block"
    assert [one["spec"]["ipNetworks"] for one in node.endpoints()] == [[f"{address}/32"]]

    status, answer, log = node.call("DEL")
    assert (status, answer) == (0, {}), log
    assert node.pods() == []
    assert [one["Name"] for one in node.objects("Endpoints")] == ["calico_ep"]
    assert node.endpoints() == []
    status, answer, log = node.call("DEL")
    assert (status, answer) == (0, {}), log


def test_a_second_add_gives_the_same_address(node: WindowsNode) -> None:
    first = node.call("ADD")
    second = node.call("ADD")
    assert second.status == 0, second
    assert [one["address"].partition("/")[0] for one in second.answer["ips"]] == [
        one["address"].partition("/")[0] for one in first.answer["ips"]
    ]
    assert len(node.pods()) == 1
    other = node.call("ADD", "c2", SECOND)
    assert other.answer["ips"] != first.answer["ips"]
    assert len(node.objects("Networks")) == 1


def test_a_pod_that_cannot_be_closed_off_is_not_connected(node: WindowsNode) -> None:
    """The original goes on when the default denial is refused; then everybody could reach the pod."""
    status, answer, _log = node.call("ADD", TORTIE_FAKE_HNS_FAIL="HcnModifyEndpoint=0x80070005")
    assert status == 1
    assert "HRESULT 0x80070005" in answer["msg"]
    assert node.pods() == []
    assert node.endpoints() == []
    assert "calico.c1" not in node.operate("ipam", "show", "--show-blocks")
    assert node.call("ADD").status == 0


def test_a_network_that_is_refused(node: WindowsNode) -> None:
    status, answer, _log = node.call("ADD", TORTIE_FAKE_HNS_FAIL="HNSCall POST /networks/=0x803B0018")
    assert status == 1
    assert "HNSCall POST /networks/" in answer["msg"]
    assert "HRESULT 0x803B0018" in answer["msg"]
    assert node.objects("Endpoints") == []


def test_forwarding_is_switched_on_by_powershell(node: WindowsNode) -> None:
    status, answer, _log = node.call("ADD", TORTIE_FAKE_POWERSHELL_FAIL="Set-NetIPInterface")
    assert status == 1, answer
    assert "No matching interface was found" in answer["msg"]
    assert node.pods() == []


def test_an_unknown_namespace(node: WindowsNode) -> None:
    status, answer, _log = node.call("ADD", netns="99999999-2222-3333-4444-555555555555")
    assert status == 1
    assert "failed to open network namespace" in answer["msg"]
    assert node.objects("Endpoints") == []


@pytest.mark.parametrize("pod", ["kubernetes"], indirect=True)
def test_dockershims_containers(pod: WindowsNode) -> None:
    """WFV-004, WFV-005, WFV-016, WFV-017: a sandbox, a container beside it, and a sandbox's id used again."""
    box = f"box{os.getpid()}"  # the registry remembers it
    early = pod.call("ADD", "app", f"container:{box}")
    assert early.status == 1
    assert f'the sandbox of CNI_NETNS "container:{box}" has no endpoint to share' in early.answer["msg"]
    first = pod.call("ADD", box, "none")
    assert first.status == 0, first
    assert called(pod, "HNSCall POST /endpoints/")
    assert pod.pods()[0]["Policies"][-1]["Settings"]["Action"] == "Block"
    pod.state.write_text(pod.state.read_text().replace('"Containers":[]', '"Containers":["app"]'))
    second = pod.call("ADD", "app", f"container:{box}")
    assert second.status == 0, second
    assert second.answer["ips"] == first.answer["ips"]
    assert pod.call("DEL", box, "none").status == 0
    assert pod.pods() == []
    again = pod.call("ADD", box, "none")
    assert again.status == 1
    assert "endpoint with same ID was recently deleted" in again.answer["msg"]
    other = pod.call("ADD", "next", "none")
    assert other.status == 0, other


@pytest.mark.parametrize("pod", ["sqlite"], indirect=True)
def test_a_pod_of_an_overlay_network(pod: WindowsNode) -> None:
    """WFV-014, WFV-015: the runtime's DNS; the network's number, the MAC of prefix and address, the node's tunnel."""
    dns = {"Servers": ["10.96.0.11"], "Searches": ["svc.cluster.local"]}
    overlay = {"mode": "vxlan", "vxlan_vni": 4097, "vxlan_mac_prefix": "0E-2A", "runtimeConfig": {"dns": dns}}
    status, answer, log = pod.call("ADD", conf=overlay)
    assert status == 0, (answer, log)
    [network] = pod.objects("Networks")
    assert network["Type"] == "Overlay"
    subnet = network["Ipams"][0]["Subnets"][0]
    assert subnet["Policies"] == [{"Type": "VSID", "Settings": {"IsolationId": 4097}}]
    address = answer["ips"][0]["address"].partition("/")[0]
    [endpoint] = pod.pods()
    assert endpoint["MacAddress"].upper() == "0E-2A-" + "-".join(f"{int(part):02X}" for part in address.split("."))
    assert endpoint["Dns"]["ServerList"] == ["10.96.0.11"]
    assert answer["dns"]["nameservers"] == ["10.96.0.11"]
    shown = pod.operate("get", "node", "winnode", "-o", "yaml")
    assert f"ipv4VXLANTunnelAddr: {subnet['Routes'][0]['NextHop']}" in shown, log
    assert "vxlanTunnelMACAddr: 00:15:5d:aa:bb:cc" in shown
    assert pod.call("DEL").status == 0
    assert pod.pods() == []


def test_ipam_as_a_program_of_its_own(node: WindowsNode, tmp_path: Path) -> None:
    """Called by another network plugin; and executed by ours where it is of another build."""
    given = node.call("ADD", program="calico-ipam")
    assert given.status == 0, given
    assert "calico.c1" not in given.answer.get("msg", "")
    assert node.call("DEL", program="calico-ipam").status == 0
    other = tmp_path / "other" / "calico-ipam.exe"
    other.parent.mkdir()
    octets = bytearray((node.programs / "calico-ipam.exe").read_bytes())
    octets[-2] ^= 1  # of the build stamp
    other.write_bytes(octets)
    status, answer, log = node.call("ADD", path=other.parent)
    assert status == 0, (answer, log)
    assert (other.parent / ".tortie").is_dir()  # so it has run
    assert node.pods()[0]["IpConfigurations"][0]["IpAddress"] == answer["ips"][0]["address"].partition("/")[0]
    assert node.call("DEL", path=other.parent).status == 0


def test_the_log_file_is_written_and_rotated(node: WindowsNode, wine: Wine) -> None:
    folder = wine.drive_c / "logs" / str(os.getpid())
    wanted = {"log_file_path": f"c:\\logs\\{os.getpid()}\\cni.log", "log_level": "debug", "log_file_max_size": 1}
    try:
        assert node.call("ADD", conf=wanted).status == 0
        log = folder / "cni.log"
        assert "CNI ADD succeeded" in log.read_text(encoding="utf-8")
        log.write_bytes(log.read_bytes().ljust((1 << 20) - 10, b"\n"))
        assert node.call("DEL", conf=wanted).status == 0
        assert len(list(folder.iterdir())) == 2
        assert "CNI DEL succeeded" in log.read_text(encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_calls_that_shall_be_counted_say_that_they_are_not(node: WindowsNode) -> None:
    ended = node.call("ADD", conf={"metrics_dir": "/run/metrics"})
    assert ended.status == 0
    assert ended.log.count("Calls are not counted on Windows: leave metrics_dir out") == 1


def test_many_first_starts_at_once(wine: Wine, built: Path, tmp_path: Path) -> None:
    """Each finds that the executable has not been unpacked yet."""
    program = shutil.copy(built / "calico.exe", tmp_path)
    asked = {"CNI_COMMAND": "VERSION"}
    with ThreadPoolExecutor(6) as pool:
        ended = list(pool.map(lambda _: wine.run(program, given=b"{}", environment=asked), range(6)))
    assert [one.returncode for one in ended] == [0] * 6, ended
    assert {one.stdout for one in ended} == {ended[0].stdout}
    assert len(list((tmp_path / ".tortie").iterdir())) == 1


def test_a_damaged_executable_says_so(wine: Wine, built: Path, tmp_path: Path) -> None:
    program = tmp_path / "calico.exe"
    program.write_bytes((built / "calico.exe").read_bytes()[:-1])
    done = wine.run(program, environment={"CNI_COMMAND": "VERSION"})
    assert done.returncode == 1
    assert b'"code": 100' in done.stdout
    assert b"this program is incomplete, install it again" in done.stdout


def test_pythons_own_variables_and_the_working_directory_do_nothing(wine: Wine, built: Path, tmp_path: Path) -> None:
    for name in ("json.py", "encodings.py", "sitecustomize.py", "entrypoints.py"):
        (tmp_path / name).write_text("raise SystemExit(3)")
    folder = windows_path(tmp_path)
    hostile = {"PYTHONHOME": folder, "PYTHONPATH": folder, "PYTHONSTARTUP": f"{folder}\\json.py", "PYTHONINSPECT": "1"}
    done = wine.run(built / "calico.exe", environment={**hostile, "CNI_COMMAND": "VERSION"}, at=tmp_path)
    assert done.returncode == 0, done
    assert b'"supportedVersions"' in done.stdout
