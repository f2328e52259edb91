"""Objects of manifest files given to an API server as `kubectl apply --server-side` gives them, and taken away again.

    documents = read(path)
    applied(client, documents)               what the server has made of each; an unknown member is refused
    applied(client, documents, dry=True)     the same, and nothing is kept
    remove(client, documents)

Invariant: nothing is sent that does not stand in the file.
"""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from services.kube_client import KubeClient, Object
from services.rights import await_rights

_ROOTS = {
    "ConfigMap": "/api/v1/{namespace}configmaps",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DaemonSet": "/apis/apps/v1/{namespace}daemonsets",
    "Job": "/apis/batch/v1/{namespace}jobs",
    "Role": "/apis/rbac.authorization.k8s.io/v1/{namespace}roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/{namespace}rolebindings",
    "ServiceAccount": "/api/v1/{namespace}serviceaccounts",
}
_APPLY = "application/apply-patch+yaml"  # JSON is YAML, too
_LONGEST_WAIT = 120.0


def read(path: Path) -> list[Object]:
    return list(yaml.safe_load_all(path.read_text()))


def place(one: Object) -> str:
    """Where the object is."""
    namespace = one["metadata"].get("namespace")
    root = _ROOTS[one["kind"]].format(namespace=f"namespaces/{namespace}/" if namespace else "")
    return f"{root}/{one['metadata']['name']}"


def applied(client: KubeClient, documents: list[Object], *, dry: bool = False) -> list[Object]:
    for one in documents:
        _await_end(client, one)
    query = "fieldManager=test&fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    made = [client.patch(f"{place(one)}?{query}", one, content=_APPLY) for one in documents]
    if not dry:
        _await_served(client, documents)
        await_rights(client, documents)
    return made


def _await_end(client: KubeClient, one: Object) -> None:
    """Of an object that is going: what is applied to it would go with it."""
    ends = time.monotonic() + _LONGEST_WAIT
    while "deletionTimestamp" in ((client.find(place(one)) or {}).get("metadata", {})):
        if time.monotonic() > ends:
            raise RuntimeError(f"waited in vain for {place(one)} to go")
        time.sleep(0.05)


def remove(client: KubeClient, documents: list[Object]) -> None:
    """Return when they are gone: a definition goes after its objects."""
    ends = time.monotonic() + _LONGEST_WAIT
    for one in reversed(documents):
        client.drop(place(one))
    for one in documents:
        while client.find(place(one)) is not None:
            if time.monotonic() > ends:
                raise RuntimeError(f"waited in vain for {place(one)} to go")
            time.sleep(0.05)
    await_rights(client, documents, granted=False)


def pod_templates(documents: list[Object]) -> list[Object]:
    """What pods of the objects are made from."""
    return [one["spec"]["template"] for one in documents if "template" in one.get("spec", {})]


def _await_served(client: KubeClient, documents: list[Object]) -> None:
    """Until each resource that they define can be listed."""
    ends = time.monotonic() + _LONGEST_WAIT
    for one in documents:
        if one["kind"] == "CustomResourceDefinition":
            spec = one["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            while client.find(path) is None:
                if time.monotonic() > ends:
                    raise RuntimeError(f"waited in vain for {path}")
                time.sleep(0.05)
