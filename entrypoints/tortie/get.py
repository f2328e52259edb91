"""`tortie get`: one resource as an object, several or all of a kind as a list or table.

Invariant: nothing is changed, and an object comes out as `apply` takes it.
"""

from __future__ import annotations

from adapters.records.kinds import kind_of
from adapters.records.manifests import exported, name_of, to_list, to_manifest
from domain.ipam.address import Cidr
from entrypoints.tortie.answer import Answer, left_out
from entrypoints.tortie.command import Command
from entrypoints.tortie.label_selector import LabelSelector, label_selector
from entrypoints.tortie.output import WIDE, Row, Sheet, add_output, grid, shown
from entrypoints.tortie.resources import (
    DEFAULT_NAMESPACE,
    add_file,
    add_namespace,
    add_words,
    check_word,
    checked_manifests,
    key_of,
    wanted,
    words_objection,
)
from entrypoints.tortie.tables import cells, headings
from ports.errors import Missing
from ports.record_title import record_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from adapters.records.kinds import Kind
    from domain.json_text import Json
    from entrypoints.tortie.output import Form
    from entrypoints.tortie.session import Session
    from ports.datastore import Key, Stored

_EXAMPLES = """\
tortie get ippools -o wide
tortie get ippool default-ipv4-ippool -o yaml > pool.yaml
tortie get pools,nodes                            several kinds, one table after the other
tortie get workloadendpoints -A -l app=web        of every namespace, by label
tortie get nodes -o custom-columns=NAME,ADDRESS:.spec.bgp.ipv4Address
tortie get blocks -o json                         IPAM's own records: blocks, handles, affinities
tortie get -f pool.yaml                           what is stored under the names in a file"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, inner=True)
    add_file(parser, required=False)
    add_output(parser)
    add_namespace(parser)
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    parser.add_argument(
        "-l", "--selector", metavar="SELECTOR", type=label_selector, help="by labels: app=web,tier!=db,!spare"
    )
    parser.add_argument("--export", action="store_true", help="without what belongs to one cluster, such as uid")


def _objection(options: Namespace) -> str:
    if bool(options.words) == bool(options.filename):
        return "give a KIND, such as ippools or nodes (`tortie help get` has all), or -f FILE"
    if fault := words_objection(options, inner=True):
        return fault
    asked = wanted(options.words, inner=True)
    if options.selector and (asked.named or options.filename):
        return "--selector chooses among all of a kind; leave out the names, or the selector"
    if options.selector and any(kind.inner for kind in asked.kinds):
        return "IPAM's own records have no labels to select by"
    if options.all_namespaces and asked.named:
        return "a name needs one namespace: use -n NAMESPACE instead of --all-namespaces"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 when a list lacks records that are there and cannot be read."""
    asked = wanted(options.words, inner=True)
    notes: list[str] = []
    if options.filename:
        stored = [_existing(key, session) for _, key, _ in checked_manifests(options)]
    elif asked.named:
        namespace = options.namespace or DEFAULT_NAMESPACE
        stored = [_named(kind, name, namespace, session) for kind, name in asked.named]
    else:
        stored = [one for kind in asked.kinds for one in _all(kind, options, session, notes)]
    alone = len(stored) == 1 and bool(asked.named or options.filename)
    kinds = asked.kinds or tuple(dict.fromkeys([kind_of(one.key) for one in stored]))
    return Answer(_shown(options, kinds, stored, alone=alone), 1 if notes else 0, tuple(notes))


def _existing(key: Key[Any], session: Session) -> Stored[Any]:
    stored = session.datastore.get(key, session.deadline)
    if stored is None:
        raise Missing(key)
    return stored


def _named(kind: Kind, name: str, namespace: str, session: Session) -> Stored[Any]:
    if not kind.inner:
        return _existing(key_of(kind, name, namespace), session)
    for listing in kind.listings():
        for stored in session.datastore.list(listing, session.deadline):
            if name.lower() == name_of(stored.key) or _is_cidr(name, stored.key):
                return stored
    raise Missing(f"{kind.name}({name})")


def _is_cidr(name: str, key: Any) -> bool:
    """Whether a block is named by its range."""
    try:
        return "/" in name and Cidr.parse(name) == getattr(key, "cidr", None)
    except ValueError:
        return False


def _all(kind: Kind, options: Namespace, session: Session, notes: list[str]) -> list[Stored[Any]]:
    namespace = "" if options.all_namespaces else options.namespace or DEFAULT_NAMESPACE
    check_word("namespace", namespace)
    selector: LabelSelector = options.selector or LabelSelector()
    found: list[Stored[Any]] = []
    for listing in kind.listings(namespace):
        session.doing(f"reading all of kind {kind.name}")
        stored = session.datastore.list(listing, session.deadline)
        found += [one for one in stored if kind.inner or selector.fits(one.record.metadata.labels)]
        bad_texts = session.datastore.unreadable(session.deadline, listing)
        notes += left_out([(record_title(bad.key), bad.fault) for bad in bad_texts])
    return found


def _shown(options: Namespace, kinds: tuple[Kind, ...], stored: list[Stored[Any]], *, alone: bool) -> str:
    form: Form = options.output
    if not form.is_document and len(kinds) > 1 and form.name in ("", WIDE):
        parts = [[one for one in stored if kind_of(one.key) is kind] for kind in kinds]
        return "\n".join([shown(form, _sheet(options, (kind,), part)) for kind, part in zip(kinds, parts)])
    return shown(form, _sheet(options, kinds, stored, alone=alone))


def _sheet(options: Namespace, kinds: tuple[Kind, ...], stored: list[Stored[Any]], *, alone: bool = False) -> Sheet:
    def manifest(one: Stored[Any]) -> dict[str, Json]:
        return exported(to_manifest(one)) if options.export else to_manifest(one)

    listed = to_list(kinds, stored)
    listed["items"] = [manifest(one) for one in stored]
    namespaces = any(kind.namespaced for kind in kinds) and options.all_namespaces
    wide = tuple(dict.fromkeys([name for kind in kinds for name in headings(kind, wide=True, namespaces=namespaces)]))
    rows = tuple([_row(one, manifest) for one in stored])

    def text() -> str:
        names = headings(kinds[0], wide=False, namespaces=namespaces)
        return grid(names, [[row.cells[name] for name in names] for row in rows])

    return Sheet(manifest(stored[0]) if alone else listed, wide, rows, text)


def _row(one: Stored[Any], manifest: Any) -> Row:
    kind = kind_of(one.key)
    return Row(f"{kind.name.lower()}/{name_of(one.key)}", cells(kind, one), manifest(one))


COMMAND = Command("get", "Show resources.", _run, _add_arguments, _objection, examples=_EXAMPLES)
