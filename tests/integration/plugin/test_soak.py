"""Eight processes that ADD and DEL without rest while some of their calls are killed: the records stay sound.

TORTIE_SOAK says how many calls each process makes (`make soak`: 200); the default keeps the whole check short.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.plugin.host import Answer, Container, Host
from integration.plugin.test_concurrency import NOWHERE, check_empty

PROCESSES = 8
CALLS = int(os.environ.get("TORTIE_SOAK", "20"))
KILLED = 0.2  # of all calls


class Worker:
    """One runtime: it adds and deletes its own containers, and forgets none."""

    def __init__(self, host: Host, number: int, seed: int) -> None:
        self.host = host
        self.number = number
        self.random = random.Random(f"{seed} {number}")
        self.alive: dict[str, str | None] = {}  # container → address; None after a call that was killed, of either kind
        self.made = 0

    def work(self) -> None:
        for _ in range(CALLS):
            if self.alive and self.random.random() < 0.5:
                self.delete(self.random.choice(list(self.alive)))
            else:
                self.made += 1
                self.add(f"w{self.number}c{self.made}")

    def call(self, verb: str, identity: str) -> Answer | None:
        """None if it was killed before it had answered."""
        environment = self.host.environment(verb, Container(identity, NOWHERE))
        process = self.host.start(environment, program="calico-ipam")
        text = json.dumps(self.host.netconf()).encode()
        if self.random.random() >= KILLED:
            out, err = process.communicate(text, timeout=120)
            return Answer(process.returncode, out.decode(), err.decode())
        try:
            process.communicate(text, timeout=self.random.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        return Answer(process.returncode, out.decode(), err.decode()) if process.returncode == 0 else None

    def add(self, identity: str) -> None:
        self.alive[identity] = None
        answer = self.call("ADD", identity)
        if answer is not None:
            (ip,) = answer.result()["ips"]
            self.alive[identity] = ip["address"].partition("/")[0]

    def delete(self, identity: str) -> None:
        """One that is killed may have freed the address before, so that it is another's now."""
        self.alive[identity] = None
        answer = self.call("DEL", identity)
        if answer is not None:
            answer.silent()
            del self.alive[identity]

    def finish(self) -> None:
        """The DELs that a runtime repeats until they succeed."""
        for identity in self.alive:
            self.host.delete(Container(identity, NOWHERE), program="calico-ipam").silent()


def ipam_check(host: Host) -> dict[str, object]:
    where = {
        "TORTIE_SQLITE_PATH" if key == "sqlite_path" else key.upper(): to for key, to in host.store.settings.items()
    }
    answer = host.raw(where, "", "ipam", "check", "-o", "json", program="tortie")
    assert answer.exit in (0, 1), answer
    assert answer.stdout, answer
    return {"exit": answer.exit, **json.loads(answer.stdout)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_processes_that_are_killed_leave_clean_records_after_the_missing_dels(host: Host, seed: int) -> None:
    workers = [Worker(host, number, seed) for number in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(Worker.work, workers))
    given = [address for worker in workers for address in worker.alive.values() if address]
    assert len(given) == len(set(given)), "an address was given out twice"
    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(Worker.finish, workers))
    check_empty(host)
    report = ipam_check(host)
    assert report["exit"] == 0, report
