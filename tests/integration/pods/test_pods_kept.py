"""A StatefulSet's pod keeps its address on a real API server, wherever Calico's records are (F01, L08)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.store import node_record
from integration.pods.checks import address_of
from integration.pods.world import NAMESPACE, PodHost, Sandbox
from services.kube_client import Object

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
KEEPING = {"ipam": {"type": "calico-ipam", "keep_addresses": {}}}
HANDLE = f"net1.kept.{NAMESPACE}.web-0"
OTHER = "node-b"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Web:
    """The pods of a StatefulSet `web`, one after the other."""

    def __init__(self, pods: PodHost) -> None:
        self.pods = pods
        pods.store.put_all(node_record(OTHER))
        self.owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s1", "controller": True}

    def start(self, node: str = "node-a", name: str = "web-0", **more: Any) -> tuple[Sandbox, str]:
        """A new pod of that name on a node, and the address that it gets."""
        owners = {} if "annotations" in more else {"ownerReferences": [self.owner]}
        sandbox = self.pods.pod(name, node=node, **owners, **more)
        return sandbox, address_of(self.call("ADD", sandbox, node).result())

    def call(self, verb: str, sandbox: Sandbox, node: str = "node-a") -> Any:
        uid = self.pods.cluster.client.find(f"{PODS}/{sandbox.pod}")
        args = f"IgnoreUnknown=1;{sandbox.args}" + (f";K8S_POD_UID={uid['metadata']['uid']}" if uid else "")
        return self.pods.call(verb, sandbox, cni_args=args, nodename=node, **KEEPING)

    def end(self, sandbox: Sandbox, node: str = "node-a") -> None:
        """As a pod goes: its sandbox first, then its object."""
        self.call("DEL", sandbox, node).silent()
        self.forget(sandbox.pod)

    def forget(self, name: str) -> None:
        self.pods.cluster.client.drop(f"{PODS}/{name}")

    def kept(self) -> list[dict[str, Any]]:
        answer = self.pods.tortie("ipam", "show", "--kept", "-o", "json")
        assert answer.exit == 0, answer
        found: list[dict[str, Any]] = json.loads(answer.stdout)["kept"]
        return found

    def attributes(self) -> dict[str, str]:
        """Of the only kept address."""
        (found,) = [
            attribute["secondary"]
            for block in self.pods.store.blocks().values()
            for attribute in block["attributes"]
            if attribute["handle_id"] == HANDLE
        ]
        return dict(found)


@pytest.fixture
def web(pods: PodHost) -> Web:
    pods.pools("10.0.0.0/24")
    return Web(pods)


def test_a_pod_that_is_made_anew_has_its_address_here_and_on_another_node(web: Web) -> None:
    first, address = web.start()
    assert {key: text for key, text in web.attributes().items() if key != "timestamp"} == {
        "kept-as": f"{NAMESPACE}/web-0",
        "kept-by": first.identity,
        "kept-owner": "StatefulSet/web s1",
        "kept-seconds": "86400",
        "kept-uid": web.pods.cluster.pod(NAMESPACE, "web-0")["metadata"]["uid"],
        "namespace": NAMESPACE,
        "node": "node-a",
        "pod": "web-0",
    }
    web.pods.clean()
    web.end(first)
    assert {"pod", "namespace", "node"}.isdisjoint(web.attributes())
    plain = web.pods.pod()
    assert address_of(web.call("ADD", plain).result()) != address
    again, same = web.start()
    assert same == address
    web.end(again)
    moved, same = web.start(OTHER)
    assert (same, web.attributes()["node"]) == (address, OTHER)
    web.pods.clean()
    web.end(moved, OTHER)
    (kept,) = web.kept()
    assert (kept["name"], kept["ip"], kept["node"], kept["unused"]) == (f"{NAMESPACE}/web-0", address, OTHER, True)
    released = web.pods.tortie("ipam", "release", "--kept", kept["name"])
    assert (released.exit, released.stdout) == (0, f"Successfully released IP address {address}\n")
    web.call("DEL", plain).silent()
    assert web.pods.store.handles() == {}
    web.pods.store.check()


def test_of_a_lost_node_the_pod_that_is_made_anew_has_the_address(web: Web) -> None:
    lost, address = web.start()
    web.forget(lost.pod)
    again, same = web.start(OTHER)
    assert same == address
    before = web.pods.store.blocks()
    web.call("DEL", lost).silent()  # the node is back
    assert web.pods.store.blocks() == before
    web.end(again, OTHER)
    assert "pod" not in web.attributes()


@pytest.mark.stores("etcd", "v3")
def test_pods_that_share_a_name_have_its_address_one_after_the_other(web: Web) -> None:
    shared = {"annotations": {"tortie.io/keep-addresses": "db"}}
    lost, address = web.start(name="db-lost", **shared)
    early, ordinary = web.start(OTHER, name="db-early", **shared)
    assert ordinary != address  # the API server has the old pod still
    web.forget(lost.pod)
    beside, ordinary = web.start(OTHER, name="db-beside", **shared)
    assert ordinary != address  # the old pod runs on this very host
    web.pods.net.ip("link", "delete", lost.host_name)
    late, same = web.start(OTHER, name="db-late", **shared)
    assert same == address
    for sandbox in (early, beside):
        web.end(sandbox, OTHER)
    web.forget(late.pod)
    web.call("DEL", late, OTHER).silent()  # nobody can say what its annotation was
    assert [one["ip"] for one in web.kept()] == [address]
    last, same = web.start(name="db-last", **shared)
    assert same == address
    web.end(last)
    assert web.kept()[0]["unused"]
    web.pods.store.check()


@pytest.mark.stores("v1")
def test_beside_the_originals_records_these_stay_as_they_are(web: Web) -> None:
    """Those of recording kdd-ten-pods: ten pods of the original's, on two nodes."""
    client, kept = web.pods.cluster, json.loads((GOLDEN / "kdd-ten-pods.json").read_text())
    step = max(kept["steps"], key=lambda one: sum("ipamhandles" in key for key in one["datastore"]))
    recorded: dict[str, Object] = {
        key: value for key, value in step["datastore"].items() if key.startswith(("ipam", "blockaff", "ippools"))
    }
    web.pods.cluster.client.drop("/apis/crd.projectcalico.org/v1/ippools/10-0-0-0-24")
    for key, value in recorded.items():
        plural, name = key.split("/")
        client.add("v1", plural, name, value["spec"], labels=value["metadata"].get("labels", {}))
    first, address = web.start(OTHER)
    web.end(first, OTHER)
    second, same = web.start()
    assert same == address
    web.end(second)
    assert [one["ip"] for one in web.kept()] == [address]
    assert web.pods.tortie("ipam", "release", "--kept", f"{NAMESPACE}/web-0").exit == 0
    now = client.calico("v1")
    for key, value in recorded.items():
        if key.startswith(("ipamhandles", "ipamblocks")):
            assert _held(now[key]["spec"]) == _held(value["spec"]), key


def _held(spec: dict[str, Any]) -> Any:
    """Who has what, whatever numbers of changes there are."""
    if "allocations" not in spec:
        return spec
    holders = [None if index is None else spec["attributes"][index] for index in spec["allocations"]]
    return holders, spec["affinity"]
