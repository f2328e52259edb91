"""Credentials that change, expire or are refused, between calls and in the middle of one (C14, K02).

Tokens are a service account's, and it is the real server that refuses those that have expired; where a token has to
lose its force at a certain request of a call, the proxy refuses it in the server's words from then on.

Invariant: new credentials are read once and used at once; others are told at once, with where they come from and when
they expired; a DEL has taken the device by then, and a later DEL finishes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.kubefaults.kube_rig import TRY_AGAIN_LATER, KubeRig, KubeRigs
from integration.plugin.kubernetes_store import ACCOUNT
from services.apiserver import ApiServer
from services.kube_proxy import Asked, Exchange, relay
from services.request_faults import answer, status

FIRST_ADD, LAST_DEL = 14, 8  # requests of an ADD that claims a block, and of a DEL that empties it
FAST = 15.0  # seconds for an error about credentials, on a machine that has other things to do
LIBRARY = {"TORTIE_TRANSPORT": "library"}
REFUSED = answer(401, status(401, "Unauthorized", "Unauthorized"))


def expired_token(rig: KubeRig) -> str:
    """One of the plugin's account whose time was over an hour ago."""
    server = rig.served.server
    assert isinstance(server, ApiServer)
    return server.sign_token(*ACCOUNT, seconds=-3600)


def new_token(rig: KubeRig) -> str:
    return rig.cluster.token(*ACCOUNT, seconds=7200)


def replace(path: Path, text: str) -> None:
    """As kubelets and installers do."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.chmod(0o700 if text.startswith("#!") else 0o600)
    os.replace(beside, path)


# --- where a token may be -------------------------------------------------------------------------------------------


class Place:
    """`put` makes a token the one that the rig's configuration leads to."""

    def __init__(self, rig: KubeRig, put: Callable[[str], None]) -> None:
        self.rig, self.put = rig, put


def in_a_file(rig: KubeRig) -> Place:
    path = rig.folder / "token"
    rig.use(rig.proxy.kubeconfig(rig.folder / "kubeconfig", token_file=path))
    return Place(rig, lambda token: replace(path, token + "\n"))


def in_the_kubeconfig(rig: KubeRig) -> Place:
    path = rig.folder / "kubeconfig"

    def put(token: str) -> None:
        replace(path, rig.proxy.kubeconfig(rig.folder / "kubeconfig.other", token=token).read_text())

    return Place(rig, put)


def from_a_plugin(rig: KubeRig) -> Place:
    path = rig.folder / "give-token"
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}}
    rig.use(rig.proxy.kubeconfig(rig.folder / "kubeconfig", user=user))
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}

    def put(token: str) -> None:
        replace(path, f"#!/bin/sh\necho '{json.dumps({**credential, 'status': {'token': token}})}'\n")

    return Place(rig, put)


PLACES = {"token file": in_a_file, "kubeconfig": in_the_kubeconfig, "exec plugin": from_a_plugin}


class Revoking:
    """An action for all requests: the one of that number, and later ones, are refused to whoever has the old token.

    `step` is taken when the first of them has come, before it is looked at.
    """

    def __init__(self, number: int, old: str, step: Callable[[], None]) -> None:
        self.number, self.old, self.step = number, f"Bearer {old}", step
        self.taken = False

    def __call__(self, exchange: Exchange) -> None:
        if exchange.asked.number >= self.number:
            if not self.taken:
                self.taken = True
                self.step()
            if exchange.asked.headers.get("authorization") == self.old:
                return REFUSED(exchange)
        return relay(exchange)


def bearers(asked: list[Asked]) -> list[str]:
    """The tokens that were shown, without repetitions."""
    shown = [one.headers.get("authorization", "") for one in asked]
    return [one for number, one in enumerate(shown) if number == 0 or shown[number - 1] != one]


