"""What pods that are gone have left behind, from what was found where.

Invariant: nothing found, nothing told; and each thing found is a line that says where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Found(NamedTuple):
    """On one node: links of pods, and results that the CNI library keeps of an ADD until its DEL."""

    links: Sequence[str]
    results: Sequence[str]


def leftovers(check: tuple[int, str], handles: Sequence[str], nodes: Mapping[str, Found]) -> list[str]:
    """`check` is the exit code of `tortie ipam check`, and what it said."""
    code, said = check
    lines = [] if code == 0 else [f"ipam check: {said}"]
    lines += [f"handle {name}" for name in handles]
    for node, found in nodes.items():
        lines += [f"{node}: link {name}" for name in found.links]
        lines += [f"{node}: result {name}" for name in found.results]
    return lines
