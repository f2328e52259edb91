"""A real etcd that does not answer, takes no more data, or forgets who somebody is, in the middle of calls (P04, K02).

Invariant: a call ends in its time with an answer or with one error of code 11 that names the endpoint; afterwards
nothing is lost, and the repeated call succeeds.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.faults.rig import TRY_AGAIN_LATER, Rig
from integration.plugin.host import Answer, is_held
from services.request_proxy import Moment, RequestProxy, Stall, When, writing

PAUSE = 30.0  # seconds
START = 12.0  # seconds that a busy machine may need to start some programs
NO_SPACE = "database space exceeded"


class Once:
    """A step for every write that does its work when a record is written for the first time only."""

    def __init__(self, proxy: RequestProxy, work: Callable[[str], None]) -> None:
        self._proxy, self._work = proxy, work
        self.done: list[str] = []

    def __call__(self) -> None:
        for key in self._proxy.requests[-1].writes.split():
            if key not in self.done:
                self.done.append(key)
                self._work(key)


def test_a_rival_and_a_compaction_come_between_read_and_write(rig: Rig) -> None:
    """Nobody needs a revision that is no longer the newest."""

    def interfere(key: str) -> None:
        texts = rig.etcd.texts()
        if key in texts:
            rig.etcd.put(key, texts[key])
        rig.compact()

    rig.reset()
    container = rig.host.container("c")
    rig.proxy.arm(writing(), step := Once(rig.proxy, interfere))
    rig.networked(container, rig.host.add(container))
    assert len(step.done) == 5  # affinity and block are written twice
    rig.proxy.arm(writing(), step := Once(rig.proxy, interfere))
    rig.host.delete(container).silent()
    assert len(step.done) == 3
    rig.recover()
    rig.gone(container)


# --- no space -------------------------------------------------------------------------------------------------------


def test_a_full_database_is_one_clear_error_and_the_call_works_once_there_is_room(
    binaries: Path, tmp_path: Path
) -> None:
    with ExitStack() as undo:
        rig = Rig(binaries, tmp_path, undo, "--quota-backend-bytes", "1048576")
        rig.reset()
        old, new = rig.host.container("o"), rig.host.container("n")
        rig.networked(old, rig.host.add(old))
        before = rig.host.left()
        fill(rig)

        rig.host.add(new).error(TRY_AGAIN_LATER, NO_SPACE, rig.proxy.url)
        assert rig.host.left() == before
        rig.host.delete(old).error(TRY_AGAIN_LATER, NO_SPACE, rig.proxy.url)
        assert old.inside.names() == {"lo"}

        make_room(rig)
        rig.host.delete(old).silent()
        rig.host.delete(new).silent()
        rig.gone(old)
        rig.networked(new, rig.host.add(new))
        rig.operator_checks()


def fill(rig: Rig) -> None:
    """Until the server takes no more."""
    for number in range(100):
        try:
            rig.etcd.put(f"/other/{number}", "x" * 65536)
        except OSError:
            return
    pytest.fail("the quota does nothing")


def make_room(rig: Rig) -> None:
    for key in rig.etcd.texts():
        if key.startswith("/other/"):
            rig.etcd.drop(key)
    rig.compact()
    rig.etcd.ask("maintenance/defragment", {})
    rig.alarm(active=False)


@pytest.mark.parametrize("number", range(1, 7))
def test_the_alarm_goes_off_before_a_write_of_an_add(rig: Rig, number: int) -> None:
    """What can be taken back without writing is; the DEL after the alarm does the rest."""
    rig.reset()
    container = rig.host.container("s")
    writes = 0

    def alarm() -> None:
        nonlocal writes
        writes += 1
        if writes == number:
            rig.alarm(active=True)

    rig.proxy.arm(writing(), alarm)
    rig.host.add(container).error(TRY_AGAIN_LATER, NO_SPACE, rig.proxy.url)
    rig.recover()
    assert container.inside.names() == {"lo"}
    assert rig.store.endpoints() == {}
    rig.alarm(active=False)
    rig.host.delete(container).silent()
    rig.gone(container, claiming=True)
    rig.networked(container, rig.host.add(container))


# --- sign-in --------------------------------------------------------------------------------------------------------


def test_tokens_that_expire_in_the_middle_are_replaced(binaries: Path, tmp_path: Path) -> None:
    """Before each write the call has waited so long that its token is no longer valid."""
    with ExitStack() as undo:
        rig = Rig(binaries, tmp_path, undo, "--auth-token-ttl", "1", "--bcrypt-cost", "4")
        rig.reset()
        rig.etcd.require_users(root="r00t", calico="cal1co")
        user = {"ETCD_USERNAME": "calico", "ETCD_PASSWORD": "cal1co"}
        container = rig.host.container("t")

        def call(verb: str) -> Answer:
            rig.proxy.arm(writing(), step := Once(rig.proxy, lambda _: time.sleep(2.5)))
            environment = rig.host.environment(verb, container, **user)
            answer = rig.host.raw(environment, json.dumps(rig.host.netconf()))
            assert step.done
            rig.recover()
            rig.etcd.sign_in("root", "r00t")  # this one's token has expired, too
            return answer

        rig.networked(container, call("ADD"))
        call("DEL").silent()
        rig.gone(container)


# --- no answer ------------------------------------------------------------------------------------------------------


class Line:
    """A way of its own from the host to the server, and a lock file of its own, for one container's calls."""

    def __init__(self, rig: Rig, undo: ExitStack, letter: str) -> None:
        self.rig = rig
        self.proxy = undo.enter_context(RequestProxy(rig.etcd.port, netns=rig.host.net.path))
        self.container = rig.host.container(letter)
        self.seconds = 0.0

    def call(self, verb: str, **more: object) -> Answer:
        began = time.monotonic()
        lock = str(self.rig.host.folder / f"{self.container.identity}.lock")
        whole = {"etcd_endpoints": self.proxy.url, "ipam_lock_file": lock, **more}
        answer = self.rig.host.call(verb, self.container, **whole)
        self.seconds = time.monotonic() - began
        return answer

    def is_free(self) -> bool:
        """Whether nobody holds the lock file."""
        return not is_held(self.rig.host.folder / f"{self.container.identity}.lock")


