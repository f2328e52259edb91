"""Loading a module asks nothing of the process that loads it, since the executable loads all of them when it is built.

What is read then (environment, clock, names, files) would be the building machine's, for ever.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")
PROCESS = {"os", "posix", "time", "random", "socket", "_socket", "platform", "getpass", "tempfile", "threading", "uuid"}
STATES = {"argv", "orig_argv", "stdin", "stdout", "stderr"}  # of `sys`; `os.environ` is filled anew where it is


def run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when the module is loaded: all but the bodies of functions and what checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = child.args
            for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
                yield default
                yield from run_at_once(default)
            continue
        yield child
        yield from run_at_once(child)


def of_the_process(tree: ast.Module) -> list[str]:
    """Calls into modules that tell of the process, by name or through them, and what tells of it without a call."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in PROCESS
        for alias in node.names
    }
    found = []
    for node in run_at_once(tree):
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in PROCESS | names | {"open", "input"}:
                found.append(ast.unparse(node))
        of_sys = isinstance(node, ast.Attribute) and node.attr in STATES
        if of_sys or (isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value)):
            found.append(ast.unparse(node))
    return found


def test_no_module_asks_while_it_is_loaded() -> None:
    asking = {
        str(path.relative_to(ROOT)): found
        for folder in OWN
        for path in (ROOT / folder).rglob("*.py")
        if (found := of_the_process(ast.parse(path.read_text("utf-8"))))
    }
    assert asking == {}


@pytest.mark.parametrize(
    "text",
    [
        "import os\nME = os.getpid()",
        "import os\nHOME = os.environ['HOME']",
        "from time import monotonic\nBEGAN = monotonic()",
        "import sys\ndef f(out=sys.stdout): ...",
        "import time\nclass C:\n    at = time.time()",
        "SETTINGS = open('/etc/x').read()",
    ],
)
def test_what_asks_is_seen(text: str) -> None:
    assert of_the_process(ast.parse(text))


def test_what_a_function_asks_later_is_its_own_affair() -> None:
    assert of_the_process(ast.parse("import os\ndef f():\n    return os.getpid(), open('x')")) == []
