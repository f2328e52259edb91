"""`calico -t`: what it says of a datastore that does not answer, and of one that is not ready (CNI-034, CNI-035)."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.log import RecordingLog
from domain.cluster import ClusterInformation
from domain.cni.errors import CniError
from domain.cni.netconf import NetConf
from domain.resource import Metadata
from ports.clock import Deadline
from ports.datastore import ClusterInformationKey
from ports.errors import Expired, Unauthorized, Unavailable
from ports.runtime import Runtime
from usecases import check_connection as use_case

LATER = Deadline(60.0)


class Failing(MemoryDatastore):
    """Every question ends with the error."""

    def __init__(self, clock, error):
        super().__init__(clock)
        self.error = error
        self.deadlines = []

    def fetch(self, *needs, deadline):
        self.deadlines.append(deadline)
        raise self.error


def run(datastore, log=None):
    def unused():
        raise AssertionError("the connection test asks nobody but the datastore")

    others = dict.fromkeys(("cluster", "dataplane", "ipam_plugin", "node", "lock", "readiness", "former"), unused)
    runtime = Runtime(datastore=lambda: datastore, clock=MemoryClock(), log=log or RecordingLog(), **others)
    use_case.check_connection(NetConf(), runtime, LATER)


@pytest.fixture
def datastore():
    return MemoryDatastore(MemoryClock())


def test_a_datastore_that_is_ready_is_silent(datastore):
    datastore.create(
        ClusterInformationKey("default"), ClusterInformation(Metadata("default"), datastore_ready=True), LATER
    )
    run(datastore)


@pytest.mark.parametrize("ready", [False, None])
def test_a_datastore_that_is_not_ready_is_an_error(datastore, ready):
    datastore.create(
        ClusterInformationKey("default"), ClusterInformation(Metadata("default"), datastore_ready=ready), LATER
    )
    with pytest.raises(CniError, match="not ready"):
        run(datastore)


def test_an_answer_that_does_not_come_in_two_seconds_is_told_as_recorded_and_the_log_names_the_endpoint():
    datastore, log = Failing(MemoryClock(), Expired("etcd http://a:1")), RecordingLog()
    with pytest.raises(Unavailable) as caught:
        run(datastore, log)
    assert str(caught.value) == "error getting ClusterInformation: context deadline exceeded"
    assert datastore.deadlines == [Deadline(2.0)]
    assert "http://a:1" in log.shown("error")[0]


@pytest.mark.parametrize("error", [Unavailable("etcd http://a:1: gone"), Unauthorized("etcd http://a:1: no")])
def test_other_failures_are_told_as_they_are(error):
    with pytest.raises(Exception, match=r"error getting ClusterInformation: .*etcd http://a:1"):
        run(Failing(MemoryClock(), error))
