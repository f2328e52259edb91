"""Many calls at once, and calls that die: no address twice, and after the DELs that a runtime makes nothing is left.

Allocation is tried with `calico-ipam` alone, which is what contends; devices with fewer containers.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Answer, Container, Host
from integration.plugin.mortal import Mortal, address, all_at_once, typical_life
from integration.plugin.store import IPAM, V3, cluster_records, node_record
from patience import until

NOWHERE = "/var/run/netns/none"


def check_empty(host: Host) -> None:
    """No address and no handle is left, and no claim half made or half given up."""
    assert host.left() == {}
    host.store.check()
    for key, affinity in host.store.under(f"{IPAM}/host/").items():
        assert affinity["state"] in {"confirmed", "pending"}, key


def ipam_containers(count: int) -> list[Container]:
    return [Container(f"load{number:04d}", NOWHERE) for number in range(count)]


def test_200_adds_give_200_addresses_and_200_dels_free_them_all(host: Host) -> None:
    containers = ipam_containers(200)
    answers = all_at_once(lambda container: host.add(container, program="calico-ipam"), containers)
    assert len({address(answer) for answer in answers}) == 200
    assert len(host.store.handles()) == 200
    host.store.check()
    for answer in all_at_once(lambda container: host.delete(container, program="calico-ipam"), containers):
        answer.silent()
    check_empty(host)


def test_without_the_host_lock_the_records_alone_keep_calls_apart(host: Host) -> None:
    """All want addresses of the same block, and each call has a lock file of its own."""

    def call(verb: str, container: Container) -> Answer:
        lock = str(host.folder / f"{container.identity}.lock")
        return host.call(verb, container, program="calico-ipam", ipam_lock_file=lock)

    containers = ipam_containers(60)
    answers = all_at_once(lambda container: call("ADD", container), containers)
    assert len({address(answer) for answer in answers}) == 60
    host.store.check()
    for answer in all_at_once(lambda container: call("DEL", container), containers):
        answer.silent()
    check_empty(host)


def test_24_containers_are_networked_at_once(host: Host) -> None:
    """They also race to create the one profile (G18)."""
    containers = [host.container("p") for _ in range(24)]
    answers = all_at_once(host.add, containers)
    addresses = [address(answer) for answer in answers]
    assert len(set(addresses)) == 24
    for container, given in zip(containers, addresses):
        assert container.inside.addresses("eth0") == [f"{given}/32"]
    assert set(host.store.profiles()) == {"net1"}
    assert {route["dst"] for route in host.net.routes(4)} == set(addresses)
    for answer in all_at_once(host.delete, containers):
        answer.silent()
    check_empty(host)


def test_r03_two_nodes_share_few_blocks_and_never_own_one_together(bare_host: Host) -> None:
    """Each with a host lock of its own, so that only the records keep them apart."""
    pool = "10.20.0.0/26"
    bare_host.store.create(cluster_records(pool, block_sizes={pool: 28}) | encoded(node_record("node-b")))
    nodes = ("node-a", "node-b")

    def add(number: int) -> Answer:
        node = nodes[number % 2]
        lock = str(bare_host.folder / f"{node}.lock")
        container = Container(f"r{number}", NOWHERE)
        return bare_host.add(container, program="calico-ipam", nodename=node, ipam_lock_file=lock)

    answers = all_at_once(add, range(50))
    assert len({address(answer) for answer in answers}) == 50
    bare_host.store.check()
    owners = {block["cidr"]: block["affinity"] for block in bare_host.store.blocks().values()}
    confirmed: dict[str, list[str]] = {}
    for key, affinity in bare_host.store.under(f"{IPAM}/host/").items():
        node, _, cidr = key.partition("/ipv4/block/")
        if affinity["state"] == "confirmed":
            confirmed.setdefault(cidr.replace("-", "/"), []).append(f"host:{node}")
    assert confirmed == {cidr: [owner] for cidr, owner in owners.items()}


def encoded(records: dict[str, Any]) -> dict[str, str]:
    return {key: json.dumps(value) for key, value in records.items()}


# --- calls that die -------------------------------------------------------------------------------------------------


def test_calico_ipam_killed_at_any_moment_leaves_nothing_after_del(host: Host) -> None:
    mortal = Mortal(host, "calico-ipam", typical_life(host, "calico-ipam", Container("measure", NOWHERE)))
    containers = ipam_containers(64)
    added = mortal.round("ADD", containers)
    deleted = mortal.round("DEL", containers)
    host.store.texts()  # readable whatever has been interrupted
    for answer in all_at_once(lambda container: host.delete(container, program="calico-ipam"), containers):
        answer.silent()
    check_empty(host)
    assert {answer.exit for answer in added} >= {-9}, mortal.seed
    assert {answer.exit for answer in deleted} >= {-9}, mortal.seed


def test_calico_killed_at_any_moment_leaves_nothing_after_del(host: Host) -> None:
    mortal = Mortal(host, "calico", typical_life(host, "calico", host.container("m")))
    containers = [host.container("k") for _ in range(24)]
    mortal.round("ADD", containers)
    mortal.round("DEL", containers[::2])
    for answer in all_at_once(host.delete, containers, 8):
        answer.silent()
    check_empty(host)
    assert all(container.inside.names() == {"lo"} for container in containers), mortal.seed
    retried = all_at_once(host.add, containers, 8)  # and every one of them can be networked again
    assert len({address(answer) for answer in retried}) == len(containers)


EVENTS = ["address taken", "device made", "endpoint stored"]


def await_event(event: str, host: Host, process: subprocess.Popen[bytes], container: Container) -> bool:
    """Whether it happened before the process was over; looks without a pause."""
    devices = Path(f"/proc/{process.pid}/net/dev")
    prefix = f"{IPAM}/handle/" if event == "address taken" else f"{V3}/workloadendpoints/"
    while process.poll() is None:
        if event == "device made":
            with suppress(OSError):  # the process may end, or be ended, between two looks
                if container.host_name in devices.read_text():
                    return True
        elif host.store.has_any(prefix):
            return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("event", EVENTS)
def test_an_add_ended_right_after_an_effect(host: Host, event: str, number: int) -> None:
    """SIGTERM undoes all effects without any DEL; after SIGKILL the DEL does."""
    ended = []
    wanted = 1 if number == signal.SIGTERM else -9
    while len(ended) < 5 or (wanted not in ended and len(ended) < 50):  # a signal may come too late
        container = host.container("e")
        process = host.start(host.environment("ADD", container))
        assert process.stdin
        process.stdin.write(json.dumps(host.netconf()).encode())
        process.stdin.close()
        happened = await_event(event, host, process, container)
        process.send_signal(number)
        process.wait(30)
        ended.append(happened and process.returncode)
        if number == signal.SIGKILL or process.returncode == 0:
            host.delete(container).silent()
        assert host.left() == {}, ended
        assert container.inside.names() == {"lo"}
    if event != "endpoint stored":  # after which an answer is so near that every signal may come too late
        assert wanted in ended, ended


def test_add_and_del_of_one_container_at_once(host: Host) -> None:
    """A runtime may give up an ADD and send DEL while it still runs."""
    containers = [host.container("x") for _ in range(5)]
    calls = [(verb, container) for container in containers for verb in ("ADD", "DEL", "ADD", "DEL")]
    answers = all_at_once(lambda call: host.call(*call), calls, 8)
    assert all(answer.exit == 0 or answer.error(json.loads(answer.stdout)["code"]) for answer in answers)
    for answer in all_at_once(host.delete, containers, 8):
        answer.silent()
    check_empty(host)
    assert all(container.inside.names() == {"lo"} for container in containers)


def runs(pid: int) -> bool:
    """Whether it does anything any more: a dead process may wait for somebody to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


