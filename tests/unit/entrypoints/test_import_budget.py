"""Start-up is latency: each plugin entrypoint may load the modules listed here and no others.

A test that fails here names the modules that came in. Either import them where they are needed and seldom used
(inside a function), or add them to the list with their measured cost in mind: `make bench` shows it. Only a library
transport, which has a lean sibling or will get one, may load what it likes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# What loads in a millisecond or less, or cannot be avoided.
ALWAYS = {"__future__", "_json"}
MACHINE = {"os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc", "errno", "fcntl", "select"}
SQLITE = {  # the C module `_sqlite3` asks for functools.lru_cache
    *("_sqlite3", "_collections", "_functools", "_operator", "collections", "collections.abc", "functools"),
    *("itertools", "keyword", "operator", "reprlib", "types"),
}
NEVER = {
    *("argparse", "ast", "asyncio", "contextlib", "dataclasses", "datetime", "decimal", "enum", "inspect", "ipaddress"),
    *(
        "json",
        "locale",
        "logging",
        "pathlib",
        "random",
        "re",
        "shutil",
        "signal",
        "site",
        "socket",
        "sqlite3",
        "string",
    ),
    *("struct", "subprocess", "tempfile", "textwrap", "threading", "traceback", "typing", "urllib", "uuid", "warnings"),
}
LIBRARY_TRANSPORTS = {"adapters.linux.netlink_pyroute2"}
OWN = ("domain", "ports", "adapters", "entrypoints")
OPERATOR = ("entrypoints.ctl", "entrypoints.container")  # the `tortie` command, not a plugin


def run_isolated(code: str) -> set[str]:
    """Names of the modules that an interpreter, started as the launcher starts it, has loaded after the code."""
    report = "\nimport posix\nposix.write(2, '\\n'.join(sorted(sys.modules)).encode())\n"
    script = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}{report}"
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split("\n"))


def foreign(modules: set[str]) -> set[str]:
    """Those that are neither ours nor in a bare interpreter."""
    bare = run_isolated("")
    return {name for name in modules - bare if name.partition(".")[0] not in OWN}


def modules_under(*packages: str) -> list[str]:
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.name != "__init__.py"]


def importing(modules: list[str]) -> str:
    return "\n".join(f"import {name}" for name in modules)


def test_the_lists_do_not_contradict_each_other() -> None:
    assert not (ALWAYS | MACHINE | SQLITE) & NEVER


@pytest.mark.parametrize(
    ("packages", "budget"),
    [
        (("domain", "ports"), ALWAYS),
        (("adapters/records", "adapters/memory"), ALWAYS),
        (("adapters/linux",), ALWAYS | MACHINE),
        (("adapters/sqlite",), ALWAYS | MACHINE | SQLITE),
        (("entrypoints",), ALWAYS | MACHINE),
    ],
    ids=["domain and ports", "records and memory", "linux", "sqlite", "entrypoints"],
)
def test_no_module_on_a_plugin_path_loads_more_than_its_budget(packages: tuple[str, ...], budget: set[str]) -> None:
    wanted = [
        name for name in modules_under(*packages) if name not in LIBRARY_TRANSPORTS and not name.startswith(OPERATOR)
    ]
    assert wanted
    assert foreign(run_isolated(importing(wanted))) - budget == set()
