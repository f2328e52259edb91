"""A Windows node as a runtime and an operator see it: plugins under Wine, HNS in a file, a datastore beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wine import Wine, windows_path

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "11111111-2222-3333-4444-555555555555"
SECOND = "11111111-2222-3333-4444-666666666666"
_OPERATE = "import sys; sys.argv[0] = 'tortie'; from entrypoints.main import main; sys.exit(main())"


class Ended(NamedTuple):
    status: int
    answer: dict[str, Any]
    log: str


class WindowsNode:
    """`store` is what of a configuration leads to the datastore, `settings` the same for an operator's command."""

    def __init__(
        self, wine: Wine, programs: Path, folder: Path, store: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        self.wine = wine
        self.programs = programs
        self.state = folder / "hns.json"
        self.conf: dict[str, Any] = {
            "cniVersion": "1.0.0",
            "name": "calico",
            "type": "calico",
            "mode": "windows-bgp",
            "nodename": "winnode",
            "windows_use_single_network": True,
            "ipam_lock_file": "c:\\tortie\\ipam.lock",
            "ipam": {"type": "calico-ipam"},
            **store,
        }
        self.arguments = ""
        self._settings = settings
        version = {"SchemaVersion": {"Major": 2, "Minor": 0}, "Type": "HostDefault", "Resources": []}
        spaces = [{"ID": identity, **version} for identity in (NAMESPACE, SECOND)]
        self.state.write_text(json.dumps({"Namespaces": spaces}))
        self.operate("init", "--node", "winnode", "--pool", "10.20.0.0/16")
        self.operate("ipam", "configure", "--strictaffinity=true")

    def operate(self, *words: str) -> str:
        command = [sys.executable, "-c", _OPERATE, *words]
        done = subprocess.run(command, cwd=ROOT, env={**self._settings}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def endpoints(self) -> list[Any]:
        found = json.loads(self.operate("get", "workloadendpoints", "--all-namespaces", "-o", "json"))
        return list(found["items"])

    def in_use(self) -> list[str]:
        """The containers that hold addresses; what is reserved for the host is nobody's."""
        return [line for line in self.operate("ipam", "show", "--show-blocks").splitlines() if "calico." in line]

    def call(
        self,
        verb: str,
        container: str = "c1",
        netns: str = NAMESPACE,
        *,
        program: str = "calico",
        conf: Mapping[str, Any] | None = None,
        path: Path | None = None,
        **environment: str,
    ) -> Ended:
        request = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": netns,
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": self.arguments,
            "CNI_PATH": windows_path(path or self.programs),
            "TORTIE_FAKE_HNS": windows_path(self.state),
        }
        text = json.dumps({**self.conf, **(conf or {})}).encode()
        done = self.wine.run(self.programs / f"{program}.exe", given=text, environment={**request, **environment})
        answer = json.loads(done.stdout) if done.stdout.strip() not in (b"", b"OK") else {}
        return Ended(done.returncode, answer, done.stderr.decode("utf-8", "replace"))

    def objects(self, kind: str) -> list[Any]:
        found: list[Any] = json.loads(self.state.read_text(encoding="utf-8")).get(kind, [])
        return found

    def pods(self) -> list[Any]:
        """Endpoints but for the host's own."""
        return [one for one in self.objects("Endpoints") if not one["Name"].endswith("_ep")]

    def journal(self) -> Sequence[str]:
        path = self.state.with_name("hns.json.journal")
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def complaints(self) -> Sequence[str]:
        """What the fakes hold against their caller: octets, handles, memory."""
        return [line for line in self.journal() if " BAD " in line or " LEAK " in line]
