"""What the manifests' containers do to a node, run by a real engine from the real image.

Skipped, with the reason, where no engine can be started, and for the bundle, which is not what is in the image.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from entrypoints.version import VERSION
from integration.conftest import SUBJECT, self_contained
from integration.manifests.conftest import FOLDER
from integration.manifests.node_containers import NODE, Node, wait_until
from integration.plugin.host import PLUGINS
from services.apiserver import ApiServer
from services.container_engine import ContainerEngine, engine_or_skip
from services.kube_client import Object
from services.manifests import applied, read, remove

ROOT = FOLDER.parent
INSTALLED = {"calico": 0o755, "calico-ipam": 0o755}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEngine]:
    """With the image of the executable that is tested."""
    if not self_contained(SUBJECT):
        pytest.skip("NOT TRIED, the manifests' containers: TORTIE_BIN is not the self-contained executable")
    folder = tmp_path_factory.mktemp("engine")
    stage = [sys.executable, ROOT / "packaging" / "release" / "image_root.py", SUBJECT]
    subprocess.run([*stage, folder / "context" / "build" / "image" / "linux-any"], check=True)
    with engine_or_skip("the manifests' containers") as engine:
        words = ["--build-arg=TARGETARCH=any", "--tag", f"tortie:{VERSION}", "--file", ROOT / "Dockerfile"]
        engine.docker("build", *words, folder / "context")
        yield engine


def ready_cluster(server: ApiServer, way: str) -> list[Object]:
    """With the manifest applied, on top of what Calico has brought where it is."""
    documents = read(FOLDER / way)
    definitions = [one for one in read(FOLDER / "fresh.yaml") if one["kind"] == "CustomResourceDefinition"]
    applied(server.client, definitions)
    applied(server.client, documents)
    server.cluster.add_node(NODE, pod_cidrs=["10.244.7.0/24"])
    if way != "fresh.yaml":
        server.cluster.add("v1", "clusterinformations", "default", {"datastoreReady": True})
        server.cluster.add("v1", "ippools", "p4", {"cidr": "10.244.0.0/16"})
    return [*definitions, *documents]


@pytest.fixture
def cluster(server: ApiServer, request: pytest.FixtureRequest) -> Iterator[str]:
    way: str = request.param
    everything = ready_cluster(server, way)
    try:
        yield way
    finally:
        server.cluster.clear()
        remove(server.client, everything)


def tree(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "cluster", ["fresh.yaml", "beside-calico.yaml", "in-place-of-calico.yaml", "from-host-local.yaml"], indirect=True
)
def test_a_node_is_installed_and_its_token_renewed(
    engine: ContainerEngine, server: ApiServer, cluster: str, tmp_path: Path
) -> None:
    """INST-001, in a container without any capability: programs, kubeconfig, configuration, then a new token."""
    documents = read(FOLDER / cluster)
    node = Node(engine, server, documents, tmp_path)
    pod = node.pod("DaemonSet")
    there_already(node)
    if cluster == "fresh.yaml":
        job = node.pod("Job")
        done = node.run(job, job["containers"][0])
        assert done.returncode == 0, done.stderr
    for container in pod["initContainers"]:
        done = node.run(pod, container)
        assert done.returncode == 0, done.stderr
    folders = {one["name"]: node.host(one["hostPath"]["path"]) for one in pod["volumes"]}
    installed_as_told(folders["cni-bin"], folders["cni-net"], pod)
    kubeconfig = folders["cni-net"] / "calico-kubeconfig"
    before = kubeconfig.read_bytes()
    with node.running(pod, pod["containers"][0]) as name:
        wait_until(lambda: kubeconfig.read_bytes() != before, f"the token to be renewed: {node.log(name)}")
        assert kubeconfig.stat().st_mode & 0o7777 == 0o600
        works(folders["cni-bin"], folders["cni-net"])


def test_a_fresh_node_is_not_ready_before_the_first_records_are(
    engine: ContainerEngine, server: ApiServer, fresh_documents: list[Object], tmp_path: Path
) -> None:
    """A pod that came now would have no address. The installation is tried again, by the kubelet."""
    node = Node(engine, server, fresh_documents, tmp_path)
    pod, job = node.pod("DaemonSet"), node.pod("Job")
    installer = pod["initContainers"][0]
    done = node.run(pod, installer, CNI_DATASTORE_PROBE_TIMEOUT="1")
    assert done.returncode == 1
    assert "CNI_WAIT_FOR_DATASTORE" in done.stderr.splitlines()[-1]
    assert not (node.host("/etc/cni/net.d") / "10-calico.conflist").exists()
    assert node.run(job, job["containers"][0]).returncode == 0
    assert node.run(pod, installer).returncode == 0
    assert (node.host("/etc/cni/net.d") / "10-calico.conflist").exists()


@pytest.fixture
def fresh_documents(server: ApiServer) -> Iterator[list[Object]]:
    everything = ready_cluster(server, "fresh.yaml")
    try:
        yield read(FOLDER / "fresh.yaml")
    finally:
        server.cluster.clear()
        remove(server.client, everything)


@pytest.mark.parametrize("cluster", ["in-place-of-calico.yaml"], indirect=True)
def test_the_way_back_leaves_a_node_as_it_was(
    engine: ContainerEngine, server: ApiServer, cluster: str, tmp_path: Path
) -> None:
    node = Node(engine, server, read(FOLDER / cluster), tmp_path)
    pod = node.pod("DaemonSet")
    there_already(node)
    before = contents(node.root)
    for container in pod["initContainers"]:
        assert node.run(pod, container).returncode == 0
    assert contents(node.root) != before
    back = Node(engine, server, read(FOLDER / "uninstall.yaml"), tmp_path)
    pod = back.pod("DaemonSet")
    for said in ("restored  /host/opt/cni/bin/calico", "there is no installation to take back"):
        with back.running(pod, pod["containers"][0]) as name:
            wait_until(lambda text=said: text in back.log(name), f"it to say {said!r}")
        assert contents(node.root) == before


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Path → mode and content of each file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("cluster", ["from-host-local.yaml"], indirect=True)
def test_what_host_local_has_given_is_taken_over_first(
    engine: ContainerEngine, server: ApiServer, cluster: str, tmp_path: Path
) -> None:
    node = Node(engine, server, read(FOLDER / cluster), tmp_path)
    pod = node.pod("DaemonSet")
    there_already(node)
    server.cluster.add_namespace("gold")
    server.cluster.add_pod("gold", "web-0", node=NODE)
    server.cluster.set_pod_status("gold", "web-0", phase="Running", podIP="10.244.7.2", podIPs=[{"ip": "10.244.7.2"}])
    reservations = node.host("/var/lib/cni/networks/k8s-pod-network")
    reservations.mkdir(parents=True)
    (reservations / "10.244.7.2").write_text("a" * 64 + "\r\neth0")
    for container in pod["initContainers"]:
        done = node.run(pod, container)
        assert done.returncode == 0, done.stderr
    assert not reservations.exists()
    assert f"ipamhandles/k8s-pod-network.{'a' * 64}" in server.cluster.calico()
    works(node.host("/opt/cni/bin"), node.host("/etc/cni/net.d"))


def there_already(node: Node) -> None:
    """Calico's programs and configuration, and another plugin."""
    bin_dir, net_dir = node.host("/opt/cni/bin"), node.host("/etc/cni/net.d")
    for folder in (bin_dir, net_dir):
        folder.mkdir(parents=True)
    for name in ("calico", "calico-ipam"):
        (bin_dir / name).write_text("#!/bin/sh\necho the original\n")
        (bin_dir / name).chmod(0o755)
    (bin_dir / "portmap").write_bytes((PLUGINS / "portmap").read_bytes())
    (bin_dir / "portmap").chmod(0o755)
    (net_dir / "10-calico.conflist").write_text('{"name": "old", "plugins": []}')


