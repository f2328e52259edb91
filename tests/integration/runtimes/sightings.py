"""What lists of pods, seen one after the other, say about them: how long each took, and whether two had one address.

    sightings.see(pods, now)          each list, with the second at which it was asked for
    sightings.doubled                 a line for each two pods that had an address at once
    sightings.starts()                one row for each pod that became ready

Invariant: an address is doubled only if one list has it for two pods that run. A pod that ends says its addresses until
it is gone, though they are free before; so does one that has failed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Pod = dict[str, Any]


class Start(NamedTuple):
    pod: str
    node: str
    seconds: float
    """From the first list with the pod to the first that called it ready."""


class Sightings:
    def __init__(self) -> None:
        self._created: dict[str, float] = {}
        self._ready: dict[str, Start] = {}
        self.doubled: list[str] = []

    def see(self, pods: Sequence[Pod], now: float) -> None:
        holders: dict[str, Pod] = {}
        for pod in pods:
            uid = pod["metadata"]["uid"]
            since = self._created.setdefault(uid, now)
            if _is_ready(pod):
                start = Start(pod["metadata"]["name"], pod["spec"].get("nodeName", ""), now - since)
                self._ready.setdefault(uid, start)
            for address in _held(pod):
                other = holders.setdefault(address, pod)
                if other is not pod:
                    self._tell(f"{address}: {_described(other)} and {_described(pod)}")

    def _tell(self, line: str) -> None:
        if line not in self.doubled:  # it stays in one list after the other
            self.doubled.append(line)

    def starts(self) -> dict[str, Start]:
        """By the pod's uid."""
        return dict(self._ready)


def _is_ready(pod: Pod) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def _held(pod: Pod) -> list[str]:
    ends = "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") != "Running"
    named: list[dict[str, Any]] = [] if ends else pod["status"].get("podIPs", [])
    return [one["ip"] for one in named]


def _described(pod: Pod) -> str:
    return f"{pod['metadata']['name']} ({pod['metadata']['uid']}) on {pod['spec'].get('nodeName', 'no node')}"


def table(starts: Mapping[str, Start], networked: Mapping[str, float]) -> str:
    """One line for each pod, the slowest first; `networked` is seconds in our plugin by the pod's uid."""
    both = [(one, networked[uid]) for uid, one in starts.items() if uid in networked]
    both.sort(key=lambda row: -row[0].seconds)
    lines = ["| pod | node | until ready, s | in the plugin, s | share |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.pod} | {one.node} | {one.seconds:.2f} | {ours:.3f} | {ours / one.seconds:.0%} |" for one, ours in both
    ]
    return "\n".join(lines)


def summary(starts: Mapping[str, Start], networked: Mapping[str, float]) -> str:
    """How the pods of that table are spread."""
    both = [(one.seconds, networked[uid]) for uid, one in starts.items() if uid in networked]
    columns = {
        "until ready, s": [until for until, _ in both],
        "in the plugin, s": [ours for _, ours in both],
        "the plugin's share, %": [100 * ours / until for until, ours in both],
    }
    lines = [f"| {len(both)} pods | median | 90 of 100 below | most |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {' | '.join(f'{quantile(seen, part):.2f}' for part in (0.5, 0.9, 1.0))} |"
        for name, seen in columns.items()
    ]
    return "\n".join(lines)


def quantile(seen: Sequence[float], part: float) -> float:
    """The least of them that so large a part does not exceed."""
    return sorted(seen)[max(0, math.ceil(part * len(seen)) - 1)]
