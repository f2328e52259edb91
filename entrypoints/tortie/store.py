"""`tortie create`, `apply` and `replace`: write the resources of files, be they new or not.

Invariant: all manifests are checked by themselves before the first is written.
"""

from __future__ import annotations

from adapters.records.manifests import revision_of
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command, Stopped
from entrypoints.tortie.resources import add_dry_run, add_file, add_namespace, checked_manifests, each
from ports.errors import AlreadyExists, Conflict, Missing
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
    add_dry_run(parser)


def _add_create_arguments(parser: ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument("--skip-exists", action="store_true", help="what is there already counts as created")


def _create(options: Namespace, session: Session) -> Answer:
    store = session.writable(dry=options.dry_run)

    def write(resource: Resource) -> Key[Any]:
        _, key, record = resource
        try:
            create_resource(store, key, record, session.deadline)
        except AlreadyExists:
            if not options.skip_exists:
                raise
        return key

    return Answer(each(checked_manifests(options), "created", write, session, dry=options.dry_run))


def _apply(options: Namespace, session: Session) -> Answer:
    return _write(options, session, "applied")


def _replace(options: Namespace, session: Session) -> Answer:
    return _write(options, session, "replaced")


def _write(options: Namespace, session: Session, done: str) -> Answer:
    store = session.writable(dry=options.dry_run)

    def write(resource: Resource) -> Key[Any]:
        manifest, key, record = resource
        revision = revision_of(manifest)
        if done == "replaced" and store.get(key, session.deadline) is None:
            raise Missing(key)
        try:
            apply_resource(store, key, record, revision, session.deadline)
        except Conflict as error:
            if revision is None:
                raise
            stale = f"it is no longer at resourceVersion {revision}; get it again, or leave resourceVersion out"
            raise Stopped(f"{error}: {stale}") from error
        return key

    return Answer(each(checked_manifests(options), done, write, session, dry=options.dry_run))


CREATE = Command(
    "create",
    "Write resources that do not exist yet.",
    _create,
    _add_create_arguments,
    examples="""\
tortie create -f pool.yaml
tortie create -f manifests/ -R --skip-exists      every file below a folder; what is there stays""",
)
APPLY = Command(
    "apply",
    "Create or replace resources.",
    _apply,
    _add_arguments,
    examples="""\
tortie apply -f pools.yaml --dry-run              is it right? nothing is written
tortie apply -f manifests/
tortie get ippools --export -o yaml | tortie --context other apply -f -""",
)
REPLACE = Command(
    "replace",
    "Write resources that exist already.",
    _replace,
    _add_arguments,
    examples="tortie get ippool a -o yaml | sed s/Always/Never/ | tortie replace -f -",
)
