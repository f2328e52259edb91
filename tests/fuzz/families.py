"""All targets. Each module beside this one has those of a family of parsers."""

from __future__ import annotations

from fuzz import (
    addresses,
    calls,
    cni,
    json_texts,
    kubeconfigs,
    machine,
    operating,
    records,
    tokens,
    upgrades,
    windows,
    wire,
)
from fuzz.target import Target

FAMILIES = (
    addresses,
    calls,
    cni,
    json_texts,
    kubeconfigs,
    machine,
    operating,
    records,
    tokens,
    upgrades,
    windows,
    wire,
)


def targets() -> dict[str, Target]:
    """By name."""
    found = {target.name: target for family in FAMILIES for target in family.TARGETS}
    assert len(found) == sum(len(family.TARGETS) for family in FAMILIES), "two targets of one name"
    return found
