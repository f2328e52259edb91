"""Turns the product's modules, and what they need of the standard library, into C for the executable.

Which modules: what can be reached by imports from `entrypoints.main`, function bodies included, but not what only type
checkers see. A module of ours that needs a library from elsewhere as soon as it is loaded is left out: the executable
does without them.

How: as marshalled byte code in read-only data, which all processes share. Code objects laid out as static data, by
CPython's `deepfreeze`, load no faster, since each page that they are used on has to be copied, and take more memory.

It runs in the very interpreter that the executable is made of, since byte code belongs to one version.
Invariant: the same sources give the same C.
"""

from __future__ import annotations

import ast
import marshal
import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ENTRY = "entrypoints.main"
OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")
PURE = ("yaml",)  # packages from elsewhere that are Python alone, if need be; of others nothing is frozen
# What nobody names in an import: the interpreter's own start, under its own names for two of them, and codecs.
BOOTSTRAP = {"_frozen_importlib": "importlib._bootstrap", "_frozen_importlib_external": "importlib._bootstrap_external"}
# The one for modules in files has nothing to find here, and is asked for nothing but to install itself.
STUBS = {"importlib._bootstrap_external": "def _install(bootstrap): pass\n"}
BUILT_IN = ("atexit", "gc")  # what the executable itself uses
AT_START = ("encodings.utf_8", "encodings.latin_1", "encodings.ascii", "encodings.idna", "io", "abc", "codecs", "os")
# Named by the standard library in branches that none of our programs takes: tools for developers, other systems.
_NEVER = (
    "_aix_support _bootsubprocess _osx_support _pyio asyncio bdb ctypes dis distutils doctest email encodings.mbcs"
    " gzip http importlib importlib.abc importlib.metadata importlib.resources importlib.util inspect ipaddress"
    " logging multiprocessing nt ntpath pdb pickle pkgutil platform pprint pydoc random runpy setuptools site"
    " socketserver subprocess sysconfig tarfile tempfile test tkinter traceback tracemalloc unittest urllib"
    " xml zipfile zipimport"
)
NEVER = frozenset(_NEVER.split())

# What only Windows loads, with all that is below.
OF_WINDOWS = (
    *("adapters.windows", "adapters.wire.selecting"),
    *("entrypoints.wiring.windows", "entrypoints.wiring.windows_installer"),
)

# Who loads most modules, the most often started first; and what of theirs only some need.
PLUGINS = ("entrypoints.calico", "entrypoints.calico_ipam"), ("entrypoints.bridge",)
SELDOM = ("adapters.grpc", "adapters.kubernetes", "usecases.pods")
READERS_OF_ANNOTATIONS = frozenset({"dataclasses", "typing"})
REPLACED = frozenset({"_ctypes", "_sha2"})  # by our own built-in module; by _sha256 and _sha512 before Python 3.12


