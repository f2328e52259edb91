"""A host to install to, in memory: an image, a pod's service account, secrets, and what was there before."""

from __future__ import annotations

from adapters.memory.clock import MemoryClock
from adapters.memory.host_files import Entry, MemoryHostFiles
from adapters.memory.installed_program import ScriptedProgram
from adapters.memory.log import RecordingLog
from adapters.memory.token_issuer import MemoryTokenIssuer
from domain.install.places import Places
from domain.install.settings import InstallSettings, read_settings
from ports.host_files import FOLDER
from usecases.install.install import install
from usecases.install.installer import Installer
from usecases.install.uninstall import uninstall

BIN, SECOND, NET = "/host/opt/cni/bin", "/host/secondary-bin-dir", "/host/etc/cni/net.d"
CONF = f"{NET}/10-calico.conflist"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
IN_A_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


class InstallWorld:
    def __init__(self) -> None:
        self.places = Places()
        self.files = MemoryHostFiles()
        self.program = ScriptedProgram()
        self.clock = MemoryClock()
        self.issuer = MemoryTokenIssuer(self.clock)
        self.log = RecordingLog()
        self.host = Installer(self.files, self.program, self.issuer, self.clock, self.log)
        self.files.put("/usr/bin/calico", "v1", 0o755)
        for folder in (BIN, NET):
            self.files.put(folder, kind=FOLDER, mode=0o755)

    def be_a_pod(self) -> None:
        for name, text in (("token", "my-secret-key"), ("ca.crt", CERTIFICATE), ("namespace", "kube-system")):
            self.files.put(f"{ACCOUNT}/{name}", text)

    def install(self, **environ: str) -> None:
        self.install_with(read_settings({"KUBERNETES_NODE_NAME": "my-node", **environ}, "host"))

    def install_with(self, settings: InstallSettings) -> None:
        install(self.places, settings, self.host)

    def uninstall(self, *, force: bool = False) -> tuple[str, ...]:
        return uninstall(self.places, self.files, force=force)

    def on_the_host(self) -> dict[str, Entry]:
        return {path: entry for path, entry in self.files.entries.items() if path.startswith("/host/")}

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(name for name in self.files.names(folder) if name != ".tortie-replaced")
