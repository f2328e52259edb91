"""SQLite without `functools`: in an interpreter of its own, since this one has it loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run_isolated(code: str) -> str:
    script = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}"
    command = [sys.executable, "-ISB", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_sqlite_works_without_the_library_around_it() -> None:
    said = run_isolated(
        """
from adapters.sqlite.engine import _sqlite3
connection = _sqlite3.connect(":memory:", cached_statements=3)
connection.execute("CREATE TABLE t (a)")
for number in range(20):  # the same statement from the cache, and others that push it out
    connection.execute("INSERT INTO t VALUES (?)", (number,))
    connection.execute(f"SELECT {number}").fetchone()
print(connection.execute("SELECT count(*), sum(a) FROM t").fetchone())
print(sorted({"functools", "collections", "operator", "types"} & set(sys.modules)))
"""
    )
    assert said.splitlines() == ["(20, 190)", "[]"]


def test_the_real_functools_is_there_for_who_wants_it() -> None:
    code = "from adapters.sqlite.engine import _sqlite3\nimport functools\nprint(functools.reduce, functools.__file__)"
    assert "functools.py" in run_isolated(code)


def test_a_functools_that_is_loaded_stays() -> None:
    code = "import functools as before\nfrom adapters.sqlite.engine import _sqlite3\nimport functools\n"
    assert run_isolated(code + "print(functools is before)") == "True\n"


def test_an_sqlite_that_wants_more_gets_it() -> None:
    """As a later Python's might: an importer in its place takes something else from `functools`."""
    said = run_isolated(
        """
class Greedy:
    def find_spec(self, name, path=None, target=None):
        return type(sys.__spec__)(name, self) if name == "_sqlite3" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        from functools import lru_cache, reduce
        module.reduce = reduce
sys.meta_path.insert(0, Greedy())
from adapters.sqlite.engine import _sqlite3
print(_sqlite3.reduce(int.__add__, [1, 2, 3]))
"""
    )
    assert said == "6\n"
