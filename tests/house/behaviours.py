"""`make behaviours`: the ids that tests cite (`CNI-012`, `LIB-209`, `BT-34`, `K02`), as docs/behaviours.md.

The ids come from two lists that are not in this repository: what the original's own tests verify, and what users have
reported. What an id stands for is said by the name or the docstring of the test that shows it, so the index is made
from these. `--check` only says whether the file is up to date.

Invariant: the index depends on nothing but the test files.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/behaviours.md"

FAMILIES = {
    "CNI": "Calico's tests of its network plugin",
    "IPAM": "its tests of calico-ipam",
    "K8S": "its tests with pods of Kubernetes",
    "KV": "its tests with virtual machines of KubeVirt",
    "LIB": "its tests of the IPAM library below",
    "WAIT": "of readiness gates",
    "UTIL": "of the plugin's helpers",
    "TYPE": "of the network configuration's types",
    "DP": "of the Linux dataplane",
    "WIN": "of the policies of Windows endpoints",
    "WFV": "of the plugins on a Windows node",
    "AZ": "of Azure's IPAM",
    "DISP": "of the choice of program",
    "NAME": "of names of endpoints",
    "INST": "of the installer",
    "TOK": "of the token refresher",
    "BR": "what a bridge plugin has to do",
    "BT": "tests of the CNI project's bridge and host-local",
    "B": "reports of users: bridge and host-local",
    "C": "reports: configuration, certificates, pools",
    "D": "reports: devices, addresses and routes",
    "F": "requests: what users miss",
    "G": "where the original errs and we do not",
    "I": "reports: installing",
    "K": "reports: outages, damage, Windows hosts",
    "L": "reports: what is leaked",
    "P": "reports: speed, load and waiting",
    "R": "reports: races",
}
_LETTERS = "".join(name for name in FAMILIES if len(name) == 1)
_FAMILIES = "|".join(name for name in FAMILIES if len(name) > 1)
_CITED = re.compile(rf"\b(?:(?:{_FAMILIES})-\d{{2,3}}|[{_LETTERS}]\d\d|G\d)\b")
_NAMED = re.compile(
    rf"(?<=_)(?P<family>{_FAMILIES.lower()})(?P<numbers>(_\d{{2,3}})+)_|(?<=_)(?P<letter>[{_LETTERS.lower()}])(?P<at>\d\d)_"
)
_HEAD = """# Behaviours

What the ids in names and docstrings of tests stand for, and which test shows it. Made by `make behaviours` from the
tests themselves, so do not edit it. The ids belong to two lists that are not in this repository:

| id | from |
|---|---|
"""


class Citation(NamedTuple):
    id: str
    rank: int  # 0: the id is in the test's name, 1: elsewhere in the test, 2: elsewhere in the file
    test: str
    line: str


def cited_in(text: str) -> Iterator[str]:
    """Ids as they are written in prose, and as they are written in a test's name."""
    yield from _CITED.findall(text)
    for found in _NAMED.finditer(text):
        if found["family"]:
            yield from (f"{found['family'].upper()}-{number}" for number in found["numbers"][1:].split("_"))
        else:
            yield f"{found['letter'].upper()}{found['at']}"


def citations(path: Path, root: Path = ROOT) -> Iterator[Citation]:
    source = path.read_text()
    lines, tree, name = source.splitlines(), ast.parse(source), str(path.relative_to(root))
    of_tests: set[int] = set()
    for owner, test in _tests(tree):
        first = min([test.lineno, *(one.lineno for one in test.decorator_list)])
        rows = range(first - 1, test.end_lineno or test.lineno)
        of_tests.update(rows)
        for cited in set(cited_in("\n".join(lines[row] for row in rows))):
            yield Citation(
                cited,
                0 if cited in set(cited_in(test.name)) else 1,
                "::".join(filter(None, (name, owner, test.name))),
                _line(test),
            )
    rest = "\n".join(text for row, text in enumerate(lines) if row not in of_tests and _is_prose(text))
    about = (ast.get_docstring(tree) or "").split("\n")[0]
    for cited in {*cited_in(ast.get_docstring(tree) or ""), *cited_in(rest)}:
        yield Citation(cited, 2, name, about)


def _tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (node.name, method)
                for method in node.body
                if isinstance(method, ast.FunctionDef) and method.name.startswith("test_")
            )


def _is_prose(text: str) -> bool:
    return text.lstrip().startswith(("#", '"""'))


def _line(test: ast.FunctionDef) -> str:
    return _NAMED.sub("", test.name.removeprefix("test")).strip("_").replace("_", " ")


def index(root: Path = ROOT) -> str:
    found = [
        one
        for path in sorted((root / "tests").rglob("*.py"))
        if "house" not in path.relative_to(root).parts
        for one in citations(path, root)
    ]
    families = {name: [one for one in found if re.fullmatch(rf"{name}(-\d+|\d\d?)", one.id)] for name in FAMILIES}
    used = {
        name: sorted(cited, key=lambda one: (_number(one.id), one.rank)) for name, cited in families.items() if cited
    }
    text = _HEAD + "".join(f"| {name} | {FAMILIES[name]} |\n" for name in used)
    for name, cited in used.items():
        text += f"\n## {name}\n\n| id | behaviour | test |\n|---|---|---|\n"
        text += "".join(_rows(cited))
    return text


def _number(id: str) -> int:  # noqa: A002 - it is one
    return int(re.findall(r"\d+", id)[-1])


def _rows(cited: list[Citation]) -> Iterator[str]:
    """A row an id; ids that are shown by the same tests share one."""
    shown: dict[str, list[str]] = {}
    for id in dict.fromkeys(one.id for one in cited):  # noqa: A001 - it is one
        first, *others = [one for one in cited if one.id == id and one.rank < 2] or [
            one for one in cited if one.id == id
        ]
        more = f" and {len(others)} more" if others else ""
        shown.setdefault(f"{first.line.replace('|', chr(92) + '|')} | `{first.test}`{more}", []).append(id)
    yield from (f"| {', '.join(ids)} | {rest} |\n" for rest, ids in shown.items())


def main(arguments: list[str]) -> int:
    made = index()
    if arguments == ["--check"]:
        return int(made != INDEX.read_text())
    INDEX.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
