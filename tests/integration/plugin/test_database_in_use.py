"""Calls that find the embedded datastore in use by another process: they wait for it, and no longer than it takes."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from integration.plugin.host import LONGEST_CALL, Container, Host

pytestmark = pytest.mark.sqlite_file

WRITERS, ALL_WHO_USE_IT = 120, 128  # octets of the -shm file that SQLite locks, by its file format


@contextmanager
def beginning(host: Host) -> Iterator[None]:
    """As by a process that begins to use the database, and has not yet made its index."""
    with open(f"{host.database}-shm", "w+b") as index:  # SQLite maps it
        index.truncate(1 << 15)
        fcntl.lockf(index, fcntl.LOCK_SH, 1, ALL_WHO_USE_IT)
        fcntl.lockf(index, fcntl.LOCK_EX, 1, WRITERS)
        yield


@contextmanager
def writing(host: Host) -> Iterator[None]:
    with closing(sqlite3.connect(host.database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def opened(process: int, path: str) -> bool:
    found = set()
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(link))
    return path in found


class Wait:
    """A call of `calico-ipam` that finds the database in use until `held` seconds after it has opened it.

    `asleep` is how often it was seen to sleep meanwhile, as a share; `longer` how many seconds it then took.
    """

    def __init__(self, host: Host, container: Container, held: float) -> None:
        call = host.start(host.environment("ADD", container), program="calico-ipam")
        assert call.stdin
        assert call.stdout
        call.stdin.write(json.dumps(host.netconf()).encode())
        call.stdin.close()
        limit = time.monotonic() + LONGEST_CALL
        while not opened(call.pid, f"{host.database}-shm"):
            assert call.poll() is None, call.stdout.read()
            assert time.monotonic() < limit
            time.sleep(0.001)
        seen, limit = [], time.monotonic() + held
        while time.monotonic() < limit:
            time.sleep(0.002)
            seen.append(Path(f"/proc/{call.pid}/stat").read_text().rpartition(") ")[2].startswith("S"))
        self.asleep = sum(seen) / len(seen)
        self._call = call

    def end(self) -> None:
        call, freed = self._call, time.monotonic()
        assert call.wait(LONGEST_CALL) == 0
        self.longer = time.monotonic() - freed


def test_a_call_goes_on_as_soon_as_another_process_has_begun_to_use_the_database(host: Host) -> None:
    """Best of three: on a busy machine anything may take long once. SQLite without usleep(3) waits a second, always."""
    took = []
    for letter in "abc":
        with beginning(host):
            wait = Wait(host, host.container(letter), 0.15)
        wait.end()
        took.append(wait.longer)
    assert min(took) < 0.7, took


def test_a_call_that_waits_for_another_that_writes_leaves_the_processor_to_it(host: Host) -> None:
    """SQLite without usleep(3) does not wait for less than a second: whoever asks again keeps a processor busy."""
    with writing(host):
        wait = Wait(host, host.container(), 0.5)
    wait.end()
    assert wait.asleep > 0.2
