"""An API server that is away, silent, a stranger or slow, before and in the middle of calls (K02, K03, L03, P04).

Invariant: a call ends in its time, with an answer or with one error of code 11 that names the server; a DEL has taken
the device by then, within ten seconds; afterwards nothing is lost, and the repeated call succeeds.
"""

from __future__ import annotations

import base64
import fcntl
import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from integration.faults.test_etcd_outages import Gate
from integration.kubefaults.kube_rig import TRY_AGAIN_LATER, KubeRig, KubeRigs, text_of
from integration.plugin.host import Answer
from integration.plugin.kubernetes_store import POD_IPS
from integration.pods.world import Sandbox
from services.apiserver import ApiServer
from services.etcd import Authority
from services.kube_proxy import Action, Exchange, When
from services.request_faults import after, answer, at, before, delay, every, numbered, page, stall, status

DELS_TIME = 10.0  # seconds
START = 20.0  # seconds that a busy machine may need to start a program
WHOLE = 6  # seconds for a call that waits in vain

# --- a restart ------------------------------------------------------------------------------------------------------


MOMENTS: list[tuple[str, When, bool]] = [
    ("ADD", numbered(1), False),
    ("ADD", numbered(3), True),
    ("ADD", at("POST", "/blockaffinities"), True),
    ("ADD", at("PUT", "/ipamblocks"), True),
    ("ADD", at("PATCH", "/pods"), False),
    ("DEL", numbered(1), True),
    ("DEL", at("PUT", "/ipamblocks"), False),
    ("DEL", at("DELETE", "/ipamhandles"), True),
]


def test_the_server_is_killed_and_comes_back_in_the_middle_of_calls(own_rigs: KubeRigs) -> None:
    """Each call has sent a request of another kind; some have been carried out, and none has been answered."""
    rigs, gate = own_rigs, Gate()
    server = rigs.one.served.server
    assert isinstance(server, ApiServer)
    with ExitStack() as undo:
        extra = [rigs.spare(undo) for _ in range(len(MOMENTS) - len(rigs.all))]
        work = list(zip([*rigs.all, *extra], MOMENTS))
        sandboxes = [prepared(rig, verb) for rig, (verb, _, _) in work]
        with ThreadPoolExecutor(len(work)) as pool:
            for rig, (_, moment, carried_out) in work:
                rig.proxy.arm(moment, (after if carried_out else before)(gate.pass_through), times=1)
            answers = [pool.submit(rig.call, verb, sandbox) for (rig, (verb, _, _)), sandbox in zip(work, sandboxes)]
            gate.wait(len(work))
            server.kill()
            try:
                for rig, _ in work:
                    rig.proxy.cut()
                gate.opened.set()
            finally:
                server.start()
        for (rig, (verb, _, _)), sandbox, pending in zip(work, sandboxes, answers):
            finish(rig, verb, sandbox, pending.result())
        rigs.one.everything_agrees()


def prepared(rig: KubeRig, verb: str) -> Sandbox:
    """On a node of its own; for a DEL networked."""
    rig.new_node()
    sandbox = rig.pod()
    if verb == "DEL":
        rig.networked(sandbox, rig.add(sandbox))
    rig.proxy.forget()
    return sandbox


def finish(rig: KubeRig, verb: str, sandbox: Sandbox, answer: Answer) -> None:
    """It has succeeded, or fails with code 11; then what a runtime does."""
    rig.proxy.forget()
    if answer.exit != 0:
        answer.error(TRY_AGAIN_LATER, rig.proxy.url)
    if verb == "DEL":
        rig.offline(sandbox)
    elif answer.exit == 0:
        rig.networked(sandbox, answer)
    if verb == "ADD" and answer.exit != 0:
        rig.delete(sandbox).silent()
        rig.gone(sandbox)
        rig.networked(sandbox, rig.add(sandbox))
    rig.delete(sandbox).silent()
    rig.gone(sandbox)


# --- no way, or the wrong one ---------------------------------------------------------------------------------------


