"""Fuzzing by hand and on CI: `python tests/fuzz/run.py --minutes 5 --target http2` (`make fuzz`).

With Atheris inputs are led by the branches that they take in our packages. Where it cannot be had (other machines and
Pythons), Hypothesis changes the kept inputs blindly, and the report says so. Each target runs in a process of its own.

Invariant: the exit code is 1 if any target found something; the input is kept under `--output`, and its path printed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import re
import shutil
import sys
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # as a script: the project and the test modules beside it
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz.mutate import mutate  # noqa: E402 - only now can it be found

OURS = ("domain", "ports", "usecases", "adapters", "entrypoints")
MOST_MEMORY = 640  # MiB of one process; all libraries that are oracles are loaded in it
BATCH = 50  # inputs of one example of Hypothesis
MOST_SECONDS = 20  # of one input on the wall's clock, on a machine that does other things, too


def load(*, guided: bool) -> dict:
    """The targets by name; with `guided` our packages are imported so that Atheris sees their branches."""
    if not guided:
        from fuzz.families import targets

        return targets()
    import atheris

    silent = contextlib.redirect_stderr(io.StringIO())  # it names each module that it changes
    with silent, atheris.instrument_imports(include=list(OURS), enable_loader_override=False):
        from fuzz.families import targets

        return targets()


def inputs_of(target) -> list[bytes]:
    from fuzz.corpus import kept

    return [*target.seeds, *kept(target.name)]


# --- with Atheris --------------------------------------------------------------------------------------------------


def run_guided(target, asked, folder: Path) -> None:
    """Never returns. What is found to lead somewhere new is left in `folder`/found."""
    found = folder / "found"
    found.mkdir()
    for octets in inputs_of(target):
        (found / hashlib.sha1(octets, usedforsecurity=False).hexdigest()).write_bytes(octets)
    import atheris

    def change(octets: bytes, most: int, seed: int) -> bytes:
        """Half of the changes are libFuzzer's own, which knows what was compared with what."""
        if seed & 1:
            return atheris.Mutate(octets, most)
        return mutate(octets, most, Random(seed), target.form, target.skips)

    atheris.Setup(
        [
            *(sys.argv[0], f"-artifact_prefix={folder}/", f"-max_len={target.most}", f"-timeout={MOST_SECONDS}"),
            *(f"-rss_limit_mb={MOST_MEMORY}", "-print_final_stats=1", f"-seed={asked.seed}", str(found)),
        ],
        Counted(target, asked, folder),
        custom_mutator=change,
    )
    atheris.Fuzz()


class Counted:
    """A target that ends its process when it has run often or long enough."""

    def __init__(self, target, asked, folder: Path) -> None:
        self._target, self._runs, self._folder = target, asked.runs, folder
        self._seconds, self._ends = float("inf") if asked.runs else asked.minutes * 60, 0.0
        self.count = 0

    def __call__(self, octets: bytes) -> None:
        self._ends = self._ends or time.monotonic() + self._seconds  # the time until now is not the target's
        self._target(octets)
        self.count += 1
        if self.count == self._runs or time.monotonic() > self._ends:
            self.end()

    def end(self) -> None:
        (self._folder / "executions").write_text(str(self.count))
        os._exit(0)


# --- with Hypothesis -----------------------------------------------------------------------------------------------


