"""`tortie refresh-token` as a pod's process, with the rights of the manifests, on a real API server."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
import yaml

from adapters.kubernetes.credentials.kubeconfig import load_kubeconfig
from integration.kubefaults.kube_rig import KubeRig
from integration.tokens.pod import LONGEST, MOUNT, WITHOUT, RefresherPod, await_that, end, left_in
from services.kube_proxy import Exchange, Reply
from services.request_faults import answer, at, stall, status

ASKING = at("POST", "/token")
PLUGINS = "system:serviceaccount:kube-system:calico-cni-plugin"
WROTE = "Wrote updated CNI kubeconfig file."
EVERY_SECOND = {"CNI_TOKEN_REFRESH_INTERVAL": "1s"}
ROTATED = "Projected service account token changed; refreshing CNI kubeconfig immediately"
FAILED = "Failed to update CNI token, retrying..."


def whose(rig: KubeRig, token: str) -> str:
    """Who the server takes the token's holder for; "" for nobody."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    found = rig.served.server.client.create("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    return str(found.get("user", {}).get("username", "")) if found.get("authenticated") else ""


def list_without_token_requests(exchange: Exchange) -> None:
    reply = exchange.forward()
    listed = json.loads(reply.body)
    kept = [one for one in listed["resources"] if one["name"] != "serviceaccounts/token"]
    assert len(kept) == len(listed["resources"]) - 1
    exchange.pass_on(Reply(reply.status, reply.headers, json.dumps(listed | {"resources": kept}).encode()))


class TestOnce:
    def test_the_file_has_a_token_of_the_plugins_account_and_is_for_its_owner_alone(self, pod: RefresherPod) -> None:
        """TOK-013 TOK-014"""
        done = pod.once()
        assert done.stderr == ""
        assert done.exit == 0
        assert done.stdout.startswith(f"{pod.path} has a new token, good until ")
        assert whose(pod.rig, pod.token) == PLUGINS
        assert pod.path.stat().st_mode & 0o7777 == 0o600
        assert left_in(pod.net_dir) == {"calico-kubeconfig"}
        assert pod.token not in done.stdout

    def test_the_text_is_the_originals(self, pod: RefresherPod) -> None:
        pod.once()
        lines = pod.path.read_text().split("\n")
        assert lines[0] == "# Kubeconfig file for Calico CNI plugin. Installed by calico/node."
        assert lines[6] == f"    server: https://127.0.0.1:{pod.rig.proxy.port}"
        assert lines[7].startswith('    certificate-authority-data: "')
        assert lines[-1] == "current-context: calico-context"

    def test_the_original_calls_it_by_another_name(self, pod: RefresherPod) -> None:
        words = ("component", "node", "monitor-token", "--once", "--net-dir", str(pod.net_dir))
        done = pod.rig.raw(pod.environment(), "", *words, through=MOUNT)
        assert done.exit == 0, done
        assert whose(pod.rig, pod.token) == PLUGINS

    def test_without_verification(self, pod: RefresherPod) -> None:
        pod.once(SKIP_TLS_VERIFY="true")
        cluster = yaml.safe_load(pod.path.read_text())["clusters"][0]["cluster"]
        assert cluster == {"server": f"https://127.0.0.1:{pod.rig.proxy.port}", "insecure-skip-tls-verify": True}

    @pytest.mark.parametrize("umask", ["0", "0777"])
    def test_the_umask_decides_nothing(self, pod: RefresherPod, umask: str) -> None:
        done = pod.once(through=MOUNT.replace("exec", f"umask {umask}\nexec"))
        assert done.exit == 0, done
        assert pod.path.stat().st_mode & 0o7777 == 0o600

    def test_a_link_in_its_place_is_not_followed(self, pod: RefresherPod) -> None:
        elsewhere = pod.rig.folder / "elsewhere"
        elsewhere.write_text("mine")
        pod.path.symlink_to(elsewhere)
        assert pod.once().exit == 0
        assert not pod.path.is_symlink()
        assert elsewhere.read_text() == "mine"

    def test_an_operator_does_it_by_kubeconfig_outside_of_any_pod(self, pod: RefresherPod) -> None:
        config = pod.rig.proxy.kubeconfig(pod.rig.folder / "admin", token=(pod.mounted.folder / "token").read_text())
        environment = {"KUBECONFIG": str(config), "KUBERNETES_SERVICE_HOST": None, "KUBERNETES_SERVICE_PORT": None}
        refused = pod.once(through=WITHOUT, **environment)
        assert refused.exit == 1
        assert "namespace" in refused.stderr
        assert pod.once("--namespace", "kube-system", through=WITHOUT, **environment).exit == 0
        assert whose(pod.rig, pod.token) == PLUGINS

    def test_a_server_from_before_token_requests_leaves_the_pods_own(self, pod: RefresherPod, rights: str) -> None:
        """It answers as one that has no account of that name, and lists what it does have."""
        pod.rig.proxy.arm(ASKING, answer(404, status(404, "NotFound")))
        assert "CALICO_CNI_SERVICE_ACCOUNT" in pod.once().stderr
        pod.rig.proxy.also(at("GET", "/api/v1"), list_without_token_requests)
        assert pod.once().exit == 0
        assert pod.token == rights

    def test_nobody_hears_what_it_says(self, pod: RefresherPod) -> None:
        assert pod.once(through=MOUNT.replace('"$@"', '"$@" <&- >&- 2>&-')).exit in (0, 1)
        assert whose(pod.rig, pod.token) == PLUGINS


