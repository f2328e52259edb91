"""Profiles: what an endpoint without any policy may do.

Invariant: a profile is made once per network, and never changed by an ADD that finds one.
"""

from __future__ import annotations

from domain.resource import NO_LABELS, Metadata
from domain.value import Value
from domain.workload.identity import KUBERNETES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Rule(Value):
    """`action` is Allow, Deny, Log or Pass; `source` a selector or "". Other members are kept as JSON text."""

    action: str
    source_selector: str = ""
    unknown: tuple[tuple[str, str], ...] = ()


class Profile(Value):
    metadata: Metadata
    ingress: tuple[Rule, ...] = ()
    egress: tuple[Rule, ...] = ()
    labels_to_apply: Mapping[str, str] = NO_LABELS
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


def allow_profile(network: str, orchestrator: str) -> Profile:
    """The profile made for a network that has none: endpoints of the network reach each other and everything out.

    Under Kubernetes anyone may come in, since policy is Kubernetes' own.
    """
    source = "" if orchestrator == KUBERNETES else f"has({network})"
    return Profile(Metadata(network), (Rule("Allow", source),), (Rule("Allow"),), {network: ""})
