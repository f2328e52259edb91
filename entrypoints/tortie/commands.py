"""The commands of `tortie`: each takes the parsed command line and the session, and gives the text for stdout.

Invariant: nothing is printed here, so a command that fails has said nothing that was not so.
"""

from __future__ import annotations

import os

from adapters.records.kinds import kind_of
from adapters.records.manifests import BadManifest, from_manifest, revision_of, to_list, to_manifest
from domain.ipam.errors import IpamError
from domain.ipam.pool_rules import BadPool, block_sizes_by_version, check_block_sizes_used
from domain.workload.names import InvalidField
from entrypoints.tortie.answer import Answer, Screen, left_out, people
from entrypoints.tortie.manifest_files import BadFile, read_manifests, shown_as
from entrypoints.tortie.tables import table
from entrypoints.version import VERSION
from ports.datastore import Blocks, IPPoolKey, IPPools
from ports.errors import Conflict, Missing, PortError
from ports.record_title import record_title
from usecases.initialise_cluster import Wish, initialise_cluster
from usecases.ipam.work import Work
from usecases.store_resource import apply_resource, create_resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from adapters.records.kinds import Kind
    from domain.ipam.address import Address
    from entrypoints.wiring.container import Container
    from entrypoints.wiring.plain_container import PlainContainer
    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.datastore import Datastore, Key, Stored
    from ports.deadline import Deadline

    Named: TypeAlias = tuple[Kind, Key[Any]]

BUDGET = 60.0  # seconds for one command
DEFAULT_NAMESPACE = "default"
FAULTS = (PortError, IpamError, BadFile, BadManifest, BadPool, InvalidField)


class Stopped(PortError):
    """A fault with more to say about it: what to do, or how many resources were done before it."""


class Session:
    """What one command works with; the datastore is opened when it is first asked for."""

    def __init__(self, container: Container | PlainContainer) -> None:
        self._container = container
        self._datastore: Datastore | None = None
        self._clock: Clock = container.clock()
        self.deadline: Deadline = self._clock.deadline(BUDGET)

    @property
    def datastore(self) -> Datastore:
        if self._datastore is None:
            self._datastore = self._container.datastore()
        return self._datastore

    @property
    def screen(self) -> Screen:
        return Screen.of(self._container.environment())

    def work(self, waiting: float = 0.0) -> Work:
        """What the steps of a use case share; `waiting` seconds of it will pass in waiting on purpose."""
        return Work(self.datastore, self._clock, self._container.log(), self._clock.deadline(BUDGET + waiting))

    @property
    def cluster(self) -> Cluster | None:
        """What the kubeconfig of the environment leads to, if there is one that can be used."""
        try:
            found: Cluster = self._container.cluster()
        except PortError as error:
            self._container.log().warning("Nobody can be asked which virtual machines there are", error=error)
            return None
        return found

    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        """Of this machine, whose pods' addresses they may be."""
        found: tuple[tuple[Address, str], ...] = self._container.node().host_routes()
        return found

    def host_name(self) -> str:
        name: str = self._container.node().host_name()
        return name.strip().lower()

    def close(self) -> None:
        """The last process to close an embedded datastore folds its log into the file; others have nothing to close."""
        getattr(self._datastore, "close", lambda: None)()


def version(_options: Namespace, _session: Session) -> str:
    return f"tortie {VERSION}\n"


def init(options: Namespace, session: Session) -> str:
    """Make what a first container needs, and say for each record whether it is new."""
    block_sizes = block_sizes_by_version(options.block_size or ())
    check_block_sizes_used(block_sizes, options.pool)
    wish = Wish(
        node=options.node or session.host_name(),
        guid=os.urandom(16).hex(),
        pools=tuple(options.pool),
        block_sizes=block_sizes,
    )
    outcomes = initialise_cluster(session.datastore, wish, session.deadline)
    named = [f"{outcome.kind} {outcome.name}" for outcome in outcomes]
    width = max(len(name) for name in named)
    lines = [
        f"{'made' if outcome.made else 'exists':<7} {name:<{width}}  {outcome.note}".rstrip()
        for name, outcome in zip(named, outcomes)
    ]
    return people(lines)


def get(options: Namespace, session: Session) -> Answer:
    """One resource as an object, several or all of a kind as a list or table.

    Exit code 1 when a list lacks records that are there and cannot be read.
    """
    kind: Kind = options.kind
    namespace = "" if options.all_namespaces else options.namespace or DEFAULT_NAMESPACE
    if options.all_namespaces and options.names:
        raise BadManifest("a name needs one namespace: use -n NAMESPACE instead of --all-namespaces")
    notes: tuple[str, ...] = ()
    if options.names:
        found = [_existing(_named(kind, name, namespace), session) for name in options.names]
    else:
        _check_word("namespace", namespace)
        found = list(session.datastore.list(kind.listing(namespace), session.deadline))
        bad = session.datastore.unreadable(session.deadline, kind.listing(namespace))
        notes = left_out([(record_title(one.key), one.fault) for one in bad])
    return Answer(_shown(options, kind, found), 1 if notes else 0, notes)


