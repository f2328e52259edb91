"""The installed `tortie ipam` beside installed plugins that work on the same datastore (F06, F16, L04)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Answer, Host
from integration.plugin.store import IPAM, V3

ORPHANS = 40


class Tortie:
    """`tortie` on the host's datastore."""

    def __init__(self, host: Host) -> None:
        self.host = host
        settings = host.store.settings
        path = {"TORTIE_SQLITE_PATH": settings["sqlite_path"]} if "sqlite_path" in settings else {}
        self.environment = {**{name.upper(): text for name, text in settings.items() if name != "sqlite_path"}, **path}

    def run(self, *arguments: str) -> Answer:
        return self.host.raw(self.environment, "", *arguments, program="tortie")

    def ipam(self, *arguments: str, code: int = 0) -> str:
        answer = self.run("ipam", *arguments)
        assert (answer.exit, answer.stderr) == (code, ""), answer
        return answer.stdout

    def findings(self) -> list[dict[str, Any]]:
        answer = self.run("ipam", "check", "-o", "json")
        report = json.loads(answer.stdout)
        assert answer.exit == (0 if report["clean"] else 1), answer
        found: list[dict[str, Any]] = report["findings"]
        return found

    def on_terminal(self, columns: int, *arguments: str) -> str:
        """What a terminal of that width shows."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {**self.environment, "TERM": "xterm-256color"}
        process = self.host.start(environment, *arguments, program="tortie", stdout=theirs)
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # EIO: the other side has closed it
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        assert process.wait(30) == 0
        return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def tortie(host: Host) -> Tortie:
    return Tortie(host)


def orphans(host: Host, number: int) -> None:
    for at in range(number):
        host.store.put(f"{IPAM}/handle/net1.{at:064x}", {"block": {"10.20.0.0/26": 1}, "deleted": at % 3 == 0})


def test_what_plugins_do_is_shown_and_clean(host: Host, tortie: Tortie) -> None:
    """F06: from an address to the endpoint that has it."""
    one, two = host.container("a"), host.container("b")
    (address,) = [ip["address"].partition("/")[0] for ip in host.add(one).result()["ips"]]
    host.add(two).result()
    assert tortie.findings() == []
    out = tortie.ipam("show", "--ip", address)
    assert f"IP {address} is in use\n" in out
    assert f"net1.{one.identity}" in out
    assert "Endpoint     default/node--a-cni-" in out
    (pool,) = json.loads(tortie.ipam("show", "-o", "json"))["pools"]
    assert (pool["total"], pool["inUse"], pool["free"]) == (256, 2, 254)
    refused = tortie.run("ipam", "release", "--ip", address)
    assert refused.exit == 1
    assert "is in use" in refused.stderr
    for container in (one, two):
        host.delete(container).silent()
    assert tortie.findings() == []
    assert "0 (0%)" in tortie.ipam("show")


def test_an_address_whose_container_never_came_to_be_is_found_and_taken_back(host: Host, tortie: Tortie) -> None:
    """L04: only once no call can be at work on it any more."""
    lost = host.container("a")
    host.call("ADD", lost, program="calico-ipam").result()
    assert tortie.findings() == []
    for key, text in host.store.texts().items():
        if "/block/" in key and "timestamp" in text:
            block = json.loads(text)
            block["attributes"][0]["secondary"]["timestamp"] = "2026-01-02 03:04:05 +0000 UTC"
            host.store.put(key, block)
    (leak,) = tortie.findings()
    assert (leak["kind"], leak["handle"]) == ("address-without-endpoint", f"net1.{lost.identity}")
    assert "1 leak would need --leaked" in tortie.ipam("gc")
    assert tortie.ipam("gc", "--leaked", "--yes", "--grace", "0").startswith("Collected 1 of 1.")
    assert tortie.findings() == []
    assert host.store.allocated() == {}
    assert set(host.store.handles()) == set()


def test_an_address_that_is_free_but_in_use_on_the_host_is_passed_over_and_found(host: Host, tortie: Tortie) -> None:
    """The kernel refuses a second route to it, so the node would start no container again. A request for it fails."""
    lost = [host.container(letter) for letter in "ab"]
    given = [host.add(container).result()["ips"][0]["address"].partition("/")[0] for container in lost]
    for container in lost:
        host.call("DEL", container, program="calico-ipam").silent()
    for key in [key for key in host.store.texts() if "/assignment/" in key or "/host/" in key]:
        host.store.drop(key)  # the block as it was made: the first addresses are free
    new = host.container("c")
    answer = host.add(new)
    (address,) = [ip["address"].partition("/")[0] for ip in answer.result()["ips"]]
    assert address not in given
    for container, one in zip(lost, given):
        assert f"address={one} in_use_by={container.host_name}" in answer.stderr.replace('"', "")
    found = {one["address"]: one["holder"] for one in tortie.findings() if one["kind"].startswith("address-free-but")}
    assert found == {one: {"interface": container.host_name} for container, one in zip(lost, given)}
    refused = host.add(host.container("d"), cni_args=f"IP={given[0]}")
    refused.error(999, "already exists for an interface other than", f"Iface: {lost[0].host_name}")
    for container in (*lost, new):
        host.delete(container).silent()
    assert tortie.findings() == []


def test_a_collection_beside_calls_at_work_hurts_none_of_them(host: Host, tortie: Tortie) -> None:
    """Without any grace, over and over, while containers come and go: all that came has its address, none leaks."""
    orphans(host, ORPHANS)
    staying = [host.container(letter) for letter in "abcdef"]
    going = [host.container(letter) for letter in "uvw"]
    collected = 0
    for number, container in enumerate(staying):
        calls = [(host.start(host.environment("ADD", container)), container)]
        if number < len(going):
            calls.append((host.start(host.environment("ADD", going[number])), going[number]))
        for process, _ in calls:
            assert process.stdin is not None
            process.stdin.write(json.dumps(host.netconf()).encode())
            process.stdin.close()
            process.stdin = None
        answer = json.loads(tortie.ipam("gc", "--yes", "--grace", "0", "-o", "json"))
        collected += answer["done"]
        for process, one in calls:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, (one.identity, out, err)
    for container in going:
        host.delete(container).silent()
    assert collected >= ORPHANS
    assert tortie.findings() == []
    assert len(host.store.allocated()) == len(staying)
    assert {handle.partition(".")[2] for handle in host.store.handles()} == {one.identity for one in staying}


def test_a_corrupt_record_is_named_and_a_block_is_made_anew(host: Host, tortie: Tortie) -> None:
    """K03: what the container has stays its own; a record that is not IPAM's is left alone."""
    container = host.container("a")
    host.add(container).result()
    held = host.store.allocated()
    host.store.write(f"{V3}/nodes/broken", "<html>")
    host.store.write(f"{IPAM}/assignment/ipv4/block/10.20.0.0-26", '{"cidr":"10.20.0.0/26","allocations":[7]}')
    names = {one["subject"] for one in tortie.findings() if one["kind"] == "record-unreadable"}
    assert names == {"node broken", "ipamblock 10-20-0-0-26"}
    copies = host.folder / "copies.json"
    done = tortie.run("ipam", "gc", "--yes", "--grace", "0", "--copies", str(copies))
    assert (done.exit, done.stderr) == (0, f"What was set aside is in {copies}\n")
    assert json.loads(copies.read_text())["record"] == "ipamblock 10-20-0-0-26"
    assert [one["subject"] for one in tortie.findings()] == ["node broken"]
    assert host.store.texts()[f"{V3}/nodes/broken"] == "<html>"
    assert host.store.allocated() == held
    host.delete(container).silent()
    assert host.store.allocated() == {}