WAITING_PLUGIN = """#!{python} -IS
import os, time
with open({noted!r}, "w") as file:
    file.write(str(os.getpid()) + "\\n")
time.sleep({seconds})
os.execv({ipam!r}, [{ipam!r}])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_ipam_plugin_does_not_outlive_the_call_that_runs_it(host: Host, number: int) -> None:
    """It would take an address for a caller that is dead, after the DEL."""
    noted = host.folder / "pid"
    script = host.folder / "plugins" / "waiting-ipam"
    script.parent.mkdir()
    texts = [
        WAITING_PLUGIN.format(python=sys.executable, noted=str(noted), ipam=str(host.bin / "calico-ipam"), seconds=wait)
        for wait in (0, 120)
    ]
    script.write_text(texts[0])
    script.chmod(0o755)
    container = host.container("w")
    environment = host.environment("ADD", container)
    environment["CNI_PATH"] += f":{script.parent}"
    netconf = json.dumps(host.netconf(ipam={"type": "waiting-ipam"}))

    assert host.raw(environment, netconf).exit == 0  # without a signal it works
    host.raw(environment | {"CNI_COMMAND": "DEL"}, netconf).silent()
    noted.unlink()

    script.write_text(texts[1])
    process = host.start(environment)
    assert process.stdin
    process.stdin.write(netconf.encode())
    process.stdin.close()
    while not (noted.exists() and noted.read_text().endswith("\n")):
        assert process.poll() is None
    child = int(noted.read_text())
    process.send_signal(number)
    process.wait(60)
    until(lambda: not runs(child), "the IPAM plugin to end")
    assert host.left() == {}
    script.write_text(texts[0])
    host.raw(environment | {"CNI_COMMAND": "DEL"}, netconf).silent()
    check_empty(host)
