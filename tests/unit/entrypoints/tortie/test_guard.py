"""Whatever ends the operator's command, one line and an exit code are what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.tortie.guard import guarded

ROOT = Path(__file__).parents[4]


def raising(error):
    raise error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (MemoryError(), 1, "Error: out of memory; give the command more, or ask it for less\n"),
        (
            TypeError("a\x1b[2J\nb"),
            1,
            r"Error: this is a fault of tortie itself, please report it: TypeError: a\x1b[2J\nb [",
        ),
        (RecursionError("too deep"), 1, "Error: this is a fault of tortie itself, please report it: RecursionError"),
    ],
)
def test_whatever_nobody_foresaw_is_one_line(capfd, error, code, said):
    assert guarded(lambda: raising(error)) == code
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(said)
    assert "Traceback" not in err


def test_the_code_of_a_command_that_ends_is_its_own():
    assert guarded(lambda: 7) == 7


def run_program(code):
    """A process that is `tortie` but for what the code changes first."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['tortie', 'version']\n{code}\n"
    start += "from entrypoints.main import main\nsys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False, timeout=60, env={**os.environ}
    )


def test_a_command_that_cannot_be_loaded_or_is_interrupted_meanwhile_says_so():
    broken = run_program("sys.modules['yaml'] = None")
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "ModuleNotFoundError" in broken.stderr
    assert broken.stderr.count("\n") == 1
    finder = "class Finder:\n def find_spec(self, name, *_):\n  if name == 'yaml': raise KeyboardInterrupt\n"
    stopped = run_program(f"{finder}sys.meta_path.insert(0, Finder())")
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (130, "", "Interrupted.\n")
