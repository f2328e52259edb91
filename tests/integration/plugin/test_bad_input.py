"""Whatever a runtime, an operator or a broken disk gives us: one JSON error, exit 1, nothing left (K03, L01, C17)."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Container, Host
from integration.plugin.kernel import succeed
from integration.plugin.store import IPAM, Store, cluster_records

PROGRAMS = ["calico", "calico-ipam"]
DECODING, ENVIRONMENT, CONFIGURATION, TRY_LATER, INTERNAL = 6, 4, 7, 11, 999
NO_CONFIGURATION: dict[str, tuple[bytes, int]] = {
    "empty": (b"", DECODING),
    "white space": (b" \n\t", DECODING),
    "truncated": (b'{"cniVersion": "1.0.0", "name": "net1", "ty', DECODING),
    "two documents": (b"{}{}", DECODING),
    "an array": (b"[]", DECODING),
    "a text": (b'"netconf"', DECODING),
    "a number": (b"5", DECODING),
    "a boolean": (b"true", DECODING),
    "null": (b"null", CONFIGURATION),
    "no name": (b"{}", CONFIGURATION),
    "HTML": (b"<html><body>502 Bad Gateway</body></html>", DECODING),
    "binary": (bytes(range(256)) * 16, DECODING),
    "deeply nested": (b'{"name": ' + b"[" * 200_000, DECODING),
    "10 MB of one text": (b'{"cniVersion": "1.0.0", "name": "net1", "x": "' + b"x" * 10_000_000 + b'"}', DECODING),
    "10 MB of nothing": (b" " * 10_000_000, DECODING),
}


def check_nothing_left(host: Host, container: Container | None = None) -> None:
    assert host.left() == {}
    if container and container.space:
        assert container.inside.names() == {"lo"}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", NO_CONFIGURATION)
def test_k03_stdin_that_is_no_configuration(host: Host, program: str, case: str) -> None:
    text, code = NO_CONFIGURATION[case]
    container = host.container()
    for verb in ("ADD", "DEL", "CHECK"):
        answer = host.raw(host.environment(verb, container), text, program=program)
        answer.error(code)
        assert len(answer.stdout) < 1000
        assert len(answer.stderr) < 4000
    check_nothing_left(host, container)


WRONG_TYPES: dict[str, Any] = {
    "mtu": "1500",
    "num_queues": 1.5,
    "nodename": 5,
    "nodename_file_optional": "yes",
    "log_level": 1,
    "log_file_max_size": "big",
    "datastore_type": ["sqlite"],
    "sqlite_path": 7,
    "ipam": "calico-ipam",
    "policy": [],
    "kubernetes": "x",
    "container_settings": {"allow_ip_forwarding": "yes"},
    "feature_control": {"ip_addrs_no_ipam": 1},
    "readiness_gates": "http://127.0.0.1/",
    "policy_setup_timeout_seconds": "5",
    "args": 5,
    "timeout_seconds": "60",
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("key", WRONG_TYPES)
def test_k03_a_member_of_the_wrong_type(host: Host, program: str, key: str) -> None:
    container = host.container()
    host.add(container, program=program, **{key: WRONG_TYPES[key]}).error(INTERNAL, "failed to load netconf", key)
    ended = host.delete(container, program=program, **{key: WRONG_TYPES[key]})
    if key == "nodename":  # else it would look in the wrong place
        ended.error(INTERNAL, key)
    elif key == "datastore_type" or key in host.store.settings:
        ended.error(TRY_LATER, key, "put back what ADD had")
    else:
        ended.silent()
    check_nothing_left(host, container)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("missing", ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"])
def test_a_missing_variable_is_named(host: Host, program: str, missing: str) -> None:
    container = host.container()
    environment = host.environment("ADD", container, **{missing: None})
    host.raw(environment, json.dumps(host.netconf()), program=program).error(ENVIRONMENT, f"[{missing}] missing")
    check_nothing_left(host, container)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("identity", ["-a", "a b", "../../etc", "a;b", "ä", "a\nb", "a/b", ".", "a" * 3 + "\t"])
def test_a_container_id_that_cannot_be(host: Host, program: str, identity: str) -> None:
    container = host.container(identity=identity)
    for verb in ("ADD", "DEL"):
        host.call(verb, container, program=program).error(ENVIRONMENT, "containerID")
    check_nothing_left(host, container)


@pytest.mark.parametrize("identity", ["ABC", "a_b", "a.b", "a-", "a" * 300])
def test_g5_an_id_that_no_endpoint_can_have_is_refused_before_anything_is_done(host: Host, identity: str) -> None:
    container = host.container(identity=identity)
    records = host.store.texts()
    host.add(container).error(INTERNAL)
    assert host.store.texts() == records
    check_nothing_left(host, container)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ifname", ["a" * 16, ".", "..", "a/b", "a:b", "a b", "a\tb", "a\u00a0b"])
def test_an_interface_name_that_cannot_be(host: Host, program: str, ifname: str) -> None:
    container = Container("c1", host.container().inside, ifname)
    for verb in ("ADD", "DEL"):
        host.call(verb, container, program=program).error(ENVIRONMENT, "interface name")
    check_nothing_left(host, container)


@pytest.mark.parametrize("ipam", ["calico-ipam", "host-local"])
@pytest.mark.parametrize("case", ["absent", "a file", "a directory", "a pipe", "a device", "another kind", "a loop"])
def test_l01_a_namespace_path_that_leads_to_none(host: Host, case: str, ipam: str) -> None:
    if ipam == "host-local":
        host.use_host_local()
    path = host.folder / "netns"
    makers: dict[str, Callable[[], object]] = {
        "absent": lambda: None,
        "a file": lambda: path.write_text("x"),
        "a directory": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a device": lambda: path.symlink_to("/dev/zero"),
        "another kind": lambda: path.symlink_to(f"/proc/{os.getpid()}/ns/mnt"),
        "a loop": lambda: path.symlink_to(path),
    }
    makers[case]()
    records = host.store.texts()
    host.add(Container("c1", str(path))).error(INTERNAL)
    assert host.store.texts() == records
    check_nothing_left(host)


def test_g2_the_hosts_own_namespace_is_refused(host: Host) -> None:
    container = Container("c1", host.net.path)
    for program in PROGRAMS:
        for verb in ("ADD", "DEL"):
            host.call(verb, container, program=program).error(8)
    check_nothing_left(host)


# --- disks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(bare_host: Host) -> Path:
    """A small file system of its own, holding the datastore."""
    mounted = bare_host.folder / "disk"
    mounted.mkdir()
    succeed("mount", "-t", "tmpfs", "-o", "size=512k,mode=755", f"tortie-{os.getpid()}", mounted)
    bare_host.undo.callback(succeed, "umount", "--lazy", mounted)
    bare_host.database = bare_host.store.path = mounted / "datastore.db"
    bare_host.store.create(cluster_records("10.20.0.0/24"))
    return mounted


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


@pytest.mark.sqlite_file
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_disk_is_told_and_nothing_is_left(bare_host: Host, disk: Path, program: str) -> None:
    container = bare_host.container()
    bare_host.add(container, program=program).result()
    bare_host.delete(container, program=program).silent()
    filler = fill(disk)
    for _ in range(2):
        bare_host.add(container, program=program).error(TRY_LATER, str(bare_host.database))
    filler.unlink()
    check_nothing_left(bare_host, container)
    bare_host.add(container, program=program).result()
    bare_host.delete(container, program=program).silent()
    check_nothing_left(bare_host, container)
    bare_host.store.check()


@pytest.mark.sqlite_file
def test_a_disk_that_fills_up_leaves_nothing_whatever_the_moment(bare_host: Host, disk: Path) -> None:
    """With a little more room each time the call gets a little further."""
    container = bare_host.container()
    filler = fill(disk)
    size = filler.stat().st_size
    ended = set()
    for pages in range(40):
        with filler.open("r+b") as file:
            file.truncate(size - pages * 4096)
        answer = bare_host.add(container)
        ended.add(answer.exit)
        if answer.exit:
            answer.error(TRY_LATER)
            assert container.inside.names() == {"lo"}
            assert bare_host.devices() == set()
        else:
            break
    assert ended == {0, 1}
    filler.unlink()
    bare_host.delete(container).silent()
    check_nothing_left(bare_host, container)
    bare_host.store.check()


@pytest.mark.sqlite_file
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_disk_that_cannot_be_written(bare_host: Host, disk: Path, program: str) -> None:
    """DEL says so too, and takes the device away at once."""
    kept, container = bare_host.container("k"), bare_host.container("r")
    bare_host.add(kept, program=program).result()
    before = bare_host.left()
    records = bare_host.store.texts()
    succeed("mount", "-o", "remount,ro", disk)
    bare_host.add(container, program=program).error(TRY_LATER, str(bare_host.database))
    bare_host.delete(kept, program=program).error(TRY_LATER, str(bare_host.database))
    succeed("mount", "-o", "remount,rw", disk)
    assert bare_host.store.texts() == records
    assert bare_host.left().get("handles") == before["handles"]
    assert container.inside.names() == {"lo"}
    bare_host.delete(kept, program=program).silent()
    check_nothing_left(bare_host, kept)


def test_c17_a_log_file_that_cannot_be_written_does_not_matter(host: Host) -> None:
    container = host.container()
    for path in ("/proc/no/such/file", "/dev/full", str(host.folder)):
        host.add(container, log_file_path=path).result()
        host.delete(container, log_file_path=path).silent()
    check_nothing_left(host, container)


# --- datastore files that are none ----------------------------------------------------------------------------------


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE records (key TEXT, text TEXT, revision INTEGER)")


def damaged(path: Path, offset: int = 4096) -> None:
    """A datastore whose pages after the first are noise."""
    seeded = path.with_name("seeded.db")
    Store(seeded).create(cluster_records("10.20.0.0/24"))
    content = seeded.read_bytes()
    path.write_bytes(content[:offset] + os.urandom(len(content) - offset))


NO_DATASTORE: dict[str, Callable[[Path], object]] = {
    "absent": lambda path: None,
    "empty": lambda path: path.touch(),
    "text": lambda path: path.write_text("this is not a database\n" * 400),
    "noise": lambda path: path.write_bytes(os.urandom(40_000)),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/null"),
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "of another program": foreign_database,
    "damaged": damaged,
    "cut short": lambda path: damaged(path) or path.write_bytes(path.read_bytes()[:5000]),
}


@pytest.mark.sqlite_file
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", NO_DATASTORE)
def test_a_datastore_file_that_is_none(bare_host: Host, program: str, case: str) -> None:
    NO_DATASTORE[case](bare_host.database)
    regular = bare_host.database.is_file() and not bare_host.database.is_symlink()
    content = bare_host.database.read_bytes() if regular else b""
    container = bare_host.container()
    for verb in ("ADD", "DEL", "ADD"):
        bare_host.call(verb, container, program=program).error(TRY_LATER, str(bare_host.database))
    assert bare_host.devices() == set()
    assert container.inside.names() == {"lo"}
    if regular:
        assert bare_host.database.read_bytes() == content
    assert case != "absent" or not bare_host.database.exists()


RECORDS_THAT_ARE_NONE = {
    "no JSON": "<html>",
    "another type": "[]",
    "an index beyond the attributes": '{"cidr": "10.20.0.128/26", "affinity": "host:node-a", "allocations": [7]}',
    "nothing": "",
}


@pytest.mark.parametrize("case", RECORDS_THAT_ARE_NONE)
def test_k03_a_damaged_block_is_no_crash(host: Host, case: str) -> None:
    """Another block is used if there is one."""
    first = host.container("a")
    host.add(first, program="calico-ipam").result()
    (block,) = host.store.blocks()
    host.delete(first, program="calico-ipam").silent()
    host.store.put(f"{IPAM}/assignment/{block}", RECORDS_THAT_ARE_NONE[case])
    answer = host.add(host.container("b"), program="calico-ipam")
    if answer.exit:
        answer.error(INTERNAL, "10.20.0.128")
    else:
        assert not answer.result()["ips"][0]["address"].startswith("10.20.0.128")
