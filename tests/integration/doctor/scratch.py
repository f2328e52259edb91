"""A host below a folder, with a network namespace for its network, installed plugins, and a container on them.

Nothing is wrong with it; tests break one thing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import urlsafe_b64encode
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from integration.plugin.kernel import Namespace, succeed
from services.tcp_proxy import TcpProxy

NODE = "node-a"
NET, BIN = "etc/cni/net.d", "opt/cni/bin"
CONFIGURATION, KUBECONFIG = f"{NET}/10-calico.conflist", f"{NET}/calico-kubeconfig"
PORT = 2379


def jwt(issued: float, expires: float) -> str:
    """Nobody checks who has signed it but a server."""
    claims = json.dumps({"iat": int(issued), "exp": int(expires)}).encode()
    return f"e30.{urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


class ScratchHost:
    """`settings` are those of the datastore; `port` is that of its server on the loopback, 0 for none."""

    def __init__(self, folder: Path, binaries: Path, undo: ExitStack, settings: dict[str, Any], port: int = 0) -> None:
        self.root = folder / "host"
        self.net = Namespace("host", undo)
        self.inside = Namespace("c", undo)
        for path in (NET, "var/lib/calico", "var/log/calico/cni", "run/calico"):
            (self.root / path).mkdir(parents=True)
        (self.root / "var/run").symlink_to("/run")
        shutil.copytree(binaries, self.root / BIN, symlinks=True)
        for words in (
            *("link add eth0 type veth peer name wire0", "link set wire0 up", "link set eth0 up"),
            *("address add 192.0.2.2/24 dev eth0", "route add default via 192.0.2.1"),
        ):
            self.net.ip(*words.split())
        self.net.set_sysctl("ipv4/ip_forward", "1")
        self.net.set_sysctl("ipv4/conf/all/rp_filter", "1")
        if port:
            self.proxy = undo.enter_context(TcpProxy(port, netns=self.net.path, port=port))
        self.section: dict[str, Any] = {
            "type": "calico",
            "nodename": NODE,
            "log_file_path": "/var/log/calico/cni/cni.log",
            **settings,
            "ipam": {"type": "calico-ipam"},
        }
        self.configure()

    def path(self, path: str) -> Path:
        return self.root / path

    def configure(self, **members: Any) -> None:
        """Members of the section of calico; None takes one out."""
        self.section = {name: value for name, value in {**self.section, **members}.items() if value is not None}
        text = json.dumps({"name": "net1", "cniVersion": "1.0.0", "plugins": [self.section]})
        self.write(CONFIGURATION, text)

    def write(self, path: str, text: str, mode: int = 0o600) -> None:
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def write_kubeconfig(self, token: str, server: str = "https://127.0.0.1:6443") -> None:
        text = (
            "apiVersion: v1\nkind: Config\nclusters:\n- name: local\n  cluster:\n"
            f"    server: {server}\n    insecure-skip-tls-verify: true\n"
            f"users:\n- name: calico\n  user:\n    token: {token}\n"
            "contexts:\n- name: c\n  context:\n    cluster: local\n    user: calico\ncurrent-context: c\n"
        )
        self.write(KUBECONFIG, text)

    def run(
        self, program: str, *arguments: str, given: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        words = ["nsenter", f"--net={self.net.path}", "--", str(self.path(f"{BIN}/{program}")), *arguments]
        return subprocess.run(
            words, input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def add_container(self) -> str:
        """Its device's name on the host. The plugin works with the host's paths, so it is given those of the folder."""
        identity = f"c{os.getpid()}x{time.monotonic_ns()}"
        section = {**self.section, "name": "net1", "cniVersion": "1.0.0", "log_file_path": "", "kubernetes": {}}
        environment = {
            "CNI_COMMAND": "ADD",
            "CNI_CONTAINERID": identity,
            "CNI_NETNS": self.inside.path,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(self.path(BIN)),
        }
        lock = str(self.path("run/calico/ipam.lock"))
        added = self.run("calico", given=json.dumps({**section, "ipam_lock_file": lock}), **environment)
        assert added.returncode == 0, added
        return f"cali{identity[:11]}"

    def doctor(self, *arguments: str, **environment: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, document and standard error."""
        done = self.run("tortie", "doctor", "--root", str(self.root), "-o", "json", *arguments, **environment)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    def complaints(self, *arguments: str, **environment: str) -> list[tuple[str, str]]:
        code, document, err = self.doctor(*arguments, **environment)
        assert err == ""
        found = [(one["check"], one["state"]) for one in document["checks"] if one["state"] != "ok"]
        assert code == (1 if "error" in [state for _, state in found] else 0)
        assert all(bool(one.get("advice")) == (one["state"] != "ok") for one in document["checks"])
        return found

    def ip(self, *words: str) -> str:
        return succeed("ip", "-n", self.net.name, *words)
