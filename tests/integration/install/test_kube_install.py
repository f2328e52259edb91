"""The installer as a pod with the manifests' rights, on a real API server; then a pod's life by what it installed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from integration.install.rig import Image, put
from integration.plugin.host import Answer
from integration.tokens.conftest import _orphans, binaries, own, pod, rig, rights
from integration.tokens.pod import RefresherPod
from integration.tokens.test_kube_token_refresher import PLUGINS, whose
from services.mounted_secret import MountedSecret

__all__ = ["_orphans", "binaries", "own", "pod", "rig", "rights"]  # fixtures


class InstallerPod:
    def __init__(self, pod: RefresherPod, image: Image, token: str) -> None:
        self.pod = pod
        self.image = image
        folder = image.root / "var/run/secrets/kubernetes.io/serviceaccount"
        folder.parent.mkdir(parents=True)
        MountedSecret(folder).put(token=token, namespace="kube-system", ca_crt=pod.rig.proxy.ca)

    def install(self, **environ: str) -> Answer:
        port = str(self.pod.rig.proxy.port)
        where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        environment = self.image.environment(**{**where, **environ})
        inside = f'shift; exec /usr/sbin/chroot {self.image.root} /usr/bin/calico "$@"'
        return self.pod.rig.raw(environment, "", "component", "cni", "install", through=inside)

    @property
    def kubeconfig(self) -> Path:
        return self.image.net / "calico-kubeconfig"

    @property
    def token(self) -> str:
        return str(yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]["token"])


@pytest.fixture
def installer(pod: RefresherPod, image: Image, rights: str) -> InstallerPod:
    pod.rig.begin()
    return InstallerPod(pod, image, rights)


def test_inst_023_a_pod_installs_credentials_and_what_is_installed_networks_pods(
    installer: InstallerPod, rights: str
) -> None:
    rig = installer.pod.rig
    answer = installer.install()
    assert (answer.exit, answer.stdout) == (0, ""), answer
    assert "Running as a Kubernetes pod\n" in answer.stderr
    assert "WARNING" not in answer.stderr  # the datastore has answered the plugin that was about to be installed
    assert f"    server: https://127.0.0.1:{rig.proxy.port}\n" in installer.kubeconfig.read_text()
    assert installer.kubeconfig.stat().st_mode & 0o7777 == 0o600
    assert whose(rig, installer.token) == PLUGINS
    assert installer.token not in answer.stderr
    assert rights not in answer.stderr

    rig.bin = installer.image.bin
    rig.use(installer.kubeconfig)
    rig.new_node()
    sandbox = rig.pod("a")
    assert rig.add(sandbox).result()["ips"]
    rig.delete(sandbox).silent()


def test_a_datastore_that_is_not_there_is_waited_for_and_named(installer: InstallerPod) -> None:
    installer.pod.rig.served.fresh("v1")
    answer = installer.install(CNI_DATASTORE_PROBE_TIMEOUT="1")
    assert answer.exit == 0, answer
    assert "The datastore is not to be had; installing the CNI config all the same" in answer.stderr
    assert "ClusterInformation" in answer.stderr
    answer = installer.install(CNI_DATASTORE_PROBE_TIMEOUT="1", CNI_WAIT_FOR_DATASTORE="true")
    assert answer.exit == 1
    assert "and CNI_WAIT_FOR_DATASTORE=true: " in answer.stderr


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (
            {"CALICO_CNI_SERVICE_ACCOUNT": "nobody"},
            (
                "Unable to create token for CNI kubeconfig: "
                "the service account kube-system/nobody (CALICO_CNI_SERVICE_ACCOUNT): "
            ),
        ),
        ({"KUBERNETES_SERVICE_PORT": "1"}, "Unable to create token for CNI kubeconfig: "),
        ({"KUBERNETES_SERVICE_HOST": ""}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"),
    ],
)
def test_without_a_token_the_earlier_state_stays(installer: InstallerPod, environ: dict[str, str], said: str) -> None:
    put(installer.image.conf, "earlier")
    put(installer.image.bin / "calico", "earlier", 0o755)
    answer = installer.install(**environ)
    assert answer.exit == 1, answer
    (line,) = [line for line in answer.stderr.splitlines() if "[ERROR]" in line]
    assert said in line
    assert installer.image.conf.read_text() == (installer.image.bin / "calico").read_text() == "earlier"
    assert not installer.kubeconfig.exists()
    assert not (installer.image.bin / "calico-ipam").exists()
