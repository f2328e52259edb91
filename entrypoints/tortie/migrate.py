"""`tortie datastore migrate`: lock a datastore, take what it has elsewhere, and unlock that one.

    tortie datastore migrate lock                    tortie datastore migrate export > all.yaml
    tortie --config new.cfg datastore migrate import -f all.yaml
    tortie --config new.cfg datastore migrate unlock

Resources are exported as `get` shows them, and IPAM's own records as kubectl does, so that no kind of datastore is
preferred. What Kubernetes itself says (nodes, pods, namespaces) is not written to it.

Invariant: an import writes nothing until all of the file fits what is there, and no address could be given out twice;
the datastore is locked from its first write on, and stays so.
"""

from __future__ import annotations

from adapters.records.custom_names import V1
from adapters.records.custom_resources import decode_object, encode_object
from adapters.records.kinds import INNER_KINDS, KINDS
from adapters.records.manifests import BadManifest, expand, exported, from_manifest, to_manifest
from domain.ipam.pool_rules import overlapping
from domain.json_text import JsonError, dumps, parse
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command, Stopped
from entrypoints.tortie.manifest_files import BadFile, documents_of, shown_as, shown_path, text_of
from entrypoints.upgrade import PACE
from ports.datastore import (
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    IPPoolKey,
    IPPools,
    NodeKey,
    ProfileKey,
    Stored,
    WorkloadEndpointKey,
)
from ports.errors import AlreadyExists, Damaged
from ports.record_title import record_title
from usecases.lock_datastore import set_ready
from usecases.split_pool import require_locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from domain.json_text import Json
    from entrypoints.tortie.session import Session
    from ports.datastore import Key

_LARGEST = 256 << 20  # bytes: some hundred thousand addresses
_AT_ONCE = 100  # records that are asked for together
_FIRST = ("ClusterInformation", "IPAMConfiguration", "IPPool", "IPReservation", "Node", "Profile")
_DERIVED = (NodeKey, ProfileKey, WorkloadEndpointKey)
_SETTINGS = "IPAMConfig"


# --- lock and unlock --------------------------------------------------------------------------------------------------


def _lock(_options: Namespace, session: Session) -> Answer:
    set_ready(session.work(), ready=False)
    return Answer("Datastore locked: no pod starts or ends until `tortie datastore migrate unlock`.\n")


def _unlock(_options: Namespace, session: Session) -> Answer:
    set_ready(session.work(), ready=True)
    return Answer("Datastore unlocked.\n")


# --- export -----------------------------------------------------------------------------------------------------------


def _add_export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="(default: yaml)")


def _export(options: Namespace, session: Session) -> Answer:
    store, deadline = session.datastore, session.deadline
    require_locked(store, deadline)
    if bad := store.unreadable(deadline):
        raise Stopped(
            f"{record_title(bad[0].key)} cannot be read, and would be lost; `tortie ipam check` says what to do"
        )
    kinds = [*sorted(KINDS, key=lambda kind: (kind.name not in _FIRST, kind.name)), *INNER_KINDS]
    listings = [listing for kind in kinds for listing in kind.listings()]
    found: list[Stored[Any]] = []
    for number, listing in enumerate(listings):
        session.doing(f"reading listing {number + 1} of {len(listings)}; {len(found)} records so far")
        found += store.list(listing, session.step())
    session.doing(f"writing {len(found)} records")
    items: list[Json] = [exported(to_manifest(stored)) for stored in found]
    if (config := store.get(AllocationConfigKey(), deadline)) is not None:
        items.append(parse(encode_object(config.key, config.record, V1)))
    return Answer(shown_as({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}, options.output))


# --- import -----------------------------------------------------------------------------------------------------------


def _add_import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--filename", metavar="FILE", required=True, help="what `export` wrote; - is standard input"
    )
    parser.add_argument("--dry-run", action="store_true", help="check everything and write nothing")


def _import(options: Namespace, session: Session) -> Answer:
    session.unless_set(PACE)
    records = _read(options.filename)
    derived = [key for key, _ in records if isinstance(key, _DERIVED)] if session.is_kubernetes else []
    records = [(key, record) for key, record in records if key not in derived]
    missing = _missing(session, records)
    _require_apart(session, records)
    notes = [f"Left out, since Kubernetes says it itself: {_counted(derived)}"] if derived else []
    if options.dry_run:
        return Answer(people([f"Would have imported {_counted([key for key, _ in records])}; nothing is written"]))
    _lock_what_is_there(session)
    ordered = sorted(missing, key=lambda one: not isinstance(one[0], ClusterInformationKey))
    for number, (key, record) in enumerate(ordered):
        session.doing(f"written {number} of {len(ordered)} records")
        try:
            session.datastore.create(key, record, session.step())
        except AlreadyExists:
            _require_room(key, record, session.datastore.get(key, session.step()))
    done = f"Successfully imported {_counted([key for key, _ in records])}."
    return Answer(
        people([done, "The datastore is locked; `tortie datastore migrate unlock` opens it."]), notes=tuple(notes)
    )


