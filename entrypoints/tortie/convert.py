"""`tortie convert`: manifests in the form in which they are stored and shown, without asking a datastore.

Of files for calicoctl, and of what kubectl shows of the custom resources (crd.projectcalico.org/v1).

Invariant: what comes out is what `apply` takes, and means the same.
"""

from __future__ import annotations

from adapters.records.custom_names import V1
from adapters.records.custom_resources import decode_object
from adapters.records.kinds import kind_named
from adapters.records.manifests import BadManifest, exported, from_manifest, to_manifest
from adapters.records.resources import API_VERSION
from domain.json_text import dumps, parse
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command
from entrypoints.tortie.manifest_files import shown_as
from entrypoints.tortie.resources import add_file, add_namespace, given_manifests
from ports.datastore import Stored
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from domain.json_text import Json
    from entrypoints.tortie.session import Session

_OLD = "v1"


def _add_arguments(parser: ArgumentParser) -> None:
    add_file(parser, required=True)
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="(default: yaml)")
    add_namespace(parser)


def _run(options: Namespace, _session: Session) -> Answer:
    found: list[Json] = []
    for where, manifest in given_manifests(options):
        try:
            found.append(_converted(manifest))
        except (BadManifest, PortError) as error:
            raise BadManifest(f"{where}: {error}") from error
    if len(found) == 1:
        return Answer(shown_as(found[0], options.output))
    return Answer(shown_as({"kind": "List", "apiVersion": _OLD, "metadata": {}, "items": found}, options.output))


def _converted(manifest: Any) -> dict[str, Json]:
    version = manifest.get("apiVersion") if isinstance(manifest, dict) else None
    if version == _OLD:
        raise BadManifest(f"apiVersion {_OLD} is that of Calico 2, which is not read here; write it as {API_VERSION}")
    if version != V1:
        key, record = from_manifest(manifest)
        return exported(to_manifest(Stored(key, record, "")))
    kind = kind_named(str(manifest.get("kind")))
    if kind is None or kind.inner:
        raise BadManifest(f"kind {manifest.get('kind')!r} is not among those that can be applied")
    return exported(to_manifest(decode_object(parse(dumps(manifest)), V1)))


COMMAND = Command(
    "convert",
    "Show manifests as they are stored, with every default.",
    _run,
    _add_arguments,
    uses_datastore=False,
    examples="""\
tortie convert -f pool.yaml
kubectl get ippools.crd.projectcalico.org -o yaml | tortie convert -f -""",
)
