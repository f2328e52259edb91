"""The manifests are taken by a real API server as they are, and an operator needs nothing but them."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path

import pytest

from integration.kubefaults.kube_rig import SPACE, KubeRig
from integration.manifests.conftest import FOLDER
from services.apiserver import ApiServer
from services.kube_client import Object, Refused
from services.manifests import applied, place, pod_templates, read, remove

WAYS = sorted(path.name for path in FOLDER.glob("*.yaml") if not path.name.startswith("rbac"))
EACH = pytest.mark.parametrize("way", WAYS)
MOST_URGENT = 2_000_000_000  # of the priority classes that every cluster has, the lower one
POOL = "10.244.0.0/16"


def test_there_is_a_manifest_for_each_way() -> None:
    assert {"fresh.yaml", "beside-calico.yaml", "in-place-of-calico.yaml", "uninstall.yaml"} <= set(WAYS)


@EACH
def test_a_manifest_is_taken_as_it_is(server: ApiServer, way: str) -> None:
    """No member is unknown to the server, and applying it again changes nothing."""
    documents = read(FOLDER / way)
    applied(server.client, documents, dry=True)
    assert [server.client.find(place(one)) for one in documents] == [None] * len(documents)
    try:
        versions = [one["metadata"]["resourceVersion"] for one in applied(server.client, documents)]
        again = applied(server.client, documents)
        changed = [one["kind"] for one, before in zip(again, versions) if one["metadata"]["resourceVersion"] != before]
        assert set(changed) <= {"CustomResourceDefinition"}  # whose status the server itself completes meanwhile
    finally:
        remove(server.client, documents)


def test_a_misspelt_member_would_be_noticed(server: ApiServer) -> None:
    wrong = copy.deepcopy(read(FOLDER / "fresh.yaml")[-1])
    wrong["spec"]["template"]["spec"]["hostNetwrok"] = True
    with pytest.raises(Refused, match="hostNetwrok"):
        applied(server.client, [wrong], dry=True)


@EACH
def test_its_pods_are_admitted(server: ApiServer, way: str) -> None:
    """Before all others, on nodes that are not ready, and with no more privileges than root's own files take."""
    for template in pod_templates(read(FOLDER / way)):
        pod = {**template, "metadata": {**template["metadata"], "name": "one"}}
        path = "/api/v1/namespaces/kube-system/pods?dryRun=All&fieldValidation=Strict"
        spec = server.client.create(path, pod)["spec"]
        assert spec["priority"] >= MOST_URGENT
        assert {"operator": "Exists"} in spec["tolerations"]
        assert spec["hostNetwork"] is True
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)


@EACH
def test_kubectl_takes_it_in_one_go(server: ApiServer, way: str, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl here")
    config = server.kubeconfig(tmp_path / "config")
    words = [kubectl, "--kubeconfig", config, "--cache-dir", tmp_path / "cache"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, *more, "-f", FOLDER / way], text=True, capture_output=True, check=False, timeout=120
        )

    done = run("apply")
    try:
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        assert len(done.stdout.splitlines()) == len(read(FOLDER / way))
        again = run("apply")
        assert again.returncode == 0, again.stderr
        assert {line.split()[1] for line in again.stdout.splitlines()} == {"unchanged"}
    finally:
        deleted = run("delete", "--wait=false")
        remove(server.client, read(FOLDER / way))  # waits: what is applied to a definition that goes, goes with it
    assert deleted.returncode == 0, deleted.stderr


@pytest.mark.parametrize("way", ["fresh.yaml", "in-place-of-calico.yaml", "from-host-local.yaml"])
def test_the_way_back_takes_the_installers_place(server: ApiServer, way: str) -> None:
    """So that nobody installs while it is being uninstalled, and deleting the first file deletes that, too."""
    (installs,) = [one for one in read(FOLDER / way) if one["kind"] == "DaemonSet"]
    (goes_back,) = read(FOLDER / "uninstall.yaml")
    try:
        (first,) = applied(server.client, [installs])
        (second,) = applied(server.client, [goes_back])
    finally:
        remove(server.client, [installs])
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    spec = second["spec"]["template"]["spec"]
    assert "initContainers" not in spec
    assert [container["name"] for container in spec["containers"]] == ["uninstall"]
    assert {one["name"]: one["hostPath"] for one in spec["volumes"]}.items() <= {
        one["name"]: one["hostPath"] for one in installs["spec"]["template"]["spec"]["volumes"]
    }.items()


def test_a_fresh_cluster_networks_its_first_pod(fresh: KubeRig) -> None:
    """Its definitions, its pool, and the rights of its two accounts are enough."""
    fresh.cluster.add_node(fresh.node)
    initialised(fresh)
    fresh.cluster.add_namespace(SPACE)
    sandbox = fresh.pod()
    result = fresh.add(sandbox)
    fresh.networked(sandbox, result)
    fresh.delete(sandbox).silent()
    fresh.gone(sandbox)
    fresh.everything_agrees()
    assert fresh.proxy.refusals == []


def init_container() -> Object:
    job = next(one for one in read(FOLDER / "fresh.yaml") if one["kind"] == "Job")
    container: Object = job["spec"]["template"]["spec"]["containers"][0]
    return container


def initialised(rig: KubeRig) -> None:
    """Run what the job runs, as its account."""
    container = init_container()
    token = rig.cluster.token("kube-system", "tortie-init")
    config = rig.proxy.kubeconfig(rig.folder / "init.kubeconfig", token=token)
    variables = {one["name"]: one.get("value", rig.node) for one in container["env"]}
    variables |= {"KUBECONFIG": str(config), "HOME": str(rig.folder)}
    answer = rig.raw(variables, "", *container["args"], program="tortie")
    assert answer.exit == 0, answer
    assert f"{POOL}, blocks of /26" in answer.stdout
