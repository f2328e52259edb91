"""`tortie delete`: delete resources by name, or those that a file names, whatever else it says about them.

Invariant: each name is answered for, whatever became of the ones before.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command
from entrypoints.tortie.resources import (
    DEFAULT_NAMESPACE,
    add_dry_run,
    add_file,
    add_namespace,
    add_words,
    check_word,
    checked_manifests,
    each,
    key_of,
    wanted,
    words_objection,
)
from ports.datastore import Blocks, IPPoolKey, IPPools
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from domain.ipam.block import Block
    from entrypoints.tortie.session import Session
    from ports.datastore import Key


def _add_arguments(parser: ArgumentParser) -> None:
    add_words(parser)
    add_file(parser, required=False)
    add_namespace(parser)
    parser.add_argument(
        "--all", action="store_true", help="every resource of the kind, in the namespace if it has them"
    )
    parser.add_argument(
        "--skip-not-exists", "--ignore-not-found", action="store_true", help="what is not there counts as deleted"
    )
    add_dry_run(parser)


def _objection(options: Namespace) -> str:
    if fault := words_objection(options):
        return fault
    asked = wanted(options.words)
    ways = [bool(options.filename), bool(asked.named), bool(options.all)]
    if ways.count(True) != 1 or (options.filename and options.words) or (options.all and not asked.kinds):
        return "give either a kind with at least one name, a kind with --all, or -f FILE"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    store = session.writable(dry=options.dry_run)

    def remove(key: Key[Any]) -> Key[Any]:
        try:
            store.delete(key, None, session.deadline)
        except Missing:
            if not options.skip_not_exists:
                raise
        return key

    keys = _keys(options, session)
    notes = _pools_in_use(keys, session)
    return Answer(each(keys, "deleted", remove, session, dry=options.dry_run), notes=notes)


def _keys(options: Namespace, session: Session) -> list[Key[Any]]:
    namespace = options.namespace or DEFAULT_NAMESPACE
    if options.filename:
        return [key for _, key, _ in checked_manifests(options)]
    asked = wanted(options.words)
    if not options.all:
        return [key_of(kind, name, namespace) for kind, name in asked.named]
    check_word("namespace", namespace)
    listings = [listing for kind in asked.kinds for listing in kind.listings(namespace)]
    return [stored.key for listing in listings for stored in session.datastore.list(listing, session.deadline)]


def _pools_in_use(keys: list[Key[Any]], session: Session) -> tuple[str, ...]:
    """A warning for each pool among the keys whose addresses somebody has: they stay, but nothing routes to them."""
    names = [key.name for key in keys if isinstance(key, IPPoolKey)]
    if not names:
        return ()
    pools, blocks = session.datastore.fetch(IPPools(), Blocks(), deadline=session.deadline)
    notes: list[str] = []
    for pool in [stored.record for stored in pools]:
        if pool.metadata.name not in names or pool.cidr is None:
            continue
        inside = [stored.record for stored in blocks if stored.record.cidr in pool.cidr]
        held = sum(_held(block) for block in inside)
        if held:
            notes.append(f"Warning: IPPool {pool.metadata.name}: {held} of its addresses are still in use")
    return tuple(notes)


def _held(block: Block) -> int:
    """How many addresses somebody has; those that are cooling down nobody has."""
    holders = [block.holder(ordinal) for ordinal in range(block.cidr.size)]
    return sum(1 for holder in holders if holder is not None and not holder.released_at)


COMMAND = Command(
    "delete",
    "Delete resources.",
    _run,
    _add_arguments,
    _objection,
    examples="""\
tortie delete ippool old-pool
tortie delete ippool/a node/gone-1
tortie delete workloadendpoints --all -n default --dry-run
tortie delete -f pools.yaml --skip-not-exists""",
)
