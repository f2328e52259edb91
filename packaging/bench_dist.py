#!/usr/bin/env python3
"""`make bench-dist`: the self-contained executable beside the bundle, and both beside a process that does nothing.

VERSION, and ADD and DEL on an embedded datastore: wall time, processor time, peak memory. The candidates take turns, so
that a busy machine slows all of them: compare ratios. Nothing is asserted. It needs root.
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
VERBS = ("VERSION", "ADD", "DEL")
# Does nothing; with arguments it runs them, and writes the peak resident size in KiB to descriptor 3. (What a process
# inherits from the one that started it counts, and an interpreter is large.)
FLOOR = """
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct rusage used;
    int status = 0;
    if (count == 1) return 0;
    if (fork() == 0) { execv(words[1], words + 1); _exit(127); }
    wait4(-1, &status, 0, &used);
    dprintf(3, "%ld", used.ru_maxrss);
    return status != 0;
}
"""
Sample = tuple[float, float]  # milliseconds of wall and of processor time


def spawn(words: list[str], env: dict[str, str], given: bytes, third: int | None = None) -> Sample:
    """Start a program with that on stdin, its output thrown away; it has to succeed."""
    reading, writing = os.pipe()
    os.write(writing, given)
    os.close(writing)
    nowhere = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), *((os.POSIX_SPAWN_DUP2, nowhere, number) for number in (1, 2))]
    if third is not None:
        actions.append((os.POSIX_SPAWN_DUP2, third, 3))
    began = time.perf_counter()
    pid = os.posix_spawn(words[0], words, env, file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - began
    os.close(reading)
    os.close(nowhere)
    if status:
        raise SystemExit(f"{words} ended with {status}")
    return took * 1000, (used.ru_utime + used.ru_stime) * 1000


def peak(floor: str, words: list[str], env: dict[str, str], given: bytes) -> float:
    """MiB that a run of the program has resident at most."""
    reading, writing = os.pipe()
    spawn([floor, *words], env, given, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        return int(told.read()) / 1024


def compile_floor(folder: str) -> str:
    source, program = f"{folder}/floor.c", f"{folder}/floor"
    Path(source).write_text(FLOOR)
    subprocess.run(["cc", "-O2", "-static", "-o", program, source], check=True)
    return program


def measure(candidates: dict[str, Path], rounds: int, folder: str) -> dict[tuple[str, str], list[Sample]]:
    floor = compile_floor(folder)
    database = f"{folder}/datastore.db"
    init = [str(next(iter(candidates.values())) / "tortie"), "init", "--pool", "10.245.0.0/24", "--node", "bench"]
    subprocess.run(init, env={"TORTIE_SQLITE_PATH": database}, check=True, capture_output=True)
    netconf = {
        "cniVersion": "1.0.0",
        "name": "bench",
        "type": "calico",
        "nodename": "bench",
        "nodename_file_optional": True,
        "log_level": "error",
        "datastore_type": "sqlite",
        "sqlite_path": database,
        "ipam_lock_file": f"{folder}/lock",
        "ipam": {"type": "calico-ipam"},
    }
    given = json.dumps(netconf).encode()
    samples: dict[tuple[str, str], list[Sample]] = {}
    for number in range(rounds):
        samples.setdefault(("floor", "VERSION"), []).append(spawn([floor], {}, b""))
        for name, place in candidates.items():
            env = {"CNI_NETNS": f"/var/run/netns/{NAMESPACE}", "CNI_IFNAME": "eth0", "CNI_PATH": str(place)}
            env["CNI_CONTAINERID"] = f"{name}{number}"
            for verb in VERBS:
                taken = spawn([str(place / "calico")], env | {"CNI_COMMAND": verb}, given)
                samples.setdefault((name, verb), []).append(taken)
    for name, place in candidates.items():
        env = {"CNI_NETNS": f"/var/run/netns/{NAMESPACE}", "CNI_IFNAME": "eth0", "CNI_PATH": str(place)}
        sizes = [
            peak(floor, [str(place / "calico")], env | {"CNI_COMMAND": verb, "CNI_CONTAINERID": "peak"}, given)
            for verb in VERBS
        ]
        print(
            f"  {name:<10} peak resident: " + ", ".join(f"{v} {s:.1f} MiB" for v, s in zip(VERBS, sizes, strict=True))
        )
    return samples


def report(samples: dict[tuple[str, str], list[Sample]]) -> None:
    middles = {
        key: tuple(statistics.median(sample[part] for sample in taken) for part in (0, 1))
        for key, taken in samples.items()
    }
    for (name, verb), (wall, processor) in middles.items():
        print(f"  {name:<10} {verb if name != 'floor' else '':<8} wall {wall:7.2f} ms   processor {processor:7.2f} ms")
    for verb in VERBS:
        ratios = [one / other for one, other in zip(middles["executable", verb], middles["bundle", verb], strict=True)]
        print(
            f"  {verb}: the executable takes {ratios[0]:.2f} × the bundle's time, {ratios[1]:.2f} × its processor time"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the executable beside the bundle.")
    parser.add_argument("--executable", type=Path, required=True)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=50)
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("`make bench-dist` needs root: it makes a network namespace")
    print(f"{asked.rounds} rounds, the candidates taking turns")
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tortie-bench-") as folder:
            candidates = {"executable": asked.executable.resolve(), "bundle": asked.bundle.resolve()}
            report(measure(candidates, asked.rounds, folder))
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


if __name__ == "__main__":
    main()
