"""Manifests as an operator writes them: YAML or JSON, several in one file, or a list of them in one document.

YAML here has the types of JSON and no more: a creation time, a MAC address or `on` is the text that it looks like.
(The usual rules would read them as a date, a number in base sixty and a boolean.) A name that a mapping gives twice is
refused, as one of the two would be lost; so are aliases that write a small file out into a huge one. Anchors and merge
keys (`<<`) work.

Invariant: a file is read whole before anything is done with its first document.
"""

from __future__ import annotations

import errno
import os
import re
import sys

import yaml

from adapters.bounded_yaml import BoundedLoader, RefusedYaml
from adapters.records.manifests import expand
from adapters.regular_file import read_bounded
from domain.json_text import Fraction, dumps, whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from domain.json_text import Json

_TYPES = {
    "tag:yaml.org,2002:merge": (r"^<<$", ["<"]),
    "tag:yaml.org,2002:null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "tag:yaml.org,2002:bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "tag:yaml.org,2002:int": (r"^[-+]?[0-9]+$", list("-+0123456789")),
    "tag:yaml.org,2002:float": (
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
}


LARGEST = 16 << 20  # bytes: some ten thousand endpoints


class BadFile(Exception):
    """A file that cannot be used. The text names it, the place, and what was expected."""


class _ManifestLoader(BoundedLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}
    yaml_constructors = {  # no date, set or octets, not even for an explicit tag; None: for any other
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for name, _ in node.value:
            if not isinstance(name, yaml.ScalarNode):
                continue  # refused later: it is no name
            if name.value in seen:
                raise RefusedYaml(f"{name.value!r} is given twice in one mapping", name.start_mark)
            seen.add(name.value)
        return node

    def construct_scalar(self, node: Any) -> Any:
        """JSON escapes a character beyond U+FFFF as a pair, which YAML knows nothing of."""
        text = super().construct_scalar(node)
        if text.isascii():
            return text
        return whole_characters(text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))


class _Dumper(yaml.SafeDumper):
    """Quotes each text that our reader or the usual one would take for something else; never writes anchors."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


for _tag, (_pattern, _firsts) in _TYPES.items():
    _ManifestLoader.add_implicit_resolver(_tag, re.compile(_pattern), _firsts)
    _Dumper.add_implicit_resolver(_tag, re.compile(_pattern), _firsts)


def _as_spelt(dumper: _Dumper, number: Fraction) -> Any:
    """YAML's scalars are JSON's, so a number comes out as it stands in the record."""
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(number))


_Dumper.add_representer(Fraction, _as_spelt)


def _decimal(loader: _ManifestLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _as_text(loader: _ManifestLoader, node: yaml.ScalarNode) -> str:
    """`<<` where it is a value."""
    return str(loader.construct_scalar(node))


_ManifestLoader.add_constructor("tag:yaml.org,2002:int", _decimal)
_ManifestLoader.add_constructor("tag:yaml.org,2002:merge", _as_text)


def read_manifests(path: str, *, empty: bool = False) -> list[Any]:
    """The manifests in a file (`-`: standard input), those of lists one by one. BadFile if there is none, unless that
    may be (`empty`).
    """
    manifests = expand(read_documents(path))
    if not manifests and not empty:
        raise BadFile(f"{shown_path(path)}: no resource in it; write at least apiVersion, kind, metadata and spec")
    return manifests


def read_documents(path: str) -> list[Any]:
    """All that a file (`-`: standard input) says in YAML or JSON. BadFile if it says nothing of the kind."""
    return documents_of(text_of(path), shown_path(path))


def documents_of(text: str, where: str) -> list[Any]:
    """All that a text says in YAML or JSON. BadFile, naming the place, if it is neither."""
    try:
        return list(yaml.load_all(text, _ManifestLoader))
    except RefusedYaml as error:
        raise BadFile(f"{where}: {_fault(error)}") from None
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, ArithmeticError) as error:
        raise BadFile(f"{where}: neither YAML nor JSON: {_fault(error)}") from None


def _fault(error: Exception) -> str:
    """Without the line itself: it may hold a password."""
    mark = getattr(error, "problem_mark", None)
    usual = "too deeply nested" if isinstance(error, RecursionError) else "a value cannot be read"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or usual
    return f"{problem} in line {mark.line + 1}" if mark else str(problem)


def shown_path(path: str) -> str:
    return "standard input" if path == "-" else path


def text_of(path: str, limit: int = LARGEST) -> str:
    """A file, or what comes out of a pipe, as text (`-`: standard input).

    BadFile, naming it, if it cannot be read, is larger than `limit` bytes, or is not in UTF-8.
    """
    try:
        if path == "-":
            return _of_stdin(limit).decode()
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            return read_bounded(descriptor, limit).decode()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise BadFile(f"{shown_path(path)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadFile(f"{shown_path(path)}: not UTF-8 text: {error.reason} at byte {error.start}") from None


def _of_stdin(limit: int) -> bytes:
    source: TextIO | None = sys.stdin  # None where the parent left the descriptor closed
    octets = source.buffer.read(limit + 1) if source is not None else b""
    if len(octets) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit >> 20} MiB")
    return octets


def write_text(path: str, text: str, mode: int = 0o600) -> None:
    """The whole of a file, of that mode whatever the umask; whoever reads it meanwhile sees the old one.

    BadFile if it cannot be written.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a terminal is written to, not replaced
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        _replace(path, text.encode(), mode)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from None


def _replace(path: str, octets: bytes, mode: int) -> None:
    beside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(octets)
            file.flush()
            os.fsync(descriptor)
        os.rename(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def shown_as(document: Json, form: str) -> str:
    """A document as text in the form `json` or `yaml`."""
    if form == "json":
        return dumps(document, indent=2) + "\n"
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=4096)
    return text
