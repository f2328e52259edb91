"""ADD and DEL of my-custom-cni, and of the CNI project's bridge where there is one, with addresses from host-local."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from process import Call, Sample, Starter
from world import Sandbox

REFERENCE = Path("/usr/lib/cni/bridge")  # where Debian has the CNI project's own


def bridges(starter: Starter, folder: Path, places: list[Sandbox], rounds: int) -> dict[str, list[Sample]]:
    """By program and verb."""
    programs = {"my-custom-cni": folder / "my-custom-cni"}
    if REFERENCE.exists():
        programs["the CNI project's bridge"] = REFERENCE
    samples: dict[str, list[Sample]] = {}
    with TemporaryDirectory() as scratch:
        ipam = {"type": "host-local", "subnet": "10.246.0.0/24", "dataDir": f"{scratch}/networks"}
        bridge = {"type": "bridge", "bridge": "bench0", "isDefaultGateway": True, "stateDir": f"{scratch}/state"}
        given = json.dumps({"cniVersion": "1.0.0", "name": "bench", **bridge, "ipam": ipam}).encode()
        for number in range(rounds):
            for (name, program), place in zip(programs.items(), places):
                for verb in ("ADD", "DEL"):
                    env = {"CNI_COMMAND": verb, "CNI_NETNS": place.netns, "CNI_IFNAME": "eth0"}
                    env |= {"CNI_CONTAINERID": f"bench{number}", "PATH": os.environ["PATH"]}
                    env["CNI_PATH"] = str(program.parent)
                    samples.setdefault(f"{name} {verb}", []).append(starter.run(Call([str(program)], env, given)))
    return samples