def black_hole(rig: KubeRig, undo: ExitStack) -> dict[str, str]:
    """Packets get lost."""
    undo.callback(rig.net.ip, "link", "del", "hole")
    rig.net.ip("link", "add", "hole", "type", "veth", "peer", "name", "nobody")
    for name in ("nobody", "hole"):
        rig.net.ip("link", "set", name, "up")
    rig.net.ip("addr", "add", "10.99.0.1/24", "dev", "hole")
    rig.net.ip("neigh", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:01", "dev", "hole")
    return {"server": "https://10.99.0.2:6443"}


def closed_port(_rig: KubeRig, _undo: ExitStack) -> dict[str, str]:
    return {"server": "https://127.0.0.1:1"}


def silent_port(rig: KubeRig, undo: ExitStack) -> dict[str, str]:
    """Connections are taken, and nobody says anything in them."""
    undo.callback(rig.way.stalled.clear)
    rig.way.stalled.set()
    return {"server": f"https://127.0.0.1:{rig.way.port}"}


def stranger(rig: KubeRig, _undo: ExitStack) -> dict[str, str]:
    """Somebody else's certificates are trusted."""
    other = Authority(rig.folder / "other", "another authority")
    return {"certificate_authority_data": base64.b64encode(other.ca.read_bytes()).decode()}


def plain_http(rig: KubeRig, _undo: ExitStack) -> dict[str, str]:
    """The wrong scheme for that port."""
    return {"server": rig.proxy.url.replace("https", "http")}


def acting(action: Action, when: When = every) -> Callable[[KubeRig, ExitStack], dict[str, str]]:
    def arm(rig: KubeRig, undo: ExitStack) -> dict[str, str]:
        undo.callback(rig.proxy.forget)
        rig.proxy.arm(when, action)
        return {}

    return arm


def head_only(exchange: Exchange) -> None:
    """Headers, and not a word more."""
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
    exchange.hang()


OUTAGES: dict[str, tuple[Callable[[KubeRig, ExitStack], dict[str, str]], str]] = {
    "black hole": (black_hole, "10.99.0.2:6443"),
    "closed port": (closed_port, "connection refused"),
    "silent port": (silent_port, "deadline exceeded while waiting for"),
    "wrong authority": (stranger, "certificate"),
    "no TLS there": (plain_http, "http://127.0.0.1:"),
    "no answer": (acting(stall), "deadline exceeded while waiting for"),
    "headers only": (acting(head_only), "deadline exceeded while waiting for"),
    "503": (acting(answer(503, b"upstream connect error")), "503"),
    "503 in JSON": (acting(answer(503, status(503, "ServiceUnavailable", "not yet"))), "not yet"),
    "HTML, 200": (acting(page(200)), "is not that of a Kubernetes API server"),
    "HTML, 404": (acting(page(404)), "is not that of a Kubernetes API server"),
    "HTML, 502": (acting(page(502)), "502"),
    "empty, 200": (acting(answer(200)), "is not that of a Kubernetes API server"),
    "a list, 200": (acting(answer(200, b"[]")), "is not that of a Kubernetes API server"),
    "redirect": (acting(answer(302, Location="https://127.0.0.1:1/login")), "is not that of a Kubernetes API server"),
}


def test_p04_k02_k03_no_api_server_is_told_in_time_and_without_the_device(rigs: KubeRigs) -> None:
    """For every kind of outage an ADD, and the DEL of a pod that was networked before; then both again."""

    def attempt(rig: KubeRig, name: str) -> None:
        arrange, told = OUTAGES[name]
        rig.new_node()
        sandbox = rig.pod()
        with broken(rig, arrange):
            refused, seconds = rig.timed("ADD", sandbox, timeout_seconds=WHOLE)
        refused.error(TRY_AGAIN_LATER, told)
        assert seconds < WHOLE + START, seconds
        rig.gone(sandbox)
        rig.networked(sandbox, rig.add(sandbox))
        with broken(rig, arrange):
            refused, seconds = rig.timed("DEL", sandbox)
        refused.error(TRY_AGAIN_LATER, told)
        assert seconds < DELS_TIME + START, seconds
        assert sandbox.inside.names() == {"lo"}
        assert rig.holds(sandbox, "k8s-pod-network") != []  # it could not be released
        rig.delete(sandbox).silent()
        rig.gone(sandbox)

    rigs.each(list(OUTAGES), attempt)
    rigs.one.everything_agrees()


@contextmanager
def broken(rig: KubeRig, arrange: Callable[[KubeRig, ExitStack], dict[str, str]]) -> Iterator[None]:
    """The rig's configuration leads to the outage meanwhile."""
    path = rig.folder / "kubeconfig"
    with ExitStack() as undo:
        changes = arrange(rig, undo)
        rig.proxy.kubeconfig(path, token=rig.served.token, **changes)
        yield
    rig.proxy.kubeconfig(path, token=rig.served.token)


# --- slow -----------------------------------------------------------------------------------------------------------


@contextmanager
def held_by_an_outsider(lock: Path) -> Iterator[None]:
    """Somebody else's program has the host's lock."""
    lock.touch()
    with lock.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def test_l03_a_slow_server_and_a_busy_lock_leak_no_handles(v1: KubeRig) -> None:
    """Waiting for the lock does not eat the time for the datastore; what was told to come again later succeeds then.

    The report's numbers, divided by about four: 16 ADDs at once, then 16 DELs while the lock is never free.
    """
    sandboxes = [v1.pod() for _ in range(16)]
    v1.proxy.arm(every, delay(0.1))
    settle(v1, "ADD", sandboxes)
    addresses = [v1.address(sandbox) for sandbox in sandboxes]
    assert len(set(addresses)) == len(sandboxes)
    assert set(v1.store.handles()) == {f"k8s-pod-network.{sandbox.identity}" for sandbox in sandboxes}
    with held_by_an_outsider(v1.folder / "ipam.lock"):
        settle(v1, "DEL", sandboxes)
    v1.proxy.forget()
    assert v1.store.handles() == {}
    for sandbox in sandboxes:
        v1.gone(sandbox)
    v1.everything_agrees()


def settle(rig: KubeRig, verb: str, sandboxes: list[Sandbox]) -> None:
    """All at once, and those that were told to come again later again, until all have succeeded."""
    left = list(sandboxes)
    for _ in range(10):
        with ThreadPoolExecutor(len(left)) as pool:
            answers = list(pool.map(lambda one: rig.call(verb, one, timeout_seconds=15), left))
        for one in answers:
            assert one.exit == 0 or one.error(TRY_AGAIN_LATER)
        left = [sandbox for sandbox, one in zip(left, answers) if one.exit != 0]
        if not left:
            return
    pytest.fail(f"{len(left)} of {len(sandboxes)} have not succeeded: {text_of(answers[-1])}")


def test_k03_an_error_in_html_is_never_taken_for_an_answer_about_a_pod(v1: KubeRig) -> None:
    """A page that says 404 does not say that there is no such pod: a DEL that believed it would lose the address."""
    sandbox = v1.pod()
    v1.networked(sandbox, v1.add(sandbox))
    for part in ("/pods/", "/ipamhandles/", "/ipamblocks/"):
        v1.forget_notes()
        v1.proxy.arm(at("GET", part), page(404))
        v1.delete(sandbox).error(TRY_AGAIN_LATER, "is not that of a Kubernetes API server")
        assert v1.holds(sandbox, "k8s-pod-network") != []
    v1.proxy.forget()
    v1.delete(sandbox).silent()
    v1.gone(sandbox)


def test_a_write_that_is_carried_out_when_its_call_is_over_goes_with_the_next_del(v1: KubeRig) -> None:
    """A runtime's SIGTERM in the middle of an ADD, whose last write is still on its way. It names the sandbox."""
    sandbox = v1.pod()
    gate = Gate()
    v1.proxy.arm(at("PATCH", "/pods"), before(gate.pass_through), times=1)
    process = v1.start(v1.environment("ADD", sandbox))
    assert process.stdin
    process.stdin.write(json.dumps(v1.netconf()).encode())
    process.stdin.close()
    process.stdin = None
    gate.wait(1)
    process.terminate()
    out, err = process.communicate(timeout=60)
    Answer(process.returncode, out.decode(), err.decode()).error(TRY_AGAIN_LATER, "SIGTERM")
    v1.gone(sandbox)
    gate.opened.set()
    ends = time.monotonic() + 30
    while not v1.annotations(sandbox).get(POD_IPS):
        assert time.monotonic() < ends
        time.sleep(0.05)
    v1.delete(sandbox).silent()
    v1.gone(sandbox)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_del_that_is_ended_while_the_kernel_deletes_its_device_is_finished_by_the_next(
    v1: KubeRig, number: signal.Signals
) -> None:
    """Before its first request neither namespace shows the device any more; nothing of the call is left afterwards."""
    sandbox = v1.pod()
    v1.networked(sandbox, v1.add(sandbox))
    gate = Gate()
    v1.proxy.arm(numbered(1), before(gate.pass_through), times=1)
    process = v1.start(v1.environment("DEL", sandbox))
    assert process.stdin
    process.stdin.write(json.dumps(v1.netconf()).encode())
    process.stdin.close()
    process.stdin = None
    gate.wait(1)
    v1.offline(sandbox)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    said = Answer(process.returncode, out.decode(), err.decode())
    if number == signal.SIGKILL:
        assert said.exit == -number
    else:
        said.error(TRY_AGAIN_LATER, "SIGTERM")
    gate.opened.set()
    v1.proxy.forget()
    assert v1.holds(sandbox, "k8s-pod-network") != []
    v1.delete(sandbox).silent()
    v1.gone(sandbox)