def installed_as_told(bin_dir: Path, net_dir: Path, pod: Object) -> None:
    assert tree(bin_dir) == {**INSTALLED, "portmap": 0o755}
    shown = subprocess.run([bin_dir / "calico", "-v"], env={}, text=True, capture_output=True, check=True)
    assert shown.stdout.strip() == VERSION
    assert (bin_dir / "calico-ipam").read_bytes() == (bin_dir / "calico").read_bytes()
    files = tree(net_dir)
    assert {name: mode for name, mode in files.items() if not name.startswith(".")} == {
        "10-calico.conflist": 0o600,
        "calico-kubeconfig": 0o600,
    }
    conf = json.loads((net_dir / "10-calico.conflist").read_text())
    path = next(one["hostPath"]["path"] for one in pod["volumes"] if one["name"] == "cni-net")
    assert conf["plugins"][0]["nodename"] == NODE
    assert conf["plugins"][0]["kubernetes"] == {"kubeconfig": f"{path}/calico-kubeconfig"}


def works(bin_dir: Path, net_dir: Path) -> None:
    """The installed plugin reaches the datastore with the installed configuration."""
    user = yaml.safe_load((net_dir / "calico-kubeconfig").read_text())["users"][0]["user"]
    assert user["token"]
    conf = json.loads((net_dir / "10-calico.conflist").read_text())
    plugin = {**conf["plugins"][0], "name": conf["name"], "cniVersion": conf["cniVersion"]}
    plugin["kubernetes"] = {"kubeconfig": str(net_dir / "calico-kubeconfig")}
    del plugin["log_file_path"]
    done = subprocess.run(
        [bin_dir / "calico", "-t"], env={}, input=json.dumps(plugin), text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done
