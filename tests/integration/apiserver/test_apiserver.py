"""The API server that tests run on behaves as they take for granted, and goes when they end."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services import custom_resources
from services.apiserver import ApiServer, find_programs, shared_apiserver
from services.cluster import Cluster
from services.custom_resources import GROUPS
from services.kube_client import Object, Refused
from services.kubernetes_server import from_kubeconfig

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac.yaml"
PLUGIN = ("kube-system", "calico-cni-plugin")
BOTH = pytest.mark.parametrize("group", ["v1", "v3"])
POOL = {"cidr": "10.40.0.0/24", "blockSize": 26}
BLOCK: Object = {
    "cidr": "10.40.0.0/29",
    "affinity": "host:node-a",
    "allocations": [0, None, None, None, None, None, None, None],
    "unallocated": [1, 2, 3, 4, 5, 6, 7],
    "attributes": [{"handle_id": "h", "secondary": {"node": "node-a"}, "releasedAt": "2026-11-29T13:20:00Z"}],
    "sequenceNumber": 1795957572345678901,
    "sequenceNumberForAllocation": {"0": 1795957572345678900},
    "strictAffinity": False,
    "deleted": False,
}


@pytest.fixture
def own() -> Iterator[ApiServer]:
    """A server that a test may break."""
    with ApiServer() as server:
        yield server


class TestKinds:
    @BOTH
    def test_a_block_is_stored_as_it_was_sent(self, cluster: Cluster, group: str) -> None:
        """spec: datastore D.7: 64-bit numbers stay exact, free ordinals are null."""
        cluster.add(group, "ipamblocks", "10-40-0-0-29", BLOCK)
        assert cluster.calico(group)["ipamblocks/10-40-0-0-29"]["spec"] == BLOCK

    @BOTH
    def test_an_unknown_member_of_a_block_is_dropped(self, cluster: Cluster, group: str) -> None:
        made = cluster.add(group, "ipamblocks", "b", BLOCK | {"releasedat": "2026-11-29T13:20:00Z"})
        assert made["spec"] == BLOCK

    @BOTH
    @pytest.mark.parametrize("name", ["allocations", "attributes", "cidr", "strictAffinity", "unallocated"])
    def test_a_block_without_a_required_member_is_refused(self, cluster: Cluster, group: str, name: str) -> None:
        less = {key: value for key, value in BLOCK.items() if key != name}
        assert refusal(cluster, group, "ipamblocks", less).status == 422

    @pytest.mark.parametrize(
        ("group", "spec"),
        [("v1", {"deleted": "false", "state": "whatever"}), ("v3", {"deleted": False, "state": "confirmed"})],
    )
    def test_an_affinity_is_marked_deleted_by_text_in_v1_and_truth_value_in_v3(
        self, cluster: Cluster, group: str, spec: Object
    ) -> None:
        """spec: datastore D.6."""
        spec |= {"cidr": "10.40.0.0/29", "node": "node-a", "type": "host"}
        assert cluster.add(group, "blockaffinities", "right", spec)["spec"] == spec
        other = "false" if spec["deleted"] is False else False
        assert refusal(cluster, group, "blockaffinities", spec | {"deleted": other}).status == 422

    def test_v3_fills_in_defaults_and_v1_does_not(self, cluster: Cluster) -> None:
        """spec: datastore D.8."""
        affinity = {"cidr": "10.40.0.0/29", "node": "node-a", "state": "pending"}
        assert cluster.add("v3", "blockaffinities", "a", affinity)["spec"] == affinity | {"deleted": False}
        assert refusal(cluster, "v1", "blockaffinities", affinity).status == 422
        assert cluster.add("v3", "ipamconfigurations", "default", {})["spec"] == {
            "strictAffinity": False,
            "autoAllocateBlocks": True,
            "maxBlocksPerHost": 0,
        }
        defaulted = {"nodeSelector": "all()", "assignmentMode": "Automatic"}
        assert cluster.add("v3", "ippools", "p", POOL)["spec"] == POOL | defaulted
        assert cluster.add("v1", "ippools", "p", POOL)["spec"] == POOL

    @pytest.mark.parametrize(
        ("plural", "spec"),
        [
            ("ippools", {}),
            ("ippools", {"cidr": "10.40.0.0"}),
            ("ippools", {"cidr": "10.40.0.0/24", "blockSize": 19}),
            ("ippools", {"cidr": "10.40.0.0/28", "blockSize": 26}),
            ("ipreservations", {"reservedCIDRs": ["10.40.0.7"]}),
            ("ipamhandles", {"block": {}}),
        ],
    )
    @BOTH
    def test_specifications_that_say_nothing_sensible_are_refused(
        self, cluster: Cluster, group: str, plural: str, spec: Object
    ) -> None:
        assert refusal(cluster, group, plural, spec).status == 422

    @BOTH
    def test_a_pool_keeps_its_range_and_block_size(self, cluster: Cluster, group: str) -> None:
        cluster.add(group, "ippools", "p4", POOL)
        path = f"/apis/{GROUPS[group]}/ippools/p4"
        for change in ({"cidr": "10.41.0.0/24"}, {"blockSize": 27}):
            with pytest.raises(Refused) as refused:
                cluster.client.patch(path, {"spec": change})
            assert refused.value.status == 422
        assert cluster.client.patch(path, {"spec": {"disabled": True}})["spec"]["disabled"]

    @BOTH
    def test_a_pools_status_is_written_apart_from_it(self, cluster: Cluster, group: str) -> None:
        status = {"conditions": [{"type": "Allocatable", "status": "False", "reason": "PoolDisabled"}]}
        cluster.add(group, "ippools", "p4", POOL)
        path = f"/apis/{GROUPS[group]}/ippools/p4"
        assert "status" not in cluster.client.patch(path, {"status": status})
        assert cluster.client.patch(f"{path}/status", {"status": status})["status"] == status

    def test_virtual_machines_have_free_form(self, cluster: Cluster) -> None:
        cluster.add_namespace("gold")
        made = cluster.add("kubevirt", "virtualmachineinstances", "db", {"any": {"thing": 1}}, namespace="gold")
        assert made["spec"] == {"any": {"thing": 1}}

    @pytest.mark.parametrize("served", [["v1"], ["v3"], ["v1", "v3", "kubevirt"]])
    def test_a_server_serves_the_groups_that_it_is_told_to(self, own: ApiServer, served: list[str]) -> None:
        own.cluster.serve("v1", "kubevirt")
        own.cluster.serve(*served)
        assert custom_resources.served(own.client) == served
        answers = {group: own.client.find(f"/apis/{path}") for group, path in GROUPS.items()}
        assert [group for group, answer in answers.items() if answer] == served


class TestRights:
    def test_a_service_account_may_do_nothing_at_first(self, apiserver: ApiServer, cluster: Cluster) -> None:
        cluster.add_namespace("gold")
        cluster.add_account("gold", "stranger")
        client = apiserver.connect(cluster.token("gold", "stranger"))
        with pytest.raises(Refused, match="stranger") as refused:
            client.get("/api/v1/nodes/node-a")
        assert refused.value.status == 403

    def test_a_stranger_is_not_let_in(self, apiserver: ApiServer) -> None:
        for token, status in [("-", 403), ("wrong", 401)]:
            with pytest.raises(Refused) as refused:
                apiserver.connect(token).get("/api/v1/nodes")
            assert refused.value.status == status

    def test_the_manifest_allows_what_the_plugins_do_only(self, apiserver: ApiServer, cluster: Cluster) -> None:
        cluster.apply(MANIFEST)
        cluster.add_node("node-a")
        cluster.add("v1", "clusterinformations", "default", {"datastoreReady": True})
        client = apiserver.connect(cluster.token(*PLUGIN))
        assert client.get("/api/v1/nodes/node-a")
        assert client.list(f"/apis/{GROUPS['v3']}/ipamblocks") == []
        assert client.get(f"/apis/{GROUPS['v1']}/clusterinformations/default")["spec"]["datastoreReady"]
        for path in ("/api/v1/nodes", "/api/v1/pods", "/api/v1/secrets", f"/apis/{GROUPS['v1']}/clusterinformations"):
            with pytest.raises(Refused) as refused:
                client.get(path)
            assert refused.value.status == 403, path

    def test_tokens_end(self, apiserver: ApiServer, cluster: Cluster) -> None:
        """R07: of one that has expired, and one whose account is gone."""
        cluster.add_namespace("gold")
        cluster.add_account("gold", "web")
        expired = apiserver.sign_token("gold", "web", seconds=-120)
        good = apiserver.sign_token("gold", "web", seconds=5)
        assert status_of(apiserver, good) == 403
        assert status_of(apiserver, expired) == 401
        gone = cluster.token("gold", "web")
        cluster.client.delete("/api/v1/namespaces/gold/serviceaccounts/web")
        assert status_of(apiserver, gone) == 401

    def test_every_kind_of_kubeconfig_leads_to_it(self, apiserver: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
        cluster.apply(MANIFEST)
        cluster.add_node("node-a")
        token = cluster.token(*PLUGIN)
        inline = apiserver.client_certificate("inline", "system:masters", inline=True)
        kinds: list[Object] = [{}, {"user": inline}, {"ca_file": True}, {"token": token}]
        for number, options in enumerate(kinds):
            path = apiserver.kubeconfig(tmp_path / str(number), **options)
            assert path.stat().st_mode & 0o777 == 0o600
            with from_kubeconfig(path) as server:
                assert server.client.get("/api/v1/nodes/node-a")


class TestPods:
    def test_a_pod_is_scheduled_without_a_scheduler_and_deleted_without_a_kubelet(self, cluster: Cluster) -> None:
        cluster.add_namespace("gold", labels={"a": "b"})
        cluster.add_node("node-a", pod_cidrs=["10.40.1.0/24"])
        pod = cluster.add_pod("gold", "web-0", node="node-a", host_network=True, labels={"app": "web"})
        assert (pod["spec"]["nodeName"], pod["spec"]["serviceAccountName"]) == ("node-a", "default")
        cluster.set_pod_status("gold", "web-0", phase="Running", podIPs=[{"ip": "10.40.1.2"}])
        assert cluster.pod("gold", "web-0")["status"]["phase"] == "Running"
        cluster.client.delete("/api/v1/namespaces/gold/pods/web-0")
        assert cluster.client.find("/api/v1/namespaces/gold/pods/web-0") is None

    def test_nothing_is_left_after_clearing(self, cluster: Cluster) -> None:
        before = everything(cluster)
        for name in ("gold", "silver"):
            cluster.add_namespace(name)
            cluster.add_pod(name, "web-0", node="node-a")
            cluster.add("kubevirt", "virtualmachines", "db", {}, namespace=name)
        cluster.add_pod("default", "web-0", node="node-a")
        cluster.add_node("node-a")
        cluster.add("v3", "ippools", "p4", POOL, finalizers=["projectcalico.org/ippool-finalizer"])
        cluster.add("v1", "ipamhandles", "h", {"handleID": "h", "block": {}})
        cluster.clear()
        assert everything(cluster) == before

    def test_with_controllers_each_namespace_gets_an_account(self) -> None:
        with ApiServer(controller_manager=True) as server:
            server.cluster.add_namespace("gold")
            assert server.client.get("/api/v1/namespaces/gold/serviceaccounts/default")
            server.cluster.add_pod("gold", "web-0", node="node-a")
            server.cluster.clear()
            assert server.client.find("/api/v1/namespaces/gold") is None
            pids = [server.daemon.pid, server.controllers.pid, server.etcd.pid]
        assert not any(is_running(pid) for pid in pids)


class TestItsEtcd:
    def test_lists_that_are_up_to_date_are_answered_from_memory(self, cluster: Cluster) -> None:
        """As in clusters of today, and not by reading the whole collection from an etcd that is too old."""
        cluster.add("v1", "ippools", "p4", POOL)
        before = reads_from_memory(cluster)
        assert [one["metadata"]["name"] for one in cluster.client.list(f"/apis/{GROUPS['v1']}/ippools")] == ["p4"]
        assert reads_from_memory(cluster) == before + 1

    @pytest.mark.parametrize(
        ("version", "taken"), [("3.4.23", False), ("3.5.9", False), ("3.5.13", True), ("3.10.0", True)]
    )
    def test_one_that_is_too_old_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
    ) -> None:
        usual, found = find_programs(), tmp_path / "etcd"
        found.write_text(f"#!/bin/sh\necho 'etcd Version: {version}'\necho 'Git SHA: none'\n")
        found.chmod(0o755)
        others = {name: str(tmp_path / name) for name in usual if name != "etcd"}
        for name, link in others.items():
            os.symlink(usual[name], link)
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
        monkeypatch.setenv("PATH", f"{Path(usual['etcd']).parent}:{os.environ['PATH']}")
        assert find_programs() == others | {"etcd": str(found) if taken else usual["etcd"]}


class TestLife:
    def test_what_was_stored_survives_a_kill(self, own: ApiServer) -> None:
        own.cluster.add_node("node-a")
        own.kill()
        with pytest.raises(OSError, match="refused"):
            own.client.get("/readyz")
        own.start()
        assert own.client.get("/api/v1/nodes/node-a")

    def test_a_paused_server_answers_when_it_goes_on(self, own: ApiServer) -> None:
        own.pause()
        with socket.create_connection(("127.0.0.1", own.port), 0.3) as waiting:
            waiting.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(TimeoutError):
                waiting.recv(1)
        own.resume()
        assert own.client.get("/readyz")

    def test_it_listens_on_another_address_of_the_loopback(self) -> None:
        with ApiServer(address="::1") as server:
            assert server.url.startswith("https://[::1]:")
            assert server.client.list("/api/v1/nodes") == []

    def test_neither_processes_nor_data_are_left(self) -> None:
        with ApiServer() as server:
            pids = [server.daemon.pid, server.etcd.pid]
            folder = server.authority.folder.parent
            assert all(is_running(pid) for pid in pids)
        assert not any(is_running(pid) for pid in pids)
        assert not folder.exists()

    def test_a_server_that_cannot_start_says_why(self) -> None:
        server = ApiServer("--no-such-option")
        with pytest.raises(RuntimeError, match="unknown flag: --no-such-option"), server:
            pass
        assert not server.authority.folder.exists()
        assert not is_running(server.etcd.pid)

    def test_a_named_server_with_somebodys_data_is_not_touched(
        self, own: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TORTIE_TEST_KUBECONFIG", str(own.kubeconfig(tmp_path / "config")))
        own.cluster.serve("v1")
        own.cluster.add_node("theirs")
        with shared_apiserver() as server:
            server.cluster.add_node("ours")
            server.cluster.add("v1", "ippools", "p4", POOL)
        assert [one["metadata"]["name"] for one in own.client.list("/api/v1/nodes")] == ["theirs"]
        assert own.cluster.calico() == {}
        own.cluster.add("v1", "ippools", "p4", POOL)
        with pytest.raises(RuntimeError, match="1 objects of Calico's"), shared_apiserver():
            pass
        assert own.cluster.calico()


def refusal(cluster: Cluster, group: str, plural: str, spec: Object) -> Refused:
    with pytest.raises(Refused) as refused:
        cluster.add(group, plural, "x", spec)
    return refused.value


def reads_from_memory(cluster: Cluster) -> int:
    """How many up-to-date lists of pools the server has answered so."""
    name = "apiserver_watch_cache_consistent_read_total{"
    counts = cluster.client.get("/metrics")["message"].splitlines()
    wanted = ('group="crd.projectcalico.org"', 'resource="ippools"', 'success="true"')
    return sum(int(line.split()[-1]) for line in counts if line.startswith(name) and all(one in line for one in wanted))


def status_of(server: ApiServer, token: str) -> int:
    with pytest.raises(Refused) as refused:
        server.connect(token).get("/api/v1/nodes")
    return refused.value.status


def everything(cluster: Cluster) -> list[str]:
    """The paths of all that tests may add."""
    found = [f"{kind}/{one['metadata']['name']}" for kind in ("nodes", "namespaces") for one in listed(cluster, kind)]
    found += [f"pods/{one['metadata']['namespace']}/{one['metadata']['name']}" for one in listed(cluster, "pods")]
    machines = cluster.client.list(f"/apis/{GROUPS['kubevirt']}/virtualmachines")
    return found + list(cluster.calico()) + [one["metadata"]["name"] for one in machines]


def listed(cluster: Cluster, plural: str) -> list[Object]:
    return cluster.client.list(f"/api/v1/{plural}")


def is_running(pid: int) -> bool:
    """Whether there is such a process of ours; it needs a moment to go."""
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        try:
            os.kill(pid, 0)
            lives = bool(Path(f"/proc/{pid}/cmdline").read_bytes())
        except (ProcessLookupError, FileNotFoundError):
            return False
        if lives and ends - time.monotonic() > 4.9:
            return True
        time.sleep(0.02)
    return True
