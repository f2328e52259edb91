"""Case P05: calls that are killed at random moments leave no file anywhere.

"Anywhere" is the whole file system: the calls see the real one through an overlay, whose upper side has what they
wrote, and nothing else. /dev/shm is one of their own.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from integration.plugin.host import Container, Host, stop
from integration.plugin.mortal import all_at_once, spread
from integration.plugin.store import Store

KILLED, AT_ONCE = 100, 4
LOG = "/var/log/calico/cni/cni.log"
USUAL = {"log_file_path": LOG, "log_level": "debug", "ipam_lock_file": None}  # as on everybody's nodes
PREPARE = """
mount -t tmpfs tmpfs {view}
mkdir {view}/written {view}/work {view}/root
mount -t overlay overlay -o lowerdir=/,upperdir={view}/written,workdir={view}/work {view}/root
cd {view}/root
for place in /proc /sys /dev {folder} {binaries}; do mkdir -p .$place; mount --rbind $place .$place; done
mkdir -p run/netns tmp/own
mount --rbind /run/netns run/netns
mount -t tmpfs tmpfs dev/shm
echo done
exec cat
"""


class View:
    """The file system as calls see it: run them with `through`, then ask what they have written."""

    def __init__(self, host: Host, undo: ExitStack) -> None:
        place = host.folder / "view"
        place.mkdir()
        script = PREPARE.format(view=place, folder=host.folder, binaries=host.bin)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holder = subprocess.Popen(["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", script], **pipes)
        undo.callback(stop, self._holder)
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"done\n"
        seen = f"/proc/{self._holder.pid}/root{place}"
        self.places = {"": Path(seen, "written"), "shm:": Path(seen, "root/dev/shm"), "folder:": host.folder}
        self.places["binaries:"] = host.bin
        self.through = f'exec nsenter -t {self._holder.pid} -m -- /usr/sbin/chroot {place}/root "$@"'
        self._before = self._files()

    def _files(self) -> dict[str, int]:
        """Every file, with the moment of its last change."""
        found = {}
        for name, place in self.places.items():
            for path in place.rglob("*"):
                if not path.is_dir():
                    found[f"{name}{path.relative_to(place)}"] = path.lstat().st_mtime_ns
        return found

    def written(self) -> set[str]:
        return {name for name, changed in self._files().items() if self._before.get(name) != changed}


@pytest.fixture
def containers(host: Host) -> list[Container]:
    return [host.container(letter) for letter in "abcde"]


@pytest.fixture
def view(host: Host, containers: list[Container]) -> Iterator[View]:
    assert containers  # their namespaces are to be in it
    with ExitStack() as undo:
        yield View(host, undo)


def kill_one(host: Host, view: View, container: Container, moment: float) -> int:
    """How an ADD ended that was killed at the moment, if it had not ended before."""
    environment = host.environment("ADD", container, TMPDIR="/tmp/own", HOME="/root")
    process = host.start(environment, through=view.through)
    assert process.stdin
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(host.netconf(**USUAL)).encode())
        process.stdin.close()
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    code = process.wait(60)
    stop(process)
    return code


def typical_life(host: Host, view: View, container: Container) -> float:
    """Seconds that an ADD takes here while nothing else runs."""
    host.add(container, through=view.through, **USUAL).result()
    host.delete(container, through=view.through, **USUAL).silent()

    def once() -> float:
        began = time.monotonic()
        host.add(container, through=view.through, **USUAL).result()
        life = time.monotonic() - began
        host.delete(container, through=view.through, **USUAL).silent()
        return life

    return min(once() for _ in range(3))  # a busy machine makes one of them long


def test_a_hundred_killed_adds_leave_no_file(host: Host, containers: list[Container], view: View) -> None:
    """P05: but for the log and the lock, whose content says nothing, and the embedded datastore."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    latest = typical_life(host, view, containers[0]) * 2
    moments = spread(chance, latest, KILLED)
    plans = [(containers[number % len(containers)], moment) for number, moment in enumerate(moments)]
    ended = all_at_once(lambda plan: kill_one(host, view, *plan), plans, AT_ONCE)
    assert ended.count(-signal.SIGKILL) > KILLED // 10, (seed, ended)
    for container in containers:  # the next call finds its way, and takes the datastore's journal in
        host.add(container, through=view.through, **USUAL).result()
        host.delete(container, through=view.through, **USUAL).silent()
    assert host.left() == {}, seed
    database = {f"folder:{host.database.name}"} if isinstance(host.store, Store) else set()
    log, lock = LOG.removeprefix("/"), "run/calico/ipam.lock"
    assert view.written() == database | {log, lock}, seed
