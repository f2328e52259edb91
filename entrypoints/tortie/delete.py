"""`tortie delete`: delete resources by name, or those that a file names, whatever else it says about them.

Invariant: each name is answered for, whatever became of the ones before.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command
from entrypoints.tortie.resources import (
    DEFAULT_NAMESPACE,
    add_file,
    add_kind,
    add_namespace,
    checked_manifests,
    each,
    key_of,
)
from ports.datastore import Blocks, IPPoolKey, IPPools
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from entrypoints.tortie.session import Session
    from ports.datastore import Key


def _add_arguments(parser: ArgumentParser) -> None:
    add_kind(parser, optional=True)
    parser.add_argument("names", metavar="NAME", nargs="*")
    add_file(parser, required=False)
    add_namespace(parser)
    parser.add_argument("--skip-not-exists", action="store_true", help="what is not there counts as deleted")


def _objection(options: Namespace) -> str:
    if bool(options.filename) == bool(options.kind and options.names):
        return "delete: give either a kind with at least one name, or -f FILE"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    def remove(key: Key[Any]) -> Key[Any]:
        try:
            session.datastore.delete(key, None, session.deadline)
        except Missing:
            if not options.skip_not_exists:
                raise
        return key

    if options.filename:
        keys = [key for _, key, _ in checked_manifests(options)]
    else:
        keys = [key_of(options.kind, name, options.namespace or DEFAULT_NAMESPACE) for name in options.names]
    notes = _pools_in_use(keys, session)
    return Answer(each(keys, "deleted", remove), notes=notes)


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
        held = sum(len(block.allocations) - block.allocations.count(None) for block in inside)
        if held:
            notes.append(f"Warning: IPPool {pool.metadata.name}: {held} of its addresses are still in use")
    return tuple(notes)


COMMAND = Command("delete", "Delete resources.", _run, _add_arguments, _objection)
