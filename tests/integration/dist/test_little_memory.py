"""The executable with less memory than it needs: it works, or says so in one answer and leaves nothing.

A limit on the address space is met at another allocation with each of its values, from the loading of the program to
the last step of the call. With little more than the size of its file the kernel does not even start it.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from integration.plugin.host import Host

MEBIBYTE = 1 << 20
STEP = 200 << 10


@pytest.mark.parametrize("program", ["calico", "calico-ipam", "my-custom-cni"])
def test_a_limit_of_memory_met_anywhere_leaves_nothing(host: Host, program: str) -> None:
    netconf = host.netconf()
    if program == "my-custom-cni":
        ipam = {"type": "host-local", "subnet": "10.44.0.0/16", "dataDir": str(host.folder / "networks")}
        netconf |= {"type": program, "bridge": "few0", "ipam": ipam, "stateDir": str(host.folder / "attachments")}
    container = host.container()
    worked: list[int] = []
    least = (host.bin / program).stat().st_size + MEBIBYTE
    limits = range(least, least + 8 * MEBIBYTE, STEP)
    for limit in limits:
        limited = f'exec {host.tool("prlimit")} --as={limit} "$@"'
        environment = host.environment("ADD", container, CNI_PATH=str(host.bin))
        answer = host.raw(environment, json.dumps(netconf), program=program, through=limited)
        if answer.exit == 0:
            worked.append(limit)
        else:
            assert answer.exit == 1, (limit, answer)
            # 11: the database's index could not be mapped
            assert json.loads(answer.stdout)["code"] in {999, 11}, (limit, answer)
            left = host.left()
            assert left.get("devices", set()) <= {"few0"}, (limit, answer)
            assert {"handles", "allocated", "reservations", "lock"}.isdisjoint(left), (limit, answer)
            assert container.inside.names() == {"lo"}, (limit, answer)
        host.raw(
            host.environment("DEL", container, CNI_PATH=str(host.bin)), json.dumps(netconf), program=program
        ).silent()
    assert worked
    assert worked[-1] == max(limits)


def catches(pid: int, number: signal.Signals) -> bool:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(fields["SigCgt"], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("program", "version"), [("calico", {}), ("calico-ipam", {}), ("my-custom-cni", {"cniVersion": "1.1.0"})]
)
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_answered_too(host: Host, program: str, version: dict[str, str], number: signal.Signals) -> None:
    process = host.start(host.environment("ADD", host.container()), program=program)
    assert process.stdin
    assert process.stdout
    while not catches(process.pid, number):
        assert process.poll() is None
    process.send_signal(number)
    said = json.loads(process.stdout.read())
    assert process.wait(20) == 1
    assert {key: said[key] for key in said if key != "msg"} == version | {"code": 999}
    assert said["msg"].startswith("the plugin ")
