"""A token refresher in a pod of a node: with a service account's files mounted as a kubelet mounts them, in the node's
network, where the API server is reached through a proxy that sees each request.

Invariant: the process ends with the test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from integration.kubefaults.kube_rig import KubeRig
from services.kube_proxy import Asked
from services.mounted_secret import MountedSecret

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# In a mount namespace of its own, which ends with the process.
MOUNT = f"""
mount -t tmpfs tmpfs "$(readlink -f /var/run)"
mkdir -p {ACCOUNT}
mount --bind "$TEST_ACCOUNT" {ACCOUNT}
exec "$@"
"""
WITHOUT = MOUNT.replace('mount --bind "$TEST_ACCOUNT"', "rmdir")
LONGEST = 60.0  # seconds for anything to happen that does happen


class RefresherPod:
    def __init__(self, rig: KubeRig, token: str) -> None:
        self.rig = rig
        self.net_dir = rig.folder / "net.d"
        self.net_dir.mkdir()
        self.path = self.net_dir / "calico-kubeconfig"
        self.errors = rig.folder / "refresher.log"
        self.mounted = MountedSecret(rig.folder / "account")
        self.give(token)

    def give(self, token: str, namespace: str = "kube-system") -> None:
        """The pod's own token, in the place of the one before."""
        self.mounted.put(token=token, namespace=namespace, ca_crt=self.rig.proxy.ca)

    def environment(self, **more: str | None) -> dict[str, str]:
        whole: dict[str, str | None] = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.rig.proxy.port),
            "TEST_ACCOUNT": str(self.mounted.folder),
            "PATH": os.environ["PATH"],
            **more,
        }
        return {name: value for name, value in whole.items() if value is not None}

    def start(self, *arguments: str, through: str = MOUNT, **more: str | None) -> subprocess.Popen[bytes]:
        """What it says is in `errors`."""
        with self.errors.open("ab") as log:
            return self.rig.start(
                self.environment(**more),
                *("refresh-token", "--net-dir", str(self.net_dir), *arguments),
                program="tortie",
                through=through,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def once(self, *arguments: str, through: str = MOUNT, **more: str | None) -> Any:
        words = ("refresh-token", "--once", "--net-dir", str(self.net_dir), *arguments)
        return self.rig.raw(self.environment(**more), "", *words, program="tortie", through=through)

    @property
    def requests(self) -> list[Asked]:
        """Those for tokens."""
        return [asked for asked in self.rig.proxy.asked if asked.path.endswith("/token")]

    @property
    def log(self) -> str:
        return self.errors.read_text()

    @property
    def token(self) -> str:
        """The one in the file; "" without a file."""
        try:
            text: str = yaml.safe_load(self.path.read_text())["users"][0]["user"]["token"]
        except FileNotFoundError:
            return ""
        return text


def await_that(happened: Callable[[], object], seconds: float = LONGEST, why: Callable[[], object] = str) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not happened():
        assert time.monotonic() - began < seconds, why()
        time.sleep(0.01)
    return time.monotonic() - began


def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    """How it ended, soon after the signal."""
    process.send_signal(number)
    return process.wait(20)


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