def run_blind(target, asked, folder: Path) -> None:
    """Never returns. Nothing is found but faults."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    pool, counted = inputs_of(target), Counted(target, asked, folder)
    last = b""

    @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(pool) | st.binary(max_size=256), st.integers(0, 2**32))
    def once(begun: bytes, seed: int) -> None:
        """A batch of them, since an example costs more than an input."""
        nonlocal last
        random, last = Random(seed), begun
        for _ in range(BATCH):
            counted(last)
            again = begun if random.random() < 0.5 else last
            last = mutate(again, target.most, random, target.form, target.skips)

    try:
        while True:
            once()
    except Exception as error:  # noqa: BLE001 - whatever a parser lets through is what is looked for
        crash = folder / f"crash-{hashlib.sha1(last, usedforsecurity=False).hexdigest()}"
        crash.write_bytes(last)
        print(f"=== Uncaught Python exception: ===\n{type(error).__name__}: {error}\nTest unit written to {crash}")
        print(f"stat::number_of_executed_units: {counted.count}", flush=True)
        os._exit(1)


# --- one process for each target -----------------------------------------------------------------------------------


class Running:
    """A target at work in a process of its own, with what it says in `folder`/log."""

    def __init__(self, target, asked, *, guided: bool) -> None:
        self.target, self.folder = target, asked.output.resolve() / target.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._began = time.monotonic()
        self.process = os.fork()
        if not self.process:
            log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            (run_guided if guided else run_blind)(target, asked, self.folder)

    def report(self, status: int, asked) -> bool:
        """Whether nothing was found."""
        took = max(time.monotonic() - self._began, 0.001)
        said = (self.folder / "log").read_text("utf-8", "replace")
        counts = re.findall(r"stat::number_of_executed_units: *(\d+)", said)
        if not status:
            counts = [(self.folder / "executions").read_text()]
        count = int(counts[-1]) if counts else 0
        kept = minimise(self.target, self.folder) if asked.keep else ""
        print(f"{self.target.name:<22}{count:>12,} executions{count / took:>10,.0f}/s  {kept}", flush=True)
        if status:
            why = re.search(r"=== Uncaught Python exception: ===\n(.*)|(ERROR: .*)", said)
            shown = (why[1] or why[2])[:300] if why else f"it ended with status {status}"
            files = re.findall(r"Test unit written to (\S+)", said)
            print(f"  FOUND {shown}\n  {files[-1] if files else self.folder / 'log'}", flush=True)
        return not status


def run_all(targets: list, asked, *, guided: bool) -> bool:
    """Whether nothing was found. `asked.jobs` at a time."""
    waiting, running, sound = list(targets), {}, True
    while waiting or running:
        while waiting and len(running) < asked.jobs:
            started = Running(waiting.pop(0), asked, guided=guided)
            running[started.process] = started
        process, status = os.wait()
        sound &= running.pop(process).report(status, asked)
    return sound


# --- the kept inputs -----------------------------------------------------------------------------------------------


def minimise(target, folder: Path) -> str:
    """Keep of the found inputs those that take a way through our code which no shorter one takes."""
    from fuzz.corpus import keep, kept
    from fuzz.coverage import ways

    seen: set = set()
    for octets in target.seeds:
        seen |= ways(target, octets)
    found = {path.read_bytes() for path in (folder / "found").glob("*")} | set(kept(target.name))
    chosen, size = [], 0
    for octets in sorted(found - set(target.seeds), key=lambda one: (len(one), one)):
        taken = ways(target, octets)
        if taken - seen and size + len(octets) <= asked_most(target):
            seen |= taken
            size += len(octets)
            chosen.append(octets)
    keep(target.name, chosen)
    return f"{len(chosen)} inputs, {size} octets"


def asked_most(target) -> int:
    """Octets that all kept inputs of one target may have together."""
    return 4 * target.most if target.most > 8192 else 12_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="", help="names, or beginnings of them, with commas between (all)")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--runs", type=int, default=0, help="executions of each target, instead of minutes")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--output", type=Path, default=ROOT / "build/fuzz", help="where findings and logs go")
    parser.add_argument("--keep", action="store_true", help="put what leads somewhere new into tests/fuzz/corpus")
    parser.add_argument("--blind", action="store_true", help="Hypothesis although Atheris is there")
    parser.add_argument("--replay", type=Path, nargs="*", help="files to give to the target, with their traces")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    guided = not asked.blind and not asked.replay and _has_atheris()
    targets = load(guided=guided and not asked.list)
    wanted = [name for name in asked.target.split(",") if name]
    chosen = [one for one in targets.values() if not wanted or any(one.name.startswith(name) for name in wanted)]
    if asked.list or not chosen:
        print("\n".join(targets))
        return 0 if asked.list else 2
    if asked.replay:
        for path in asked.replay:
            chosen[0](path.read_bytes())
        return 0
    if not guided:
        why = "as asked for" if asked.blind else "Atheris is not here"
        print(f"NOT COVERAGE GUIDED: {why}, so Hypothesis changes the kept inputs without looking.", flush=True)
    return 0 if run_all(chosen, asked, guided=guided) else 1


def _has_atheris() -> bool:
    try:
        import atheris  # noqa: F401 - whether it can be had
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
