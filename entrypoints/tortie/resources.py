"""What `get`, `create`, `apply` and `delete` share: how a resource is named, and how several are gone through.

Invariant: no name leads to another place in the datastore than its kind's.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from adapters.records.kinds import KINDS, kind_named, kind_of
from adapters.records.manifests import BadManifest, from_manifest
from entrypoints.tortie.command import FAULTS, Stopped
from entrypoints.tortie.manifest_files import read_manifests, shown_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from adapters.records.kinds import Kind
    from ports.datastore import Key

DEFAULT_NAMESPACE = "default"
_KINDS = ", ".join([kind.plural for kind in KINDS])


def add_kind(parser: ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument("kind", metavar="KIND", type=_kind, nargs="?" if optional else None, help=_KINDS)


def _kind(word: str) -> Kind:
    kind = kind_named(word)
    if kind is None:
        raise ArgumentTypeError(f"unknown kind {word!r}; known are {_KINDS}")
    return kind


def add_file(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "-f", "--filename", metavar="FILE", default="", required=required, help="YAML or JSON; - is standard input"
    )


def add_namespace(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", default="", help="(default: default)")


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


def given_manifests(options: Namespace) -> list[Any]:
    """What the file has. An endpoint that states no namespace gets the command line's."""
    return [_in_namespace(manifest, options.namespace) for manifest in read_manifests(options.filename)]


def checked_manifests(options: Namespace) -> list[tuple[Any, Key[Any], Any]]:
    """Each manifest of the file with the key and the record that it means. BadManifest says which of them is wrong."""
    manifests = given_manifests(options)
    found: list[tuple[Any, Key[Any], Any]] = []
    for number, manifest in enumerate(manifests, 1):
        try:
            found.append((manifest, *from_manifest(manifest)))
        except BadManifest as error:
            which = f", resource {number} of {len(manifests)}" if len(manifests) > 1 else ""
            raise BadManifest(f"{shown_path(options.filename)}{which}: {error}") from error
    return found


def _in_namespace(manifest: Any, namespace: str) -> Any:
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not namespace or not isinstance(metadata, dict) or manifest.get("kind") != "WorkloadEndpoint":
        return manifest
    return {**manifest, "metadata": {"namespace": namespace, **metadata}}


def each(items: list[Any], done: str, act: Callable[[Any], Key[Any]]) -> str:
    """`Successfully applied 2 'IPPool' resource(s)`; a fault after the first says how far it came."""
    kinds: list[str] = []
    for item in items:
        try:
            kinds.append(kind_of(act(item)).name)
        except FAULTS as error:
            if not kinds:
                raise
            raise Stopped(f"{error} ({done} {len(kinds)} of {len(items)} resources before that)") from error
    alike = f" '{kinds[0]}'" if len(set(kinds)) == 1 else ""
    return f"Successfully {done} {len(kinds)}{alike} resource(s)\n"
