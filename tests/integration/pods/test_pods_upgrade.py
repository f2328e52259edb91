"""The upgrade from host-local to calico-ipam, on real servers, with the rights that the shipped manifest gives it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.kubernetes_store import Served
from integration.pods.upgrading import NETWORK, POOL, PROGRAMS, Node, UpgradeHost, ended
from integration.pods.world import NAMESPACE
from services.etcd import EtcdServer

SIZE = int(os.environ.get("TORTIE_UPGRADE_SIZE", "300"))
RESERVED = (2, 3, 70)  # in two blocks


@pytest.fixture
def host(binaries: Path, tmp_path: Path, kind: str, served: Served, etcd: EtcdServer | None) -> Iterator[UpgradeHost]:
    with ExitStack() as undo:
        yield UpgradeHost(binaries, tmp_path, undo, kind, served, etcd)


def prepared(host: UpgradeHost) -> Node:
    """With three pods, a leftover of a fourth, and what else host-local keeps there."""
    node = host.node()
    for last in RESERVED:
        node.reserve(last)
    node.put(f"{node.prefix}.9", "gone\r\neth0")
    node.put("last_reserved_ip.0", f"{node.prefix}.70")
    node.put("lock", "")
    return node


def test_pods_keep_their_addresses(host: UpgradeHost) -> None:
    node = prepared(host)
    answer = node.upgrade()
    assert (answer.exit, answer.stdout) == (0, ""), answer
    lines = answer.stderr.splitlines()
    assert lines[0].endswith("migrating from host-local to calico-ipam...")
    assert "migration from host-local to calico-ipam complete" in lines[-1]
    assert host.api.refusals == []
    node.is_upgraded()


def test_an_upgraded_node_has_nothing_to_do(host: UpgradeHost) -> None:
    node = prepared(host)
    assert node.upgrade().exit == 0
    host.forget()
    assert node.upgrade().exit == 0
    assert host.seen() == []
    assert host.api.asked == []


def test_a_pod_that_host_local_networked_ends_by_calico_ipam(host: UpgradeHost) -> None:
    """Its sandbox was made with the one, and is deleted with the other; nobody got its address meanwhile."""
    node = host.node()
    local = {
        "type": "host-local",
        "subnet": f"{node.prefix}.0/24",
        "dataDir": str(node.reservations.parent),
    }
    more = {"name": NETWORK, "nodename": node.name, "cniVersion": "0.3.1"}
    sandboxes = [host.pod(node=node.name) for _ in range(3)]
    for sandbox in sandboxes:
        (ip,) = host.add(sandbox, ipam=local, **more).result()["ips"]
        address = ip["address"].partition("/")[0]
        node.containers[address] = sandbox.identity
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        host.cluster.set_pod_status(NAMESPACE, sandbox.pod, **status)
    assert sorted(path.name for path in node.reservations.glob("10.*")) == sorted(node.containers)
    assert node.upgrade().exit == 0
    node.is_upgraded()

    new = [host.pod(node=node.name) for _ in range(4)]
    for sandbox in new:
        (ip,) = host.add(sandbox, **more).result()["ips"]
        assert ip["address"].partition("/")[0] not in {*node.containers, f"{node.prefix}.1"}
    for sandbox in (*sandboxes, *new):
        host.delete(sandbox, **more).silent()
    assert node.recorded() == {f"{node.prefix}.1": node.handle_of_tunnel}
    assert set(host.store.handles()) == {node.handle_of_tunnel}


def test_while_addresses_move_no_pod_starts_or_ends(host: UpgradeHost) -> None:
    node = prepared(host)
    process = node.start(TORTIE_UPGRADE_WAIT="30")
    wait_for(lambda: host.is_ready() is False)
    sandbox = host.pod(node=node.name)
    answer = host.add(sandbox, name=NETWORK, nodename=node.name)
    assert answer.exit == 1
    assert "Calico is currently not ready to process requests" in answer.stdout
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    last = err.decode().splitlines()[-1]
    assert last.startswith("Error: interrupted; what has moved stays moved")
    assert host.is_ready() is True
    node.nothing_is_lost()
    assert node.upgrade().exit == 0
    node.is_upgraded()


def wait_for(reached: object) -> None:
    assert callable(reached)
    ends = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_what_cannot_be_moved_is_named_and_the_rest_moves(host: UpgradeHost) -> None:
    node = prepared(host)
    host.cluster.add_pod(NAMESPACE, f"far-{node.name}", node=node.name)
    status = {"phase": "Running", "podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}]}
    host.cluster.set_pod_status(NAMESPACE, f"far-{node.name}", **status)
    node.put("192.0.2.9", "far\r\neth0")
    node.put("notes.txt", "mine")
    (node.reservations / f"{node.prefix}.8").mkdir()
    answer = node.upgrade()
    assert answer.exit == 1
    (error,) = [line for line in answer.stderr.splitlines() if line.startswith("Error: ")]
    assert error.startswith("Error: 3 of host-local's reservations are left, 3 moved: ")
    assert "notes.txt: failed to parse IP notes.txt" in error
    assert f"192.0.2.9 is in no enabled IP pool (IPv4 pools: IPPool {POOL.replace('.', '-').replace('/', '-')}" in error
    assert f"{node.prefix}.8: its file is of no use any more, and stays: remove " in error
    there = {path.name for path in node.reservations.iterdir()}
    assert there == {"192.0.2.9", "lock", "notes.txt", f"{node.prefix}.8"}
    assert host.is_ready() is True
    (node.reservations / f"{node.prefix}.8").rmdir()
    (node.reservations / "notes.txt").unlink()
    (node.reservations / "192.0.2.9").unlink()
    assert node.upgrade().exit == 0
    node.is_upgraded()


def test_an_operator_sees_first_and_does_then(host: UpgradeHost) -> None:
    node = prepared(host)
    places = ["--node", node.name, "--directory", str(node.reservations), "--cni-bin-dir", str(node.programs)]
    words = ["ipam", "upgrade", *places, "--wait", "0"]
    settings = {"DATASTORE_TYPE": "kubernetes", **host.client}
    answer = host.raw(settings, "", *words, "--dry-run", "-o", "json", program="tortie")
    assert answer.exit == 0, answer
    said = json.loads(answer.stdout)
    assert sorted(said["moved"]) == sorted(node.containers)
    assert sorted(said["stale"]) == [f"{node.prefix}.9", "last_reserved_ip.0"]
    assert node.recorded() == {}
    answer = host.raw(settings, "", *words, program="tortie")
    assert answer.exit == 0, answer
    assert answer.stdout.splitlines()[0] == "Moved 3 to calico-ipam, and 0 that were recorded already."
    node.is_upgraded()


# --- killed -----------------------------------------------------------------------------------------------------------


def test_it_may_be_killed_at_any_request(host: UpgradeHost) -> None:
    """Before and after each write to the datastore; begun again it ends as if nothing had been."""
    node = prepared(host)
    host.forget()
    assert node.upgrade().exit == 0
    seen = host.seen()
    writes = [one.number for one in seen if one.writes]
    assert len(writes) == 16, [str(one) for one in seen]
    node.is_upgraded()
    moments = [(number, carried_out) for number in (1, *writes) for carried_out in (False, True)]
    for number, carried_out in moments if host.kind != "v3" else moments[3::4]:
        node = prepared(host)
        assert ended(node, number, carried_out=carried_out) == -signal.SIGKILL
        node.nothing_is_lost()
        assert node.upgrade().exit == 0
        node.is_upgraded()


@pytest.mark.stores("etcd", "v1")
def test_it_outlasts_a_lost_answer_at_any_write(host: UpgradeHost) -> None:
    """It goes on by itself, and nothing is recorded twice."""
    node = prepared(host)
    host.forget()
    assert node.upgrade().exit == 0
    for number in [one.number for one in host.seen() if one.writes]:
        node = prepared(host)
        host.lose_answer(number)
        assert node.upgrade().exit == 0
        host.forget()
        node.is_upgraded()


def test_two_nodes_at_once(host: UpgradeHost) -> None:
    """Whoever ends first makes the cluster ready, as with the original; the other goes on all the same."""
    nodes = [prepared(host) for _ in range(2)]
    processes = [node.start(TORTIE_UPGRADE_WAIT=str(number)) for number, node in enumerate(nodes)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    for node in nodes:
        node.is_upgraded()


def test_one_node_twice_at_once(host: UpgradeHost) -> None:
    """A runtime that has lost sight of the first init container."""
    node = prepared(host)
    processes = [node.start(TORTIE_UPGRADE_WAIT="0.5") for _ in range(3)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    node.is_upgraded()


@pytest.mark.stores("etcd", "v1")
def test_a_termination_signal_at_any_write_leaves_the_cluster_ready(host: UpgradeHost) -> None:
    node = prepared(host)
    host.forget()
    assert node.upgrade().exit == 0
    writes = [one.number for one in host.seen() if one.writes]
    for number in writes:
        node = prepared(host)
        code = ended(node, number, carried_out=True, by=signal.SIGTERM)
        assert code == 1 or number == writes[-1]  # by then all is done
        assert host.is_ready() is True, number
        node.nothing_is_lost()
        assert node.upgrade().exit == 0
        node.is_upgraded()


@pytest.mark.stores("etcd", "v1")
def test_it_may_be_killed_at_any_change_of_a_file(host: UpgradeHost) -> None:
    """Each call of the system that removes something, before it happens, by the kernel's own tracing."""
    ended = 0
    for call in ("unlink", "rmdir"):
        for number in range(1, 20):
            node = prepared(host)
            trace = f"strace -f -qq -o /dev/null -e trace={call} -e inject={call}:signal=SIGKILL:when={number}"
            answer = node.upgrade(through=f'exec {trace} "$@"')
            if answer.exit == 0:  # there is none of that number
                node.is_upgraded()
                break
            ended += 1
            node.nothing_is_lost()
            assert node.upgrade().exit == 0
            node.is_upgraded()
    assert ended == len(PROGRAMS) + len(RESERVED) + 3 + 1  # leftover, counter and lock; the directory


# --- many at once ----------------------------------------------------------------------------------------------------


def test_thousands_move_in_seconds(host: UpgradeHost, capsys: pytest.CaptureFixture[str]) -> None:
    """TORTIE_UPGRADE_SIZE=5000 for as many. Each block is written a few times, however many addresses it has."""
    node = host.node(large=True)
    names = [f"{number // 250}.{number % 250 + 2}" for number in range(SIZE)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(node.reserve, names))
    host.forget()
    began = time.monotonic()
    answer = node.upgrade()
    seconds = time.monotonic() - began
    assert answer.exit == 0, answer
    with capsys.disabled():
        print(f"\n{SIZE} reservations moved on {host.kind} in {seconds:.1f} s")
    node.is_upgraded()
    blocks = len(host.store.blocks())
    written = [one for one in host.seen() if one.writes]
    assert len(written) <= SIZE + 4 * blocks + 6  # a handle for each, and for each block its claim and itself
