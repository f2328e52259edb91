"""Every way to tell the executables where the API server is and who they are, tried with a pod from ADD to DEL.

Invariant: each form leads to the same server as the user that it names, and to nobody else.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.kubefaults.api_forms import FORMS, merged_list, two_contexts
from integration.kubefaults.kube_rig import KubeRig
from services.custom_resources import GROUPS

TRANSPORTS = {"lean": {}, "library": {"TORTIE_TRANSPORT": "library"}}
BY_LIBRARY = [
    *("client certificate files", "exec plugin with a certificate", "token file", "ipv6 address", "path prefix"),
    *("https proxy variable", "proxy of the kubeconfig", "not verified", "in a cluster", "server name of its own"),
]
CASES = [(name, "lean") for name in FORMS] + [(name, "library") for name in BY_LIBRARY]


@pytest.mark.parametrize(("name", "transport"), CASES)
def test_a_pod_is_networked_and_gone_again(v1: KubeRig, name: str, transport: str) -> None:
    given = FORMS[name](v1)
    v1.store.settings.pop("kubernetes", None)
    v1.more_environment = TRANSPORTS[transport] | given.environment
    sandbox = v1.pod()
    result = v1.call("ADD", sandbox, through=given.through, **given.netconf)
    v1.networked(sandbox, result)
    answer = v1.call("CHECK", sandbox, through=given.through, prevResult=json.loads(result.stdout), **given.netconf)
    answer.silent()
    v1.call("DEL", sandbox, through=given.through, **given.netconf).silent()
    v1.gone(sandbox)
    if given.seen:
        assert {asked.headers["authorization"] for asked in given.seen.asked} == {f"Bearer {v1.served.token}"}
        assert {asked.status for asked in given.seen.asked if asked.status >= 400} <= {404}


@pytest.mark.parametrize("program", ["calico-ipam", "tortie"])
def test_kubeconfigs_variable_is_a_list_for_the_datastores_client(v1: KubeRig, program: str) -> None:
    """KUBECONFIG=a:b. What reads pods goes by the configuration alone, as the original does."""
    paths = merged_list(v1).netconf["kubernetes"]["kubeconfig"]
    v1.store.settings.pop("kubernetes", None)
    v1.more_environment = {"KUBECONFIG": paths}
    if program == "tortie":
        variables = {"KUBECONFIG": paths, "DATASTORE_TYPE": "kubernetes", "CALICO_API_GROUP": GROUPS["v1"]}
        answer = v1.raw(variables, "", "get", "ippools", program="tortie")
        assert answer.exit == 0, answer
        assert "10-64-0-0-12" in answer.stdout
        return
    container = v1.container("c")
    v1.call("ADD", container, program=program, policy=None).result()
    v1.call("DEL", container, program=program, policy=None).silent()
    v1.holds_nothing(container)


def test_a_context_can_be_chosen(v1: KubeRig) -> None:
    """K8S_CURRENT_CONTEXT, for the datastore's client."""
    path = Path(two_contexts(v1).netconf["kubernetes"]["kubeconfig"])
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"current-context": "other"}))
    variables = {"KUBECONFIG": str(path), "DATASTORE_TYPE": "kubernetes", "CALICO_API_GROUP": GROUPS["v1"]}
    refused = v1.raw(variables, "", "get", "ippools", program="tortie")
    assert refused.exit != 0
    chosen = v1.raw(variables | {"K8S_CURRENT_CONTEXT": "test"}, "", "get", "ippools", program="tortie")
    assert chosen.exit == 0, chosen
    named = v1.raw(
        variables | {"K8S_CURRENT_CONTEXT": "other"}, "", "get", "ippools", "--context=test", program="tortie"
    )
    assert named.exit == 0, named


def test_what_there_is_can_be_taken_to_another_datastore_and_back(v1: KubeRig, tmp_path: Path) -> None:
    """A11: `tortie datastore migrate`. Nodes and pods are Kubernetes' own; what IPAM has is taken as it is."""
    path = v1.served.kubeconfig(tmp_path / "admin.kubeconfig", v1.way.port, administrator=True)
    variables = {"KUBECONFIG": str(path), "DATASTORE_TYPE": "kubernetes", "CALICO_API_GROUP": GROUPS["v1"]}

    def tortie(*words: str, code: int = 0) -> str:
        answer = v1.raw(variables, "", *words, program="tortie")
        assert answer.exit == code, answer
        return answer.stdout

    container = v1.container("c")
    v1.call("ADD", container, program="calico-ipam", policy=None).result()
    tortie("datastore", "migrate", "lock")
    try:
        exported = json.loads(tortie("datastore", "migrate", "export", "-o", "json"))
        file = tmp_path / "all.json"
        file.write_text(json.dumps(exported))
        assert "Would have imported" in tortie("datastore", "migrate", "import", "-f", str(file), "--dry-run")
        other = ("--datastore-path", str(tmp_path / "other.db"))
        assert "Successfully imported" in tortie(*other, "datastore", "migrate", "import", "-f", str(file))
        names = ("get", "blocks,handles,affinities", "-o", "name")
        assert tortie(*other, *names) == tortie(*names) != ""
        handle = next(item for item in exported["items"] if item["kind"] == "IPAMHandle")
        handle["metadata"]["name"] = handle["spec"]["handleID"] = "left-over"
        file.write_text(json.dumps(exported | {"items": [handle, *exported["items"]]}))
        assert "Successfully imported" in tortie("datastore", "migrate", "import", "-f", str(file))
        assert "ipamhandle/left-over" in tortie(*names)
    finally:
        tortie("datastore", "migrate", "unlock")
    assert "1 handle-orphan" in tortie("ipam", "gc", "--yes", "--grace", "0")
    v1.call("DEL", container, program="calico-ipam", policy=None).silent()
    v1.holds_nothing(container)


def test_a_server_in_the_environment_of_proxies_is_not_asked_through_them_if_it_is_this_machine(v1: KubeRig) -> None:
    """Nor if NO_PROXY names it."""
    v1.more_environment = {"HTTPS_PROXY": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
    sandbox = v1.pod()
    v1.networked(sandbox, v1.add(sandbox))
    v1.delete(sandbox).silent()
    v1.gone(sandbox)
