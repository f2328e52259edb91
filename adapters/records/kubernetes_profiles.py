"""Namespaces and service accounts → the profiles that they are.

Invariant: such a profile is read-only and allows everything; policy selects pods by the labels that it applies.
"""

from __future__ import annotations

from adapters.records.custom_metadata import converted_uid
from adapters.records.kubernetes_objects import read_object
from domain.resource import Metadata
from domain.workload.endpoint import Profile, Rule
from ports.datastore import ProfileKey, Stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.records.members import Members
    from domain.json_text import Json

NAMESPACE, SERVICE_ACCOUNT = "kns.", "ksa."
_NAME_LABEL = "projectcalico.org/name"


def profile_source(name: str) -> tuple[str, str] | None:
    """The (namespace, service account or "") that a profile's name means; None for a profile that is neither."""
    if name.startswith(NAMESPACE) and len(name) > len(NAMESPACE):
        return name.removeprefix(NAMESPACE), ""
    if name.startswith(SERVICE_ACCOUNT):
        namespace, dot, account = name.removeprefix(SERVICE_ACCOUNT).partition(".")  # a namespace has no dots
        return (namespace, account) if namespace and dot and account else None
    return None


def namespace_profile(source: Json) -> Stored[Profile]:
    """`kns.<namespace>`; its revision names the namespace's version before a slash."""
    return read_object(source, "Namespace", _of_namespace)


def _of_namespace(_members: Members, metadata: Members) -> Stored[Profile]:
    revision = f"{metadata.text('resourceVersion')}/"
    name = str(metadata.peek("name") or "")
    allow = (Rule("Allow"),)
    profile = Profile(_metadata(NAMESPACE + name, metadata), allow, allow, _labels("pcns.", name, metadata))
    return Stored(ProfileKey(NAMESPACE + name), profile, revision)


def service_account_profile(source: Json) -> Stored[Profile]:
    """`ksa.<namespace>.<service account>`; its revision names the account's version after a slash."""
    return read_object(source, "ServiceAccount", _of_service_account)


def _of_service_account(_members: Members, metadata: Members) -> Stored[Profile]:
    revision = f"/{metadata.text('resourceVersion')}"
    account = str(metadata.peek("name") or "")
    name = f"{SERVICE_ACCOUNT}{metadata.text('namespace')}.{account}"
    profile = Profile(_metadata(name, metadata), labels_to_apply=_labels("pcsa.", account, metadata))
    return Stored(ProfileKey(name), profile, revision)


def _metadata(name: str, metadata: Members) -> Metadata:
    return Metadata(name, uid=converted_uid(metadata.text("uid")), created=metadata.text("creationTimestamp"))


def _labels(prefix: str, name: str, metadata: Members) -> dict[str, str]:
    labels = {**metadata.labels("labels"), _NAME_LABEL: name}
    return {prefix + label: text for label, text in labels.items()}
