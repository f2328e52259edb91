"""Which definitions of the product can run, or are named by what can run, from where its executables start.

The source is read, nothing is imported. A *definition* is a function, a class, a method or a constant of a module, such
as `ports.datastore:Datastore.fetch`. Names lead to definitions as Python would resolve them. Attributes lead to every
method of that name whose class is reached, since the type of what stands before the dot is not known.

Invariant: what is said to be out of reach is so, unless its name is put together at run time.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("domain", "ports", "usecases", "adapters", "entrypoints")
_ASIDE = ("abc", "typing")  # their classes call nobody by a name of ours
_DEFINED_BY_DEF = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """Names that one statement assigns are reached together: `PING, PONG = 6, 7` is a vocabulary."""

    module: str
    name: str  # `f`, `C`, `C.m`; "" for what a module does when it is imported

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


class _Module:
    """One source file: its definitions with their trees, and what its imports bind."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.trees: dict[str, list[ast.AST]] = {"": []}
        self.methods: dict[str, list[str]] = {}
        self.bases: dict[str, list[str]] = {}
        self.imported: dict[str, tuple[str, str]] = {}  # name here → module, and name there
        self.imported |= _imports(tree)
        for statement in _flat(tree.body):
            self._add(statement)

    def _add(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ClassDef):
            methods = [item for item in statement.body if isinstance(item, _DEFINED_BY_DEF)]
            rest = [item for item in statement.body if item not in methods]
            self.trees[statement.name] = [*statement.bases, *statement.decorator_list, *statement.keywords, *rest]
            self.methods[statement.name] = [method.name for method in methods]
            self.bases[statement.name] = [ast.unparse(base).partition("[")[0] for base in statement.bases]
            for method in methods:
                self.trees.setdefault(f"{statement.name}.{method.name}", []).append(method)
        elif isinstance(statement, _DEFINED_BY_DEF):
            self.trees.setdefault(statement.name, []).append(statement)
        elif names := [name for name in _assigned(statement) if name != "TYPE_CHECKING" and not name.startswith("__")]:
            for name in names:
                self.trees.setdefault(name, []).append(statement)
        else:
            self.trees[""].append(statement)


def _imports(tree: ast.AST) -> dict[str, tuple[str, str]]:
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _flat(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those within `if` and `try` among them."""
    for statement in statements:
        if isinstance(statement, ast.If | ast.Try):
            for field in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _flat(handler.body)
        else:
            yield statement


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


class Reach:
    """Everything that can be reached from `starts`, in the packages of `root`."""

    def __init__(self, root: Path, starts: list[Definition]) -> None:
        self._modules = {module.name: module for package in PACKAGES for module in _read(root, package)}
        self._reached: set[Definition] = set()
        self._attributes: set[str] = set()
        self._waiting: dict[str, list[Definition]] = {}  # methods of reached classes, until somebody names them
        self._open = list(starts)
        while self._open:
            self._follow(self._open.pop())

    def definitions(self) -> set[Definition]:
        return {Definition(module.name, name) for module in self._modules.values() for name in module.trees if name}

    def missed(self) -> set[Definition]:
        return self.definitions() - self._reached

    def _follow(self, definition: Definition) -> None:
        module = self._modules.get(definition.module)
        if module is None or definition in self._reached:
            return
        if definition.name not in module.trees:
            source, name = module.imported.get(definition.name, ("", ""))  # handed on by a module that imports it
            self._open.append(Definition(source, name))
            return
        self._reached.add(definition)
        self._open.append(Definition(module.name, ""))
        for tree in module.trees[definition.name]:
            own = _imports(tree) if isinstance(tree, _DEFINED_BY_DEF) else {}
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and f"{definition.name}.{node.id}" in module.trees:
                    self._attribute(node.id)  # a table of methods in the body of their class
                else:
                    self._follow_node(module, own, node)
        self._offer_methods(module, definition.name)

    def _follow_node(self, module: _Module, own: dict[str, tuple[str, str]], node: ast.AST) -> None:
        """`own`: what the function itself imports, which hides what its module calls so."""
        if isinstance(node, ast.Name):
            if node.id not in own and node.id in module.trees:
                self._open.append(Definition(module.name, node.id))
            elif source := own.get(node.id) or module.imported.get(node.id):
                self._open += [Definition(*source), Definition(".".join(source), "")]
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                source = own.get(node.value.id) or module.imported.get(node.value.id, ())
                self._open.append(Definition(".".join(source), node.attr))
            self._attribute(node.attr)
        elif isinstance(node, ast.ImportFrom):
            self._open.append(Definition(node.module or "", ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            self._attribute(node.value)  # getattr(thing, "name")

    def _attribute(self, name: str) -> None:
        if name not in self._attributes:
            self._attributes.add(name)
            self._open += self._waiting.pop(name, [])

    def _offer_methods(self, module: _Module, owner: str) -> None:
        is_called_back = self._is_from_outside(module, owner)
        for name in module.methods.get(owner, ()):
            at_once = name in self._attributes or name.startswith("__") or is_called_back
            waiting = self._open if at_once else self._waiting.setdefault(name, [])
            waiting.append(Definition(module.name, f"{owner}.{name}"))

    def _is_from_outside(self, module: _Module, owner: str) -> bool:
        """Whether a class derives from one of a library, which may call any of its methods."""
        for base in module.bases.get(owner, ()):
            source, name = module.imported.get(base, (module.name if base in module.trees else "", base))
            if source in self._modules:
                if self._is_from_outside(self._modules[source], name):
                    return True
            elif not hasattr(builtins, base) and source not in _ASIDE:
                return True
        return False


def _read(root: Path, package: str) -> Iterator[_Module]:
    for path in sorted((root / package).rglob("*.py")):
        if not path.name.endswith("_pb2.py"):
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            yield _Module(name, ast.parse(path.read_text()))
