"""A Kubernetes cluster as a datastore: the same records as elsewhere, kept as Calico's custom resources.

Keys are those of etcd, and values have etcd's form too, but for what the resources lack or name otherwise; so a test
says once what it begins with and what must be there.

Invariant: everything is read and written past the product, as the cluster's administrator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from integration.plugin.store import IPAM, V3, Records
from patience import until
from services.custom_resources import GROUPS, kinds
from services.kube_client import Object
from services.kubernetes_server import KubernetesServer
from worlds.kubernetes_world import Shared

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac.yaml"
ACCOUNT = ("kube-system", "calico-cni-plugin")
POD_IPS = "cni.projectcalico.org/podIPs"
_RESOURCES = ("clusterinformations", "ippools", "ipreservations")
_SETTINGS = {"strict_affinity": "strictAffinity", "auto_allocate_blocks": "autoAllocateBlocks"}
_BLOCK = re.compile(rf"{IPAM}/assignment/ipv[46]/block/(?P<cidr>.+)")
_AFFINITY = re.compile(rf"{IPAM}/host/(?P<node>[^/]+)/ipv[46]/block/(?P<cidr>.+)")


class Served(Shared):
    """One server for all tests of a run. Plugins use it with the rights that the shipped manifest gives them."""

    def __init__(self, server: KubernetesServer) -> None:
        server.cluster.apply(MANIFEST)
        self.token = server.cluster.token(*ACCOUNT, seconds=7200)
        super().__init__(server)

    @property
    def host(self) -> str:
        return urlsplit(self.server.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.server.url).port or 443

    def kubeconfig(self, path: Path, port: int, *, administrator: bool = False) -> Path:
        """For the plugins, or for an administrator's `tortie`, through `port` of the reader's own loopback."""
        named: dict[str, Any] = {} if self.host == "127.0.0.1" else {"tls_server_name": self.host}
        token = "" if administrator else self.token
        return self.server.kubeconfig(path, token=token, server=f"https://127.0.0.1:{port}", **named)


class KubernetesRecords(Records):
    """The custom resources of one group, and nodes. Pods stand for endpoints, as they do for the product."""

    def __init__(self, served: Served, group: str, kubeconfig: Path) -> None:
        self.served = served
        self.group = group
        self.cluster = served.server.cluster
        self.settings = {
            "cniVersion": "1.0.0",
            "datastore_type": "kubernetes",
            "kubernetes": {"kubeconfig": str(kubeconfig)},
            "calico_api_group": GROUPS[group],
        }
        self._config = next(plural for plural in kinds(group) if plural.startswith("ipamconfig"))

    def begin(self) -> None:
        self.served.fresh(self.group)

    def exists(self) -> bool:
        return True

    def nowhere(self) -> dict[str, Any]:
        path = Path(self.settings["kubernetes"]["kubeconfig"])
        absent = path.with_name("nowhere.kubeconfig")
        self.served.kubeconfig(absent, 1)
        return self.settings | {"kubernetes": {"kubeconfig": str(absent)}}

    def write(self, key: str, text: str) -> None:
        value = json.loads(text)
        path, name = self._place(key)
        found = self.served.server.client.find(f"{path}/{name}")
        if path.endswith("/nodes"):
            made: Object = {"metadata": {"name": name}}
        else:
            plural = path.rpartition("/")[2]
            kind = kinds(self.group)[plural]
            made = {"apiVersion": GROUPS[self.group], "kind": kind, "metadata": {"name": name}}
            made["spec"] = self._spec(plural, name, value)
        if found is None:
            written = self.served.server.client.create(path, made)
        else:
            written = self.served.server.client.put(f"{path}/{name}", found | made | {"metadata": found["metadata"]})
        until(lambda: _version(self._remembered(path, name)) >= _version(written), key)

    def drop(self, key: str) -> None:
        path, name = self._place(key)
        self.served.server.client.delete(f"{path}/{name}")
        until(lambda: self._remembered(path, name) is None, f"the end of {key}")

    def _remembered(self, path: str, name: str) -> Object | None:
        """What who asks for anything that is not too old gets: the product does where it may."""
        return self.served.server.client.find(f"{path}/{name}?resourceVersion=0")

    def texts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for plural in kinds(self.group):
            found |= {key: json.dumps(value) for key, value in self._list(plural).items()}
        nodes = self.served.server.client.list("/api/v1/nodes")
        found |= {f"{V3}/nodes/{one['metadata']['name']}": json.dumps(one) for one in nodes}
        return dict(sorted(found.items()))

    def handles(self) -> dict[str, Any]:
        return {key.removeprefix(f"{IPAM}/handle/"): value for key, value in self._list("ipamhandles").items()}

    def blocks(self) -> dict[str, Any]:
        return self._list("ipamblocks")

    def has_any(self, prefix: str) -> bool:
        plural = "ipamhandles" if prefix == f"{IPAM}/handle/" else ""
        assert plural, prefix
        return bool(self._list(plural))

    def endpoints(self) -> dict[str, Any]:
        """Of pods that are said to have addresses: their annotations."""
        pods = [one["metadata"] for one in self.served.server.client.list("/api/v1/pods")]
        return {
            f"{pod['namespace']}/{pod['name']}": pod["annotations"]
            for pod in pods
            if pod.get("annotations", {}).get(POD_IPS)
        }

    def _list(self, plural: str) -> dict[str, Any]:
        """By key, as etcd would have them."""
        return dict(_record(plural, one) for one in self.objects(plural))

    def objects(self, plural: str) -> Iterable[Object]:
        return self.served.server.client.list(f"/apis/{GROUPS[self.group]}/{plural}")

    def _place(self, key: str) -> tuple[str, str]:
        """The path of the list, and the name of the object in it."""
        root = f"/apis/{GROUPS[self.group]}"
        if found := _BLOCK.fullmatch(key):
            return f"{root}/ipamblocks", _dashes(found["cidr"])
        if found := _AFFINITY.fullmatch(key):
            return f"{root}/blockaffinities", f"{found['node']}-{_dashes(found['cidr'])}"
        if key.startswith(f"{IPAM}/handle/"):
            return f"{root}/ipamhandles", key.removeprefix(f"{IPAM}/handle/").lower()
        if key == f"{IPAM}/config":
            return f"{root}/{self._config}", "default"
        plural, name = key.removeprefix(f"{V3}/").split("/")
        assert plural in (*_RESOURCES, "nodes"), key
        return "/api/v1/nodes" if plural == "nodes" else f"{root}/{plural}", name

    def _spec(self, plural: str, name: str, value: Any) -> Any:
        if plural == "ipamhandles":
            return value | {"handleID": name}
        if plural == self._config:
            complete = {"strict_affinity": False, "auto_allocate_blocks": True} | value
            return {_SETTINGS.get(member, member): one for member, one in complete.items()}
        return value["spec"] if plural in _RESOURCES else value


def _version(one: Object | None) -> int:
    return int(one["metadata"]["resourceVersion"]) if one else 0


def _record(plural: str, one: Object) -> tuple[str, Any]:
    spec, name = one["spec"], one["metadata"]["name"]
    if plural in _RESOURCES:
        return f"{V3}/{plural}/{name}", one
    if plural == "ipamhandles":
        return f"{IPAM}/handle/{spec['handleID']}", spec
    if plural.startswith("ipamconfig"):
        names = {ours: theirs for theirs, ours in _SETTINGS.items()}
        return f"{IPAM}/config", {names.get(member, member): value for member, value in spec.items()}
    version = 6 if ":" in spec["cidr"] else 4
    tail = f"ipv{version}/block/{spec['cidr'].replace('/', '-')}"
    if plural == "ipamblocks":
        return f"{IPAM}/assignment/{tail}", spec
    return f"{IPAM}/host/{spec['node']}/{tail}", spec


def _dashes(cidr: str) -> str:
    return re.sub("[.:/]", "-", cidr)
