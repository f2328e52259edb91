"""Which of a pod's ports its endpoint lists: those that a policy can name, or that the host forwards.

Invariant: a listed port has a number, a protocol that policy knows, and a name or a port on the host.
"""

from __future__ import annotations

from domain.workload.endpoint import Port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.workload.pod import ContainerPort

_PROTOCOLS = {"": "TCP", "TCP": "TCP", "UDP": "UDP", "SCTP": "SCTP"}


def endpoint_ports(declared: Iterable[ContainerPort]) -> tuple[Port, ...]:
    """In the order declared; other protocols are left out, as no policy could match them."""
    return tuple(
        [
            Port(port.name, _PROTOCOLS[port.protocol], port.port, port.host_port, port.host_ip)
            for port in declared
            if port.port and (port.name or port.host_port) and port.protocol in _PROTOCOLS
        ]
    )
