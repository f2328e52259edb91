"""containerd in a node, as a kubelet uses it: through the Container Runtime Interface."""

from __future__ import annotations

import base64
import shutil
import signal
from pathlib import Path
from typing import Any

from integration.runtimes import box_image
from integration.runtimes.cri import Cri, CriRefused
from integration.runtimes.nodes import Node, await_that

BIN, CONF, CACHE = "/opt/cni/bin", "/etc/cni/net.d", "/var/lib/cni/results"
READY = 2  # a sandbox's state is 0 if it is ready; what NetworkReady is called is in Status

_VERSION_2 = """version = 2
root = "{disk}/root"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[metrics]
  address = "127.0.0.1:1338"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""
_VERSION_3 = """version = 3
root = "{disk}/root"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{image}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
    max_conf_num = 1
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


class Pod:
    """A sandbox with one container in it."""

    def __init__(self, runtime: Containerd, config: dict[str, Any], sandbox: str) -> None:
        self._runtime, self.config, self.sandbox = runtime, config, sandbox
        network = runtime.cri.call("PodSandboxStatus", pod_sandbox_id=sandbox)["status"]["network"]
        self.addresses = [network["ip"], *[one["ip"] for one in network["additional_ips"]]]

    @property
    def name(self) -> str:
        return str(self.config["metadata"]["name"])

    def start(self) -> Pod:
        config = {
            "metadata": {"name": "main"},
            "image": {"image": box_image.NAME},
            "command": box_image.COMMAND,
            "linux": {"security_context": {}},
        }
        call = self._runtime.cri.call
        made = call("CreateContainer", pod_sandbox_id=self.sandbox, config=config, sandbox_config=self.config)
        self._container = made["container_id"]
        call("StartContainer", container_id=self._container)
        return self

    def execute(self, *words: str) -> tuple[int, str]:
        """Exit code and output."""
        return self._runtime.execute(self._container, *words)

    def pings(self, address: str) -> bool:
        code, _ = self.execute("ping", "-c", "1", "-W", "10", address)
        return code == 0

    def stop(self) -> None:
        self._runtime.cri.call("StopPodSandbox", pod_sandbox_id=self.sandbox)

    def remove(self) -> None:
        self._runtime.cri.call("RemovePodSandbox", pod_sandbox_id=self.sandbox, seconds=300)


class Containerd:
    """`programs` is the folder of containerd, its shim and ctr; "" for those on PATH."""

    def __init__(self, node: Node, programs: str = "") -> None:
        self.node = node
        self._programs = programs
        self.socket = str(node.folder / "cri.sock")
        self.cri = Cri(self.socket)

    def __enter__(self) -> Containerd:
        self.cri.__enter__()
        image = self.node.folder / "box.tar"
        box_image.write_image(image)
        self.launch()
        self.load(image)
        return self

    def load(self, image: Path) -> None:
        self.node.run(self._program("ctr"), "-a", self.socket, "-n", "k8s.io", "images", "import", str(image))

    def __exit__(self, *_exc: object) -> None:
        self.cri.__exit__()

    def _program(self, name: str) -> str:
        return str(Path(self._programs, name)) if self._programs else str(shutil.which(name))

    def launch(self) -> None:
        path = self.node.folder / "containerd.toml"
        form = _VERSION_3 if self._programs else _VERSION_2
        path.write_text(form.format(disk=self.node.folder / "containerd", socket=self.socket, image=box_image.NAME))
        found = f"{self._programs}:" if self._programs else ""
        self.daemon = self.node.start(
            self._program("containerd"),
            "--config",
            str(path),
            PATH=f"{found}/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        self.daemon.await_ready(self._answers)

    def _answers(self) -> str:
        try:
            reply = self.cri.call("Version", seconds=2)
            return f"{reply['runtime_name']} {reply['runtime_version']}"
        except CriRefused:
            return ""

    def version(self) -> str:
        return self._answers()

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.daemon.kill(number)

    def network_state(self) -> tuple[bool, str]:
        """NetworkReady, and what it says about it."""
        conditions = self.cri.call("Status")["status"]["conditions"]
        found = next(one for one in conditions if one["type"] == "NetworkReady")
        return found["status"], found["message"]

    def await_network(self, word: str = "") -> None:
        """With a word of a configuration: until that is what it goes by. It reads a new one in its own time."""

        def ready() -> bool:
            return self.network_state()[0] and word in self.cri.call("Status", verbose=True)["info"]["cniconfig"]

        await_that(ready, f"NetworkReady, with {word or 'any configuration'}")

    def config(self, name: str, uid: str, **more: Any) -> dict[str, Any]:
        metadata = {"name": name, "uid": uid, "namespace": "default"}
        return {"metadata": metadata, "hostname": name, "log_directory": "/var/log", "linux": {}} | more

    def run_pod(self, name: str, uid: str, *, seconds: float = 60, **more: Any) -> Pod:
        config = self.config(name, uid, **more)
        sandbox = self.cri.call("RunPodSandbox", config=config, seconds=seconds)["pod_sandbox_id"]
        return Pod(self, config, sandbox)

    def execute(self, container: str, *words: str) -> tuple[int, str]:
        """Exit code and output."""
        done = self.cri.call("ExecSync", container_id=container, cmd=list(words), timeout=20)
        said = [base64.b64decode(done[stream]).decode() for stream in ("stdout", "stderr")]
        return done["exit_code"], "".join(said)

    def sandboxes(self) -> list[str]:
        return [one["id"] for one in self.cri.call("ListPodSandbox")["items"]]

    def clear(self) -> None:
        """Stop and remove every sandbox, as a kubelet does with those that nobody wants."""
        for sandbox in self.sandboxes():
            self.cri.call("StopPodSandbox", pod_sandbox_id=sandbox)
            self.cri.call("RemovePodSandbox", pod_sandbox_id=sandbox)
