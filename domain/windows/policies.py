"""Which policies the endpoint of a container has: what leaves untranslated, how the host is reached, who may come in.

Traffic to pods, and to the host's own subnet, must not be given the host's address on its way out. The configuration
has exceptions for services; those for pools and subnet are put beside them. Where a pool says that nothing is to be
translated the policy itself goes.

Two things only the host knows, while it is being done: `{management}` stands for its address, `{management_subnet}`
for the subnet of that.

Invariant: pure; policies keep the order of the configuration, and new ones follow them.
"""

from __future__ import annotations

from domain.value import Value
from domain.windows.conf import OUTBOUND_NAT, Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Address, Cidr
    from domain.json_text import Json
    from domain.windows.conf import WindowsConf

MANAGEMENT, MANAGEMENT_SUBNET = "{management}", "{management_subnet}"
ROUTE, PROVIDER_ADDRESS = "ROUTE", "PA"
_EXCEPTIONS = "ExceptionList"


class OutgoingNat(Value):
    """Whether what a container sends out gets the host's address, and which destinations are `exceptions` from that."""

    wanted: bool = True
    exceptions: tuple[Cidr, ...] = ()


def endpoint_policies(conf: WindowsConf, nat: OutgoingNat, address: Address) -> tuple[Policy, ...]:
    """All of them, for a container with that address."""
    exceptions = [str(cidr) for cidr in nat.exceptions]
    if conf.host_subnet_exclusion:
        exceptions.append(MANAGEMENT_SUBNET)
    policies = list(with_exceptions(conf.policies, exceptions) if nat.wanted else without_nat(conf.policies))
    if conf.is_overlay:
        policies.append(Policy.of(PROVIDER_ADDRESS, PA=MANAGEMENT))
    else:
        policies.append(Policy.of(ROUTE, DestinationPrefix=f"{MANAGEMENT}/32", NeedEncap=True))
    if conf.loopback_dsr:
        policies.append(Policy.of(OUTBOUND_NAT, Destinations=[str(address)]))
    return tuple(policies)


def without_nat(given: Iterable[Policy]) -> tuple[Policy, ...]:
    return tuple([policy for policy in given if not policy.is_of(OUTBOUND_NAT)])


def with_exceptions(given: Iterable[Policy], exceptions: list[str]) -> tuple[Policy, ...]:
    """Each policy of outgoing NAT with these exceptions after its own; one of them alone if there is none."""
    policies = [_extended(policy, exceptions) if policy.is_of(OUTBOUND_NAT) else policy for policy in given]
    if not any(policy.is_of(OUTBOUND_NAT) for policy in policies):
        policies.append(_extended(Policy(OUTBOUND_NAT), exceptions))
    return tuple(policies)


def _extended(policy: Policy, exceptions: list[str]) -> Policy:
    settings = policy.members()
    known = settings.get(_EXCEPTIONS)
    own: list[Json] = known if isinstance(known, list) else []
    return Policy.of(policy.type, **{**settings, _EXCEPTIONS: [*own, *[one for one in exceptions if one not in own]]})
