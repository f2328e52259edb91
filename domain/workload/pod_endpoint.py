"""The endpoint that a Kubernetes pod is: in a Kubernetes datastore no record of it exists, the pod says it all.

Felix, calicoctl and we each derive it from the pod, so the derivation must be the original's to the letter.

Invariant: the endpoint depends on the pod and the interface prefix alone; hardware address and gateways are unknown.
"""

from __future__ import annotations

from domain.resource import Metadata
from domain.workload.annotations import (
    ALLOWED_SOURCE_PREFIXES,
    AWS_POD_IPS,
    CONTAINER_ID,
    FLOATING_IPS,
    NETWORK_STATUS,
    NO_ADDRESS,
    POD_IP,
    POD_IPS,
    allowed_source_prefixes,
    floating_nats,
    parse_prefix,
)
from domain.workload.endpoint import Port, WorkloadEndpoint
from domain.workload.identity import DEFAULT_PREFIX, KUBERNETES, Identity, full_name, host_interface_name
from domain.workload.qos import qos_controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Cidr
    from domain.workload.endpoint import Nat
    from domain.workload.pod import ContainerPort, Pod

ENDPOINT = "eth0"  # whatever the interface is really called
_LONGEST_LABEL = 63
_PROTOCOLS = {"": "TCP", "TCP": "TCP", "UDP": "UDP", "SCTP": "SCTP"}
_FINISHED_PHASES = frozenset({"Failed", "Succeeded", "Completed"})


def is_networked(pod: Pod) -> bool:
    """Whether the pod is an endpoint at all: scheduled, and not on its node's own network."""
    return bool(pod.node) and not pod.host_network


def pod_endpoint(pod: Pod, host_prefix: str = DEFAULT_PREFIX) -> WorkloadEndpoint:
    """The endpoint of a pod. `host_prefix` is the text of FELIX_INTERFACEPREFIX.

    ValueError, its text the original's, for a pod without node, a malformed address and a malformed annotation.
    """
    identity = Identity(
        orchestrator=KUBERNETES, node=pod.node, pod=pod.name, namespace=pod.namespace, endpoint=ENDPOINT
    )
    name = full_name(identity)
    networks = _networks(pod)
    return WorkloadEndpoint(
        Metadata(
            name,
            pod.namespace,
            generate_name=pod.generate_name,
            uid=pod.uid,
            created=pod.created,
            labels=endpoint_labels(pod),
            annotations={key: pod.annotations[key] for key in (NETWORK_STATUS,) if key in pod.annotations},
        ),
        orchestrator=KUBERNETES,
        node=pod.node,
        container_id=pod.annotations.get(CONTAINER_ID, ""),
        pod=pod.name,
        endpoint=ENDPOINT,
        service_account=pod.service_account,
        ip_networks=networks,
        ip_nats=_nats(pod, networks),
        profiles=endpoint_profiles(pod),
        interface_name=host_interface_name(identity, host_prefix),
        ports=endpoint_ports(pod.ports),
        allowed_source_prefixes=allowed_source_prefixes(pod.annotations.get(ALLOWED_SOURCE_PREFIXES, "")),
        qos_controls=qos_controls(pod.annotations)[0],
    )


def without_wishes(pod: Pod) -> Pod:
    """The pod without what people may have written to it: its annotations say only which container it has, if any.

    A pod whose owner has spoilt an annotation still has its addresses, and has to give them back one day.
    """
    kept = {key: pod.annotations[key] for key in (CONTAINER_ID,) if key in pod.annotations}
    return pod.replace(annotations={**kept, POD_IP: ""} if pod.annotations.get(POD_IP) == "" else kept)


def endpoint_labels(pod: Pod) -> dict[str, str]:
    """The pod's own labels, and three by which policy selects; an account's name that is too long goes without."""
    labels = {
        **pod.labels,
        "projectcalico.org/namespace": pod.namespace,
        "projectcalico.org/orchestrator": KUBERNETES,
    }
    if 0 < len(pod.service_account) < _LONGEST_LABEL:
        labels["projectcalico.org/serviceaccount"] = pod.service_account
    return labels


def endpoint_profiles(pod: Pod) -> tuple[str, ...]:
    """`kns.<namespace>`, then `ksa.<namespace>.<account>` if the pod has an account."""
    profiles = (f"kns.{pod.namespace}",)
    return (*profiles, f"ksa.{pod.namespace}.{pod.service_account}") if pod.service_account else profiles


def endpoint_ports(declared: Iterable[ContainerPort]) -> tuple[Port, ...]:
    """Those that a policy can name, or that the host forwards, in the order declared.

    Other protocols are left out, as no policy could match them.
    """
    return tuple(
        [
            Port(port.name, _PROTOCOLS[port.protocol], port.port, port.host_port, port.host_ip)
            for port in declared
            if port.port and (port.name or port.host_port) and port.protocol in _PROTOCOLS
        ]
    )


def _is_finished(pod: Pod) -> bool:
    """Whether the pod has given its addresses back: it ran to its end, or a DEL has emptied the annotation."""
    return pod.phase in _FINISHED_PHASES or (pod.deleting and pod.annotations.get(POD_IP) == "")


def _networks(pod: Pod) -> tuple[Cidr, ...]:
    """The pod's addresses, from the first source that has any. ValueError for a malformed one, finished or not."""
    annotations = pod.annotations
    several, one = annotations.get(POD_IPS), annotations.get(POD_IP)
    texts = list(pod.ips)
    if not texts and several:
        texts = several.split(",")
    elif not texts and one:
        texts = [one]
    elif not texts and (foreign := annotations.get(AWS_POD_IPS)):
        texts = foreign.split(",")
    networks = tuple([parse_prefix(text).network for text in texts])
    return () if _is_finished(pod) else networks


def _nats(pod: Pod, networks: tuple[Cidr, ...]) -> tuple[Nat, ...]:
    """Translations to the addresses that the pod has; its wishes are read only once it has any."""
    if not networks:
        return ()
    nats = floating_nats(pod.annotations.get(FLOATING_IPS, ""), networks)
    return tuple([nat for nat in nats if nat.internal != NO_ADDRESS])
