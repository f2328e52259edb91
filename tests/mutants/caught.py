"""A copy of the project with one change in it, and the question whether random schedules notice.

A mutant names the seed of a schedule that has noticed it. That one is tried first, since mostly it still does; when it
does not any more, because the code around has changed, all the seeds are, and the new one is printed (`pytest -rP`).

Invariant: what counts is that one of the first `runs` schedules, or the named one, fails an invariant.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("domain", "ports", "usecases", "adapters", "tests")
# Compiled modules are copied, too: they say of which state of their source they are.
_IGNORED = shutil.ignore_patterns("*.pyc.*", "unit", "integration", "interop", "mutants", "golden", "linux")
Mutant = tuple[str, str, str, int]  # file, what is in it once, what is there instead, seed


def require_noticed(mutant: Mutant, script: str, folder: Path, runs: int) -> None:
    """`script` is one of tests/ that runs schedules by seed; the copy is made in `folder`."""
    file, old, new, seed = mutant
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=_IGNORED)
    source = (folder / file).read_text()
    assert source.count(old) == 1, "the mutant no longer fits the code"
    (folder / file).write_text(source.replace(old, new))
    done = run_schedules(folder, script, seed, 1)
    if done.returncode == 0:
        print(f"seed {seed} does not notice any more")
        done = run_schedules(folder, script, 0, runs)
    print(done.stdout)
    assert done.returncode == 1, f"survived: {done.stdout} {done.stderr}"
    assert done.stdout.startswith("seed "), done.stderr


def run_schedules(folder: Path, script: str, seed: int, runs: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-B", str(folder / "tests" / script), "--seed", str(seed), "--runs", str(runs)]
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
