"""`tortie doctor` where Kubernetes is the datastore: with the plugins' own rights, and with an operator's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.doctor.scratch import KUBECONFIG, NODE, ScratchHost
from integration.plugin.kubernetes_store import Served
from services.custom_resources import GROUPS

NOT_SEEN = "not looked at: the plugins' account may not list pods"


@pytest.fixture(params=["v1", "v3"])
def host(request: pytest.FixtureRequest, served: Served, binaries: Path, tmp_path: Path) -> Iterator[ScratchHost]:
    served.fresh(request.param)
    served.server.cluster.add_node(NODE)
    with ExitStack() as undo:
        settings = {
            "datastore_type": "kubernetes",
            "kubernetes": {"kubeconfig": f"/{KUBECONFIG}"},
            "calico_api_group": GROUPS[request.param],
        }
        host = ScratchHost(tmp_path, binaries, undo, settings, served.port)
        served.kubeconfig(host.path(KUBECONFIG), served.port)
        host.path(KUBECONFIG).chmod(0o600)
        administrators = served.kubeconfig(tmp_path / "admin.conf", served.port, administrator=True)
        host.administrator = {"KUBECONFIG": str(administrators)}
        made = host.run(
            *("tortie", "init", "--pool", "10.244.0.0/16", "--node", NODE),
            DATASTORE_TYPE="kubernetes",
            CALICO_API_GROUP=GROUPS[request.param],
            **host.administrator,
        )
        assert made.returncode == 0, made
        yield host


def test_a_sound_node_with_the_plugins_rights_and_with_more(host: ScratchHost) -> None:
    assert host.complaints() == []
    _, document, _ = host.doctor()
    found = {one["check"]: one["seen"] for one in document["checks"]}
    assert found["leftover-devices"].startswith(NOT_SEEN)
    assert " old of " in found["token"]
    assert host.complaints(**host.administrator) == []


def test_a_device_that_no_pod_has_is_found_by_who_may_list_pods(host: ScratchHost) -> None:
    host.ip("link", "add", "cali0123", "type", "veth", "peer", "name", "p0")
    assert host.complaints() == []
    assert host.complaints(**host.administrator) == [("leftover-devices", "warning")]


def test_a_pod_without_its_device(host: ScratchHost, served: Served) -> None:
    cluster = served.server.cluster
    cluster.add_namespace("test")
    cluster.add_pod("test", "a", node=NODE, annotations={"cni.projectcalico.org/podIPs": "10.244.0.2/32"})
    assert host.complaints(**host.administrator) == [("endpoints", "error")]
    cluster.set_pod_status("test", "a", phase="Succeeded")
    cluster.add_pod("test", "b", node=NODE)
    assert host.complaints(**host.administrator) == [], "one has come to its end, one has no address yet"


def test_an_account_that_may_nothing(host: ScratchHost, served: Served) -> None:
    cluster = served.server.cluster
    cluster.add_namespace("test")
    cluster.add_account("test", "nobody")
    served.server.kubeconfig(
        host.path(KUBECONFIG), token=cluster.token("test", "nobody"), server=f"https://127.0.0.1:{served.port}"
    )
    host.path(KUBECONFIG).chmod(0o600)
    (complaint,) = host.complaints()
    assert complaint == ("datastore", "error")


def test_a_node_that_the_cluster_does_not_know(host: ScratchHost) -> None:
    host.configure(nodename="nobody")
    assert host.complaints() == [("node-record", "error")]
