"""What the commands on resources share: how one is named, which files are meant, and how several are gone through.

Invariant: no name leads to another place in the datastore than its kind's.
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError

from adapters.records.kinds import INNER_KINDS, KINDS, kind_named, kind_of
from adapters.records.manifests import BadManifest, from_manifest
from domain.value import Value
from entrypoints.tortie.command import FAULTS, Stopped
from entrypoints.tortie.manifest_files import BadFile, read_manifests, shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import Any

    from adapters.records.kinds import Kind
    from entrypoints.tortie.session import Session
    from ports.datastore import Key

DEFAULT_NAMESPACE = "default"
_KINDS = ", ".join([kind.plural for kind in KINDS])
_ALL_KINDS = ", ".join([kind.plural for kind in (*KINDS, *INNER_KINDS)])
_SUFFIXES = (".json", ".yaml", ".yml")


class Wanted(Value):
    """What words of the command line mean: whole kinds, or single resources as (kind, name)."""

    kinds: tuple[Kind, ...] = ()
    named: tuple[tuple[Kind, str], ...] = ()


def add_words(parser: ArgumentParser, *, inner: bool = False) -> None:
    """`KIND [NAME…]`, `KIND,KIND`, `KIND/NAME…`."""
    known = _ALL_KINDS if inner else _KINDS
    words = parser.add_argument("words", metavar="KIND", nargs="*", help=f"{known}; KIND NAME… or KIND/NAME… for some")
    words.kinds = (*KINDS, *INNER_KINDS) if inner else KINDS  # type: ignore[attr-defined]  # what completion offers


def wanted(words: Sequence[str], *, inner: bool = False) -> Wanted:
    """ArgumentTypeError for a kind that is not known, or not to be written."""
    if not words:
        return Wanted()
    first, *names = words
    if "/" in first:
        return Wanted(named=tuple([_pair(word, inner=inner) for word in words]))
    kinds = tuple([_kind(word, inner=inner) for word in first.split(",")])
    return Wanted(kinds, tuple([(kind, name) for kind in kinds for name in names]))


def _pair(word: str, *, inner: bool) -> tuple[Kind, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        raise ArgumentTypeError(f"{word!r}: after KIND/NAME, give KIND/NAME")
    return _kind(kind, inner=inner), name


def _kind(word: str, *, inner: bool) -> Kind:
    kind = kind_named(word)
    if kind is None:
        known = _ALL_KINDS if inner else _KINDS
        raise ArgumentTypeError(f"unknown kind {word!r}; known are {known}")
    if kind.inner and not inner:
        raise ArgumentTypeError(f"{kind.plural} are IPAM's own: `tortie ipam` repairs and releases, `tortie get` shows")
    return kind


def words_objection(options: Namespace, *, inner: bool = False) -> str:
    """What is wrong with the words alone, "" if nothing is."""
    try:
        wanted(options.words, inner=inner)
    except ArgumentTypeError as error:
        return str(error)
    return ""


def add_file(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        action="append",
        default=[],
        required=required,
        help="YAML or JSON; - is standard input; of a folder every .json, .yaml and .yml; repeatable",
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="with -f FOLDER, also of the folders in it")
    parser.add_argument("--skip-empty", action="store_true", help="a file or folder without resources is no error")


def add_namespace(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", default="", help="(default: default)")


def add_dry_run(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="check everything and write nothing")


def key_of(kind: Kind, name: str, namespace: str) -> Key[Any]:
    """BadManifest for what would name another place in the datastore, or none."""
    if not name:
        raise BadManifest(f"{kind.name}: a name must not be empty")
    check_word(f"{kind.name} name", name)
    check_word("namespace", namespace)
    return kind.key(name, namespace)


def check_word(what: str, word: str) -> None:
    if "/" in word or not word.isprintable():
        raise BadManifest(f"{what} {word!r}: `/` and control characters cannot be part of it")


def files(options: Namespace) -> list[str]:
    """Those that -f means, in the order of their names within each folder. BadFile for a folder without any."""
    found: list[str] = []
    for path in options.filename:
        inside = _files_below(path, deep=options.recursive) if path != "-" and os.path.isdir(path) else [path]
        if not inside and not options.skip_empty:
            raise BadFile(f"{path}: no {', '.join(_SUFFIXES)} in this folder")
        found += inside
    return found


def _files_below(folder: str, *, deep: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from None
    found: list[str] = []
    for entry in inside:
        if deep and entry.is_dir(follow_symlinks=False):
            found += _files_below(entry.path, deep=True)
        elif entry.name.endswith(_SUFFIXES) and not entry.is_dir():
            found.append(entry.path)
    return found


def given_manifests(options: Namespace) -> list[tuple[str, Any]]:
    """What the files have, each with where it stands. An endpoint without a namespace gets the command line's."""
    given: list[tuple[str, Any]] = []
    for path in files(options):
        manifests = read_manifests(path, empty=options.skip_empty)
        for number, manifest in enumerate(manifests, 1):
            which = f", resource {number} of {len(manifests)}" if len(manifests) > 1 else ""
            given.append((f"{shown_path(path)}{which}", _in_namespace(manifest, options.namespace)))
    return given


def checked_manifests(options: Namespace) -> list[tuple[Any, Key[Any], Any]]:
    """Each manifest of the files with the key and the record that it means. BadManifest says which of them is wrong."""
    found: list[tuple[Any, Key[Any], Any]] = []
    for where, manifest in given_manifests(options):
        try:
            found.append((manifest, *from_manifest(manifest)))
        except BadManifest as error:
            raise BadManifest(f"{where}: {error}") from error
    return found


def _in_namespace(manifest: Any, namespace: str) -> Any:
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not namespace or not isinstance(metadata, dict) or manifest.get("kind") != "WorkloadEndpoint":
        return manifest
    return {**manifest, "metadata": {"namespace": namespace, **metadata}}


def each(items: list[Any], done: str, act: Callable[[Any], Key[Any]], session: Session, *, dry: bool = False) -> str:
    """`Successfully applied 2 'IPPool' resource(s)`; a fault after the first says how far it came."""
    kinds: list[str] = []
    for item in items:
        session.doing(f"{done} {len(kinds)} of {len(items)} resources")
        try:
            kinds.append(kind_of(act(item)).name)
        except FAULTS as error:
            if not kinds or dry:
                raise
            raise Stopped(f"{error} ({done} {len(kinds)} of {len(items)} resources before that)") from error
    alike = f" '{kinds[0]}'" if len(set(kinds)) == 1 else ""
    if dry:
        return f"Would have {done} {len(kinds)}{alike} resource(s); nothing is written\n"
    return f"Successfully {done} {len(kinds)}{alike} resource(s)\n"
