"""Every port resolves both ways, through the container and through wiring, to the same kind of object."""

from __future__ import annotations

import subprocess
import sys

import pytest
from dependency_injector import providers

from adapters.memory.log import RecordingLog
from domain.cni.netconf import IpamSettings, NetConf
from entrypoints.wiring import calico as wiring
from entrypoints.wiring.container import Container
from entrypoints.wiring.plain_container import PlainContainer
from ports.clock import Clock
from ports.cluster import Cluster
from ports.dataplane import Dataplane
from ports.datastore import Datastore
from ports.ipam_plugin import IpamPlugin
from ports.lock import Lock
from ports.node import ThisNode
from ports.readiness import Readiness
from ports.runtime import Runtime

PORTS = {
    "clock": Clock,
    "cluster": Cluster,
    "dataplane": Dataplane,
    "datastore": Datastore,
    "ipam_plugin": IpamPlugin,
    "lock": Lock,
    "node": ThisNode,
    "readiness": Readiness,
}


@pytest.fixture
def netconf(tmp_path):
    return NetConf(
        datastore_type="sqlite",
        sqlite_path=str(tmp_path / "d.db"),
        ipam_lock_file=str(tmp_path / "lock"),
        ipam=IpamSettings(type="host-local"),
    )


@pytest.fixture
def container(netconf):
    made = Container()
    made.netconf.override(netconf)
    made.environment.override({"CNI_PATH": "/nowhere"})
    made.log.override(RecordingLog())
    return made


@pytest.mark.parametrize("port", PORTS)
def test_a_port_resolves_both_ways_to_the_same_adapter(container, netconf, port):
    contained = getattr(container, port)()
    wired = getattr(wiring.open_runtime(netconf, {"CNI_PATH": "/nowhere"}, RecordingLog()), port)
    assert isinstance(contained, PORTS[port])
    assert type(contained) is type(wired)
    assert getattr(container, port)() is contained


@pytest.mark.parametrize("port", PORTS)
def test_a_container_without_the_package_has_the_same_ports(container, netconf, port):
    plain = PlainContainer()
    plain.netconf.override(netconf)
    plain.environment.override({"CNI_PATH": "/nowhere"})
    plain.log.override(RecordingLog())
    assert type(getattr(plain, port)()) is type(getattr(container, port)())
    assert getattr(plain, port)() is getattr(plain, port)()


def test_a_container_without_the_package_has_no_other_ports():
    with pytest.raises(AttributeError):
        PlainContainer().former  # noqa: B018 - asking is the test


def test_the_ports_are_all_that_wiring_opens(container):
    runtime = container.runtime()
    assert isinstance(runtime, Runtime)
    assert set(runtime._open) - {"former"} | {"clock"} == set(PORTS)  # an operator gives no DEL


def test_every_provider_of_the_container_resolves(container):
    for name, provider in container.providers.items():
        assert isinstance(provider, providers.Provider)
        assert getattr(container, name)() is not None


def test_settings_reach_the_environment(container):
    assert container.exported() == {"CNI_PATH": "/nowhere", "DATASTORE_TYPE": "sqlite"}


def test_only_a_container_that_may_create_makes_a_datastore(container, netconf, tmp_path):
    deadline = container.clock().deadline(10)
    with pytest.raises(Exception, match="no such file"):
        container.datastore().open(deadline)
    container.datastore.reset()
    container.create.override(True)
    with container.datastore() as made:
        made.open(deadline)
    assert (tmp_path / "d.db").exists()


def test_declaring_the_container_loads_no_adapter():
    code = (
        "import sys, entrypoints.wiring.container; print([name for name in sys.modules if name.startswith('adapters')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
