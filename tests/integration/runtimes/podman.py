"""podman with its CNI back end, in a node."""

from __future__ import annotations

import json
import shutil
from typing import Any

from integration.runtimes import box_image
from integration.runtimes.nodes import Node

_CONF = """[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
network_config_dir = "/etc/cni/net.d"
default_network = "pod-net"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
apparmor_profile = ""
"""


class Podman:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._program = str(shutil.which("podman"))
        self._folder = node.folder / "podman"
        self._folder.mkdir(exist_ok=True)
        (self._folder / "containers.conf").write_text(_CONF)
        image = node.folder / "box.tar"
        box_image.write_image(image)
        self.run("load", "-q", "-i", str(image))

    def _words(self, *words: str) -> list[str]:
        where = ["--root", str(self._folder / "root"), "--runroot", "/run/podman", "--tmpdir", "/run/podman-tmp"]
        return [self._program, *where, *words]

    @property
    def _environment(self) -> dict[str, str]:
        return {"CONTAINERS_CONF": str(self._folder / "containers.conf")}

    def run(self, *words: str) -> str:
        return self.node.run(*self._words(*words), **self._environment)

    def call(self, *words: str) -> Any:
        return self.node.call(*self._words(*words), **self._environment)

    def start(self, name: str, *options: str) -> str:
        """Run a container that serves its name; its identity."""
        words = ["run", "-d", "--name", name, "--hostname", name, *options, box_image.NAME, *box_image.COMMAND]
        return self.run(*words).strip()

    def addresses(self, name: str, network: str = "pod-net") -> list[str]:
        found = json.loads(self.run("inspect", name))[0]["NetworkSettings"]["Networks"][network]
        return [one for one in (found["IPAddress"], found["GlobalIPv6Address"]) if one]

    def inspect(self, name: str) -> Any:
        return json.loads(self.run("inspect", name))[0]

    def remove(self, *names: str) -> None:
        self.run("rm", "-f", "-t", "0", *names)

    def clear(self) -> None:
        self.run("rm", "-f", "-t", "0", "-a")