class TestRefusals:
    """One line that says what to change, and what was there is still there."""

    @pytest.fixture(autouse=True)
    def before(self, pod: RefresherPod):
        pod.path.write_text("as before")
        yield
        assert pod.path.read_text() == "as before"
        assert left_in(pod.net_dir) == {"calico-kubeconfig"}

    def refused(self, done, *parts: str) -> None:
        assert done.exit == 1, done
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        for part in parts:
            assert part in done.stderr

    def test_an_account_that_is_not_there(self, pod: RefresherPod) -> None:
        """It may ask for the plugins' account only, so it does not even learn that."""
        self.refused(pod.once(CALICO_CNI_SERVICE_ACCOUNT="nobody"), "serviceaccounts/token", '"nobody"', "forbidden")

    def test_the_right_to_any_other_token(self, pod: RefresherPod) -> None:
        self.refused(pod.once(CALICO_CNI_SERVICE_ACCOUNT="tortie-node"), "forbidden")

    def test_a_token_of_ones_own_that_is_not_believed(self, pod: RefresherPod) -> None:
        pod.give("e30.e30.c2ln")
        self.refused(pod.once(), "token file /var/run/secrets/kubernetes.io/serviceaccount/token")

    def test_no_pod(self, pod: RefresherPod) -> None:
        self.refused(pod.once(through=WITHOUT), "namespace", "No such file")
        self.refused(
            pod.once("--namespace", "kube-system", through=WITHOUT, KUBERNETES_SERVICE_HOST=None), "KUBECONFIG"
        )

    def test_a_server_that_does_not_listen(self, pod: RefresherPod) -> None:
        self.refused(pod.once(KUBERNETES_SERVICE_PORT="1"), "127.0.0.1:1")

    def test_a_folder_that_is_not_there(self, pod: RefresherPod) -> None:
        absent = str(pod.rig.folder / "absent")
        self.refused(pod.once("--net-dir", absent), absent)

    def test_a_disk_that_is_full(self, pod: RefresherPod, binaries: Path) -> None:
        """A file system with no room for another file."""
        full = MOUNT.replace("exec", f"mount -t tmpfs -o nr_inodes=1 tmpfs {pod.net_dir}\nexec")
        self.refused(pod.once(through=full), str(pod.net_dir), "no space left")

    def test_an_interval_that_is_none_is_told_and_not_used(self, pod: RefresherPod) -> None:
        done = pod.once(**EVERY_SECOND | {"CNI_TOKEN_REFRESH_INTERVAL": "30", "KUBERNETES_SERVICE_PORT": "1"})
        assert "Detected an invalid CNI_TOKEN_REFRESH_INTERVAL." in done.stderr

    def test_options_that_are_not_understood(self, pod: RefresherPod) -> None:
        done = pod.once("--twice")
        assert (done.exit, done.stdout) == (2, "")