@pytest.fixture
def line(rig: Rig) -> Iterator[Callable[[str], Line]]:
    rig.reset()
    with ExitStack() as undo:
        yield lambda letter: Line(rig, undo, letter)


class Gate:
    """Where calls wait for each other: `pass_through` is a step, `wait` is for who opens it."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self.opened = threading.Event()

    def pass_through(self) -> None:
        self._arrived.release()
        self.opened.wait(60)

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self._arrived.acquire(timeout=60)


def test_a_member_pauses_for_30_seconds(rig: Rig, line: Callable[[str], Line]) -> None:
    """K02: calls in the middle wait and succeed; a DEL that has had no answer yet says so soon, without the device."""
    first, kept, late = line("f"), line("k"), line("l")
    first.call("ADD").result()  # claims the block
    gate = Gate()
    adding = [line("a") for _ in range(4)]
    deleting = [line("d") for _ in range(2)]
    for one in (kept, *deleting):
        one.call("ADD").result()
    moments: list[When] = [Moment(2, replied=False), writing("/handle/"), writing("/block/", replied=True)]
    moments += [writing("/workloadendpoints/"), writing("/block/"), writing("/workloadendpoints/")]
    waiting = list(zip([*adding, *deleting], ["ADD"] * 4 + ["DEL"] * 2))
    with ThreadPoolExecutor(len(waiting) + 1) as pool:
        for (one, _), moment in zip(waiting, moments):
            one.proxy.arm(moment, gate.pass_through)
        answers = [pool.submit(one.call, verb) for one, verb in waiting]
        gate.wait(len(waiting))
        rig.etcd.pause()
        try:
            paused = time.monotonic()
            gate.opened.set()
            late_add = pool.submit(late.call, "ADD")  # may wait, or say that it cannot connect
            kept.call("DEL").error(TRY_AGAIN_LATER, kept.proxy.url)
            assert kept.seconds < 10 + START
            assert kept.container.inside.names() == {"lo"}
            time.sleep(max(0.0, paused + PAUSE - time.monotonic()))
        finally:
            rig.etcd.resume()
        for (_, verb), answer in zip(waiting, answers):
            assert answer.result().exit == 0, (verb, answer.result())
        if late_add.result().exit != 0:
            late_add.result().error(TRY_AGAIN_LATER, late.proxy.url)
            assert late.container.inside.names() == {"lo"}
            late.call("ADD").result()
    addresses = {rig.address(one.container) for one in (first, late, *adding)}
    assert len(addresses) == 6
    rig.clean()
    for one in (kept, first, late, *adding, *deleting):
        one.call("DEL").silent()
        assert one.container.inside.names() == {"lo"}
    assert rig.host.left() == {}
    rig.clean()
    rig.operator_checks()


def test_p04_no_answer_ends_in_time(rig: Rig, line: Callable[[str], Line]) -> None:
    """Packets that get lost, a server that is silent from the start or after the headers of an answer."""
    budget = 6  # seconds

    def stall() -> None:
        raise Stall

    silences = {
        "black hole": None,
        "request unanswered": Moment(1, replied=False),
        "headers only, first": Moment(1, replied=True),
        "headers only, read": Moment(2, replied=True),
        "headers only, write": Moment(4, replied=True),
    }
    rig.host.net.ip("link", "add", "hole", "type", "veth", "peer", "name", "nobody")
    rig.host.net.ip("link", "set", "nobody", "up")
    rig.host.net.ip("addr", "add", "10.99.0.1/24", "dev", "hole")
    rig.host.net.ip("link", "set", "hole", "up")
    rig.host.net.ip("neigh", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:01", "dev", "hole")
    hole = "http://10.99.0.2:2379"
    line("f").call("ADD").result()  # claims the block
    cases = [(verb, name, line("p")) for verb in ("ADD", "DEL") for name in silences]
    for verb, _, one in cases:
        if verb == "DEL":
            one.call("ADD").result()

    def attempt(case: tuple[str, str, Line]) -> Answer:
        verb, name, one = case
        moment = silences[name]
        if moment is None:
            return one.call(verb, timeout_seconds=budget, etcd_endpoints=hole)
        one.proxy.arm(moment, stall)
        return one.call(verb, timeout_seconds=budget)

    with ThreadPoolExecutor(len(cases)) as pool:
        answers = list(pool.map(attempt, cases))
    for (verb, name, one), answer in zip(cases, answers):
        endpoint = one.proxy.url if silences[name] else hole
        answer.error(TRY_AGAIN_LATER, endpoint)
        assert one.seconds < (10 if verb == "DEL" else budget + 12) + START, (verb, name, one.seconds)
        assert one.container.inside.names() == {"lo"}, (verb, name)
        assert one.is_free(), (verb, name)
    for _, _, one in cases:
        one.proxy.listen()
        one.call("DEL").silent()
        address = one.call("ADD").result()["ips"][0]["address"].partition("/")[0]
        assert address == rig.address(one.container)
    rig.clean()
