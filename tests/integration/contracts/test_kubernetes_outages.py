"""The Kubernetes datastore while a real kube-apiserver stops, stalls and comes back, or lets us do too little."""

from __future__ import annotations

import threading
import time

import pytest

from adapters.kubernetes.api import Api
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.linux.clock import SystemClock
from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from ports.datastore import HandleKey, Handles, IPPools
from ports.errors import Expired, Unauthorized, Unavailable
from services.apiserver import ApiServer
from worlds.kubernetes_world import open_to

KEY = HandleKey("net1.c1")
ONE = Handle({Cidr.parse("10.0.0.64/30"): 1})


@pytest.fixture(scope="module")
def server():
    with ApiServer() as server:
        server.cluster.serve("v1")
        yield server


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def store(server, clock):
    server.cluster.clear()
    with KubernetesDatastore(Api(open_to(server), clock), clock) as store:
        yield store


def restarted(server) -> threading.Thread:
    """Comes back while somebody waits for it."""
    thread = threading.Thread(target=server.start)
    thread.start()
    return thread


def test_a_restart_of_the_server_is_not_seen(server, store, clock):
    created = store.create(KEY, ONE, clock.deadline(10))
    server.kill()
    coming = restarted(server)
    try:
        assert store.get(KEY, clock.deadline(30)) == created
        store.delete(KEY, created.revision, clock.deadline(30))
    finally:
        coming.join()
    assert store.list(Handles(), clock.deadline(30)) == ()


def test_a_server_that_is_away_is_told_within_a_dels_ten_seconds(server, store, clock):
    """K02: by the whole call, not by each of its steps."""
    store.create(KEY, ONE, clock.deadline(10))
    server.kill()
    began = time.monotonic()
    try:
        with KubernetesDatastore(Api(open_to(server), clock), clock) as late:
            with pytest.raises(Unavailable, match=f"^{server.url}: "):
                late.fetch(KEY, IPPools(), deadline=clock.deadline(60))
            with pytest.raises(Unavailable):
                late.create(HandleKey("net1.c2"), ONE, clock.deadline(60))
        assert time.monotonic() - began < 9
    finally:
        server.start()
    assert store.get(KEY, clock.deadline(30)).record == ONE


def test_a_server_that_stalls_is_waited_for_until_the_deadline(server, store, clock):
    """P04."""
    store.create(KEY, ONE, clock.deadline(10))
    server.pause()
    try:
        for verb in (lambda: store.get(KEY, clock.deadline(1)), lambda: store.create(KEY, ONE, clock.deadline(1))):
            began = time.monotonic()
            with pytest.raises(Expired, match=f"while waiting for Kubernetes API server {server.url}"):
                verb()
            assert 0.9 < time.monotonic() - began < 20
    finally:
        server.resume()
    assert store.get(KEY, clock.deadline(30)).record == ONE


@pytest.mark.parametrize("known", [False, True])
def test_who_may_not_is_told_what_in_the_servers_words(server, store, clock, known):
    server.cluster.add_namespace("gold")
    server.cluster.add_account("gold", "nobody")
    token = server.cluster.token("gold", "nobody")
    api = Api(open_to(server, token=token if known else "x" + token), clock)
    with KubernetesDatastore(api, clock) as other, pytest.raises(Unauthorized) as told:
        other.get(KEY, clock.deadline(10))
    text = str(told.value)
    assert text.startswith(f"connection is unauthorized: Kubernetes API server {server.url}: ")
    assert ('User "system:serviceaccount:gold:nobody" cannot get resource "ipamhandles"' in text) == known
    assert ("Unauthorized" in text) != known
    assert token not in text