class TestResident:
    def test_it_writes_at_once_and_ends_when_it_is_asked_to(self, pod: RefresherPod) -> None:
        """TOK-015 TOK-009"""
        process = pod.start()
        await_that(lambda: pod.token, why=lambda: pod.log)
        assert whose(pod.rig, pod.token) == PLUGINS
        assert end(process) == 0
        assert "Ended by SIGTERM" in pod.log
        assert pod.token not in pod.log

    def test_control_c_ends_it_as_shells_expect(self, pod: RefresherPod) -> None:
        process = pod.start()
        await_that(lambda: pod.token)
        assert end(process, signal.SIGINT) == 130

    def test_it_ends_while_a_server_keeps_it_waiting(self, pod: RefresherPod) -> None:
        pod.rig.proxy.arm(ASKING, stall)
        process = pod.start()
        await_that(lambda: pod.requests)
        assert end(process) == 0
        assert left_in(pod.net_dir) == set()

    def test_a_new_token_of_its_own_leads_to_a_new_token_at_once(self, pod: RefresherPod, rights: str) -> None:
        """TOK-001 TOK-006"""
        process = pod.start()
        await_that(lambda: pod.token, why=lambda: pod.log)
        first = pod.token
        pod.give(rights)
        await_that(lambda: pod.token != first, why=lambda: pod.log)
        assert len(pod.requests) == 2
        assert ROTATED in pod.log
        assert end(process) == 0

    def test_five_swaps_in_a_row_are_few_requests(self, pod: RefresherPod, rights: str) -> None:
        """TOK-007"""
        process = pod.start()
        await_that(lambda: WROTE in pod.log)
        for _ in range(5):
            pod.give(rights)
        await_that(lambda: pod.log.count(WROTE) > 1)
        time.sleep(0.5)
        assert 2 <= len(pod.requests) <= 4
        assert end(process) == 0

    def test_without_files_to_watch_the_timer_is_left(self, pod: RefresherPod, rights: str) -> None:
        """TOK-002"""
        config = pod.rig.proxy.kubeconfig(pod.rig.folder / "config", token=rights)
        process = pod.start("--namespace", "kube-system", through=WITHOUT, KUBECONFIG=str(config))
        await_that(lambda: pod.token, why=lambda: pod.log)
        assert "Failed to set up CNI token directory watcher; refresh will rely on timer only" in pod.log
        assert end(process) == 0

    def test_an_operators_interval(self, pod: RefresherPod) -> None:
        process = pod.start(**EVERY_SECOND)
        await_that(lambda: pod.log.count(WROTE) >= 3, why=lambda: pod.log)
        assert end(process) == 0

    def test_a_request_that_fails_is_repeated_and_the_file_stays(self, pod: RefresherPod) -> None:
        """TOK-004"""
        assert pod.once().exit == 0
        before = pod.path.read_bytes()
        pod.rig.proxy.arm(ASKING, answer(422, status(422, "Invalid")), times=1)
        began = time.monotonic()
        process = pod.start()
        await_that(lambda: FAILED in pod.log)
        assert pod.path.read_bytes() == before
        await_that(lambda: pod.path.read_bytes() != before, why=lambda: pod.log)
        assert time.monotonic() - began > 4
        assert end(process) == 0

    def test_a_right_that_is_taken_away_and_given_back(self, pod: RefresherPod) -> None:
        """It says which right it lacks, and goes on by itself once it has it."""
        client = pod.rig.served.server.client
        place = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings"
        binding = client.get(f"{place}/tortie-node")
        client.delete(f"{place}/tortie-node")
        try:
            await_that(lambda: pod.once().exit == 1)
            pod.path.unlink(missing_ok=True)
            process = pod.start()
            await_that(lambda: FAILED in pod.log)
            assert 'cannot create resource "serviceaccounts/token"' in pod.log
        finally:
            client.create(
                place, {"metadata": {"name": "tortie-node"}} | {k: binding[k] for k in ("roleRef", "subjects")}
            )
        await_that(lambda: pod.token, why=lambda: pod.log)
        assert end(process) == 0

    def test_one_killed_leaves_one_whole_file_and_the_next_tidies_up(self, pod: RefresherPod, rights: str) -> None:
        for number in range(6):
            process = pod.start(**EVERY_SECOND)
            count = pod.log.count(WROTE)
            await_that(lambda: pod.log.count(WROTE) > count)  # noqa: B023 - awaited here
            pod.give(rights)
            time.sleep(0.055 + number * 0.004)
            process.kill()
            process.wait()
            assert whose(pod.rig, pod.token) == PLUGINS
        pod.once()
        assert left_in(pod.net_dir) == {"calico-kubeconfig"}


