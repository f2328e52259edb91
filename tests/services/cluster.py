"""The objects of a cluster, prepared and looked at past the product, and cleared between tests.

    cluster.add_namespace("gold"); cluster.add_node("node-a")
    cluster.add_pod("gold", "web-0", node="node-a", annotations={...})
    cluster.calico("v1")                     {"ippools/p4": {...}, "ipamblocks/10-40-0-64-26": {...}, ...}
    cluster.clear()

There is no kubelet and no scheduler: pods say which node they are on, and go at once when deleted.
Invariant: `clear` leaves what was there when this object was made, but for Calico's objects and the pods of `default`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from services import custom_resources
from services.custom_resources import GROUPS
from services.kube_client import KubeClient, Object, Refused
from services.rights import await_rights

_LONGEST_WAIT = 120.0
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LISTS = {"ClusterRole": f"{_RBAC}/clusterroles", "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings"}
_CONTENT = ["pods", "serviceaccounts", "configmaps"]  # of a namespace; nothing else is put into one by tests


class Cluster:
    """What an administrator sees. `accounts`: a controller gives each namespace its account `default`."""

    def __init__(self, client: KubeClient, *, accounts: bool = False) -> None:
        self.client = client
        self.accounts = accounts
        self._found_namespaces = _names(client.list("/api/v1/namespaces"))
        self._found_nodes = _names(client.list("/api/v1/nodes"))

    # What to begin with

    def add_namespace(self, name: str, **metadata: Any) -> Object:
        """`metadata` is labels, annotations."""
        made = self.client.create("/api/v1/namespaces", {"metadata": {"name": name, **metadata}})
        if self.accounts:
            self._await_account(name)
        return made

    def add_node(self, name: str, *, pod_cidrs: Iterable[str] = (), **metadata: Any) -> Object:
        ranges = list(pod_cidrs)
        spec = {"podCIDR": ranges[0], "podCIDRs": ranges} if ranges else {}
        return self.client.create("/api/v1/nodes", {"metadata": {"name": name, **metadata}, "spec": spec})

    def add_account(self, namespace: str, name: str, **metadata: Any) -> Object:
        account = {"metadata": {"name": name, **metadata}}
        return self.client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)

    def add_pod(
        self,
        namespace: str,
        name: str,
        *,
        node: str = "",
        account: str = "default",
        ports: Iterable[Object] = (),
        host_network: bool = False,
        **metadata: Any,
    ) -> Object:
        """A pod on a node ("" for none yet), its one container with these ports; `metadata` is labels and so on."""
        container = {"name": "main", "image": "none", "ports": list(ports)}
        spec: Object = {"containers": [container], "serviceAccountName": account, "hostNetwork": host_network}
        spec["automountServiceAccountToken"] = False
        if node:
            spec["nodeName"] = node
        return self.client.create(pods(namespace), {"metadata": {"name": name, **metadata}, "spec": spec})

    def set_pod_status(self, namespace: str, name: str, **status: Any) -> Object:
        """As a kubelet would: `phase="Succeeded"`, `podIPs=[{"ip": ...}]`."""
        return self.client.patch(f"{pods(namespace)}/{name}/status", {"status": status})

    def add(self, group: str, plural: str, name: str, spec: Object, **metadata: Any) -> Object:
        """A custom resource of a group in GROUPS, such as `add("v1", "ippools", "p4", {"cidr": ...})`."""
        path = f"/apis/{GROUPS[group]}/{plural}"
        if namespace := metadata.pop("namespace", ""):
            path = f"/apis/{GROUPS[group]}/namespaces/{namespace}/{plural}"
        made = {"apiVersion": GROUPS[group], "kind": custom_resources.kinds(group)[plural], "spec": spec}
        return self.client.create(path, made | {"metadata": {"name": name, **metadata}})

    def apply(self, manifest: Path) -> None:
        """Create the accounts, cluster roles and bindings of a YAML file, or replace roles and bindings."""
        documents = list(yaml.safe_load_all(manifest.read_text()))
        for one in documents:
            metadata, kind = one["metadata"], one["kind"]
            accounts = f"/api/v1/namespaces/{metadata.get('namespace')}/serviceaccounts"
            path = accounts if kind == "ServiceAccount" else _LISTS[kind]
            if self.client.find(f"{path}/{metadata['name']}") is None:
                self.client.create(path, one)
            elif kind != "ServiceAccount":  # in place, so that nobody is without the right for a moment
                self.client.put(f"{path}/{metadata['name']}", one)
        await_rights(self.client, documents)

    def token(self, namespace: str, account: str, seconds: int = 3600) -> str:
        """A token of a service account that is there, for at least 600 seconds, and that the server believes.

        It ends with the account; once used, though, the server remembers for ten seconds that it is good.
        """
        # An account of that name that was there before is still in the server's copy for a moment.
        self._await(
            lambda: self._is_believed(self._new_token(namespace, account)), f"{namespace}/{account} to be believed"
        )
        return self._new_token(namespace, account, seconds)

    def _new_token(self, namespace: str, account: str, seconds: int = 600) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self.client.create(path, asked | {"spec": {"expirationSeconds": seconds}})
        token: str = answer["status"]["token"]
        return token

    def _is_believed(self, token: str) -> bool:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = self.client.create("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        return bool(status.get("authenticated"))

    def serve(self, *groups: str) -> None:
        """Of the groups in GROUPS exactly these are served from now on; objects of the others go."""
        custom_resources.serve(self.client, *groups)

    # What there is

    def pod(self, namespace: str, name: str) -> Object:
        return self.client.get(f"{pods(namespace)}/{name}")

    def calico(self, *groups: str) -> dict[str, Object]:
        """Calico's objects (of all served groups if none is named) by plural and name, without `managedFields`."""
        found = {}
        for group in groups or custom_resources.served(self.client):
            for plural in custom_resources.kinds(group) if group != "kubevirt" else ():
                for one in self.client.list(f"/apis/{GROUPS[group]}/{plural}"):
                    one["metadata"].pop("managedFields", None)
                    found[f"{plural}/{one['metadata']['name']}"] = one
        return found

    # Between tests

    def clear(self) -> None:
        """Delete all custom resources known here and all that was added; the definitions stay. Meant to be quick."""
        for group in custom_resources.served(self.client):
            for plural in custom_resources.kinds(group):
                self._clear_custom(f"/apis/{GROUPS[group]}", plural)
        if any(one["metadata"]["namespace"] == "default" for one in self.client.list("/api/v1/pods")):
            self.client.delete(pods("default"))
        for name in _names(self.client.list("/api/v1/namespaces")) - self._found_namespaces:
            self._end_namespace(name)
        for name in _names(self.client.list("/api/v1/nodes")) - self._found_nodes:
            self.client.delete(f"/api/v1/nodes/{name}")

    def _clear_custom(self, root: str, plural: str) -> None:
        namespaces = set()
        for one in self.client.list(f"{root}/{plural}"):
            where = one["metadata"].get("namespace")
            namespaces.add(f"{root}/namespaces/{where}/{plural}" if where else f"{root}/{plural}")
            if one["metadata"].get("finalizers"):
                self.client.patch(
                    f"{root}/{f'namespaces/{where}/' if where else ''}{plural}/{one['metadata']['name']}",
                    {"metadata": {"finalizers": None}},
                )
        for path in namespaces:
            self.client.delete(path)
        if namespaces:  # who asks for a list that may lag would get those of the test before
            lagging = f"{root}/{plural}"
            self._await(lambda: not self.client.list(lagging, resourceVersion=0), f"{plural} to be forgotten")

    def _end_namespace(self, name: str) -> None:
        """Its content first, then the namespace without waiting for a controller, which there may not be."""
        path = f"/api/v1/namespaces/{name}"
        self.client.delete(path)
        for plural in _CONTENT:
            self.client.delete(f"{path}/{plural}")
        try:
            there = self.client.get(path)
            self.client.put(f"{path}/finalize", there | {"spec": {"finalizers": []}})
        except Refused as error:
            if error.status not in {404, 409}:
                raise
        self._await(lambda: self._has_ended(path), f"namespace {name} to go")

    def _has_ended(self, path: str) -> bool:
        """For admission, too: it looks into a copy that lags, and refuses what is put into a namespace made anew."""
        if self.client.find(path) is not None:
            return False
        try:
            self.client.create(f"{path}/configmaps?dryRun=All", {"metadata": {"name": "nothing"}})
        except Refused as error:
            return error.status == 404
        return False

    def _await_account(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        self._await(lambda: self.client.find(path) is not None, f"the account default of {namespace}")

    def _await(self, reached: Any, what: str) -> None:
        ends = time.monotonic() + _LONGEST_WAIT
        while not reached():
            if time.monotonic() > ends:
                raise RuntimeError(f"waited in vain for {what}")
            time.sleep(0.02)


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _names(items: list[Object]) -> set[str]:
    return {one["metadata"]["name"] for one in items}
