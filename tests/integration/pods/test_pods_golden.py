"""Everything the original was recorded to do with pods in a cluster, done again by our executables.

`ACCEPTED` is the whole list of deviations: per recording a pattern for the line that tells of it, and why.
"""

from __future__ import annotations

import re

import pytest

from integration.plugin.replay import recording
from integration.pods.kubernetes_replay import KubernetesReplay
from integration.pods.world import PodHost

V1 = [
    *("kdd-add-del", "kdd-add-del-0.3.1", "kdd-floating", "kdd-host-local-podcidr", "kdd-host-local-ranges"),
    *("kdd-hwaddr", "kdd-ipaddrs", "kdd-ipaddrs-bad", "kdd-ipaddrs-two-v4", "kdd-ipaddrsnoipam"),
    *("kdd-ipaddrsnoipam-off", "kdd-late-del", "kdd-missing-pod", "kdd-pool-pod", "kdd-pool-unknown", "kdd-qos"),
    "kdd-ten-pods",
]
V3 = ["kdd3-specific-strict", "kdd3-ten-pods"]
ACCEPTED: dict[str, list[tuple[str, str]]] = {}


def replayed(host: PodHost, name: str) -> list[str]:
    replay = KubernetesReplay(host, recording(name))
    found = [line for number in range(len(replay.steps)) for line in replay.step(number)]
    patterns = [pattern for pattern, _ in ACCEPTED.get(name, [])]
    return [line for line in found if not any(re.fullmatch(pattern, line) for pattern in patterns)]


@pytest.mark.stores("v1")
@pytest.mark.parametrize("name", V1)
def test_answers_objects_and_kernel_are_as_recorded_in_v1(bare_pods: PodHost, name: str) -> None:
    if name == "kdd-host-local-ranges":  # it was recorded after another, which had used the first address
        state = bare_pods.folder / "networks" / "k8s-pod-network"
        state.mkdir(parents=True)
        (state / "last_reserved_ip.0").write_text("10.50.1.2")
    assert not (lines := replayed(bare_pods, name)), "\n".join(lines)


@pytest.mark.stores("v3")
@pytest.mark.parametrize("name", V3)
def test_answers_and_objects_are_as_recorded_in_v3(bare_pods: PodHost, name: str) -> None:
    assert not (lines := replayed(bare_pods, name)), "\n".join(lines)
