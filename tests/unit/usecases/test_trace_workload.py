"""What happened to a workload, put together from log and records."""

from __future__ import annotations

import json

import pytest

from adapters.memory.host_view import MemoryHost
from adapters.memory.log_history import MemoryLogHistory
from domain.linux.link import Link
from domain.moment import SECOND, rfc3339
from domain.trace.subject import read_subject
from ports.errors import Unavailable
from usecases.trace_workload import DEFAULT_LOG, MOST_CALLS, MOST_OF_CALL, Host, Installed, installed, trace_workload
from worlds.one_node import NODE, OneNode


def record(second, call, message, **more):
    when = f"2026-11-29T12:{second // 60:02d}:{second % 60:02d}.000Z"
    return json.dumps({"time": when, "level": "info", "call": call, "plugin": "ipam", "message": message, **more})


def text(second, process, message):
    return f"2026-11-29 12:{second // 60:02d}:{second % 60:02d}.000 [INFO][{process}] ipam/x.py 1: {message}"


@pytest.fixture
def world():
    return OneNode()


def trace(world, subject, lines=(), node=NODE, gaps=(), view=None):
    host = Host(node, MemoryLogHistory(lines, gaps), view or MemoryHost())
    return trace_workload(read_subject(subject, "default"), world.work(), host)


def told(found, source="log"):
    return [event.text for event in found.events if event.source == source]


def test_an_address_leads_to_its_past_containers_and_their_calls(world):
    lines = [
        text(0, 1, "An old line of somebody else"),
        record(1, "a", "Taking", container="c-old-one", ips=["10.9.9.9/32"]),
        record(2, "a", "Warned."),
        record(3, "b", "CNI DEL succeeded.", container="c-old-one"),
        record(4, "c", "CNI ADD succeeded.", container="c-new-one", ips=["10.9.9.90/32"]),
        text(5, 7, "Before"),
        text(6, 7, "Passing over 10.9.9.9"),
        text(7, 8, "Another process"),
        "rubbish 10.9.9.9",
    ]
    found = trace(world, "10.9.9.9", lines)
    assert told(found) == [
        "ipam c-old-one: Taking ips=10.9.9.9/32",
        "ipam: Warned.",
        "ipam c-old-one: CNI DEL succeeded.",
        "ipam: Before",
        "ipam: Passing over 10.9.9.9",
    ]
    assert found.sought.containers == {"c-old-one"}
    assert found.notes == ()


def test_of_a_pod_that_is_refused_for_days_the_last_calls_are_told(world):
    """Each try is a call of a container of its own. To search each line for all of them took hours."""
    lines = [
        record(at // 2, f"{at:05}", text, container=f"c-{at:05}", pod="default/web-0")
        for at in range(MOST_CALLS + 50)
        for text in ("Refused.", "Undone.")
    ]
    found = trace(world, "web-0", lines)
    kept = range(50, MOST_CALLS + 50)
    assert told(found) == [f"ipam c-{at:05}: {text}" for at in kept for text in ("Refused.", "Undone.")]
    assert found.notes[0].startswith(f"The log has more of it: only the last {MOST_CALLS} calls are shown")
    assert len(found.sought.containers) == MOST_CALLS
    of_one = [record(1, "a", f"{at}.", pod="default/web-0") for at in range(MOST_OF_CALL + 1)]
    found = trace(world, "web-0", of_one)
    assert told(found) == [f"ipam: {at}." for at in range(1, MOST_OF_CALL + 1)]
    assert len(found.notes) == 1


def test_a_container_with_all_that_there_is_of_it(world):
    """The endpoint, the addresses, the handle and the device."""
    world.add("c1")
    (endpoint,) = world.endpoints()
    view = MemoryHost()
    view.devices = (Link(1, endpoint.interface_name, "veth", True, 1440, ""),)
    lines = [record(0, "a", "CNI ADD succeeded.", container="c1")]
    address = str(endpoint.ip_networks[0].address)
    found = trace(world, address, lines, view=view)
    assert told(found) == ["ipam c1: CNI ADD succeeded."]
    assert address in told(found, "address")[0]
    assert f"on node {NODE}" in told(found, "endpoint")[0]
    assert told(found, "device") == [f"device {endpoint.interface_name} is there, up, MTU 1440"]
    assert "c1 counts addresses: 1 in" in told(found, "handle")[0]
    assert [event.when is None for event in found.events] == sorted(event.when is None for event in found.events)


def test_what_is_on_another_node_is_told(world):
    world.add("c1")
    address = str(world.endpoints()[0].ip_networks[0].address)
    found = trace(world, address, node="another")
    assert told(found, "device") == []
    assert found.notes == (f"It is on node {NODE}, and this host is another; its log and its device are there",)


def test_devices_that_nobody_can_list_are_told(world):
    class Blind(MemoryHost):
        def links(self):
            raise Unavailable("no netlink")

    world.add("c1")
    address = str(world.endpoints()[0].ip_networks[0].address)
    found = trace(world, address, view=Blind())
    assert found.notes == ("Devices were not looked at: no netlink",)


def test_without_a_datastore_the_log_still_tells(world):
    def away(_verb, _key):
        raise Unavailable("away")

    world.datastore.before = away
    found = trace(world, "10.9.9.9", [record(0, "a", "Gone: 10.9.9.9")], gaps=("a gap",))
    assert told(found) == ["ipam: Gone: 10.9.9.9"]
    assert found.notes == ("The records were not looked at: away", "a gap")


def test_a_log_that_begins_later_than_the_workload_says_so(world):
    world.add("c1")
    address = str(world.endpoints()[0].ip_networks[0].address)
    then = world.clock.now() + 3600 * SECOND
    line = json.dumps({"time": rfc3339(then), "call": "a", "message": f"Something about {address}"})
    found = trace(world, address, [line])
    assert found.notes == (f"The log begins at {rfc3339(then)}; what was before is not in it",)
    assert trace(world, "10.9.9.9", [line]).notes == found.notes
    assert trace(world, "10.9.9.9", ["rubbish"]).notes == ()


CONF = {"cniVersion": "1.0.0", "name": "net", "type": "calico", "nodename": "n7", "log_file_path": "/var/log/x.log"}
OF_BRIDGE = {"cniVersion": "1.0.0", "name": "net", "type": "my-custom-cni", "logFile": "/var/log/y.log"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, Installed(DEFAULT_LOG, "host")),
        ({"1.conf": json.dumps(CONF), "0.txt": "x"}, Installed("/var/log/x.log", "n7")),
        ({"1.conf": json.dumps(OF_BRIDGE)}, Installed("/var/log/y.log", "host")),
        ({"1.conf": json.dumps({**CONF, "nodename": 5, "log_file_path": ""})}, Installed(DEFAULT_LOG, "host")),
        ({"1.conf": "rubbish"}, Installed(DEFAULT_LOG, "host")),
    ],
)
def test_what_is_installed_says_where_the_log_is(files, found):
    view = MemoryHost("Host", {f"/etc/cni/net.d/{name}": content for name, content in files.items()})
    assert installed(view, "/etc/cni/net.d") == found


def test_what_cannot_be_read_leaves_the_defaults():
    view = MemoryHost("host", {"/etc/cni/net.d/1.conf": json.dumps(CONF)})
    view.broken.add("/etc/cni/net.d/1.conf")
    assert installed(view, "/etc/cni/net.d") == Installed(DEFAULT_LOG, "host")
    view.broken.add("/etc/cni/net.d")
    assert installed(view, "/etc/cni/net.d") == Installed(DEFAULT_LOG, "host")
