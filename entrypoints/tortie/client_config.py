"""Which datastore an operator's command works on: calicoctl's configuration file, else the environment.

As with calicoctl, a file that is there settles it alone: datastore settings of the environment then count for nothing.
Certificates and keys may stand in the file itself, which the environment has no variables for.

Invariant: what the file says is checked before anything is connected, and a member that nobody reads is an error.
"""

from __future__ import annotations

import os

from domain.cni.datastores import INLINE, SETTINGS
from domain.value import Value
from entrypoints.tortie.manifest_files import BadFile, read_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_PATH = "/etc/calico/calicoctl.cfg"
KIND, API_VERSION = "CalicoAPIConfig", "projectcalico.org/v3"
_INLINE = frozenset(member for _, _, _, member, what in SETTINGS if what == INLINE)
_VARIABLES = {member: variable for _, _, variable, member, _ in SETTINGS if member and variable}


class ClientConfig(Value):
    """`environment` is the whole one to work with; `inline` has the file's own certificates by member name."""

    environment: Mapping[str, str]
    inline: Mapping[str, str]


def client_config(environment: Mapping[str, str], path: str = "", default: str = DEFAULT_PATH) -> ClientConfig:
    """From the file that is named, else from the usual one if there is one, else from the environment alone.

    The embedded datastore is the one meant where nothing says otherwise. BadFile names the file and what is wrong.
    """
    if not path and not os.path.exists(default):
        chosen = any(
            environment.get(prefix + name)
            for prefix in ("CALICO_", "")
            for name in ("DATASTORE_TYPE", "ETCD_ENDPOINTS")
        )
        return ClientConfig(environment if chosen else {**environment, "DATASTORE_TYPE": "sqlite"}, {})
    spec = _read(path or default)
    settled = {name for variable in _VARIABLES.values() for name in (variable, f"CALICO_{variable}")}
    others = {name: text for name, text in environment.items() if name not in settled}
    said = {_VARIABLES[member]: text for member, text in spec.items() if member in _VARIABLES and text}
    return ClientConfig({**others, **said}, {member: text for member, text in spec.items() if member in _INLINE})


def _read(path: str) -> dict[str, str]:
    """The members of the file's spec, as texts."""
    documents = [document for document in read_documents(path) if document is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise BadFile(f"{path}: one document with kind {KIND} is expected")
    document: dict[str, Any] = documents[0]
    if (document.get("kind"), document.get("apiVersion")) != (KIND, API_VERSION):
        raise BadFile(f"{path}: kind {KIND} of apiVersion {API_VERSION} is expected")
    spec = document.get("spec") or {}
    unknown = sorted(str(member) for member in {*document} - {"kind", "apiVersion", "metadata", "spec"})
    if isinstance(spec, dict):
        unknown += sorted(str(member) for member in spec if member not in _VARIABLES and member not in _INLINE)
    if unknown:
        raise BadFile(f"{path}: unknown member {unknown[0]}")
    if not isinstance(spec, dict):
        raise BadFile(f"{path}: spec must have members")
    return {member: _text(path, member, value) for member, value in spec.items()}


def _text(path: str, member: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise BadFile(f"{path}: spec.{member} must be a text")
