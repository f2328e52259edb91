"""What is said of settings that lead to no adapter."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.cni.netconf import NetConf
from entrypoints.wiring import dataplanes, datastores
from ports.errors import Refused


def test_an_unknown_datastore_is_told_those_that_there_are() -> None:
    environment, clock = {"DATASTORE_TYPE": "zoo"}, MemoryClock()
    with pytest.raises(Refused, match=r"^unknown datastore type: zoo$") as refused:
        datastores.datastore(environment, "", clock, datastores.api_servers(NetConf(), environment, clock))
    assert all(word in refused.value.details for word in ("datastore_type", "kubernetes", "etcdv3", "sqlite"))


def test_an_unknown_dataplane_is_told_those_that_there_are() -> None:
    with pytest.raises(Refused, match=r"^invalid dataplane type: bogus$") as refused:
        dataplanes.dataplane(NetConf(dataplane_type="bogus"), MemoryClock(), RecordingLog(), {})
    assert "dataplane_options" in refused.value.details
    assert '"grpc"' in refused.value.details


def test_a_list_of_endpoints_that_is_taken_otherwise_than_written_is_told_in_the_log() -> None:
    log = RecordingLog()
    environment = {"ETCD_ENDPOINTS": "http://a:1,https://b:1"}
    clock = MemoryClock()
    servers = datastores.api_servers(NetConf(), environment, clock)
    datastores.datastore(environment, "", clock, servers, log=log).close()
    assert "the first decides for all: http" in log.shown("warning")[0]
