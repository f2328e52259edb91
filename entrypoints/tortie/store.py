"""`tortie create` and `apply`: write the resources of a file, those that must be new, or whatever is there.

Invariant: all manifests are checked by themselves before the first is written.
"""

from __future__ import annotations

from adapters.records.manifests import revision_of
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command, Stopped
from entrypoints.tortie.resources import add_file, add_namespace, checked_manifests, each
from ports.errors import Conflict
from usecases.store_resource import apply_resource, create_resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any, TypeAlias

    from entrypoints.tortie.session import Session
    from ports.datastore import Key

    Resource: TypeAlias = tuple[Any, Key[Any], Any]  # the manifest, and what it means


def _add_arguments(parser: ArgumentParser) -> None:
    add_file(parser, required=True)
    add_namespace(parser)


def _create(options: Namespace, session: Session) -> Answer:
    def write(resource: Resource) -> Key[Any]:
        _, key, record = resource
        create_resource(session.datastore, key, record, session.deadline)
        return key

    return Answer(each(checked_manifests(options), "created", write))


def _apply(options: Namespace, session: Session) -> Answer:
    def write(resource: Resource) -> Key[Any]:
        manifest, key, record = resource
        revision = revision_of(manifest)
        try:
            apply_resource(session.datastore, key, record, revision, session.deadline)
        except Conflict as error:
            if revision is None:
                raise
            stale = f"it is no longer at resourceVersion {revision}; get it again, or leave resourceVersion out"
            raise Stopped(f"{error}: {stale}") from error
        return key

    return Answer(each(checked_manifests(options), "applied", write))


CREATE = Command("create", "Write resources that do not exist yet.", _create, _add_arguments)
APPLY = Command("apply", "Create or replace resources.", _apply, _add_arguments)