class Graph:
    """`files` is each frozen module's source, `own` the names of those that are ours."""

    def __init__(self, root: Path, stdlib: Path, packages: Path) -> None:
        self._places = ((root, OWN), (packages, PURE), (stdlib, None))
        self.files: dict[str, Path] = {}
        self.own: set[str] = set()
        self._missing: set[tuple[str, str]] = set()
        self._trees: dict[str, ast.Module] = {}

    def follow(self, name: str, asked_by: str) -> bool:
        """Whether there is such a module; it, its packages and what it imports are taken in."""
        if name in self.files or name in sys.builtin_module_names:
            return True
        if f"{name}.".startswith(tuple(f"{one}." for one in OF_WINDOWS)):
            return False
        parent = name.rpartition(".")[0]
        if parent and not self.follow(parent, asked_by):
            return False
        found = self._find(name)
        if found is None:
            if not parent:  # else it may be a name that the module defines
                self._missing.add((name, asked_by))
            return False
        path, own = found
        tree = ast.parse(source(name, path))
        if own and not self._loadable(tree, name):
            return False
        self.files[name] = path
        self._trees[name] = tree
        self._take(tree, name, own=own)
        return True

    def _take(self, tree: ast.Module, name: str, *, own: bool) -> None:
        if own:
            self.own.add(name)
        for wanted in sorted(imports(tree, name, is_package=self.files[name].name == "__init__.py")):
            if own or NEVER.isdisjoint((wanted, wanted.partition(".")[0])):
                self.follow(wanted, name)

    def _find(self, name: str) -> tuple[Path, bool] | None:
        inside = name.replace(".", "/")
        for place, packages in self._places:
            if packages is None or name.partition(".")[0] in packages:
                for path in (place / f"{inside}.py", place / inside / "__init__.py"):
                    if path.is_file():
                        return path, packages is OWN
        return None

    def _loadable(self, tree: ast.Module, name: str) -> bool:
        """Whether all that a module of ours imports as it is loaded is to be had."""
        for node in run_at_once(tree.body):
            for wanted in imports_of(node, name, is_package=False, certain=True):
                if not self.exists(wanted):
                    self._missing.add((wanted, name))
                    return False
        return True

    def ahead(self) -> list[str]:
        """Our modules that a plugin's verb may load, and can load here: nothing that they need at once is a library.

        Those that most processes use come first, so that what these use is close together. What only the operator's
        commands use is not among them: each call would have to step over it.
        """
        calico, bridge = PLUGINS
        always = (ENTRY, *calico)
        order = (*always, *self._reached(calico, SELDOM), *self._reached(calico), *self._reached(bridge))
        return [name for name in dict.fromkeys(order) if self._loads(name, set())]

    def _reached(self, starts: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
        """Our modules that these import at some time, directly or not: what is fewer imports away comes first."""
        found: dict[str, None] = {}
        waiting = [*starts]
        for name in waiting:  # it grows
            if (
                name in self.own
                and name not in found
                and not f"{name}.".startswith(tuple(f"{one}." for one in without))
            ):
                found[name] = None
                is_package = self.files[name].name == "__init__.py"
                waiting.extend(imports(self._trees[name], name, is_package=is_package))
        return [*found]

    def _loads(self, name: str, asked: set[str]) -> bool:
        if name.partition(".")[0] not in OWN or name in asked:
            return True
        if name not in self.own:
            return False
        asked.add(name)
        wanted = (
            one
            for node in run_at_once(self._trees[name].body)
            for one in imports_of(node, name, is_package=False, certain=True)
        )
        return all(self._loads(one, asked) for one in wanted)

    def exists(self, name: str) -> bool:
        return name in sys.builtin_module_names or self._find(name) is not None

    def lacking(self) -> list[str]:
        """Modules of the standard library that ours import, and that are not to be had."""
        return sorted(
            f"{name} (for {who})"
            for name, who in self._missing
            if name in sys.stdlib_module_names and name not in REPLACED and who.split(".")[0] in OWN
        )


def run_at_once(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module's that are carried out as it is loaded, whatever happens."""
    for node in statements:
        yield node
        if isinstance(node, ast.With):
            yield from run_at_once(node.body)


def seen_by_checkers_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(tree: ast.Module, name: str, *, is_package: bool) -> list[str]:
    """What a module imports anywhere in it, at some time: first what it needs at once, then as its text has it."""
    found: dict[str, None] = {}
    waiting: list[ast.AST] = [tree]
    for node in waiting:  # it grows
        found.update(dict.fromkeys(imports_of(node, name, is_package=is_package)))
        waiting.extend(child for child in ast.iter_child_nodes(node) if not seen_by_checkers_only(child))
    return [*found]


def imports_of(node: ast.AST, name: str, *, is_package: bool, certain: bool = False) -> Iterator[str]:
    """The modules that a statement names; without `certain` also what may be a module or a name in one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = name.split(".")[: None if is_package and node.level == 1 else -(node.level - is_package)]
            base = ".".join([*package, *([base] if base else [])])
        yield base
        if not certain:
            yield from (f"{base}.{alias.name}" for alias in node.names)


class Undocumented(ast.NodeTransformer):
    """Docstrings are for readers of the source."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass(lineno=node.lineno, col_offset=0, end_lineno=node.lineno)]
        return node

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _strip  # noqa: N815 - ast's names


class Unchecked(ast.NodeTransformer):
    """What our modules say to type checkers alone: annotations, but for the names of a class's, and their imports."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.orelse or ast.copy_location(ast.Pass(), node) if seen_by_checkers_only(node) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return ast.copy_location(ast.Pass(), node) if node.module == "__future__" else node

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        node.annotation = ast.copy_location(ast.Constant(None), node.annotation)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _strip  # noqa: N815 - as above


def source(name: str, path: Path) -> str:
    return STUBS.get(name) or path.read_text("utf-8")


def compiled(text: str, shown: str, *, own: bool) -> Any:
    """The code object; `shown` is what traces call the file."""
    tree = ast.parse(text)
    if "__doc__" not in text:
        tree = Undocumented().visit(tree)
    flags = 0
    if own and READERS_OF_ANNOTATIONS.isdisjoint(imports(tree, "", is_package=False)):
        tree = Unchecked().visit(tree)
        flags = annotations.compiler_flag
    return compile(ast.fix_missing_locations(tree), shown, "exec", flags, dont_inherit=True, optimize=0)


def c_source(graph: Graph) -> str:
    """All frozen modules, and the tables of them that the interpreter reads."""
    code: list[str] = []
    bootstrap: list[str] = []
    ordinary: list[str] = []
    names = {module: name for name, module in BOOTSTRAP.items()}
    for number, (name, path) in enumerate(sorted(graph.files.items())):
        shown = f"{name.replace('.', '/')}.py" if name in graph.own else f"<frozen {name}>"
        data = marshal.dumps(compiled(source(name, path), shown, own=name in graph.own))
        code.append(f"static const unsigned char m{number}[] = {{{','.join(map(str, data))}}};\n")
        package = int(path.name == "__init__.py")
        table = bootstrap if name in names else ordinary
        table.append(f'    {{"{names.get(name, name)}", m{number}, {len(data)}, {package}, NULL}},\n')
    aliases = [f'    {{"{name}", "{module}"}},\n' for name, module in sorted(BOOTSTRAP.items())]
    ahead = [f'    "{name}",\n' for name in (*BUILT_IN, *graph.ahead())]
    return HEAD + "".join(code) + TABLES % ("".join(bootstrap), "".join(ordinary), "".join(aliases), "".join(ahead))


HEAD = """\
/* Made by packaging/executable/freeze.py */
#include <Python.h>
#include <internal/pycore_import.h>
"""
TABLES = """
static const struct _frozen bootstrap[] = {
%s    {0}
};
static const struct _frozen ordinary[] = {
%s    {0}
};
static const struct _frozen none[] = {{0}};
static const struct _module_alias aliases[] = {
%s    {0}
};
const struct _frozen *_PyImport_FrozenBootstrap = bootstrap;
const struct _frozen *_PyImport_FrozenStdlib = none;
const struct _frozen *_PyImport_FrozenTest = none;
const struct _frozen *PyImport_FrozenModules = ordinary;
const struct _module_alias *_PyImport_FrozenAliases = aliases;
/* What a snapshot has loaded. */
const char *const snapshot_modules[] = {
%s    NULL
};
/* Of CPython's own frozen modules, which these take the place of. */
int _Py_Deepfreeze_Init(void) { return 0; }
void _Py_Deepfreeze_Fini(void) {}
"""


def main() -> None:
    """Arguments: folders of our sources, the standard library, installed packages; one for what is made of them."""
    root, stdlib, packages, target = (Path(word) for word in sys.argv[1:])
    graph = Graph(root, stdlib, packages)
    for name in (*BOOTSTRAP.values(), *AT_START, ENTRY):
        if not graph.follow(name, "start"):
            sys.exit(f"{name} cannot be frozen")
    if lacking := graph.lacking():
        sys.exit("The recipe of the executable's interpreter lacks what our code imports: " + ", ".join(lacking))
    (target / "frozen.c").write_text(c_source(graph), "utf-8")
    (target / "modules").write_text("".join(f"{name}\n" for name in sorted(graph.files)))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
