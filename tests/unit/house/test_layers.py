"""What the rules about imports in pyproject.toml cannot say themselves.

They name layers one by one, so each adapter stands in them: one that does not may import all. And within a layer
modules could import each other in a circle, where none can be read, or changed, without the others. Imports inside
functions count; those for checkers of types do not.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")

# Circles that there are → why.
CIRCLES = {
    ("domain.ipam.pool_reasons", "domain.ipam.pools"): "reasons are loaded only when a request is refused",
}


def test_each_adapter_stands_in_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    named = {name.strip() for layer in layers for name in layer.split("|")}
    there = [path for path in (ROOT / "adapters").iterdir() if path.is_dir() or path.suffix == ".py"]
    assert {f"adapters.{path.stem}" for path in there if not path.stem.startswith("__")} <= named


def imports(node: ast.AST) -> Iterator[str]:
    """Dotted names that may be modules."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            yield child.module
            yield from [f"{child.module}.{alias.name}" for alias in child.names]
        yield from imports(child)


def circles(imported: Mapping[str, set[str]]) -> set[tuple[str, ...]]:
    """Each with its modules in order. Those that reach each other are in one."""
    reached = {name: {name} for name in imported}
    grown = True
    while grown:
        grown = False
        for name, known in reached.items():
            more = known.union(*[reached[other] for other in imported[name]])
            grown |= len(more) > len(known)
            reached[name] = more
    rings = {tuple(sorted(other for other in known if name in reached[other])) for name, known in reached.items()}
    return {ring for ring in rings if len(ring) > 1}


def test_modules_import_each_other_in_no_circle() -> None:
    paths = [path.relative_to(ROOT) for package in OWN for path in (ROOT / package).rglob("*.py")]
    trees = {".".join(path.with_suffix("").parts): ast.parse((ROOT / path).read_text("utf-8")) for path in paths}
    imported = {name: {other for other in imports(tree) if other in trees} for name, tree in trees.items()}
    assert circles(imported) == set(CIRCLES)


@pytest.mark.parametrize(
    ("imported", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, {("a", "b")}),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d", "a"}}, {("a", "b", "c"), ("d", "e")}),
    ],
)
def test_what_a_circle_is(imported: dict[str, set[str]], found: set[tuple[str, ...]]) -> None:
    assert circles(imported) == found
