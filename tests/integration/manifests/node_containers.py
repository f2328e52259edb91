"""The containers of a manifest run as a kubelet would: the node's folders, the account's token, the privileges.

    node = Node(engine, server, documents, folder); pod = node.pod("DaemonSet")
    node.run(pod, pod["initContainers"][0])        how it has ended
    with node.running(pod, pod["containers"][0]) as name: ...

Folders of the node are below `node.root`. Invariant: a container gets what its manifest says, and nothing else.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from services.apiserver import ApiServer
from services.container_engine import ContainerEngine
from services.kube_client import Object

ACCOUNTS = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE, NODE = "kube-system", "node-a"
_LONGEST_WAIT = 60.0


class Node:
    def __init__(self, engine: ContainerEngine, server: ApiServer, documents: list[Object], folder: Path) -> None:
        self._engine, self._server, self._documents = engine, server, documents
        self.root = folder / "node"
        self._folder = folder

    def pod(self, kind: str) -> Object:
        """The pod's specification of the one object of that kind."""
        (found,) = [one["spec"]["template"]["spec"] for one in self._documents if one["kind"] == kind]
        spec: Object = found
        return spec

    def run(self, pod: Object, container: Object, **more: str) -> subprocess.CompletedProcess[str]:
        """`more` are variables besides those of the manifest."""
        words = [f"--env={name}={value}" for name, value in more.items()]
        return self._engine.docker("run", "--rm", *words, *self._words(pod, container), check=False)

    @contextmanager
    def running(self, pod: Object, container: Object) -> Iterator[str]:
        """Its name, until it is told to end; it has to end well within the pod's time."""
        name: str = container["name"]
        self._engine.docker("run", "--detach", "--name", name, *self._words(pod, container))
        try:
            yield name
            self._engine.docker("stop", f"--time={pod['terminationGracePeriodSeconds']}", name)
            state = self._engine.docker("inspect", "--format={{.State.ExitCode}}", name).stdout.strip()
            assert state == "0", self.log(name)
        finally:
            self._engine.docker("rm", "--force", name)

    def log(self, name: str) -> str:
        done = self._engine.docker("logs", name)
        return done.stdout + done.stderr

    def host(self, path: str) -> Path:
        """Where a path of the node is for us."""
        return self.root / path.lstrip("/")

    def _words(self, pod: Object, container: Object) -> list[str | Path]:
        return [
            *self._privileges(pod, container),
            *self._credentials(pod),
            *self._volumes(pod, container),
            *[f"--env={name}={value}" for name, value in self._variables(container).items()],
            f"--entrypoint={container['command'][0]}",
            container["image"],
            *container["command"][1:],
            *container.get("args", []),
        ]

    def _privileges(self, pod: Object, container: Object) -> list[str]:
        whole = pod["securityContext"] | container["securityContext"]
        assert pod["hostNetwork"]
        assert not whole.get("privileged")
        words = ["--network=host", f"--user={whole['runAsUser']}:{whole['runAsGroup']}"]
        words += ["--read-only"] if whole["readOnlyRootFilesystem"] else []
        words += [] if whole["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges"]
        return words + [f"--cap-drop={name}" for name in whole["capabilities"]["drop"]]

    def _credentials(self, pod: Object) -> list[str]:
        """A folder with what the kubelet projects there."""
        if not pod.get("automountServiceAccountToken", True):
            return []
        name = pod["serviceAccountName"]
        folder = self._folder / "accounts" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(self._server.cluster.token(NAMESPACE, name))
        (folder / "ca.crt").write_bytes(self._server.ca)
        (folder / "namespace").write_text(NAMESPACE)
        return [f"--volume={folder}:{ACCOUNTS}:ro"]

    def _volumes(self, pod: Object, container: Object) -> Iterator[str]:
        paths = {one["name"]: one["hostPath"]["path"] for one in pod.get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            place = self.host(paths[mount["name"]])
            place.mkdir(parents=True, exist_ok=True)
            yield f"--volume={place}:{mount['mountPath']}{':ro' if mount.get('readOnly') else ''}"

    def _variables(self, container: Object) -> dict[str, str]:
        where = urlsplit(self._server.url)
        found = {"KUBERNETES_SERVICE_HOST": where.hostname or "", "KUBERNETES_SERVICE_PORT": str(where.port)}
        return found | {one["name"]: self._value(one) for one in container.get("env", [])}

    def _value(self, variable: Object) -> str:
        if "value" in variable:
            text: str = variable["value"]
            return text
        source = variable["valueFrom"]
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "spec.nodeName"
            return NODE
        wanted = source["configMapKeyRef"]
        (data,) = [
            one["data"]
            for one in self._documents
            if one["kind"] == "ConfigMap" and one["metadata"]["name"] == wanted["name"]
        ]
        found: str = data[wanted["key"]]
        return found


def wait_until(reached: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + _LONGEST_WAIT
    while not reached():
        assert time.monotonic() < ends, f"waited in vain for {what}"
        time.sleep(0.05)
