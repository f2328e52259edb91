"""What a whole ADD and DEL of the built program load: a plugin's budget, and more only where a library is wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.sqlite.datastore import SqliteDatastore
from integration.plugin.kernel import Namespace
from usecases.initialise_cluster import Wish, initialise_cluster

ROOT = Path(__file__).resolve().parents[3]
OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")
TRANSPORT = "adapters.linux.netlink.on_pyroute2"
BUDGET = {
    *("__future__", "_json", "os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"),
    *("errno", "fcntl", "gc", "select", "_ctypes", "_socket", "_sqlite3", "_functools", "atexit"),
}


def loaded_outside_the_transport(report: str) -> set[str]:
    """Module names from `-X importtime`; what the transport's own import caused is left out.

    The report lists a module after those that it imported, which are indented deeper.
    """
    loaded: set[str] = set()
    inside: int | None = None
    for line in reversed([line for line in report.splitlines() if line.startswith("import time:")][1:]):
        text = line.rpartition("|")[2]
        depth = len(text) - len(text.lstrip())
        if inside is not None and depth > inside:
            continue
        inside = depth if text.strip() == TRANSPORT else None
        loaded.add(text.strip())
    return loaded


@pytest.fixture
def spaces() -> Iterator[tuple[Namespace, Namespace]]:
    """The host's and the container's."""
    with ExitStack() as undo:
        yield Namespace("host", undo), Namespace("start", undo)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("built") / "bin"
    bundle = [sys.executable, ROOT / "packaging" / "bundle.py", "build", "--lock", ROOT / "requirements.lock"]
    subprocess.run([*bundle, target], check=True, capture_output=True, timeout=120)
    return target


@pytest.mark.parametrize("transport", ["lean", "library"])
def test_add_and_del_load_their_budget_and_a_library_only_when_asked(
    spaces: tuple[Namespace, Namespace], built: Path, tmp_path: Path, transport: str
) -> None:
    host, container = spaces
    clock, database = SystemClock(), str(tmp_path / "datastore.db")
    with SqliteDatastore(database, clock, create=True) as datastore:
        initialise_cluster(datastore, Wish("node-a", "0" * 32, ("10.246.0.0/24",), {}), clock.deadline(10))
    settings = {"datastore_type": "sqlite", "sqlite_path": database, "nodename": "node-a"}
    files = {"nodename_file_optional": True, "ipam_lock_file": str(tmp_path / "lock"), "ipam": {"type": "calico-ipam"}}
    netconf = json.dumps({"cniVersion": "1.0.0", "name": "net1", "type": "calico", **settings, **files})
    interpreter = [sys._base_executable, "-ISB", "-X", "importtime"]
    bare = subprocess.run([*interpreter, "-c", ""], capture_output=True, text=True, check=True)
    budget = BUDGET | loaded_outside_the_transport(bare.stderr)
    for verb in ("ADD", "DEL"):
        environment = {
            "TORTIE_TRANSPORT": transport,
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": f"start{os.getpid()}",
            "CNI_NETNS": container.path,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(built),
        }
        program = ["nsenter", f"--net={host.path}", "--", *interpreter, built / "calico"]
        done = subprocess.run(
            program, env=environment, input=netconf, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout
        loaded = loaded_outside_the_transport(done.stderr)
        assert (TRANSPORT in loaded) == (transport == "library")
        assert {name for name in loaded if name.partition(".")[0] not in OWN} - budget == set(), verb
