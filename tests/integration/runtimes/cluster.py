"""A Kubernetes cluster of two nodes whose only network is ours, put there by `kubectl apply` of a shipped manifest.

    with KubeCluster(rack, programs) as cluster:
        cluster.add_node("node-a"); cluster.install()
        cluster.deploy("web", 30); cluster.await_pods("web", 30)

API server, controller manager and scheduler are on the rack; a node is containerd and a kubelet (`kube_node`).

Invariant: nothing on a node is prepared for the plugins but their image, and what any package of a kubelet brings:
the CNI project's `loopback`, which containerd calls for each pod, and `portmap`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from integration.runtimes import box_image
from integration.runtimes.kube_node import KubeNode, Routes
from integration.runtimes.leftovers import Found, leftovers
from integration.runtimes.nodes import GATEWAY4, Rack, await_that
from services.apiserver import ApiServer, Daemon, find_programs
from services.kube_client import Object, Refused
from services.manifests import applied, read

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "fresh.yaml"
IMAGE = "docker.io/library/tortie:v0.1.0"
POOLS = ("10.44.0.0/16", "fd44::/112")
PODS = "/api/v1/namespaces/default/pods"


class KubeCluster:
    def __init__(self, rack: Rack, programs: Path) -> None:
        self.rack, self.ours = rack, programs
        self.programs = find_programs("cluster")
        self.nodes: dict[str, KubeNode] = {}
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        try:
            controllers = {
                "controllers": "*,-node-ipam-controller",
                "node-monitor-grace-period": "8s",
                "node-monitor-period": "1s",
            }
            server = ApiServer(
                "--kubelet-preferred-address-types=InternalIP",
                "--default-unreachable-toleration-seconds=2",
                "--default-not-ready-toleration-seconds=2",
                controller_manager=True,
                controllers=controllers,
                address=GATEWAY4,
            )
            self.server = self._undo.enter_context(server)
            self.client = server.client
            self._let_kubelets_in()
            config = server.kubeconfig(self.rack.folder / "scheduler.kubeconfig")
            words = [self.programs["kube-scheduler"], f"--kubeconfig={config}", "--leader-elect=false"]
            words += [
                "--secure-port=0",
                f"--authentication-kubeconfig={config}",
                f"--authorization-kubeconfig={config}",
            ]
            self.scheduler = Daemon(words, self.rack.folder / "scheduler.log")
            self._undo.callback(self.scheduler.kill)
            self.scheduler.launch()
            self.image = self.rack.folder / "tortie.tar"
            box_image.write_archive(
                self.image, IMAGE, {"usr/bin/calico": self.ours / "calico"}, {"usr/bin/tortie": "calico"}
            )
            self.routes = Routes(self, server.connect())
            self._undo.callback(self.routes.end)
            self.routes.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        for node in self.nodes.values():
            self._undo.callback(node.runtime.__exit__)
            self._undo.callback(node.node.halt)
        self._undo.close()

    def _let_kubelets_in(self) -> None:
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node"}
        binding = {"metadata": {"name": "kubelets"}, "subjects": [group], "roleRef": role}
        self.client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    def add_node(self, name: str) -> KubeNode:
        node = self.nodes[name] = KubeNode(self, self.rack.add_node(name))
        node.start()
        return node

    def install(self) -> None:
        """`kubectl apply -f manifests/fresh.yaml`, with two pools in it, addresses of both families, and some kept.

        Without a service proxy, the API server's address is said in the ConfigMap that the manifest names for that.
        """
        documents = read(MANIFEST)
        for one in documents:
            if one["kind"] == "Job":
                words = [word for pool in POOLS for word in ("--pool", pool)]
                one["spec"]["template"]["spec"]["containers"][0]["args"] = ["init", *words]
            if one["kind"] == "ConfigMap":
                config = json.loads(one["data"]["cni_network_config"].replace("__CNI_MTU__", "1500"))
                config["plugins"][0]["ipam"] |= {"assign_ipv4": "true", "assign_ipv6": "true"}
                config["plugins"][0]["ipam"]["keep_addresses"] = {"owners": []}  # for those that ask only
                one["data"]["cni_network_config"] = json.dumps(config)
        where = {"KUBERNETES_SERVICE_HOST": GATEWAY4, "KUBERNETES_SERVICE_PORT": str(self.server.port)}
        metadata = {"name": "kubernetes-services-endpoint", "namespace": "kube-system"}
        endpoint = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": where}
        applied(self.client, [endpoint, *documents])

    # What one asks for, and what there is

    def pods(self, app: str = "") -> list[Object]:
        query = {"labelSelector": f"app={app}"} if app else {}
        return self.client.list(PODS, **query)

    def running(self, app: str) -> list[Object]:
        return [pod for pod in self.pods(app) if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]

    def await_pods(self, app: str, number: int, seconds: float = 120) -> list[Object]:
        """So many ready ones, and no other."""

        def settled() -> bool:
            return len(self.running(app)) == number == len(self.pods(app))

        self.await_that(settled, f"{number} pods of {app}", seconds)
        return self.running(app)

    def await_that(self, true: Callable[[], Any], what: str, seconds: float = 120) -> None:
        def asked() -> Any:
            try:
                return true()
            except (OSError, Refused):  # the server may be away meanwhile
                return False

        try:
            await_that(asked, what, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.report()}") from None

    def report(self) -> str:
        """What does not run, and why, as `kubectl describe` has it."""
        lines = []
        for pod in self.client.list("/api/v1/pods"):
            if not is_ready(pod):
                name, status = pod["metadata"]["name"], pod.get("status", {})
                states = [one.get("state") for one in status.get("containerStatuses", [])]
                states += [one.get("state") for one in status.get("initContainerStatuses", [])]
                lines.append(f"{name} on {pod['spec'].get('nodeName')}: {status.get('phase')} {states}")
        events = sorted(self.client.list("/api/v1/events"), key=lambda one: one["metadata"]["creationTimestamp"])
        lines += [
            f"{one['involvedObject'].get('name')}: {one.get('message')}"
            for one in events
            if one.get("type") != "Normal"
        ][-20:]
        return "\n".join(lines)

    def await_installed(self, number: int) -> None:
        """So many nodes are ready, and there are pools."""
        self.await_ready_nodes(number)
        pools = "/apis/crd.projectcalico.org/v1/ippools"
        self.await_that(lambda: len(self.client.list(pools)) == len(POOLS), "the pools are there")

    def await_ready_nodes(self, number: int) -> None:
        def ready() -> bool:
            return [is_ready(node) for node in self.client.list("/api/v1/nodes")] == [True] * number

        self.await_that(ready, f"{number} nodes are ready")

    def clear(self) -> None:
        """No workload of tests, and no pod of one."""
        for kind in ("deployments", "statefulsets"):
            path = f"/apis/apps/v1/namespaces/default/{kind}"
            for one in self.client.list(path):
                self.client.delete(f"{path}/{one['metadata']['name']}")
        self.await_that(lambda: not self.pods(), "no pod is left")

    def remains(self) -> list[str]:
        """What pods have left behind."""
        checked = self.tortie("ipam", "check")
        handles = self.client.list("/apis/crd.projectcalico.org/v1/ipamhandles")
        return leftovers(
            (checked.returncode, f"{checked.stdout}{checked.stderr}"),
            [one["metadata"]["name"] for one in handles],
            {name: Found(here.pod_links(), here.results()) for name, here in self.nodes.items()},
        )

    def tortie(self, *words: str) -> Any:
        """The operator's command, as an administrator."""
        node = next(iter(self.nodes.values()))
        admin = {"DATASTORE_TYPE": "kubernetes", "KUBECONFIG": str(self.rack.folder / "scheduler.kubeconfig")}
        return node.node.call(str(self.ours / "tortie"), *words, **admin)

    def await_nothing(self, seconds: float = 90) -> None:
        """Kubelets ask for DEL up to a minute after a pod is gone."""
        with suppress(TimeoutError):
            await_that(lambda: not self.remains(), "nothing is left", seconds)
        assert self.remains() == []

    def deploy(self, app: str, replicas: int, kind: str = "Deployment", **spec: Any) -> None:
        made = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template(app), **spec}
        made |= {"serviceName": app} if kind == "StatefulSet" else {}
        self.client.create(
            f"/apis/apps/v1/namespaces/default/{kind.lower()}s", {"metadata": {"name": app}, "spec": made}
        )

    def change(self, app: str, kind: str = "Deployment", **spec: Any) -> None:
        self.client.patch(f"/apis/apps/v1/namespaces/default/{kind.lower()}s/{app}", {"spec": spec})

    def delete(self, app: str, kind: str = "Deployment") -> None:
        self.client.drop(f"/apis/apps/v1/namespaces/default/{kind.lower()}s/{app}")
        self.await_pods(app, 0)


def template(app: str, **annotations: str) -> Object:
    container = {
        "name": "main",
        "image": box_image.NAME,
        "imagePullPolicy": "Never",
        "command": box_image.COMMAND,
        "ports": [{"containerPort": 80}],
    }
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "dnsPolicy": "Default",
        "automountServiceAccountToken": False,
    }
    return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": spec}


def is_ready(pod: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def addresses(pod: Object) -> list[str]:
    return [one["ip"] for one in pod["status"].get("podIPs", [])]
