"""The installer's container, and a host whose disk fails at any system call, or whose installer is killed there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from integration.plugin.host import Answer

Tree = dict[str, tuple[str, int, object]]
CONF = "10-calico.conflist"
FINAL = """\
{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "info",
      "log_file_path": "/var/log/calico/cni/cni.log",
      "datastore_type": "kubernetes",
      "nodename": "my-node",
      "mtu": 1500,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"},
      "require_mtu_file": false,
      "calico_api_group": "crd.projectcalico.org/v1"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}"""


def tree(folder: Path) -> Tree:
    """What is there: kind, permissions, content."""
    found: Tree = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode & 0o7777
        kind, content = "file", None
        if path.is_symlink():
            kind, content = "link", os.readlink(path)
        elif path.is_dir():
            kind = "folder"
        else:
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (kind, mode, content)
    return found


def put(path: Path, content: str | bytes, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


class Image:
    """`root` is the container's; the host's folders are mounted in it below /host, read-only where `read_only` says."""

    def __init__(self, executable: Path, root: Path) -> None:
        self.root = root
        self.bin = root / "host/opt/cni/bin"
        self.second = root / "host/secondary-bin-dir"
        self.net = root / "host/etc/cni/net.d"
        self.conf = self.net / CONF
        for folder in (root / "usr/bin", root / "tmp", self.bin, self.net):
            folder.mkdir(parents=True)
        shutil.copyfile(executable / "calico", root / "usr/bin/calico")
        (root / "usr/bin/calico").chmod(0o755)
        self.program = (root / "usr/bin/calico").read_bytes()
        self.read_only: list[Path] = []
        self.mounts = ""

    def words(self, *words: str) -> list[str]:
        mounts = [f"mount --bind {path} {path}; mount -o remount,ro,bind {path}" for path in self.read_only]
        script = "; ".join(
            [*mounts, *([self.mounts] if self.mounts else []), f'exec /usr/sbin/chroot {self.root} "$@"']
        )
        return ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", script, "sh", *words]

    def environment(self, **environ: str) -> dict[str, str]:
        usual = {"SLEEP": "false", "KUBERNETES_NODE_NAME": "my-node", "CNI_DATASTORE_PROBE_TIMEOUT": "0"}
        return {**usual, **environ}

    def run(self, *words: str, **environ: str) -> Answer:
        done = subprocess.run(
            self.words(*words), env=environ, capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def install(self, **environ: str) -> Answer:
        return self.run("/usr/bin/calico", "component", "cni", "install", **self.environment(**environ))

    def installed(self, **environ: str) -> str:
        """The log of an installation that must have succeeded."""
        answer = self.install(**environ)
        assert (answer.exit, answer.stdout) == (0, ""), answer
        return answer.stderr

    def refused(self, *parts: str, **environ: str) -> str:
        """The one error line of an installation that must have failed, and changed nothing."""
        before = tree(self.root / "host")
        answer = self.install(**environ)
        assert (answer.exit, answer.stdout) == (1, ""), answer
        (line,) = [line for line in answer.stderr.splitlines() if "[ERROR]" in line]
        assert answer.stderr.endswith(f"{line}\n"), answer
        assert " cni-installer/" in line
        for part in parts:
            assert part in line, line
        assert tree(self.root / "host") == before
        return line


class Hostile:
    """A host with another one's plugins and configuration; `count` is how many changes the last installation tried."""

    def __init__(self, tortie: Path, tracer: Path, folder: Path) -> None:
        self.folder = folder
        self.host = folder / "host"
        self.bin = self.host / "opt/cni/bin"
        self.net = self.host / "etc/cni/net.d"
        self.count = 0
        self._tortie = tortie
        self._tracer = tracer
        self.program = put(folder / "program", '#!/bin/sh\n[ "$1" = -t ] || echo v9\n', 0o755).read_bytes()
        put(folder / "plugins/portmap", "new portmap", 0o755)
        put(folder / "secrets/etcd-ca", "ca", 0o640)
        put(folder / "secrets/etcd-key", "key", 0o600)
        self.reset()
        self.before = tree(self.host)

    def reset(self) -> None:
        shutil.rmtree(self.host, ignore_errors=True)
        put(self.bin / "calico", "old calico", 0o755)
        (self.bin / "portmap").symlink_to("/usr/lib/portmap")
        put(self.net / CONF, "old configuration")
        put(self.net / "calico-tls/etcd-ca", "old ca", 0o600)

    @property
    def words(self) -> list[str | Path]:
        """The command that installs."""
        words = [
            "install",
            "--root",
            self.host,
            "--from",
            self.folder / "program",
            "--plugins",
            self.folder / "plugins",
        ]
        return [self._tortie, *words]

    @property
    def environment(self) -> dict[str, str]:
        secrets = str(self.folder / "secrets")
        return {"KUBERNETES_NODE_NAME": "my-node", "TLS_ASSETS_DIR": secrets, "CNI_WAIT_FOR_DATASTORE": "false"}

    def install(self, at: int = 0, what: int = 0) -> Answer:
        if not what and not at:
            return self._run(self.words, self.environment)  # nobody has to look at each of its system calls
        report = self.folder / "count"
        answer = self._run([self._tracer, self.host, report, str(at), str(what), *self.words], self.environment)
        self.count = int(report.read_text())
        return answer

    def restored(self) -> Tree:
        """What is there, but for secrets in a folder that was there before: others may use them, so they stay."""
        found = tree(self.host)
        assert found.pop("etc/cni/net.d/calico-tls/etcd-key")[2] == b"key"
        found["etc/cni/net.d/calico-tls/etcd-ca"] = self.before["etc/cni/net.d/calico-tls/etcd-ca"]
        return found

    def uninstall(self) -> Answer:
        return self._run([self._tortie, "uninstall", "--root", self.host], {})

    def _run(self, words: Sequence[object], environ: dict[str, str]) -> Answer:
        done = subprocess.run(
            [str(word) for word in words], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def without_leftovers(self) -> Tree:
        """Leaving out what a killed process has left for the next one to remove, and what has been kept."""
        return {name: found for name, found in tree(self.host).items() if "/.tortie-" not in name}
