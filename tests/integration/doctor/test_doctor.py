"""`tortie doctor` on a host with real programs, a real kernel and a real etcd: each fault is found, and only that."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from integration.doctor.scratch import BIN, CONFIGURATION, KUBECONFIG, NET, NODE, ScratchHost, jwt
from services.etcd import EtcdServer

DAY = 86_400
NODES = "/calico/resources/v3/projectcalico.org/nodes"
Fault = Callable[[ScratchHost, EtcdServer], object]


@pytest.fixture
def host(etcd: EtcdServer, binaries: Path, tmp_path: Path) -> Iterator[ScratchHost]:
    etcd.clear()
    port = urlsplit(etcd.url).port or 2379
    with ExitStack() as undo:
        settings = {
            "datastore_type": "etcdv3",
            "etcd_endpoints": f"http://127.0.0.1:{port}",
            "kubernetes": {"kubeconfig": f"/{KUBECONFIG}"},
        }
        host = ScratchHost(tmp_path, binaries, undo, settings, port)
        now = time.time()
        host.write_kubeconfig(jwt(now - 60, now + DAY - 60))
        made = host.run("tortie", "init", "--pool", "10.244.0.0/16", "--node", NODE, ETCD_ENDPOINTS=etcd.url)
        # the other namespace's loopback leads to the same server, through the proxy at the same port
        assert made.returncode == 0, made
        yield host


def test_a_sound_host_has_no_complaint_and_is_left_as_it_was(host: ScratchHost, etcd: EtcdServer) -> None:
    host.add_container()
    before = {path: path.lstat().st_mtime_ns for path in host.root.rglob("*")}, etcd.texts(), host.net.names()
    assert host.complaints() == []
    assert host.complaints("--strict") == []
    assert ({path: path.lstat().st_mtime_ns for path in host.root.rglob("*")}, etcd.texts(), host.net.names()) == before
    told = host.run("tortie", "doctor", "--root", str(host.root))
    lines = told.stdout.splitlines()
    assert (told.returncode, told.stderr, lines[-1]) == (0, "", "21 ok, 0 warnings, 0 errors.")
    assert len(lines) == 23


def _replace(path: str, text: str, mode: int) -> Fault:
    return lambda host, _etcd: host.write(path, text, mode)


def _chmod(path: str, mode: int) -> Fault:
    return lambda host, _etcd: host.path(path).chmod(mode)


def _program(text: str) -> Fault:
    def plant(host: ScratchHost, _etcd: EtcdServer) -> None:
        path = host.path(f"{BIN}/tortie-old")
        host.path(f"{BIN}/my-custom-cni").unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        path.rename(host.path(f"{BIN}/my-custom-cni"))

    return plant


def _token(issued: float, expires: float) -> Fault:
    return lambda host, _etcd: host.write_kubeconfig(jwt(time.time() + issued, time.time() + expires))


def _folder(path: str) -> Fault:
    def plant(host: ScratchHost, _etcd: EtcdServer) -> None:
        host.path(path).unlink(missing_ok=True)
        host.path(path).mkdir(parents=True)

    return plant


def _drop(kind: str) -> Fault:
    def plant(_host: ScratchHost, etcd: EtcdServer) -> None:
        (key,) = [key for key in etcd.texts() if f"/{kind}/" in key]
        etcd.drop(key)

    return plant


def _not_ready(_host: ScratchHost, etcd: EtcdServer) -> None:
    (key,) = [key for key in etcd.texts() if "/clusterinformations/" in key]
    record = json.loads(etcd.texts()[key])
    record["spec"]["datastoreReady"] = False
    etcd.put(key, json.dumps(record))


def _vxlan_pool(_host: ScratchHost, etcd: EtcdServer) -> None:
    (key,) = [key for key in etcd.texts() if "/ippools/" in key]
    record = json.loads(etcd.texts()[key])
    record["spec"]["vxlanMode"] = "Always"
    etcd.put(key, json.dumps(record))


def _without_device(host: ScratchHost, _etcd: EtcdServer) -> None:
    host.ip("link", "delete", host.add_container())


def _pipe(path: str) -> Fault:
    def plant(host: ScratchHost, _etcd: EtcdServer) -> None:
        host.path(path).unlink(missing_ok=True)
        os.mkfifo(host.path(path))

    return plant


RESERVED = "var/lib/cni/networks/net1/10.0.0.2"
FAULTS: dict[str, tuple[Fault, list[tuple[str, str]]]] = {
    "another configuration before ours": (
        _replace(f"{NET}/05-flannel.conflist", '{"name": "f", "plugins": [{"type": "flannel"}]}', 0o644),
        [("other-configurations", "error")],
    ),
    "half a configuration before ours": (
        _replace(f"{NET}/05-half.conf", "{", 0o644),
        [("other-configurations", "error")],
    ),
    "a configuration for all to write": (_chmod(CONFIGURATION, 0o666), [("configuration", "error")]),
    "a program that is gone": (
        lambda host, _etcd: host.path(f"{BIN}/calico-ipam").unlink(),
        [("plugins", "error")],
    ),
    "a program of another version": (_program("#!/bin/sh\necho v0.0.1\n"), [("versions", "warning")]),
    "a program that does not run": (_program("#!/no/such/interpreter\n"), [("versions", "warning")]),
    "a program that hangs": (_program("#!/bin/sh\nexec sleep 600\n"), [("versions", "warning")]),
    "what was replaced, for all to write": (
        lambda host, _etcd: (
            host.path(f"{BIN}/.tortie-replaced").mkdir() or host.path(f"{BIN}/.tortie-replaced").chmod(0o777)
        ),
        [("replaced", "error")],
    ),
    "another name of this node": (_replace("var/lib/calico/nodename", "node-b\n", 0o644), [("node-name", "error")]),
    "a kubeconfig for all to read": (_chmod(KUBECONFIG, 0o644), [("kubeconfig", "warning")]),
    "half a kubeconfig": (_replace(KUBECONFIG, "clusters: [", 0o600), [("kubeconfig", "error")]),
    "no kubeconfig": (lambda host, _etcd: host.path(KUBECONFIG).unlink(), [("kubeconfig", "error")]),
    "an expired token": (_token(-DAY - 60, -60), [("token", "error")]),
    "a token that nobody renews": (_token(-DAY * 0.6, DAY * 0.4), [("token", "warning")]),
    "a clock that is behind": (_token(3600, DAY), [("token", "warning")]),
    "a datastore that is away": (lambda host, _etcd: host.proxy.refusing.set(), [("datastore", "error")]),
    "a datastore that does not answer": (lambda host, _etcd: host.proxy.stalled.set(), [("datastore", "error")]),
    "a datastore that is not ready": (_not_ready, [("datastore", "error")]),
    "a node without a record": (_drop("nodes"), [("node-record", "error")]),
    "a datastore without pools": (_drop("ippools"), [("pools", "error")]),
    "a host that does not forward": (
        lambda host, _etcd: host.net.set_sysctl("ipv4/ip_forward", "0"),
        [("forwarding", "error")],
    ),
    "a loose reverse path filter": (
        lambda host, _etcd: host.net.set_sysctl("ipv4/conf/all/rp_filter", "2"),
        [("rp-filter", "warning")],
    ),
    "no default route": (
        lambda host, _etcd: host.ip("route", "delete", "default"),
        [("default-route", "error")],
    ),
    "an uplink for smaller packets": (
        lambda host, _etcd: host.ip("link", "set", "eth0", "mtu", "1400"),
        [("mtu", "warning")],
    ),
    "a tunnel that takes its part": (_vxlan_pool, [("mtu", "warning")]),
    "a damaged MTU file": (_replace("var/lib/calico/mtu", "many", 0o644), [("mtu", "error")]),
    "a device without endpoint": (
        lambda host, _etcd: host.ip("link", "add", "cali0123", "type", "veth", "peer", "name", "p0"),
        [("leftover-devices", "warning")],
    ),
    "an endpoint without device": (_without_device, [("endpoints", "error")]),
    "reservations of host-local": (_replace(RESERVED, "c9\r\neth0", 0o600), [("leftover-reservations", "warning")]),
    "a folder in the lock's place": (_folder("run/calico/ipam.lock"), [("lock-file", "error")]),
    "a log for all to write": (_replace("var/log/calico/cni/cni.log", "", 0o666), [("log-file", "error")]),
    "a pipe in the log's place": (_pipe("var/log/calico/cni/cni.log"), [("log-file", "error")]),
    "a pipe in the kubeconfig's place": (_pipe(KUBECONFIG), [("kubeconfig", "error")]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_nothing_else(fault: str, host: ScratchHost, etcd: EtcdServer) -> None:
    plant, expected = FAULTS[fault]
    plant(host, etcd)
    started = time.monotonic()
    assert host.complaints() == expected
    assert time.monotonic() - started < 60
    if expected[0][1] == "warning":
        assert host.doctor("--strict")[0] == 1


def test_a_pipe_in_the_configurations_place_holds_nobody_up(host: ScratchHost, etcd: EtcdServer) -> None:
    _pipe(CONFIGURATION)(host, etcd)
    assert host.complaints() == [("configuration", "error")]


def test_host_locals_files_of_containers_that_are_gone(host: ScratchHost) -> None:
    host.configure(ipam={"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/24"}]]})
    host.path(f"{BIN}/host-local").symlink_to("calico")
    host.write(RESERVED, "c9\r\neth0")
    assert host.complaints() == []
    host.path("var/lib/cni/results").mkdir()
    assert host.complaints() == [("leftover-reservations", "warning")]
    host.write("var/lib/cni/results/net1-c9-eth0", "{}")
    assert host.complaints() == []


def test_an_empty_host_is_told_where_to_begin(host: ScratchHost) -> None:
    host.path(CONFIGURATION).unlink()
    code, document, _ = host.doctor("--net-dir", "/none", "--bin-dir", "/none")
    found = {one["check"]: one for one in document["checks"]}
    assert (code, found["configuration"]["state"]) == (1, "error")
    assert "tortie install" in found["configuration"]["advice"]
    assert found["leftover-reservations"]["state"] == "ok"


def test_on_the_host_itself_no_root_is_given(host: ScratchHost) -> None:
    """Its own folders then; a program of an own folder runs as it is."""
    told = host.run(
        "tortie", "doctor", "-o", "yaml", "--net-dir", str(host.path(NET)), "--bin-dir", str(host.path(BIN))
    )
    assert (told.returncode, told.stderr) == (1, ""), "its kubeconfig is not at the path that the configuration names"
    document = yaml.safe_load(told.stdout)
    found = {one["check"]: one["state"] for one in document["checks"]}
    assert (found["versions"], found["kubeconfig"], found["datastore"]) == ("ok", "error", "ok"), document


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--root", "host"), "--root host: give an absolute path"),
        (("--net-dir", "x"), "--net-dir x: give an absolute path"),
        (("-o", "xml"), "'xml' is none of json"),
    ],
)
def test_a_command_line_that_makes_no_sense(arguments: tuple[str, ...], words: str, host: ScratchHost) -> None:
    told = host.run("tortie", "doctor", *arguments)
    assert (told.returncode, told.stdout) == (2, "")
    assert words in told.stderr
    assert "`tortie help doctor` shows what there is." in told.stderr
