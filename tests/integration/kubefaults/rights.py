"""Which right of RBAC a request needs, what rights rules give, and accounts that have just some of them.

Invariant: the accounts that a test has made go with `Accounts.remove`.
"""

from __future__ import annotations

from typing import NamedTuple

from integration.plugin.kubernetes_store import ACCOUNT
from services.cluster import Cluster
from services.kube_client import Object
from services.kube_proxy import Asked

RBAC = "/apis/rbac.authorization.k8s.io/v1"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    """`resource` is with its subresource; a path of its own has the group `-`."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group}".rstrip(".")


def right_of(asked: Asked) -> Right:
    """As the server's authorizer sees a request."""
    root, _, rest = asked.path.lstrip("/").partition("/")
    parts = rest.split("/")
    group, parts = ("", parts[1:]) if root == "api" else (parts[0], parts[2:])
    if not parts:
        return Right("-", asked.path, "get")
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    resource, named = parts[0], len(parts) > 1
    resource += "".join(f"/{part}" for part in parts[2:])
    return Right(group, resource, VERBS.get(asked.method) or ("get" if named else "list"))


def rights_of(rules: list[Object]) -> set[Right]:
    found = set()
    for rule in rules:
        places = [(group, resource) for group in rule.get("apiGroups", []) for resource in rule.get("resources", [])]
        places += [("-", path) for path in rule.get("nonResourceURLs", [])]
        found |= {Right(*place, verb) for place in places for verb in rule["verbs"]}
    return found


def without(rules: list[Object], right: Right) -> list[Object]:
    """The same rights but for one, each by a rule of its own. Restrictions to names stay."""
    left: list[Object] = []
    for rule in rules:
        for one in rights_of([rule]) - {right}:
            names = {"resourceNames": rule["resourceNames"]} if "resourceNames" in rule else {}
            place = {"apiGroups": [one.group], "resources": [one.resource], **names}
            left.append({**({"nonResourceURLs": [one.resource]} if one.group == "-" else place), "verbs": [one.verb]})
    return left


class Accounts:
    """Service accounts with rules of a test's own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._made: list[str] = []

    def token(self, name: str, rules: list[Object]) -> str:
        namespace = ACCOUNT[0]
        self.cluster.add_account(namespace, name)
        client = self.cluster.client
        self._made.append(name)
        client.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        client.create(f"{RBAC}/clusterrolebindings", binding)
        return self.cluster.token(namespace, name)

    def remove(self) -> None:
        for name in self._made:
            for path in ("clusterrolebindings", "clusterroles"):
                self.cluster.client.delete(f"{RBAC}/{path}/{name}")
            self.cluster.client.delete(f"/api/v1/namespaces/{ACCOUNT[0]}/serviceaccounts/{name}")
