"""The surroundings of a call: file mode masks, closed descriptors, no working directory, Python's variables, secrets.

Runtimes start plugins in all of these, some by accident.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Answer, Host

TOKEN = "s3cr3t-t0ken-6f1d"  # noqa: S105 - planted to be looked for
EXECUTABLES = ["calico", "calico-ipam"]


def modes(host: Host) -> dict[str, str]:
    """Permissions of everything that calls have made in the host's folder."""
    paths = [path for path in host.folder.rglob("*") if "opt" not in path.parts]
    return {str(path.relative_to(host.folder)): oct(path.lstat().st_mode & 0o7777) for path in paths}


@pytest.mark.sqlite_file
@pytest.mark.parametrize("program", EXECUTABLES)
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_have_their_modes_whatever_the_mask(host: Host, umask: int, program: str) -> None:
    container = host.container()
    netconf = json.dumps(
        host.netconf(
            log_file_path=str(host.folder / "logs" / "deep" / "cni.log"),
            log_level="debug",
            ipam_lock_file=str(host.folder / "locks" / "ipam.lock"),
        )
    )
    for verb in ("ADD", "DEL"):
        environment = host.environment(verb, container)
        assert host.raw(environment, netconf, program=program, umask=umask).exit == 0
    found = modes(host)
    assert {name: mode for name, mode in found.items() if name.startswith("datastore.db")} == {"datastore.db": "0o600"}
    expected = {"locks/ipam.lock": "0o600", "locks": "0o755", "logs": "0o755", "logs/deep": "0o755"}
    expected |= {"logs/deep/cni.log": "0o640"}
    assert {name: found[name] for name in expected} == expected
    assert host.left() == {}


@pytest.mark.sqlite_file
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_files_beside_an_open_datastore_are_as_private_as_it(host: Host, umask: int) -> None:
    """While a process works on it there are a log and an index beside it."""
    seen: dict[str, str] = {}
    for _ in range(100):
        add = host.start(host.environment("ADD", host.container()), program="calico-ipam", umask=umask)
        assert add.stdin
        add.stdin.write(json.dumps(host.netconf()).encode())
        add.stdin.close()
        while add.poll() is None:
            for name in ("datastore.db-wal", "datastore.db-shm"):
                with suppress(FileNotFoundError):
                    seen[name] = oct((host.folder / name).stat().st_mode & 0o777)
        assert add.returncode == 0
        if len(seen) == 2:
            break
    assert seen == dict.fromkeys(("datastore.db-wal", "datastore.db-shm"), "0o600")


# --- descriptors ----------------------------------------------------------------------------------------------------


def call_with_closed(host: Host, verb: str, closed: tuple[int, ...], program: str, container: Any) -> Answer:
    redirections = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[number] for number in closed)
    environment = host.environment(verb, container)
    netconf = json.dumps(host.netconf(log_level="debug"))
    return host.raw(environment, netconf, program=program, through=f'exec "$@" {redirections}')


@pytest.mark.parametrize("program", EXECUTABLES)
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_closed_descriptors_are_no_danger(host: Host, closed: tuple[int, ...], program: str) -> None:
    """Without stdin there is nothing to do, without stdout nobody would hear the answer: both fail and leave nothing.

    Without stderr all works. No file of ours ever lands where an answer or a log line goes.
    """
    container = host.container()
    answer = call_with_closed(host, "ADD", closed, program, container)
    if {0, 1}.isdisjoint(closed):
        answer.result()
        call_with_closed(host, "DEL", closed, program, container).silent()
    else:
        assert answer.exit == 1
        if 1 not in closed:
            assert answer.error(json.loads(answer.stdout)["code"])["code"] in {5, 6}
        else:
            assert answer.stdout == ""
    assert host.left() == {}
    assert container.inside.names() == {"lo"}
    host.store.check()
    assert not any(b"[DEBUG]" in path.read_bytes() for path in host.folder.glob("datastore.db*"))


@pytest.mark.parametrize("program", EXECUTABLES)
@pytest.mark.parametrize("case", ["full", "unread", "read-only"])
def test_an_answer_that_cannot_be_delivered_undoes_the_call(host: Host, case: str, program: str) -> None:
    container = host.container()
    if case == "unread":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(
            "/dev/full" if case == "full" else "/dev/null", os.O_WRONLY if case == "full" else os.O_RDONLY
        )
    try:
        environment = host.environment("ADD", container)
        answer = host.raw(environment, json.dumps(host.netconf()), program=program, stdout=writing)
    finally:
        os.close(writing)
    assert answer.exit == 1
    assert host.left() == {}
    assert container.inside.names() == {"lo"}
    host.add(container, program=program).result()


# --- surroundings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", EXECUTABLES)
def test_a_working_directory_that_is_gone(host: Host, program: str) -> None:
    container = host.container()
    gone = host.folder / "gone"
    through = f'/bin/mkdir {gone}; cd {gone}; /bin/rmdir {gone}; exec "$@"'
    host.add(container, program=program, through=through).result()
    host.delete(container, program=program, through=through).silent()
    assert host.left() == {}


