"""`tortie patch` and `label`: change some of a resource and keep the rest.

Invariant: what is written is what was read and changed; what somebody else has written meanwhile is read again first.
"""

from __future__ import annotations

import re

from adapters.records.manifests import BadManifest, from_manifest, revision_of, to_manifest
from domain.json_patch import BadPatch, merged, patched
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command, Stopped
from entrypoints.tortie.manifest_files import BadFile, documents_of, read_documents
from entrypoints.tortie.resources import (
    DEFAULT_NAMESPACE,
    add_dry_run,
    add_namespace,
    add_words,
    key_of,
    wanted,
    words_objection,
)
from ports.errors import Conflict, Missing
from usecases.store_resource import MAX_TRIES, apply_resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from domain.json_text import Json
    from entrypoints.tortie.session import Session
    from ports.datastore import Key

    Change: TypeAlias = Callable[[dict[str, Json]], Json]

_JSON, _MERGE, _STRATEGIC = "json", "merge", "strategic"
_LABEL = re.compile(r"([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)(/[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?")
_LONGEST = 63


def _change(session: Session, options: Namespace, key: Key[Any], change: Change) -> None:
    """Missing, Conflict, or BadManifest if what comes out cannot be stored."""
    store = session.writable(dry=options.dry_run)
    for _ in range(MAX_TRIES):
        stored = store.get(key, session.deadline)
        if stored is None:
            raise Missing(key)
        manifest = change(to_manifest(stored))
        changed, record = from_manifest(manifest)
        if changed != key:
            raise BadManifest(f"{key}: a patch cannot change kind, name or namespace; it would be {changed}")
        _require_revision(key, manifest, stored.revision)
        try:
            apply_resource(store, key, record, stored.revision, session.deadline)
        except Conflict:
            continue  # somebody wrote in between: read again, and change that
        return
    raise Conflict(key)


def _require_revision(key: Key[Any], manifest: Json, revision: str) -> None:
    """Who names a resourceVersion wants that one changed, and no later one."""
    wanted = revision_of(manifest) if isinstance(manifest, dict) else None
    if wanted not in (None, revision):
        raise Stopped(f"{key} is not at resourceVersion {wanted}; get it again, or leave resourceVersion out")


def _one(options: Namespace) -> Key[Any]:
    ((kind, name),) = wanted(options.words).named
    return key_of(kind, name, options.namespace or DEFAULT_NAMESPACE)


# --- patch ------------------------------------------------------------------------------------------------------------


def _add_patch_arguments(parser: ArgumentParser) -> None:
    add_words(parser)
    patch = parser.add_mutually_exclusive_group(required=True)
    patch.add_argument("-p", "--patch", metavar="PATCH", help="JSON or YAML")
    patch.add_argument("--patch-file", metavar="FILE", help="a file with the patch; - is standard input")
    parser.add_argument(
        "-t",
        "--type",
        choices=(_STRATEGIC, _MERGE, _JSON),
        default=_STRATEGIC,
        help="strategic and merge: members replace, null removes; json: a list of operations (default: strategic)",
    )
    add_namespace(parser)
    add_dry_run(parser)


def _patch_objection(options: Namespace) -> str:
    if fault := words_objection(options):
        return fault
    return "" if len(wanted(options.words).named) == 1 else "give one KIND NAME, or KIND/NAME"


def _patch(options: Namespace, session: Session) -> Answer:
    key, patch = _one(options), _patch_of(options)

    def change(manifest: dict[str, Json]) -> Json:
        try:
            return patched(manifest, patch) if options.type == _JSON else merged(manifest, patch)
        except BadPatch as error:
            raise BadManifest(f"{key}: {error}") from error

    _change(session, options, key, change)
    return Answer(_done(options, "patched", key))


