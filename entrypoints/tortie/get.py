"""`tortie get`: one resource as an object, several or all of a kind as a list or table.

Invariant: nothing is changed, and an object comes out as `apply` takes it.
"""

from __future__ import annotations

from adapters.records.manifests import BadManifest, to_list, to_manifest
from entrypoints.tortie.answer import Answer, left_out
from entrypoints.tortie.command import Command
from entrypoints.tortie.manifest_files import shown_as
from entrypoints.tortie.resources import DEFAULT_NAMESPACE, add_kind, add_namespace, check_word, key_of
from entrypoints.tortie.tables import table
from ports.errors import Missing
from ports.record_title import record_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from adapters.records.kinds import Kind
    from entrypoints.tortie.session import Session
    from ports.datastore import Key, Stored


def _add_arguments(parser: ArgumentParser) -> None:
    add_kind(parser)
    parser.add_argument("names", metavar="NAME", nargs="*", default=[], help="show these only")
    parser.add_argument("-o", "--output", choices=("json", "yaml", "wide"), help="as manifests, or with more columns")
    add_namespace(parser)
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 when a list lacks records that are there and cannot be read."""
    kind: Kind = options.kind
    namespace = "" if options.all_namespaces else options.namespace or DEFAULT_NAMESPACE
    if options.all_namespaces and options.names:
        raise BadManifest("a name needs one namespace: use -n NAMESPACE instead of --all-namespaces")
    notes: tuple[str, ...] = ()
    if options.names:
        stored = [_existing(key_of(kind, name, namespace), session) for name in options.names]
    else:
        check_word("namespace", namespace)
        stored = list(session.datastore.list(kind.listing(namespace), session.deadline))
        bad_texts = session.datastore.unreadable(session.deadline, kind.listing(namespace))
        notes = left_out([(record_title(bad.key), bad.fault) for bad in bad_texts])
    return Answer(_shown(options, kind, stored), 1 if notes else 0, notes)


def _existing(key: Key[Any], session: Session) -> Stored[Any]:
    stored = session.datastore.get(key, session.deadline)
    if stored is None:
        raise Missing(key)
    return stored


def _shown(options: Namespace, kind: Kind, stored: list[Stored[Any]]) -> str:
    if options.output in ("json", "yaml"):
        alone = len(options.names) == 1
        return shown_as(to_manifest(stored[0]) if alone else to_list(kind, stored), options.output)
    records = [resource.record for resource in stored]
    namespaces = kind.namespaced and options.all_namespaces
    return table(kind.name, records, wide=options.output == "wide", namespaces=namespaces)


COMMAND = Command("get", "Show resources.", _run, _add_arguments)
