"""An exception to a tool's rule says on its line why, or nobody can tell whether it is still one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("domain", "ports", "usecases", "adapters", "entrypoints", "packaging", "tests")
GENERATED = ("_pb2.py", "_pb2_grpc.py")
UNEXPLAINED = re.compile(r"# (?:noqa(?:: [A-Z0-9, ]+)?|type: ignore(?:\[[\w, -]+\])?)\s*$", re.MULTILINE)


def test_each_exception_has_its_reason() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if not path.name.endswith(GENERATED)]
    assert [str(path) for path in paths if UNEXPLAINED.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("line", "unexplained"),
    [
        ("import a  # noqa: " + "E402", True),
        ("import a  # noqa: " + "E402 - only now can it be found", False),
        ("a = b  # type: " + "ignore[attr-defined]", True),
        ("a = b  # type: " + "ignore[attr-defined]  # not in typeshed", False),
        ("a = b  # " + "noqa", True),
    ],
)
def test_what_has_none(line: str, unexplained: bool) -> None:
    assert bool(UNEXPLAINED.search(f"{line}\nb = c\n")) == unexplained
