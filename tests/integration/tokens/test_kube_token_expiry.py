"""Calls go on while the tokens that they go by expire one after the other, because the refresher is in time.

The server signs tokens for ten minutes and more, so a proxy puts others in the place of what it gives, which the
server's own key signs: each is good for `LIFE` seconds, and then it is the server that refuses it.

Invariant: no call fails, and nothing is left of any of them.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from integration.kubefaults.kube_rig import KubeRig
from integration.plugin.kubernetes_store import ACCOUNT
from integration.tokens.pod import RefresherPod, await_that, end
from services.apiserver import ApiServer
from services.kube_client import Refused
from services.kube_proxy import Exchange, Reply
from services.request_faults import at

LIFE = 19  # seconds: below twenty the refresher comes back every five to ten
LENIENCE = 60  # seconds that a server lets an expired token pass, for clocks that differ
ADDS, PODS = 200, 5


class ShortTokens:
    """What the proxy does to the server's answers; `given` has each token and when it was given."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.given: list[tuple[str, float]] = []

    def __call__(self, exchange: Exchange) -> None:
        reply = exchange.forward()
        answer = json.loads(reply.body)
        if reply.status == 201:
            token = self.server.sign_token(*ACCOUNT, seconds=LIFE - LENIENCE)
            self.given.append((token, time.monotonic()))
            answer["status"]["token"], answer["spec"]["expirationSeconds"] = token, LIFE
        exchange.pass_on(Reply(reply.status, reply.headers, json.dumps(answer).encode()))

    def is_refused(self, token: str) -> bool:
        try:
            self.server.connect(token).get("/api/v1/namespaces/none/pods/none")
        except Refused as error:
            return error.status == 401
        return False

    def longest_used(self) -> float:
        """Seconds until the next one was given."""
        return max(later - earlier for (_, earlier), (_, later) in pairwise(self.given))


@pytest.fixture
def tokens(rig: KubeRig) -> ShortTokens:
    assert isinstance(rig.served.server, ApiServer)
    return ShortTokens(rig.served.server)


def test_no_call_fails_while_tokens_expire(rig: KubeRig, pod: RefresherPod, tokens: ShortTokens) -> None:
    """Two hundred ADDs, each with its DEL, and as many more as it takes until two tokens have expired.

    A server does not look again for ten seconds at a token that it has found good.
    """
    rig.begin()
    rig.proxy.arm(at("POST", "/token"), tokens)
    process = pod.start()
    await_that(lambda: pod.token, why=lambda: pod.log)
    rig.use(pod.path)
    sandboxes = [rig.pod() for _ in range(PODS)]
    added = 0
    with ThreadPoolExecutor(PODS) as threads:
        while added < ADDS or len(tokens.given) < 3 or not tokens.is_refused(tokens.given[1][0]):
            for answer in threads.map(rig.add, sandboxes):
                answer.result()
            for answer in threads.map(rig.delete, sandboxes):
                answer.silent()
            added += PODS
    assert all(tokens.is_refused(token) for token, _ in tokens.given[:2])
    assert tokens.longest_used() < LIFE
    assert process.poll() is None
    assert end(process) == 0
    for sandbox in sandboxes:
        rig.gone(sandbox)
    rig.everything_agrees()


def test_without_a_refresher_a_token_that_expires_ends_all_calls(
    rig: KubeRig, pod: RefresherPod, tokens: ShortTokens
) -> None:
    """What the other test would see if tokens were not renewed; and the first call after a renewal succeeds."""
    rig.begin()
    rig.proxy.arm(at("POST", "/token"), tokens)
    sandbox = rig.pod()
    rig.use(pod.path)
    expired = tokens.server.sign_token(*ACCOUNT, seconds=-LENIENCE - 1)
    pod.once()
    pod.path.write_text(pod.path.read_text().replace(pod.token, expired))
    rig.add(sandbox).error(999, "connection is unauthorized", "expired at")
    assert pod.once().exit == 0
    rig.add(sandbox).result()
    rig.delete(sandbox).silent()