def _counted(keys: Sequence[Key[Any]]) -> str:
    kinds = [record_title(key).partition(" ")[0] for key in keys]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return ", ".join([f"{number} {kind}" for kind, number in counts.items()]) or "nothing"


def _read(path: str) -> list[tuple[Key[Any], Any]]:
    text = text_of(path, _LARGEST)
    try:
        documents = [parse(text)] if text.startswith("{") else documents_of(text, shown_path(path))
        manifests = expand(documents)
        if not manifests:
            raise BadFile(f"{shown_path(path)}: nothing in it that `tortie datastore migrate export` writes")
        return [_record(manifest) for manifest in manifests]
    except (BadManifest, Damaged, JsonError) as error:
        raise BadFile(f"{shown_path(path)}: {error}") from error


def _record(manifest: Any) -> tuple[Key[Any], Any]:
    inner = {kind.name for kind in INNER_KINDS} | {_SETTINGS}
    if isinstance(manifest, dict) and manifest.get("kind") in inner:
        wanted = AllocationConfigKey() if manifest["kind"] == _SETTINGS else None
        stored = decode_object(parse(dumps(manifest)), V1, wanted)
        return stored.key, stored.record
    key, record = from_manifest(manifest)
    return key, record.replace(datastore_ready=False) if isinstance(key, ClusterInformationKey) else record


def _missing(session: Session, records: Sequence[tuple[Key[Any], Any]]) -> list[tuple[Key[Any], Any]]:
    """Those that are not there yet. Stopped by the first that is another one there."""
    missing: list[tuple[Key[Any], Any]] = []
    for start in range(0, len(records), _AT_ONCE):
        session.doing(f"compared {start} of {len(records)} records with what is there")
        some = records[start : start + _AT_ONCE]
        found = session.datastore.fetch(*[key for key, _ in some], deadline=session.step())
        for (key, record), there in zip(some, found):
            _require_room(key, record, there)
            if there is None:
                missing.append((key, record))
    return missing


def _require_room(key: Key[Any], record: Any, there: Stored[Any] | None) -> None:
    """Nothing under that key, or the same: an import that was interrupted goes on."""
    if there is None or isinstance(key, ClusterInformationKey) or _bare(there) == _bare(Stored(key, record, "")):
        return
    raise Stopped(f"{record_title(key)} is there already, and is another one; import into an empty datastore")


def _require_apart(session: Session, records: Sequence[tuple[Key[Any], Any]]) -> None:
    """No pool or block shares addresses with another one that is there: some would be given out twice."""
    store, imported = session.datastore, {key for key, _ in records}
    pools = [one.record for one in store.list(IPPools(), session.step()) if one.key not in imported]
    blocks = [one for one in store.list(Blocks(), session.step()) if one.key not in imported]
    for key, record in records:
        near: Key[Any] | None = None
        if isinstance(key, IPPoolKey) and record.cidr is not None:
            pool = overlapping(record, pools)
            near = IPPoolKey(pool.metadata.name) if pool else None
        if isinstance(key, BlockKey):
            near = next((block.key for block in blocks if block.record.cidr.overlaps(key.cidr)), None)
        if near is not None:
            said = f"{record_title(key)} overlaps {record_title(near)}, which is there"
            raise Stopped(f"{said}; import into an empty datastore")


def _lock_what_is_there(session: Session) -> None:
    """Else a call could draw from a pool that is written before the blocks that are in use of it."""
    if session.datastore.get(ClusterInformationKey("default"), session.deadline) is not None:
        set_ready(session.work(), ready=False)


def _bare(stored: Stored[Any]) -> Json:
    """Without what each datastore says for itself."""
    if isinstance(stored.key, AllocationConfigKey):
        return encode_object(stored.key, stored.record, V1)
    return exported(to_manifest(stored))


LOCK = Command(
    "lock",
    "Let no pod start or end until it is unlocked.",
    _lock,
    examples="tortie datastore migrate lock",
)
UNLOCK = Command("unlock", "Let pods start and end again.", _unlock, examples="tortie datastore migrate unlock")
EXPORT = Command(
    "export",
    "Show all that a locked datastore has.",
    _export,
    _add_export_arguments,
    examples="""\
tortie datastore migrate export > all.yaml
tortie datastore migrate export -o json > all.json     quicker to write and to read, for many addresses""",
)
IMPORT = Command(
    "import",
    "Write what an export has shown into another datastore, which stays locked.",
    _import,
    _add_import_arguments,
    makes_datastore=lambda options: not options.dry_run,
    examples="""\
tortie --config new.cfg datastore migrate import -f all.yaml --dry-run
tortie --config new.cfg datastore migrate import -f all.yaml""",
)
