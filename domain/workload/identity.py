"""Whose interface a call is about, and what follows from that by name: its WorkloadEndpoint and its device.

A name has four segments joined by `-`, and each `-` inside a segment is doubled. A prefix (what is known of an
identity, plus a trailing `-`) finds all endpoints of a workload, but a text prefix also finds strangers, so every
find is checked with `name_matches`. Felix recognises its devices by prefix, and derives a Kubernetes pod's device name
itself, so both must be exactly the original's.

Invariant: `identify` depends on the call's own words only, so ADD, CHECK and DEL of one container agree, whatever the
datastore says. (The original resolves a Mesos namespace label on ADD alone and then never finds the endpoint.)
`split_name(full_name(identity))` gives the identity's segments; the device's name depends on the identity and the
configured prefix alone.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.request import CniArgs, Request
    from domain.workload.endpoint import WorkloadEndpoint

KUBERNETES, CNI, LIBNETWORK = "k8s", "cni", "libnetwork"
DEFAULT_NAMESPACE = "default"
SEGMENTS = 4
DEFAULT_PREFIX = "cali"
_SUFFIX_LENGTH = 11
_LAUNCHER = "virt-launcher-"  # KubeVirt's pods


class Identity(Value):
    """Texts; "" where something does not apply or is not known yet.

    `pod` identifies the workload under Kubernetes, `container_id` under plain CNI, `workload` under any orchestrator
    but those and libnetwork. `endpoint` is the interface name inside the container.
    """

    orchestrator: str = ""
    node: str = ""
    pod: str = ""
    namespace: str = ""
    container_id: str = ""
    endpoint: str = ""
    workload: str = ""

    @property
    def is_named_as_launcher(self) -> bool:
        """Whether it is worth asking if the pod runs a virtual machine; the name alone is no proof."""
        return self.orchestrator == KUBERNETES and self.pod.startswith(_LAUNCHER)


def identify(request: Request, args: CniArgs, mesos_labels: tuple[tuple[str, str], ...], node: str) -> Identity:
    """The identity a call speaks of. A pod name and a namespace together make it a Kubernetes workload."""
    if args.pod_name and args.pod_namespace:
        return Identity(
            orchestrator=KUBERNETES,
            node=node,
            pod=args.pod_name,
            namespace=args.pod_namespace,
            container_id=request.container_id,
            endpoint=request.ifname,
        )
    return Identity(
        orchestrator=CNI,
        node=node,
        namespace=_mesos_namespace(mesos_labels) or args.test_namespace or DEFAULT_NAMESPACE,
        container_id=request.container_id,
        endpoint=request.ifname,
    )


def _mesos_namespace(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    from domain.workload.mesos import mesos_namespace  # few runtimes give any

    return mesos_namespace(labels)


def identity_of(endpoint: WorkloadEndpoint) -> Identity:
    """The identity that a stored endpoint states."""
    return Identity(
        orchestrator=endpoint.orchestrator,
        node=endpoint.node,
        pod=endpoint.pod,
        namespace=endpoint.metadata.namespace,
        container_id=endpoint.container_id,
        endpoint=endpoint.endpoint,
        workload=endpoint.workload,
    )


class InvalidField(ValueError):
    """An identifier that cannot be used. `str()` is `error with field <field> = '<value>' (<reason>)`."""

    def __init__(self, field: str, value: str | None, reason: str) -> None:
        shown = "" if value is None else f" = '{value}'"
        super().__init__(f"error with field {field}{shown} ({reason})")
        self.field = field
        self.reason = reason


def segments(identity: Identity) -> tuple[tuple[str, str], ...]:
    """The four (field name, text) that make up the name; the third depends on the orchestrator."""
    third = {
        KUBERNETES: ("pod", identity.pod),
        CNI: ("containerID", identity.container_id),
        LIBNETWORK: ("workload", LIBNETWORK),
    }.get(identity.orchestrator, ("workload", identity.workload))
    return (
        ("node", identity.node),
        ("orchestrator", identity.orchestrator),
        third,
        ("endpoint", identity.endpoint),
    )


def _required_segments(identity: Identity) -> tuple[tuple[str, str], ...]:
    if not identity.node:
        raise InvalidField("node", None, "field should be assigned")
    return segments(identity)


def _escaped(field: str, text: str) -> str:
    if text.startswith("-"):
        raise InvalidField(field, text, "field must not begin with a '-'")
    if text.endswith("-"):
        raise InvalidField(field, text, "field must not end with a '-'")
    return text.replace("-", "--")


def is_of_node(name: str, node: str) -> bool:
    """Whether an endpoint of that name is one of the node's. The dash that ends a segment is a single one."""
    start = node.replace("-", "--") + "-"
    return name.startswith(start) and not name.startswith(f"{start}-")


