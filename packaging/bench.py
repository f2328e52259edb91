#!/usr/bin/env python3
"""`make bench`: what starting a plugin costs beside a bare interpreter, and (as root) what an ADD and a DEL cost.

The candidates take turns, so that a busy machine slows all of them. Numbers are for comparing on one machine; nothing
is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

NAMESPACE = f"tortie-bench-{os.getpid()}"


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
    print(f"  {name:<34} median {middle:7.1f} ms   p90 {ninety:7.1f} ms   {middle / base:5.1f} × bare", flush=True)


def cold_starts(folder: Path, rounds: int) -> float:
    """Interleaved cold starts; the bare interpreter's median."""
    python = (folder / "calico").read_text().split("\n", 1)[0].removeprefix("#!").split()[0]
    candidates = {
        "bare interpreter (-ISB)": ([python, "-ISB", "-c", ""], {}),
        "calico VERSION": ([str(folder / "calico")], {"CNI_COMMAND": "VERSION"}),
        "calico-ipam VERSION": ([str(folder / "calico-ipam")], {"CNI_COMMAND": "VERSION"}),
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
    """ADD and DEL by turns in one namespace, on an embedded datastore."""
    with tempfile.TemporaryDirectory(prefix="tortie-bench-") as scratch:
        database = f"{scratch}/datastore.db"
        node = {
            "datastore_type": "sqlite",
            "sqlite_path": database,
            "nodename": "bench",
            "nodename_file_optional": True,
        }
        rest = {"ipam_lock_file": f"{scratch}/lock", "log_level": "error", "ipam": {"type": "calico-ipam"}}
        netconf = json.dumps({"cniVersion": "1.0.0", "name": "bench", "type": "calico", **node, **rest})
        init = [str(folder / "tortie"), "init", "--pool", "10.245.0.0/24"]
        milliseconds(init, {"TORTIE_SQLITE_PATH": database, "NODENAME": "bench"})
        env = {"CNI_NETNS": f"/var/run/netns/{NAMESPACE}", "CNI_IFNAME": "eth0", "CNI_PATH": str(folder)}
        samples: dict[str, list[float]] = {"ADD": [], "DEL": []}
        for number in range(rounds):
            for verb, taken in samples.items():
                call = env | {"CNI_COMMAND": verb, "CNI_CONTAINERID": f"bench{number}"}
                taken.append(milliseconds([str(folder / "calico")], call, netconf))
        for verb, taken in samples.items():
            report(f"calico {verb} (sqlite, calico-ipam)", taken, base)


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
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        attachments(folder, asked.rounds, base)
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


if __name__ == "__main__":
    main()
