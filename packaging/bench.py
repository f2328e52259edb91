#!/usr/bin/env python3
"""`make bench`: what starting a plugin costs beside a bare interpreter, and (as root) what an ADD and a DEL cost
on an embedded datastore and on an etcd.

The candidates take turns, so that a busy machine slows all of them. Numbers are for comparing on one machine; nothing
is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMESPACE, HOST = f"tortie-bench-{os.getpid()}", f"tortie-bench-{os.getpid()}-host"
REFERENCE = Path("/usr/lib/cni/bridge")  # where Debian has the CNI project's own
NETCONF = {
    "cniVersion": "1.0.0",
    "name": "bench",
    "type": "calico",
    "nodename": "bench",
    "nodename_file_optional": True,
    "log_level": "error",
    "ipam": {"type": "calico-ipam"},
}


def milliseconds(command: list[str], env: dict[str, str], given: str = "") -> float:
    started = time.perf_counter()
    done = subprocess.run(command, env=env, input=given, text=True, capture_output=True, check=False)
    took = (time.perf_counter() - started) * 1000
    if done.returncode != 0:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return took


def report(name: str, samples: list[float], base: float) -> None:
    middle = statistics.median(samples)
    ninety = statistics.quantiles(samples, n=10)[-1]
    print(f"  {name:<36} median {middle:7.1f} ms   p90 {ninety:7.1f} ms   {middle / base:5.1f} × bare", flush=True)


def cold_starts(folder: Path, rounds: int) -> float:
    """Interleaved cold starts; the bare interpreter's median."""
    python = (folder / "calico").read_text().split("\n", 1)[0].removeprefix("#!").split()[0]
    candidates = {
        "bare interpreter (-ISB)": ([python, "-ISB", "-c", ""], {}),
        "calico VERSION": ([str(folder / "calico")], {"CNI_COMMAND": "VERSION"}),
        "calico-ipam VERSION": ([str(folder / "calico-ipam")], {"CNI_COMMAND": "VERSION"}),
        "my-custom-cni VERSION": ([str(folder / "my-custom-cni")], {"CNI_COMMAND": "VERSION"}),
    }
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, (command, env) in candidates.items():
            samples[name].append(milliseconds(command, env))
    base = statistics.median(samples["bare interpreter (-ISB)"])
    for name, taken in samples.items():
        report(name, taken, base)
    return base


def attachments(folder: Path, rounds: int, base: float) -> None:
    """ADD and DEL by turns in one namespace, on each datastore by turns."""
    with tempfile.TemporaryDirectory(prefix="tortie-bench-") as scratch, etcd() as endpoint:
        database = f"{scratch}/datastore.db"
        stores = {
            "sqlite": {"datastore_type": "sqlite", "sqlite_path": database},
            "etcd": {"datastore_type": "etcdv3", "etcd_endpoints": endpoint},
        }
        init = [str(folder / "tortie"), "init", "--pool", "10.245.0.0/24", "--node", "bench"]
        milliseconds(init, {"TORTIE_SQLITE_PATH": database})
        milliseconds(init, {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": endpoint})
        env = {"CNI_NETNS": f"/var/run/netns/{NAMESPACE}", "CNI_IFNAME": "eth0", "CNI_PATH": str(folder)}
        samples: dict[tuple[str, str], list[float]] = {(verb, name): [] for verb in ("ADD", "DEL") for name in stores}
        for number in range(rounds):
            for name, settings in stores.items():
                netconf = json.dumps({**NETCONF, **settings, "ipam_lock_file": f"{scratch}/lock"})
                for verb in ("ADD", "DEL"):
                    call = env | {"CNI_COMMAND": verb, "CNI_CONTAINERID": f"bench{number}"}
                    samples[verb, name].append(milliseconds([str(folder / "calico")], call, netconf))
        for (verb, name), taken in samples.items():
            report(f"calico {verb} ({name}, calico-ipam)", taken, base)
        for verb in ("ADD", "DEL"):
            middles = [statistics.median(samples[verb, name]) for name in ("etcd", "sqlite")]
            print(f"  calico {verb}: etcd takes {middles[0] / middles[1]:.2f} × as long as sqlite")


def bridges(folder: Path, rounds: int, base: float) -> None:
    """ADD and DEL of the bridge plugin, and of the CNI project's where there is one, in a host's namespace."""
    programs = {"my-custom-cni": folder / "my-custom-cni"}
    if REFERENCE.exists():
        programs["the reference bridge"] = REFERENCE
    env = {"CNI_NETNS": f"/var/run/netns/{NAMESPACE}", "CNI_IFNAME": "eth0", "PATH": os.environ["PATH"]}
    samples: dict[tuple[str, str], list[float]] = {(verb, name): [] for verb in ("ADD", "DEL") for name in programs}
    with tempfile.TemporaryDirectory(prefix="tortie-bench-") as scratch:
        ipam = {"type": "host-local", "subnet": "10.246.0.0/24", "dataDir": f"{scratch}/networks"}
        bridge = {"type": "bridge", "bridge": "bench0", "isDefaultGateway": True, "stateDir": f"{scratch}/state"}
        netconf = json.dumps({"cniVersion": "1.0.0", "name": "bench", **bridge, "ipam": ipam})
        for number in range(rounds):
            for name, program in programs.items():
                for verb in ("ADD", "DEL"):
                    call = env | {"CNI_COMMAND": verb, "CNI_CONTAINERID": f"bench{number}"}
                    call["CNI_PATH"] = str(program.parent)
                    command = ["nsenter", f"--net=/var/run/netns/{HOST}", "--", str(program)]
                    samples[verb, name].append(milliseconds(command, call, netconf))
    for (verb, name), taken in samples.items():
        report(f"{name} {verb} (host-local)", taken, base)


@contextmanager
def etcd() -> Iterator[str]:
    """The endpoint of a server of our own, found and started as tests do it."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from services.etcd import Etcd  # type: ignore[import-not-found]  # in tests, which are not checked with this

    with Etcd() as server:
        yield server.url


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the plugins.")
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    folder = asked.bin.resolve()
    print(f"{asked.rounds} rounds, the candidates taking turns")
    base = cold_starts(folder, asked.rounds)
    if os.geteuid() != 0:
        print("  ADD and DEL: not run, they need root")
        return
    try:
        for name in (NAMESPACE, HOST):
            subprocess.run(["ip", "netns", "add", name], check=True)
        attachments(folder, asked.rounds, base)
        bridges(folder, asked.rounds, base)
    finally:
        for name in (NAMESPACE, HOST):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


if __name__ == "__main__":
    main()