def full_name(identity: Identity) -> str:
    """`node--1-k8s-pod--name-eth0`. InvalidField for the first segment that is missing or has a dash at an end."""
    parts: list[str] = []
    for field, text in _required_segments(identity):
        if not text:
            raise InvalidField(field, text, "field should be assigned")
        parts.append(_escaped(field, text))
    return "-".join(parts)


def name_prefix(identity: Identity) -> str:
    """What all names of the identity begin with: up to its first missing segment, with a trailing dash.

    The full name, without that dash, when no segment is missing. InvalidField without a node or for bad dashes.
    """
    parts: list[str] = []
    for field, text in _required_segments(identity):
        if not text:
            return "-".join(parts) + "-"
        parts.append(_escaped(field, text))
    return "-".join(parts)


def split_name(name: str) -> tuple[str, ...]:
    """The unescaped segments of any text, however many; a trailing dash leaves an empty last one."""
    parts: list[str] = []
    begin = 0
    at = 1  # a segment has at least one character, so the first one is never a separator
    while at < len(name):
        if name[at] != "-":
            at += 1
        elif name[at + 1 : at + 2] == "-":
            at += 2
        else:
            parts.append(name[begin:at])
            begin = at = at + 1
    parts.append(name[begin:])
    return tuple([part.replace("--", "-") for part in parts])


def split_strictly(name: str, count: int) -> tuple[str, ...] | None:
    """The segments if there are exactly `count` of them, else None."""
    if len(name) < 2 * count - 1:
        return None
    parts = split_name(name)
    return parts if len(parts) == count else None


def name_matches(identity: Identity, name: str) -> bool:
    """Whether a name is one of the identity's: every segment that the identity knows is the name's.

    An identity without orchestrator matches no name, since the third segment has no meaning then.
    InvalidField without a node.
    """
    wanted = _required_segments(identity)
    parts = split_strictly(name, SEGMENTS)
    if parts is None or not identity.orchestrator:
        return False
    return all(text in ("", part) for (_, text), part in zip(wanted, parts))


class BadEndpointName(ValueError):
    """A text that is no endpoint's name, nor a prefix of one."""


def parse_name(name: str) -> Identity:
    """The identity that a name or a prefix spells, as far as it goes (namespace excepted, which no name holds).

    BadEndpointName for an empty text and for more segments than a name has.
    """
    if not name:
        raise BadEndpointName("Cannot parse empty string")
    parts = split_name(name)
    if len(parts) > SEGMENTS:
        raise BadEndpointName(f"Error parsing {name}, verify that WorkloadEndpoint name is correct")
    node, orchestrator, third, endpoint = (*parts, "", "", "")[:SEGMENTS]
    identity = Identity(orchestrator=orchestrator, node=node, endpoint=endpoint)
    if orchestrator == KUBERNETES:
        return identity.replace(pod=third)
    if orchestrator == CNI:
        return identity.replace(container_id=third)
    if orchestrator == LIBNETWORK:
        return identity
    return identity.replace(workload=third)


def endpoint_name(identity: Identity) -> str:
    """The full name, or CniError for an identity that can have no record."""
    try:
        require_storable(identity)
        return full_name(identity)
    except InvalidField as error:
        raise CniError(INTERNAL, f"error constructing WorkloadEndpoint name: {error}") from error


def require_storable(identity: Identity) -> None:
    """InvalidField for a name that would be two in a datastore's keys and URLs, or none; the original tries them."""
    for field, text in (
        ("node", identity.node),
        ("pod", identity.pod),
        ("containerID", identity.container_id),
        ("endpoint", identity.endpoint),
    ):
        if not is_storable(text):
            shown = text.encode("utf-8", "backslashreplace").decode()
            raise InvalidField(field, shown, "field must be text without '/' and NUL")


def is_storable(text: str) -> bool:
    return "/" not in text and "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def names_fault(identity: Identity) -> CniError | None:
    """Why the identity can have no endpoint, None if it can."""
    try:
        endpoint_name(identity)
    except CniError as error:
        return error
    return None


def host_interface_name(identity: Identity, felix_prefixes: str = "") -> str:
    """`felix_prefixes` is the text of FELIX_INTERFACEPREFIX: its first comma item counts, for Kubernetes only."""
    if identity.orchestrator != KUBERNETES:
        return DEFAULT_PREFIX + identity.container_id[:_SUFFIX_LENGTH]
    # Only pods need it, and `hashlib` would load OpenSSL for the same digest.
    from _sha1 import sha1  # type: ignore[import-not-found]  # CPython's own C module, unknown to typeshed

    named = f"{identity.namespace}.{identity.pod}".encode("utf-8", "surrogateescape")
    digest: str = sha1(named).hexdigest()  # a name, not a secret
    return (felix_prefixes.partition(",")[0] or DEFAULT_PREFIX) + digest[:_SUFFIX_LENGTH]