def _patch_of(options: Namespace) -> Json:
    found = read_documents(options.patch_file) if options.patch_file else documents_of(options.patch, "the patch")
    if len(found) != 1 or not isinstance(found[0], (dict, list)):
        raise BadFile(
            'the patch must be one object or, with --type json, a list, such as \'{"spec": {"disabled": true}}\''
        )
    patch: Json = found[0]
    if isinstance(patch, list) is not (options.type == _JSON):
        raise BadFile("a list is a patch of --type json, an object one of the other types")
    return patch


def _done(options: Namespace, what: str, key: Key[Any]) -> str:
    if options.dry_run:
        return people([f"Would have {what} {key}; nothing is written"])
    return people([f"Successfully {what} {key}"])


# --- label ------------------------------------------------------------------------------------------------------------


def _add_label_arguments(parser: ArgumentParser) -> None:
    add_words(parser)
    parser.add_argument("--overwrite", action="store_true", help="a label that is there with another value is changed")
    parser.add_argument("--remove", action="store_true", help="the labels named are removed; KEY- does the same")
    add_namespace(parser)
    add_dry_run(parser)


def _split(options: Namespace) -> tuple[list[str], list[str]]:
    """What names the resource, and the labels."""
    first = 1 if options.words and "/" in options.words[0].partition("=")[0] else 2
    return options.words[:first], options.words[first:]


def _label_objection(options: Namespace) -> str:
    named, labels = _split(options)
    options.words = named
    options.labels = labels
    if fault := _patch_objection(options):
        return fault
    if not labels:
        return "give at least one label: KEY=VALUE, or KEY --remove"
    for word in labels:
        if fault := _label_fault(word, remove=options.remove):
            return fault
    return ""


def _label_fault(word: str, *, remove: bool) -> str:
    name, equals, value = word.partition("=")
    removed = remove or (not equals and name.endswith("-"))
    name = name.removesuffix("-") if removed else name
    if not equals and not removed:
        return f"{word!r} is no label; write {word}=VALUE, or {word} --remove"
    if equals and remove:
        return f"{word!r}: with --remove name the label only"
    if not _LABEL.fullmatch(name) or len(name.rpartition("/")[2]) > _LONGEST:
        return f"{name!r} cannot be a label's name"
    if not _LABEL_VALUE.fullmatch(value) or len(value) > _LONGEST:
        return f"{value!r} cannot be a label's value"
    return ""


def _label(options: Namespace, session: Session) -> Answer:
    key = _one(options)

    def change(manifest: dict[str, Json]) -> Json:
        metadata: Any = manifest["metadata"]
        labels = dict(metadata.get("labels") or {})
        for word in options.labels:
            _set(labels, word, options, key)
        return {**manifest, "metadata": {**metadata, "labels": labels}}

    _change(session, options, key, change)
    return Answer(_done(options, "labelled", key))


def _set(labels: dict[str, str], word: str, options: Namespace, key: Key[Any]) -> None:
    name, equals, value = word.partition("=")
    if not equals:
        if labels.pop(name.removesuffix("-"), None) is None:
            raise BadManifest(f"{key}: there is no label {name.removesuffix('-')} to remove")
    elif labels.get(name, value) != value and not options.overwrite:
        raise BadManifest(f"{key}: label {name} is {labels[name]} already; --overwrite changes it")
    else:
        labels[name] = value


PATCH = Command(
    "patch",
    "Change some members of a resource.",
    _patch,
    _add_patch_arguments,
    _patch_objection,
    examples="""\
tortie patch ippool old -p '{"spec": {"disabled": true}}'
tortie patch node/n1 --type json -p '[{"op": "remove", "path": "/spec/bgp"}]'""",
)
LABEL = Command(
    "label",
    "Set or remove labels of a resource.",
    _label,
    _add_label_arguments,
    _label_objection,
    examples="""\
tortie label node n1 rack=r7 zone=a
tortie label node n1 rack=r8 --overwrite
tortie label node n1 rack --remove""",
)