def test_a_report_goes_through_a_file_that_only_its_owner_reads(host: Host, tortie: Tortie) -> None:
    """F16."""
    orphans(host, 3)
    report = host.folder / "report.json"
    tortie.ipam("check", "-o", str(report), code=1)
    assert report.stat().st_mode & 0o777 == 0o600
    orphans(host, 5)
    out = tortie.ipam("release", "--from-report", str(report))
    assert out.startswith("Collected ")
    assert len(host.store.handles()) in {2, 5}  # a handle that was written again has a new revision


def test_settings_are_what_the_plugins_go_by(host: Host, tortie: Tortie) -> None:
    tortie.ipam("configure", "--strictaffinity=true", "--max-blocks-per-host=1")
    assert "StrictAffinity                true\n" in tortie.ipam("show", "--show-configuration")
    (answer,) = [json.loads(text) for key, text in host.store.texts().items() if key == f"{IPAM}/config"]
    assert (answer["strict_affinity"], answer["maxBlocksPerHost"]) == (True, 1)
    host.add(host.container("a")).result()


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_gets_colours_and_no_line_that_is_too_wide(host: Host, tortie: Tortie, columns: int) -> None:
    host.add(host.container("a")).result()
    shown = tortie.on_terminal(columns, "ipam", "show", "--blocks")
    assert "\x1b[33m+\x1b[0m" in shown
    plain = "".join(part.partition("m")[2] if at else part for at, part in enumerate(shown.split("\x1b[")))
    assert max(map(len, plain.splitlines())) <= columns
    assert "\x1b" not in tortie.ipam("show", "--blocks")


def test_what_there_is_can_be_taken_to_another_datastore(host: Host, tortie: Tortie, tmp_path: Path) -> None:
    """A11: lock, export, import, unlock; what is exported is what the datastore has, in every form."""
    host.add(host.container("a")).result()
    names = tortie.run("get", "blocks,handles,affinities", "-o", "name").stdout.split()
    migrate = ("datastore", "migrate")
    assert "the datastore is not locked" in tortie.run(*migrate, "export").stderr
    assert tortie.run(*migrate, "lock").exit == 0
    try:
        assert host.add(host.container("b")).exit != 0, "nobody gets an address while it is locked"
        exported = tortie.run(*migrate, "export", "-o", "json")
        file = tmp_path / "all.json"
        file.write_text(exported.stdout)
        again = tortie.run(*migrate, "import", "-f", str(file), "--dry-run")
        assert (again.exit, exported.exit) == (0, 0), again
    finally:
        assert tortie.run(*migrate, "unlock").exit == 0
    other = ("--datastore-path", str(tmp_path / "other.db"))
    done = tortie.run(*other, *migrate, "import", "-f", str(file))
    assert done.stdout.startswith("Successfully imported 1 clusterinformation"), done
    assert tortie.run(*other, "get", "blocks,handles,affinities", "-o", "name").stdout.split() == names
    assert tortie.run(*other, "ipam", "show").stdout == tortie.ipam("show")
