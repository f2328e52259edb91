"""Conformance CNI-016 to CNI-020: `calico` whose containers a gRPC service connects, and what such a call may leave."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Container, Host
from integration.plugin.store import NODE, cluster_records
from services.dataplane_service import MAC, DataplaneService

NUMBERS = itertools.count()
ABSENT = "unix:///tmp/xxxx-nonexistent-dont-create-this-please.sock"


@pytest.fixture(params=["calico-ipam", "host-local"])
def host(bare_host: Host, request: pytest.FixtureRequest) -> Host:
    """Whatever hands out the addresses."""
    bare_host.store.create(cluster_records("10.0.0.0/24"))
    if request.param == "host-local":
        bare_host.use_host_local("10.0.0.0/24")
    return bare_host


@pytest.fixture
def service(host: Host):
    path = f"/tmp/cni_grpc_dataplane_test{os.getpid()}-{next(NUMBERS)}.sock"
    with ExitStack() as undo:
        undo.callback(Path(path).unlink, missing_ok=True)
        yield undo.enter_context(DataplaneService(f"unix://{path}"))


def options(service: DataplaneService | str, **more: Any) -> dict[str, Any]:
    """For netconf."""
    socket = service if isinstance(service, str) else service.target
    return {"dataplane_options": {"type": "grpc", "socket": socket, "extra": "option", **more}}


def test_cni_016_add_fails_when_nobody_listens(host: Host) -> None:
    container = host.container()
    host.add(container, **options(ABSENT)).error(11, "rpc error: code = Unavailable desc = ", ABSENT)
    assert host.left() == {}
    assert not Path(ABSENT.removeprefix("unix://")).exists()


def test_cni_017_the_service_is_asked_and_its_answer_used(host: Host, service: DataplaneService) -> None:
    container = host.container()
    result = host.add(container, **options(service, number=7, flag=True)).result()
    ((method, request),) = service.calls()
    (ip,) = request.pop("container_ips")
    assert (method, request) == (
        "Add",
        {
            "interface_name": "eth0",
            "netns": container.netns,
            "desired_host_interface_name": container.host_name,
            "settings": {},
            "container_routes": ["0.0.0.0/0", "::/0"],
            "workload": {
                "name": f"node--a-cni-{container.identity}-eth0",
                "namespace": "default",
                "endpoint": "eth0",
                "node": NODE,
                "orchestrator": "cni",
            },
            "dataplane_options": options(service)["dataplane_options"],  # texts only
        },
    )
    address, _, length = ip["address"].partition("/")
    by_local = host.ipam["type"] == "host-local"
    assert length == ("24" if by_local else "26")
    assert ip["gateway"] == ("10.0.0.1" if by_local else "<nil>")
    assert [one["address"] for one in result["ips"]] == [ip["address"]]
    assert [interface.get("mac") for interface in result["interfaces"]] == [None, MAC]
    (endpoint,) = host.store.endpoints().values()
    spec = endpoint["spec"]
    assert (spec["mac"], spec["interfaceName"], spec["ipNetworks"]) == (MAC, container.host_name, [f"{address}/32"])
    assert host.devices() == set()  # the kernel had nothing to do
    assert container.inside.names() == {"lo"}


def test_the_service_gets_mtu_forwarding_and_labels(host: Host, service: DataplaneService) -> None:
    labels = {"labels": [{"key": "k", "value": "v"}]}
    more = {
        "mtu": 1400,
        "container_settings": {"allow_ip_forwarding": True},
        "args": {"org.apache.mesos": {"network_info": {"labels": labels}}},
    }
    host.add(host.container(), **options(service), **more).result()
    ((_, request),) = service.calls()
    assert request["settings"] == {"allow_ip_forwarding": True, "mtu": 1400}
    assert request["workload"]["labels"] == {"k": "v"}


def test_cni_018_a_del_that_the_service_refuses_fails(host: Host, service: DataplaneService) -> None:
    container = host.container()
    host.add(container, **options(service)).result()
    service.answer(Del="fail:still busy")
    host.delete(container, **options(service)).error(999, "grpc dataplane error: still busy")
    assert service.methods() == ["Add", "Del"]
    service.answer(Del="ok")
    host.delete(container, **options(service)).silent()
    assert host.left() == {}


def test_cni_019_a_del_that_the_service_grants(host: Host, service: DataplaneService) -> None:
    container = host.container()
    host.add(container, **options(service)).result()
    host.delete(container, **options(service)).silent()
    method, request = service.calls()[-1]
    assert method == "Del"
    assert request == {
        "interface_name": "eth0",
        "netns": container.netns,
        "dataplane_options": options(service)["dataplane_options"],
    }
    assert host.left() == {}
    host.delete(container, **options(service)).silent()


def test_cni_020_an_add_that_the_service_refuses_fails(host: Host, service: DataplaneService) -> None:
    service.answer(Add="fail:no room")
    host.add(host.container(), **options(service)).error(999, "grpc dataplane error: no room")
    assert service.methods() == ["Add"]
    assert host.left() == {}


def test_the_namespace_may_be_one_that_only_the_service_knows(host: Host, service: DataplaneService) -> None:
    container = Container("abc123", "vm:7")
    host.add(container, **options(service)).result()
    host.delete(container, **options(service)).silent()
    assert [request["netns"] for _, request in service.calls()] == ["vm:7", "vm:7"]


def test_our_own_namespace_is_refused_all_the_same(host: Host, service: DataplaneService) -> None:
    container = Container("abc123", host.net.path)
    for call in (host.add, host.delete):
        call(container, **options(service)).error(8)
    assert service.calls() == []


def test_a_status_is_told_as_it_came(host: Host, service: DataplaneService) -> None:
    service.answer(Add="status:RESOURCE_EXHAUSTED:full")
    host.add(host.container(), **options(service)).error(999, "rpc error: code = ResourceExhausted desc = full")
    assert host.left() == {}


def test_a_name_that_cannot_be_stored_is_refused_and_the_device_taken_back(
    host: Host, service: DataplaneService
) -> None:
    service.answer(Add="ok:no mac")
    host.add(host.container(), **options(service)).error(999, "address no mac: invalid MAC address")
    assert service.methods() == ["Add", "Del"]
    assert host.left() == {}


def test_a_service_that_hangs_ends_with_the_call_and_leaves_nothing(host: Host, service: DataplaneService) -> None:
    service.answer(Add="hang")
    started = time.monotonic()
    answer = host.add(host.container(), **options(service), timeout_seconds=5)
    answer.error(11, f"gRPC dataplane {service.target}")
    assert time.monotonic() - started < 40
    assert service.methods() == ["Add", "Del"]
    assert host.left() == {}


def test_a_signal_during_the_call_undoes_everything(host: Host, service: DataplaneService) -> None:
    """L07"""
    service.answer(Add="hang")
    container = host.container()
    process = host.start(host.environment("ADD", container))
    process.stdin.write(_text(host, service))
    process.stdin.close()
    while not service.calls():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out = process.stdout.read().decode()
    assert process.wait(60) == 1
    assert "interrupted by SIGTERM during ADD" in out
    assert service.methods() == ["Add", "Del"]
    assert host.left() == {}


def test_an_answer_that_nobody_reads_is_taken_back(host: Host, service: DataplaneService) -> None:
    process = host.start(host.environment("ADD", host.container()))
    process.stdout.close()
    process.stdin.write(_text(host, service))
    process.stdin.close()
    assert process.wait(30) == 1
    assert service.methods() == ["Add", "Del"]
    assert host.left() == {}


def _text(host: Host, service: DataplaneService) -> bytes:
    return json.dumps(host.netconf(**options(service))).encode()


def test_check_compares_what_can_be_seen(host: Host, service: DataplaneService) -> None:
    """C10: the service cannot be asked about devices; the records can be compared."""
    container = host.container()
    more = options(service) | {"cniVersion": "0.4.0"}
    previous = host.add(container, **more).result()
    host.call("CHECK", container, prevResult=previous, **more).silent()
    assert service.methods() == ["Add"]
    moved = previous | {"ips": [{**previous["ips"][0], "address": "10.9.9.9/32"}]}
    host.call("CHECK", container, prevResult=moved, **more).error(999)


@pytest.mark.parametrize("socket", [None, "", 7])
def test_a_service_must_be_named(host: Host, socket: Any) -> None:
    """As recorded."""
    given = {"type": "grpc"} if socket is None else {"type": "grpc", "socket": socket}
    host.add(host.container(), dataplane_options=given).error(999, "GRPC dataplane socket not configured")
    assert host.left() == {}


def test_stderr_is_not_the_librarys(host: Host, service: DataplaneService) -> None:
    assert host.add(host.container(), **options(service)).stderr == ""
    lines = host.add(host.container(), **options(ABSENT)).stderr.splitlines()
    assert [line for line in lines if " cni-plugin/" not in line] == []