def test_the_file_can_be_read_at_every_moment(pod: RefresherPod, rights: str) -> None:
    """While it is written as fast as can be, readers parse it by our own means and by a library's."""
    process = pod.start()
    await_that(lambda: pod.token)
    seen: set[str] = set()
    reads, ends, next_swap = 0, time.monotonic() + 3, 0.0
    while time.monotonic() < ends or (len(seen) < 6 and time.monotonic() < ends + LONGEST):
        if time.monotonic() > next_swap:
            pod.give(rights)
            next_swap = time.monotonic() + 0.12
        cluster, user = load_kubeconfig([str(pod.path)], "", _never)
        assert cluster.server == f"https://127.0.0.1:{pod.rig.proxy.port}"
        assert cluster.ca.data == pod.rig.proxy.ca
        found = yaml.safe_load(pod.path.read_text())
        assert len(found["users"][0]["user"]["token"].split(".")) == 3
        assert pod.path.stat().st_mode & 0o7777 == 0o600
        seen.add(user.token)
        reads += 1
    assert end(process) == 0
    assert len(seen) >= 6, (len(seen), reads)
    assert reads > len(seen)


def _never(_seconds: float) -> None:
    raise AssertionError("a reader found a file that made no sense, and would have looked again")


def test_an_installer_that_stays_renews_the_token_that_it_has_installed(pod: RefresherPod, rights: str) -> None:
    """One process does both; the text stays the installer's."""
    root = pod.rig.folder / "host"
    for folder in ("opt/cni/bin", "etc/cni/net.d"):
        (root / folder).mkdir(parents=True)
    path = root / "etc/cni/net.d/calico-kubeconfig"
    for name in ("calico", "calico-ipam"):  # there already: only the self-contained executable could be copied
        (root / "opt/cni/bin" / name).write_text("stub")
    settings = {"SLEEP": "true", "UPDATE_CNI_BINARIES": "false", "CNI_WAIT_FOR_DATASTORE": "false"}
    environment = pod.environment(**settings, KUBERNETES_NODE_NAME="node-a")
    with pod.errors.open("ab") as log:
        process = pod.rig.start(
            environment, "install", "--root", str(root), program="tortie", through=MOUNT, stderr=log
        )
    await_that(lambda: WROTE in pod.log, why=lambda: pod.log)
    before = path.read_text()
    assert before.startswith("# Kubeconfig file for Calico CNI plugin.\n")
    pod.give(rights)
    await_that(lambda: path.read_text() != before, why=lambda: pod.log)
    changed = [line for line in path.read_text().splitlines() if line not in before.splitlines()]
    assert [line.strip().partition(":")[0] for line in changed] == ["token"]
    assert whose(pod.rig, yaml.safe_load(path.read_text())["users"][0]["user"]["token"]) == PLUGINS
    assert end(process) == 0
