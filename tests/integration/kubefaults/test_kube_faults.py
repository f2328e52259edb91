"""Every request of a pod's ADD and DEL meets every fault in turn, on a real kube-apiserver (P04, K03).

The first ADD of a node is tried, which claims a block too, and the DEL that leaves the block empty, so that there are
all the requests that there can be. A fault happens once, as those of a server that is restarted or overloaded; or it
lasts, from one moment on, as an outage in the middle of a call.

Each request meets faults in both groups of Calico's resources. What depends on the group is what is asked for, not
what becomes of an answer, so at reads the faults are shared out between them, and at writes the second group meets
those that leave their outcome open.

Invariant: whatever happens, a call succeeds, or fails with one JSON error of code 11; a fault that has passed leaves
nothing behind; the repeated call succeeds; after a DEL nothing is left, and `tortie ipam check` has nothing to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.kubefaults.conftest import begun
from integration.kubefaults.kube_rig import TRY_AGAIN_LATER, KubeRig, KubeRigs
from integration.plugin.kubernetes_store import Served
from integration.pods.world import Sandbox
from services.kube_proxy import Action, Asked
from services.request_faults import (
    answer,
    close_when_idle,
    from_number,
    lose_reply,
    numbered,
    reset,
    stall,
    stall_after_head,
    status,
)

ADD, DEL = "ADD", "DEL"
SHORT = 5  # seconds for a call that waits in vain

BUSY = answer(429, status(429, "TooManyRequests"), Retry_After="1")
BROKEN, AWAY = answer(500, status(500, "InternalError")), answer(503, b"no endpoints available")
FAULTS: dict[str, Action] = {
    "429": BUSY,
    "500": BROKEN,
    "503": AWAY,
    "reply lost": lose_reply,
    "reset": reset,
    "closed when idle": close_when_idle,
    "stalled": stall,
    "stalled after its head": stall_after_head,
}
PASSING = ("429", "500", "503", "reset", "closed when idle")  # nothing has been carried out, or the answer has come
AT_READS = ("500", "reset", "stalled after its head")
OPEN = ("500", "reply lost", "reset", "stalled")  # a write may have been carried out
STALLS = ("stalled", "stalled after its head")
RACES: dict[str, Action] = {
    "POST": answer(409, status(409, "AlreadyExists", "it is there already")),
    "PUT": answer(409, status(409, "Conflict", "the object has been modified")),
    "PATCH": answer(409, status(409, "Conflict", "the object has been modified")),
    "DELETE": answer(409, status(409, "Conflict", "Precondition failed: ResourceVersion in precondition: 1")),
}


@dataclass(frozen=True)
class Trial:
    """A call, and a fault at one of its requests; `lasting`: at the later ones too."""

    verb: str
    fault: str
    number: int
    action: Action
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.fault} {'from' if self.lasting else 'at'} request {self.number}"

    def run(self, rig: KubeRig) -> int:
        """The exit code of the call that met the fault."""
        rig.new_node()
        sandbox = rig.pod()
        if self.verb == DEL:
            rig.networked(sandbox, rig.add(sandbox))
        exit_code = self._meet(rig, sandbox)
        if self.lasting:  # a runtime sends DEL first
            rig.delete(sandbox).silent()
            rig.gone(sandbox)
        if self.verb == ADD and exit_code:  # one more after a success gives a second address, as the original does
            rig.networked(sandbox, rig.add(sandbox))
        rig.delete(sandbox).silent()
        rig.gone(sandbox)
        return exit_code

    def _meet(self, rig: KubeRig, sandbox: Sandbox) -> int:
        rig.proxy.arm((from_number if self.lasting else numbered)(self.number), self.action, -1 if self.lasting else 1)
        answer, seconds = rig.timed(self.verb, sandbox, timeout_seconds=SHORT if self.fault in STALLS else None)
        met, _ = rig.proxy.met, rig.proxy.forget()
        assert met or (self.fault in STALLS and seconds >= SHORT)  # a busy machine may not get there in time
        assert seconds < 60
        if answer.exit != 0:
            answer.error(TRY_AGAIN_LATER, "https://127.0.0.1:")
            if self.verb == DEL:
                rig.offline(sandbox)
            elif not self.lasting:
                rig.gone(sandbox)
        elif self.verb == ADD:
            rig.networked(sandbox, answer)
        else:
            rig.gone(sandbox)
        return answer.exit


@pytest.fixture
def rigs(binaries: Path, folders: list[Path], served: Served, kind: str) -> Iterator[KubeRigs]:
    """In each group."""
    with begun(binaries, folders, served, kind) as rigs:
        yield rigs


@pytest.fixture
def requests(rigs: KubeRigs) -> dict[str, list[Asked]]:
    """What the calls ask for when nothing goes wrong."""
    rig = rigs.one
    rig.new_node()
    sandbox = rig.pod()
    rig.networked(sandbox, rig.add(sandbox))
    seen = {ADD: rig.proxy.asked}
    rig.proxy.forget()
    rig.delete(sandbox).silent()
    seen[DEL] = rig.proxy.asked
    rig.gone(sandbox)
    return seen


def test_calls_ask_for_what_this_suite_expects(requests: dict[str, list[Asked]]) -> None:
    """Else there are moments that it does not try any more."""
    written = {
        verb: [f"{one.method} {one.path.split('/')[4]}" for one in those if one.writes]
        for verb, those in requests.items()
    }
    claim = ["POST blockaffinities", "POST ipamblocks", "PUT blockaffinities"]
    assert written[ADD] == [*claim, "POST ipamhandles", "PUT ipamblocks", "PATCH gold"]
    assert written[DEL] == ["PATCH gold", "PUT ipamblocks", "DELETE ipamhandles"]


def is_tried(fault: str, asked: Asked, kind: str) -> bool:
    """At each request, or, if that would tell nothing new, where something is written or all begins."""
    if asked.writes or asked.number == 1:
        return kind == "v1" or fault in OPEN
    return fault in AT_READS and (AT_READS.index(fault) + asked.number) % 2 == (kind == "v1")


def test_each_fault_once_at_each_request(rigs: KubeRigs, requests: dict[str, list[Asked]]) -> None:
    trials = [
        Trial(verb, fault, asked.number, action)
        for fault, action in FAULTS.items()
        for verb, those in requests.items()
        for asked in those
        if is_tried(fault, asked, rigs.one.kind)
    ]
    exits = rigs.each(trials, lambda rig, trial: trial.run(rig))
    failed = Counter(trial.fault for trial, code in zip(trials, exits) if code)
    assert {fault: count for fault, count in failed.items() if fault in PASSING} == {}
    assert failed["stalled"]  # else they have not waited in vain
    rigs.one.everything_agrees()


def test_a_race_is_lost_at_each_write(rigs: KubeRigs, requests: dict[str, list[Asked]]) -> None:
    """R07: what another client has changed meanwhile is read again; nobody hears of it."""
    trials = [
        Trial(verb, "409", asked.number, RACES[asked.method])
        for verb, those in requests.items()
        for asked in those
        if asked.writes
    ]
    exits = rigs.each(trials, lambda rig, trial: trial.run(rig))
    assert dict(zip(map(str, trials), exits)) == dict.fromkeys(map(str, trials), 0)
    rigs.one.everything_agrees()


def test_an_outage_begins_at_each_write_and_lasts(rigs: KubeRigs, requests: dict[str, list[Asked]]) -> None:
    """What cannot be taken back is for the DEL that follows."""
    trials = [
        Trial(verb, fault, asked.number, FAULTS[fault], lasting=True)
        for verb, fault in ((ADD, "503"), (DEL, "reset"))
        for asked in requests[verb]
        if asked.writes
    ]
    exits = rigs.each(trials, lambda rig, trial: trial.run(rig))
    assert 0 not in exits
    rigs.one.everything_agrees()
