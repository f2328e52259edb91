"""The life of a virtual machine as the original was recorded to network it, once more by our executable (D09).

ADD of the first pod, its DEL, ADD of the next pod, ADD of a migration's target, and the DEL of both: the same answers,
and the same blocks, affinities, handles and pods, all of their members but the resourceVersion.
"""

from __future__ import annotations

from typing import Any

from integration.kubevirt.machines import MachineHost
from integration.plugin.replay import recording
from integration.pods.kubernetes_replay import NAMESPACE, KubernetesReplay
from services.custom_resources import GROUPS

RECORDINGS = {"v1": "kubevirt-persist", "v3": "kubevirt3-persist"}
MACHINE = "db"
_METADATA = ("labels", "annotations", "ownerReferences")


class MachineReplay(KubernetesReplay):
    """Whoever recorded it made the machine before the first call, and each pod before the call about it."""

    def begin(self, records: dict[str, Any]) -> None:
        super().begin({key: value for key, value in records.items() if not key.startswith("pods/")})
        self._there: set[str] = set()
        add, kubevirt = self.host.cluster.add, GROUPS["kubevirt"]
        above = add("kubevirt", "virtualmachines", MACHINE, {}, namespace=NAMESPACE)["metadata"]["uid"]
        owner = {"apiVersion": kubevirt, "kind": "VirtualMachine", "name": MACHINE, "uid": above, "controller": True}
        made = add("kubevirt", "virtualmachineinstances", MACHINE, {}, namespace=NAMESPACE, ownerReferences=[owner])
        self._instance: str = made["metadata"]["uid"]

    def step(self, number: int) -> list[str]:
        for key, pod in self.steps[number]["datastore"].items():
            if key.startswith("pods/") and key not in self._there:
                self._there.add(key)
                metadata = {member: pod["metadata"][member] for member in _METADATA}
                metadata["ownerReferences"] = [one | {"uid": self._instance} for one in metadata["ownerReferences"]]
                name = pod["metadata"]["name"]
                self.host.cluster.add_pod(NAMESPACE, name, node=self._node_of(name), **metadata)
        return super().step(number)


def test_answers_and_objects_are_as_recorded(bare_host: MachineHost) -> None:
    replay = MachineReplay(bare_host, recording(RECORDINGS[bare_host.kind]))
    found = [line for number in range(len(replay.steps)) for line in replay.step(number)]
    assert len(replay.steps) == 6
    assert not found, "\n".join(found)