@pytest.mark.parametrize("transport", ["lean", "library"])
@pytest.mark.parametrize("place", PLACES)
def test_c14_a_token_that_was_replaced_between_calls_is_just_used(v1: KubeRig, place: str, transport: str) -> None:
    v1.more_environment = LIBRARY if transport == "library" else {}
    where = PLACES[place](v1)
    sandbox = v1.pod()
    first, second = v1.served.token, new_token(v1)
    where.put(first)
    v1.networked(sandbox, v1.add(sandbox))
    assert bearers(v1.proxy.asked) == [f"Bearer {first}"]
    where.put(second)
    v1.proxy.forget()
    v1.delete(sandbox).silent()
    assert bearers(v1.proxy.asked) == [f"Bearer {second}"]
    v1.gone(sandbox)


@pytest.mark.parametrize("place", PLACES)
def test_c14_a_token_that_has_expired_and_is_replaced_meanwhile_is_read_again_once(v1: KubeRig, place: str) -> None:
    """The real server refuses the first one; the new one comes before the refusal does."""
    where = PLACES[place](v1)
    sandbox = v1.pod()
    old, new = expired_token(v1), v1.served.token
    where.put(old)
    v1.proxy.arm(lambda asked: asked.number == 1, Revoking(1, "-", lambda: where.put(new)))
    v1.networked(sandbox, v1.add(sandbox))
    assert bearers(v1.proxy.asked) == [f"Bearer {old}", f"Bearer {new}"]
    assert {asked.status for asked in v1.proxy.asked if old in asked.headers["authorization"]} == {401}


def test_c14_a_token_is_replaced_before_any_request_of_a_call(rigs: KubeRigs) -> None:
    """One re-read and one retry, wherever it happens; nothing is lost, and the call succeeds."""

    def attempt(rig: KubeRig, case: tuple[str, int]) -> None:
        verb, number = case
        where = in_a_file(rig)
        old, new = rig.served.token, new_token(rig)
        where.put(old)
        rig.new_node()
        sandbox = rig.pod()
        if verb == "DEL":
            rig.networked(sandbox, rig.add(sandbox))
        rig.proxy.arm(lambda _: True, Revoking(number, old, lambda: where.put(new)))
        answer = rig.call(verb, sandbox)
        asked = rig.proxy.asked
        assert answer.exit == 0, answer
        assert bearers(asked) == [f"Bearer {old}", f"Bearer {new}"]
        assert {one.status for one in asked if one.status >= 400} <= {401, 404}
        rig.proxy.forget()
        if verb == "ADD":
            rig.networked(sandbox, answer)
            rig.delete(sandbox).silent()
        rig.gone(sandbox)

    rigs.each(
        [("ADD", number) for number in range(1, FIRST_ADD + 1)]
        + [("DEL", number) for number in range(1, LAST_DEL + 1)],
        attempt,
    )
    rigs.one.everything_agrees()


# --- refused for ever -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["lean", "library"])
def test_c14_an_expired_token_is_a_fast_error_that_says_which_and_since_when(v1: KubeRig, transport: str) -> None:
    v1.more_environment = LIBRARY if transport == "library" else {}
    path = v1.folder / "kubeconfig"
    token = expired_token(v1)
    v1.proxy.kubeconfig(path, token=token)
    sandbox = v1.pod()
    refused, seconds = v1.timed("ADD", sandbox)
    told = refused.error(999, "connection is unauthorized", str(path), "user 'test'", "expired at 20", v1.proxy.url)
    assert token not in json.dumps(told)
    assert seconds < FAST
    assert len([asked for asked in v1.proxy.asked if "/clusterinformations/" in asked.path]) == 1  # not again
    v1.gone(sandbox)


@pytest.mark.parametrize("place", PLACES)
def test_c14_k02_a_del_without_good_credentials_takes_the_device_and_is_finished_later(v1: KubeRig, place: str) -> None:
    where = PLACES[place](v1)
    sandbox = v1.pod()
    where.put(v1.served.token)
    v1.networked(sandbox, v1.add(sandbox))
    address = v1.address(sandbox)
    where.put(expired_token(v1))
    for _ in range(2):
        refused, seconds = v1.timed("DEL", sandbox)
        refused.error(TRY_AGAIN_LATER, "Unauthorized", "expired at 20", str(v1.folder))
        assert seconds < FAST
        v1.offline(sandbox)
        assert v1.holds(sandbox, "k8s-pod-network") == [address]
    where.put(v1.served.token)
    v1.delete(sandbox).silent()
    v1.gone(sandbox)
    v1.everything_agrees()


