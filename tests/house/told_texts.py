"""All texts that the product's sources can say, with `…` where something is filled in.

Read from the syntax tree, so that it does not matter how a literal is split over lines.
"""

from __future__ import annotations

import ast
from pathlib import Path

GAP = "…"
ROOMS = ("domain", "ports", "usecases", "adapters", "entrypoints")


def told_texts(root: Path) -> list[str]:
    texts: list[str] = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            nodes = list(ast.walk(ast.parse(path.read_text())))
            documentation = {id(one) for node in nodes for one in _documentation(node)}
            texts += [text for node in nodes if id(node) not in documentation and (text := _text(node))]
    return texts


def _documentation(node: ast.AST) -> list[ast.AST]:
    """Literals that stand by themselves are said to nobody."""
    return [node.value] if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.JoinedStr)) else []


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join([str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values])
    return ""


def fragments(quoted: str) -> list[str]:
    """The parts of a quotation between its gaps that say something."""
    return [part for one in quoted.split(GAP) if len(part := one.strip(" :,()")) > 2]
