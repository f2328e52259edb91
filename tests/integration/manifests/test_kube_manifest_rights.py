"""Each account of the manifests may do what its program does, and nothing else.

What plugins may do is shown by `test_kube_rights.py` of the faults; the manifests give their account exactly that.

Invariant: without any one right the program fails, and says which it lacks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from integration.kubefaults.kube_rig import KubeRig
from integration.kubefaults.rights import Accounts, Right, right_of, rights_of, without
from integration.manifests.conftest import FOLDER
from integration.manifests.test_kube_manifests import WAYS, init_container
from integration.plugin.host import Answer
from integration.plugin.kubernetes_store import MANIFEST
from services.apiserver import ApiServer
from services.kube_client import KubeClient, Object, Refused
from services.manifests import applied, read, remove

EACH = pytest.mark.parametrize("way", [way for way in WAYS if way != "uninstall.yaml"])  # that one has no account
NAMESPACE = "kube-system"
FORBIDDEN = 403
LONGEST_WAIT = 30.0
TUNNEL = "projectcalico.org/IPv4VXLANTunnelAddr"


def rules_of(way: str, role: str) -> list[Object]:
    (rules,) = [
        one["rules"]
        for one in read(FOLDER / way)
        if one["kind"] in {"ClusterRole", "Role"} and one["metadata"]["name"] == role
    ]
    found: list[Object] = rules
    return found


def account_of_plugins(way: str) -> str:
    """The one that the installer asks for a token of."""
    (name,) = rules_of(way, "tortie-node")[0]["resourceNames"]
    return str(name)


@EACH
def test_plugins_have_what_they_need_and_no_more(way: str) -> None:
    """Under whatever name: the rules are those that are tried one by one elsewhere."""
    (shown,) = [one["rules"] for one in read(MANIFEST) if one["kind"] == "ClusterRole"]
    assert rules_of(way, account_of_plugins(way)) == shown


@pytest.mark.parametrize("way", ["beside-calico.yaml", "in-place-of-calico.yaml", "from-host-local.yaml"])
def test_where_calico_is_nothing_has_a_name_of_calicos(way: str) -> None:
    """Applying one of its names would narrow its rights, deleting the file would end it."""
    assert [one["metadata"]["name"] for one in read(FOLDER / way) if "calico" in one["metadata"]["name"]] == []


def test_on_windows_plugins_may_also_say_where_the_nodes_tunnel_is(server: ApiServer) -> None:
    """Without rbac-windows.yaml they may not; with it they may write a node's status, and nothing else of it."""
    documents = [*read(MANIFEST), *read(FOLDER / "rbac-windows.yaml")]
    node, told = "/api/v1/nodes/win-1", {"metadata": {"annotations": {TUNNEL: "10.0.0.1"}}}
    try:
        server.cluster.add_node("win-1")
        applied(server.client, [one for one in documents if not one["metadata"]["name"].endswith("-windows")])
        plugin = server.connect(server.cluster.token(NAMESPACE, "calico-cni-plugin"))
        with pytest.raises(Refused) as caught:
            plugin.patch(f"{node}/status", told)
        assert caught.value.status == FORBIDDEN
        applied(server.client, documents)
        ends = time.monotonic() + LONGEST_WAIT
        while server.client.get(node)["metadata"].get("annotations", {}).get(TUNNEL) != "10.0.0.1":
            assert time.monotonic() < ends, "it has the right by now"
            try:
                plugin.patch(f"{node}/status", told)
            except Refused as error:
                if error.status != FORBIDDEN:
                    raise
        with pytest.raises(Refused) as caught:
            plugin.patch(node, {"metadata": {"labels": {"x": "y"}}})
        assert caught.value.status == FORBIDDEN
    finally:
        server.client.drop(node)
        remove(server.client, documents)


# --- installer and token refresher ------------------------------------------------------------------------------------


def ask_token(client: KubeClient, account: str) -> Object:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    return client.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", asked)


@EACH
def test_the_node_may_ask_for_the_plugins_token_only(server: ApiServer, way: str) -> None:
    documents = [one for one in read(FOLDER / way) if one["kind"] != "CustomResourceDefinition"]
    account = account_of_plugins(way)
    try:
        applied(server.client, documents)
        node = server.connect(server.cluster.token(NAMESPACE, "tortie-node"))
        assert ask_token(node, account)["status"]["token"]
        for other in ("tortie-node", "default"):
            with pytest.raises(Refused) as caught:
                ask_token(node, other)
            assert caught.value.status == FORBIDDEN
        for path in ("secrets", "configmaps", f"serviceaccounts/{account}"):
            with pytest.raises(Refused) as caught:
                node.get(f"/api/v1/namespaces/{NAMESPACE}/{path}")
            assert caught.value.status == FORBIDDEN
        remove(server.client, [one for one in documents if one["kind"] == "RoleBinding"])
        await_refusal(node, account)
    finally:
        remove(server.client, documents)


def await_refusal(node: KubeClient, account: str) -> None:
    """The server learns of a change within moments."""
    ends = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < ends:
        try:
            ask_token(node, account)
        except Refused as error:
            if error.status == FORBIDDEN:
                return
            raise
        time.sleep(0.02)
    pytest.fail("it still has its token without the right to it")


# --- the first records ------------------------------------------------------------------------------------------------


@pytest.fixture
def accounts(fresh: KubeRig) -> Iterator[Accounts]:
    accounts = Accounts(fresh.cluster)
    yield accounts
    accounts.remove()


def initialise(rig: KubeRig, token: str) -> tuple[Answer, set[Right]]:
    """Twice, since the second time finds what the first has made; what was asked for."""
    config = rig.proxy.kubeconfig(rig.folder / "init.kubeconfig", token=token)
    container = init_container()
    variables = {one["name"]: one.get("value", rig.node) for one in container["env"]}
    variables |= {"KUBECONFIG": str(config), "HOME": str(rig.folder)}
    rig.proxy.forget()
    answer = Answer(0, "", "")
    for _ in range(2):
        if answer.exit == 0:
            answer = rig.raw(variables, "", *container["args"], program="tortie")
    return answer, {right_of(asked) for asked in rig.proxy.asked}


def test_the_first_records_need_each_of_their_rights(fresh: KubeRig, accounts: Accounts) -> None:
    rules = rules_of("fresh.yaml", "tortie-init")
    fresh.cluster.add_node(fresh.node)
    answer, used = initialise(fresh, fresh.cluster.token(NAMESPACE, "tortie-init"))
    assert answer.exit == 0, answer
    assert fresh.proxy.refusals == []
    assert rights_of(rules) - used == set(), "a right that nothing exercises"
    for number, right in enumerate(sorted(rights_of(rules))):
        fresh.cluster.client.drop("/apis/crd.projectcalico.org/v1/clusterinformations/default")
        fresh.cluster.client.delete("/apis/crd.projectcalico.org/v1/ippools")
        token = accounts.token(f"less-{number}", without(rules, right))
        answer, _ = initialise(fresh, token)
        assert answer.exit == 1, right
        assert [right_of(asked) for asked in fresh.proxy.asked if asked.status == FORBIDDEN] == [right]
        assert len(answer.stderr.splitlines()) == 1
