"""Every request of an ADD and of a DEL meets every fault in turn, on a real etcd (issue: faults; cases P04, C16).

The faults are: the connection is reset before the server gets the request, or after it has done what was asked (the
reply is lost); the server is killed before or after, and comes back; the call itself is killed before or after. The
first ADD of a node is tried, which claims a block too, so it has all the writes that there are.

Invariant: whatever happens an ADD gives one address or fails with code 11 and has taken everything back; the repeated
call succeeds; after a DEL nothing is left; `tortie ipam check` has nothing to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from integration.faults.rig import TRY_AGAIN_LATER, Rig, Rigs
from integration.plugin.host import Answer, Container
from services.request_proxy import Cut, Moment, Request, Step

ADD, DEL = "ADD", "DEL"
KILLED = -9


class Faulty:
    """A call with a fault at one moment, as a runtime sees it: `answer` says how it ended."""

    def __init__(self, rig: Rig, fault: str, moment: Moment) -> None:
        self.rig, self.fault, self.moment = rig, fault, moment

    def call(self, verb: str, container: Container) -> Answer:
        host = self.rig.host
        process = host.start(host.environment(verb, container))

        def kill() -> None:
            process.kill()
            process.wait()

        step: Step = {"connection reset": cut, "server killed": self._crash, "call killed": kill}[self.fault]
        self.rig.proxy.arm(self.moment, step)
        out, err = process.communicate(json.dumps(host.netconf()).encode(), timeout=60)
        assert len(self.rig.proxy.reached) == 1, self.rig.proxy.requests
        self.rig.recover()
        return Answer(process.returncode, out.decode(), err.decode())

    def _crash(self) -> None:
        self.rig.crash()
        raise Cut


def cut() -> None:
    raise Cut


FAULTS = [(fault, replied) for fault in ("connection reset", "server killed", "call killed") for replied in (0, 1)]


@pytest.fixture(scope="module")
def requests(rigs: Rigs) -> dict[str, list[Request]]:
    """What an ADD and a DEL ask for when nothing goes wrong."""
    rig = rigs.one
    rig.reset()
    container = rig.host.container("r")
    rig.networked(container, rig.host.add(container))
    seen = {ADD: rig.proxy.requests}
    rig.proxy.listen()
    rig.host.delete(container).silent()
    seen[DEL] = rig.proxy.requests
    rig.gone(container)
    return seen


def test_calls_write_what_this_suite_expects(requests: dict[str, list[Request]]) -> None:
    """Else there are moments that it does not try any more."""
    kinds = {verb: [kind(request) for request in those if request.writes] for verb, those in requests.items()}
    assert kinds[ADD] == ["affinity", "block", "affinity", "handle and block", "endpoint", "profile"]
    assert kinds[DEL] == ["handle and block", "endpoint"]


def kind(request: Request) -> str:
    parts = {"host": "affinity", "assignment": "block", "handle": "handle"}
    parts |= {"workloadendpoints": "endpoint", "profiles": "profile"}
    keys = request.writes.split()
    return " and ".join([next(name for part, name in parts.items() if f"/{part}/" in key) for key in keys])


def moments(requests: list[Request], fault: str, replied: int) -> Iterator[Moment]:
    """At every request; where that is dear and tells nothing new, only at the first and where something is written."""
    for request in requests:
        if request.writes or request.number == 1 or fault == "connection reset":
            yield Moment(request.number, replied=bool(replied))


@pytest.mark.parametrize(("fault", "replied"), FAULTS)
def test_add(rigs: Rigs, requests: dict[str, list[Request]], fault: str, replied: int) -> None:
    def attempt(rig: Rig, moment: Moment) -> int:
        container = rig.host.container("a")
        answer = Faulty(rig, fault, moment).call(ADD, container)
        if answer.exit == KILLED:
            rig.host.delete(container).silent()  # as a runtime does after a call that has not answered
        if answer.exit == 0:
            rig.networked(container, answer)
        else:
            assert answer.exit == KILLED or answer.error(TRY_AGAIN_LATER, rig.proxy.url)
            rig.gone(container, claiming=True)
        rig.networked(container, rig.host.add(container))
        rig.host.delete(container).silent()
        rig.gone(container)
        return answer.exit

    exits = rigs.each(list(moments(requests[ADD], fault, replied)), attempt)
    assert (KILLED in exits) == (fault == "call killed"), exits
    rigs.one.operator_checks()


@pytest.mark.parametrize(("fault", "replied"), FAULTS)
def test_del(rigs: Rigs, requests: dict[str, list[Request]], fault: str, replied: int) -> None:
    def attempt(rig: Rig, moment: Moment) -> int:
        container = rig.host.container("d")
        rig.networked(container, rig.host.add(container))
        answer = Faulty(rig, fault, moment).call(DEL, container)
        if answer.exit not in (0, KILLED):
            answer.error(TRY_AGAIN_LATER, rig.proxy.url)
            assert container.inside.names() == {"lo"}  # the device does not wait for the datastore
        rig.host.delete(container).silent()
        rig.gone(container)
        return answer.exit

    exits = rigs.each(list(moments(requests[DEL], fault, replied)), attempt)
    assert (KILLED in exits) == (fault == "call killed"), exits
    rigs.one.operator_checks()
