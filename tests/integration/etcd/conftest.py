"""An etcd for each module, and datastores on it, over the transport that TORTIE_TRANSPORT names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.linux.clock import SystemClock
from domain.cni.netconf import NetConf
from entrypoints.wiring import datastores
from services.etcd import Etcd


@pytest.fixture(scope="module")
def server() -> Iterator[Etcd]:
    with Etcd() as etcd:
        yield etcd


@pytest.fixture
def clean(server: Etcd) -> Etcd:
    server.clear()
    return server


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def opened(clock: SystemClock) -> Iterator[Callable[..., EtcdDatastore]]:
    """Makes a datastore as the plugins do, from variables; it is closed after the test."""
    made: list[EtcdDatastore] = []

    def opened(**environment: object) -> EtcdDatastore:
        variables = {name: str(value) for name, value in environment.items()}
        variables["TORTIE_TRANSPORT"] = os.environ.get("TORTIE_TRANSPORT", "")
        store = datastores.datastore(variables, "", clock, datastores.api_servers(NetConf(), variables, clock))
        assert isinstance(store, EtcdDatastore)
        made.append(store)
        return store

    yield opened
    for one in made:
        one.close()
