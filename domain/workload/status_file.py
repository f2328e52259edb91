"""How the policy engine (Felix) names a workload: the file that says its policy is in place, and its own key.

Felix knows an endpoint as host, orchestrator, `<namespace>/<workload>` and endpoint. It writes one file per endpoint
once policy is programmed; blanks and slashes in the parts are percent-escaped, so that the three parts stay apart.

Invariant: two different keys of one host never share a file name.
"""

from __future__ import annotations

from domain.value import Value
from domain.workload.identity import identity_of, segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+=:@")


class PolicyKey(Value):
    """An endpoint as Felix knows it. `workload` is `<namespace>/<workload>`."""

    host: str
    orchestrator: str
    workload: str
    endpoint: str


def policy_key(endpoint: WorkloadEndpoint | None) -> PolicyKey | None:
    """Felix's key of a stored endpoint; None for none."""
    if endpoint is None:
        return None
    workload = segments(identity_of(endpoint))[2][1]
    return PolicyKey(
        endpoint.node, endpoint.orchestrator, f"{endpoint.metadata.namespace}/{workload}", endpoint.endpoint
    )


def _escaped(text: str) -> str:
    """As Go's `url.PathEscape`: UTF-8 bytes other than the plain ones as `%XX`."""
    if _PLAIN.issuperset(text):
        return text
    return "".join(
        chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape")
    )


def status_file_name(key: PolicyKey | None) -> str:
    """`k8s default%2Fweb-0 eth0`; "" for no key."""
    if key is None:
        return ""
    return " ".join([_escaped(key.orchestrator), _escaped(key.workload), _escaped(key.endpoint)])
