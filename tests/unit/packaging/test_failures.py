"""What the end of `make test` says of failed tests: each by name, and in its own words, however much is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no ground")

def test_without_ground(broken):
    pass

def refuse():
    raise ValueError("first words")

def go_on():
    FILLING
    assert "long" * 200 == "second words"

def test_at_length():
    try:
        refuse()
    except ValueError:
        go_on()

def test_fine():
    pass
""".replace("FILLING", "\n    ".join(["pass"] * 60))


def told(*logs: Path) -> str:
    words = [sys.executable, ROOT / "packaging" / "failures.py", *logs]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pytest says of these tests."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "test_failing.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "test_failing.py"]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    path = folder / "log"
    path.write_text(f"make: something before\n{done.stdout}make: *** [Makefile:1: unit] Error 1\n")
    return path


def test_each_is_told_by_name_in_its_own_words(log: Path) -> None:
    said = told(log).split("--- ")
    assert [part.partition("\n")[0] for part in said] == ["", "ERROR at setup of test_without_ground", "test_at_length"]
    assert "E       RuntimeError: no ground" in said[1]
    assert "second words" in said[2]


def test_of_much_the_end_is_told_and_what_led_there(log: Path) -> None:
    """Only a screen of it, each line of which fits."""
    lines = told(log).split("--- test_at_length\n")[1].splitlines()
    assert 30 < len(lines) <= 40
    assert "…" in lines
    assert any("first words" in line for line in lines[: lines.index("…")])
    assert max(map(len, lines)) <= 240


def test_many_are_told_more_shortly_and_the_rest_are_counted(log: Path) -> None:
    lines = told(*[log] * 4).splitlines()
    assert lines[-1] == "--- and 3 more"
    assert len(lines) < 130


def test_a_log_without_tests_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("== not a section\n___\nlint FAILED\n")
    assert told(tmp_path / "log").strip() == ""