def test_c14_credentials_that_are_missing_or_broken_are_told_at_once(v1: KubeRig) -> None:
    """Code 7: nothing but a change of the configuration helps. A DEL takes the device all the same, and is repeated."""
    where = in_a_file(v1)
    sandbox = v1.pod()
    where.put(v1.served.token)
    v1.networked(sandbox, v1.add(sandbox))
    token = v1.folder / "token"
    for text, told in ((None, "No such file"), ("", "the file is empty"), ("two words", "characters that no token")):
        token.unlink() if text is None else replace(token, text)
        other = v1.pod()
        v1.add(other).error(7, str(token), told)
        assert other.inside.names() == {"lo"}
    v1.delete(sandbox).error(TRY_AGAIN_LATER, str(token), "put back what ADD had")
    v1.offline(sandbox)
    where.put(v1.served.token)
    v1.delete(sandbox).silent()
    v1.gone(sandbox)


def test_a_del_whose_section_is_gone_goes_by_calicos_own_kubeconfig(v1: KubeRig) -> None:
    folder, config = v1.folder / "net.d", v1.proxy.kubeconfig(v1.folder / "kubeconfig", token=v1.served.token)
    folder.mkdir()
    v1.use(config)
    v1.more_environment = {"TORTIE_CNI_CONF_DIR": str(folder)}
    sandbox, lost = v1.pod(), {"kubernetes": None, "policy": None}
    v1.networked(sandbox, v1.add(sandbox))
    for _ in range(2):
        v1.delete(sandbox, **lost).error(TRY_AGAIN_LATER, "no configuration has been provided", str(folder))
        v1.offline(sandbox)
    config.rename(folder / "calico-kubeconfig")
    for more in (lost, {}):  # the section is gone, and the file that it names
        v1.delete(sandbox, **more).silent()
    v1.gone(sandbox)
    v1.everything_agrees()


def test_credentials_that_are_refused_from_any_request_on_leave_nothing_for_ever(rigs: KubeRigs) -> None:
    """401 or 403 in the middle: an ADD fails at once; what it could not take back, the later DEL does."""

    def attempt(rig: KubeRig, case: tuple[str, int, int]) -> None:
        verb, code, number = case
        rig.new_node()
        sandbox = rig.pod()
        if verb == "DEL":
            rig.networked(sandbox, rig.add(sandbox))
        reason = {401: "Unauthorized", 403: "Forbidden"}[code]
        rig.proxy.arm(lambda asked: asked.number >= number, answer(code, status(code, reason, "nobody knows you")))
        refused, seconds = rig.timed(verb, sandbox)
        rig.proxy.forget()
        refused.error(TRY_AGAIN_LATER if verb == "DEL" else 999, "nobody knows you")
        assert seconds < 3 * FAST
        rig.offline(sandbox)
        rig.delete(sandbox).silent()
        rig.gone(sandbox)
        rig.networked(sandbox, rig.add(sandbox))
        rig.delete(sandbox).silent()
        rig.gone(sandbox)

    cases = [("ADD", 401, number) for number in (1, 3, *range(FIRST_ADD - 6, FIRST_ADD + 1))]
    cases += [("ADD", 403, number) for number in (4, FIRST_ADD - 4, FIRST_ADD - 2, FIRST_ADD)]
    cases += [("DEL", 401, number) for number in (1, 3, 4, 5, 6, LAST_DEL)]
    cases += [("DEL", 403, number) for number in (1, 4, LAST_DEL)]
    rigs.each(cases, attempt)
    rigs.one.everything_agrees()