def _shown(options: Namespace, kind: Kind, found: list[Stored[Any]]) -> str:
    if options.output in ("json", "yaml"):
        alone = len(options.names) == 1
        return shown_as(to_manifest(found[0]) if alone else to_list(kind, found), options.output)
    records = [one.record for one in found]
    namespaces = kind.namespaced and options.all_namespaces
    return table(kind.name, records, wide=options.output == "wide", namespaces=namespaces)


def _named(kind: Kind, name: str, namespace: str) -> Key[Any]:
    """BadManifest for what would name another place in the datastore, or none."""
    if not name:
        raise BadManifest(f"{kind.name}: a name must not be empty")
    _check_word(f"{kind.name} name", name)
    _check_word("namespace", namespace)
    return kind.key(name, namespace)


def _check_word(what: str, word: str) -> None:
    if "/" in word or not word.isprintable():
        raise BadManifest(f"{what} {word!r}: `/` and control characters cannot be part of it")


def _existing(key: Key[Any], session: Session) -> Stored[Any]:
    stored = session.datastore.get(key, session.deadline)
    if stored is None:
        raise Missing(key)
    return stored


def create(options: Namespace, session: Session) -> str:
    """Write resources that must not exist yet."""

    def write(manifest: Any) -> Key[Any]:
        key, record = from_manifest(manifest)
        create_resource(session.datastore, key, record, session.deadline)
        return key

    return _write_all(options, "created", write)


def apply(options: Namespace, session: Session) -> str:
    """Write resources, replacing what is there."""

    def write(manifest: Any) -> Key[Any]:
        key, record = from_manifest(manifest)
        revision = revision_of(manifest)
        try:
            apply_resource(session.datastore, key, record, revision, session.deadline)
        except Conflict as error:
            if revision is None:
                raise
            stale = f"it is no longer at resourceVersion {revision}; get it again, or leave resourceVersion out"
            raise Stopped(f"{error}: {stale}") from error
        return key

    return _write_all(options, "applied", write)


def _write_all(options: Namespace, done: str, write: Callable[[Any], Key[Any]]) -> str:
    """All manifests are checked by themselves before the first is written."""
    manifests = [_in_namespace(manifest, options.namespace) for manifest in read_manifests(options.filename)]
    for manifest in manifests:
        from_manifest(manifest)
    return _each(manifests, done, write)


def _in_namespace(manifest: Any, namespace: str) -> Any:
    """The manifest with the command line's namespace, if it is an endpoint that states none."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not namespace or not isinstance(metadata, dict) or manifest.get("kind") != "WorkloadEndpoint":
        return manifest
    return {**manifest, "metadata": {"namespace": namespace, **metadata}}


def delete(options: Namespace, session: Session) -> Answer:
    """Delete resources by name, or those that a file names, whatever else it says about them."""

    def remove(key: Key[Any]) -> Key[Any]:
        try:
            session.datastore.delete(key, None, session.deadline)
        except Missing:
            if not options.skip_not_exists:
                raise
        return key

    if options.filename:
        keys = [
            from_manifest(_in_namespace(manifest, options.namespace))[0]
            for manifest in read_manifests(options.filename)
        ]
    else:
        keys = [_named(options.kind, name, options.namespace or DEFAULT_NAMESPACE) for name in options.names]
    notes = _pools_in_use(keys, session)
    return Answer(_each(keys, "deleted", remove), notes=notes)


def _pools_in_use(keys: list[Key[Any]], session: Session) -> tuple[str, ...]:
    """A warning for each pool among the keys whose addresses somebody has: they stay, but nothing routes to them."""
    names = [key.name for key in keys if isinstance(key, IPPoolKey)]
    if not names:
        return ()
    pools, blocks = session.datastore.fetch(IPPools(), Blocks(), deadline=session.deadline)
    notes: list[str] = []
    for pool in [one.record for one in pools if one.record.metadata.name in names and one.record.cidr is not None]:
        inside = [one.record for one in blocks if pool.cidr is not None and one.record.cidr in pool.cidr]
        held = sum(len(block.allocations) - block.allocations.count(None) for block in inside)
        if held:
            notes.append(f"Warning: IPPool {pool.metadata.name}: {held} of its addresses are still in use")
    return tuple(notes)


def _each(items: list[Any], done: str, act: Callable[[Any], Key[Any]]) -> str:
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