@pytest.mark.parametrize("program", EXECUTABLES)
def test_pythons_variables_do_nothing(host: Host, tmp_path: Path, program: str) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("os", "json", "domain", "entrypoints", "sitecustomize", "usercustomize", "_sqlite3", "pyroute2"):
        (trap / f"{name}.py").write_text("raise SystemExit('trapped')")
    container = host.container()
    junk = dict.fromkeys(("PYTHONHOME", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONUSERBASE"), str(trap))
    junk |= {"PYTHONSTARTUP": str(trap / "os.py"), "PYTHONINSPECT": "1", "PYTHONVERBOSE": "1", "PYTHONDEBUG": "1"}
    junk |= {
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "utf-16",
        "PYTHONUTF8": "0",
        "LC_ALL": "C",
        "PYTHONDEVMODE": "1",
    }
    for verb in ("ADD", "DEL"):
        environment = host.environment(verb, container, **junk)
        answer = host.raw(environment, json.dumps(host.netconf()), program=program, cwd=trap)
        assert answer.exit == 0, answer
        assert answer.stderr == ""
    assert host.left() == {}


def test_ignored_signals_and_a_tiny_open_file_limit(host: Host) -> None:
    """What a runtime's own settings leave behind for its children."""
    container = host.container()
    through = "trap '' PIPE HUP INT TERM CHLD; ulimit -n 32; exec \"$@\""
    for ipam in (
        {"type": "calico-ipam"},
        {"type": "host-local", "subnet": "10.0.0.0/8", "dataDir": str(host.folder / "n")},
    ):
        host.add(container, through=through, ipam=ipam).result()
        host.delete(container, through=through, ipam=ipam).silent()
        assert host.left() == {}


# --- secrets --------------------------------------------------------------------------------------------------------


def secret_netconfs(host: Host) -> dict[str, str]:
    """Configurations with a token that work, and broken ones of every kind that could be quoted in an error."""
    policy = {"type": "", "k8s_auth_token": TOKEN}
    good = host.netconf(policy=policy, log_level="debug", cniVersion="1.0.0")
    text = json.dumps(good)
    return {
        "good": text,
        "truncated": text[: text.index(TOKEN) + len(TOKEN)],
        "garbage after it": text + TOKEN,
        "no such datastore": text.replace("datastore.db", "absent.db"),
        "an unknown type": text.replace('"sqlite"', '"zoo"'),
        "a wrong type beside it": json.dumps(good | {"mtu": "1500"}),
        "a wrong type around it": json.dumps(good | {"policy": [TOKEN]}),
        "a wrong type inside": json.dumps(good | {"policy": {"k8s_auth_token": [TOKEN]}}),
        "no such plugin": json.dumps(good | {"ipam": {"type": "absent"}}),
        "an ipam section with it": json.dumps(good | {"ipam": {"type": "calico-ipam", "token": TOKEN}}),
        "a bad gate": json.dumps(good | {"readiness_gates": ["nonsense"]}),
        "a previous result with it": json.dumps(good | {"prevResult": {"token": TOKEN}}),
        "two keys": text.replace('"name"', f'"k8s_auth_token": "{TOKEN}", "name"'),
    }


@pytest.mark.parametrize("program", EXECUTABLES)
def test_a_token_never_shows(host: Host, program: str) -> None:
    container = host.container()
    said = {}
    for kind, netconf in secret_netconfs(host).items():
        for verb in ("ADD", "CHECK", "DEL", "STATUS"):
            environment = host.environment(verb, container, K8S_API_TOKEN=TOKEN, CALICO_K8SAPITOKEN=TOKEN)
            answer = host.raw(environment, netconf, program=program)
            said[f"{kind} {verb}"] = answer.stdout + answer.stderr
        connection = host.raw({"CNI_COMMAND": "VERSION"}, netconf, "-t")
        said[f"{kind} -t"] = connection.stdout + connection.stderr
    assert {kind for kind, text in said.items() if TOKEN in text} == set()
    files = [path for path in host.folder.rglob("*") if path.is_file() and "opt" not in path.parts]
    assert host.log in files
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert host.left() == {}


def test_a_token_is_on_no_command_line(host: Host) -> None:
    """Neither on ours nor on that of an IPAM plugin that we run."""
    script = host.folder / "plugins" / "slow-ipam"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\nexec 3<&0\ncat <&3 >/dev/null\necho $$ > "$0.pid"\nsleep 20\n')
    script.chmod(0o755)
    environment = host.environment("ADD", host.container(), PATH="/usr/bin:/bin")
    environment["CNI_PATH"] += f":{script.parent}"
    process = host.start(environment)
    assert process.stdin
    process.stdin.write(json.dumps(host.netconf(policy={"k8s_auth_token": TOKEN}, ipam={"type": "slow-ipam"})).encode())
    process.stdin.close()
    noted = script.with_name("slow-ipam.pid")
    while not (noted.exists() and noted.read_text().endswith("\n")):
        assert process.poll() is None
    for pid in (process.pid, int(noted.read_text())):
        assert TOKEN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 1
    assert not Path(f"/proc/{int(noted.read_text())}").exists()
    assert host.left() == {}


# --- files that are something else -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a symbolic link", "a folder", "a named pipe"])
def test_a_lock_that_is_no_file_refuses_an_add_and_holds_no_container(host: Host, kind: str) -> None:
    container, lock = host.container(), host.folder / "ipam.lock"
    host.add(container).result()
    lock.unlink()
    make = {"a symbolic link": lambda: lock.symlink_to(host.folder / "there"), "a folder": lock.mkdir}
    make.get(kind, lambda: os.mkfifo(lock))()
    other = host.container("b")
    for program in EXECUTABLES:
        host.add(other, program=program).error(7, f"{lock}: it is {kind}", "remove it, or set")
    assert other.inside.names() == {"lo"}
    assert host.left()["devices"] == {container.host_name}
    deleted = host.delete(container)
    deleted.silent()
    assert f"{lock}: it is {kind}" in deleted.stderr
    assert host.left() == {}
