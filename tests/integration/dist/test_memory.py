"""The self-contained executable's own memory (packaging/executable/memory.c): right under threads, and bounded.

The file is compiled for this machine with a program that stresses it (memory_stress.c), under a stand-in for the
interpreter's header. The program itself checks contents, alignment, and children of a process with threads.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGING = HERE.parents[2] / "packaging" / "executable"
INTERPRETER = """
#include <stddef.h>
typedef struct {
    void *ctx;
    void *(*alloc)(void *, size_t);
    void (*free)(void *, void *, size_t);
} PyObjectArenaAllocator;
void PyObject_SetArenaAllocator(PyObjectArenaAllocator *);
"""
Stress = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def stress(tmp_path: Path) -> Stress:
    """Compile and run it: threads, rounds, options for the compiler."""
    (tmp_path / "Python.h").write_text(INTERPRETER)

    def run(threads: int, rounds: int, *options: str) -> subprocess.CompletedProcess[str]:
        words = ["cc", "-g", "-O1", "-w", "-pthread", *options, "-I", tmp_path, "-I", PACKAGING]
        subprocess.run([*words, HERE / "memory_stress.c", "-o", tmp_path / "stress"], check=True)
        return subprocess.run(
            [tmp_path / "stress", str(threads), str(rounds)], text=True, capture_output=True, check=False, timeout=300
        )

    return run


def test_blocks_keep_their_contents_and_memory_is_bounded(stress: Stress) -> None:
    """Ten times as many rounds take hardly more memory than the first tenth of them."""
    done = stress(4, 30_000)
    assert (done.returncode, done.stderr) == (0, "")
    soon, late = map(int, done.stdout.split())
    assert late < soon + 16 * 1024, f"{soon} KiB after a tenth, {late} KiB at the end"


@pytest.mark.parametrize("kind", ["thread", "undefined"])
def test_nothing_is_undefined(kind: str, stress: Stress) -> None:
    """By the compiler's own checks: no memory is shared without its lock."""
    done = stress(3, 1_500, f"-fsanitize={kind}", "-fno-sanitize-recover=all")
    assert (done.returncode, done.stderr) == (0, "")
