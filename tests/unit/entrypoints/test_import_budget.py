"""Start-up is latency: each plugin entrypoint may load the modules listed here and no others.

A test that fails here names the modules that came in. Either import them where they are needed and seldom used
(inside a function), or add them to the list with their measured cost in mind: `make bench` shows it. Only a library
transport, which has a lean sibling or will get one, may load what it likes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.sqlite.datastore import SqliteDatastore
from usecases.initialise_cluster import Wish, initialise_cluster

ROOT = Path(__file__).resolve().parents[3]

# The numbers are milliseconds on one machine: to compare with one another. An interpreter that does nothing takes 8.
ALWAYS = {"__future__", "_json", "gc"}  # 0.1, 0.3, 0.0
MACHINE = {"os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"}  # 1.0 together
MACHINE |= {"errno", "fcntl", "select"}  # 0.1, 0.2, 0.2: locks, and waiting for children and sockets
SQLITE = {
    "_sqlite3",
    "_functools",
    "atexit",
}  # 0.9, 0.1, a built-in: adapters/sqlite/engine keeps `functools` away, which would cost 2.6
BRIDGE = {"_sha512", "_sha2"}  # 0.2: names of its firewall chains; Python 3.12 has them all in the second
CALLS = {"_ctypes", "_socket"}  # 0.4, 0.4: entering a namespace, which Python learnt in 3.12; netlink
TLS = {"_socket", "_ssl"}  # 0.4, 2.9: most of it the library's own start
NEVER = {
    *("collections", "ctypes", "functools", "keyword", "operator", "reprlib", "types"),
    *("argparse", "ast", "asyncio", "contextlib", "dataclasses", "datetime", "decimal", "enum", "inspect", "ipaddress"),
    *(
        "json",
        "locale",
        "logging",
        "pathlib",
        "random",
        "re",
        "shutil",
        "signal",
        "site",
        "socket",
        "sqlite3",
        "string",
    ),
    *("struct", "subprocess", "tempfile", "textwrap", "threading", "traceback", "typing", "urllib", "uuid", "warnings"),
}
LIBRARY_TRANSPORTS = {
    *("adapters.linux.netlink.on_pyroute2", "adapters.linux.netlink.bridge_pyroute2"),
    *("adapters.etcdv3.transport_etcd3", "adapters.etcdv3.race_etcd3"),
    *("adapters.etcdv3.etcdrpc", "adapters.etcdv3.etcd_api_pb2"),
    "adapters.kubernetes.transport.on_kubernetes",
    "adapters.kubernetes.credentials.whole_yaml",  # for a kubeconfig that no tool has written
    *("adapters.grpc.messages", "adapters.grpc.cni_dataplane_pb2"),  # google.protobuf; the first call imports grpc
}
OWN = ("domain", "ports", "usecases", "adapters", "entrypoints")
# Of `tortie` and of the installer, which no runtime starts.
OPERATOR = (
    *("entrypoints.tortie", "entrypoints.wiring.container", "entrypoints.wiring.doctor"),
    *("entrypoints.install", "entrypoints.wiring.installer", "adapters.memory.host_files"),
)
GUARD = "entrypoints.tortie.guard"  # is loaded before the rest of it


def run_isolated(code: str) -> set[str]:
    """Names of the modules that an interpreter, started as the launcher starts it, has loaded after the code."""
    report = "\nimport posix\nposix.write(2, '\\n'.join(sorted(sys.modules)).encode())\n"
    script = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}{report}"
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split("\n"))


def foreign(modules: set[str]) -> set[str]:
    """Those that are neither ours nor in a bare interpreter."""
    bare = run_isolated("")
    return {name for name in modules - bare if name.partition(".")[0] not in OWN}


def modules_under(*packages: str) -> list[str]:
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.name != "__init__.py"]


def importing(modules: list[str]) -> str:
    return "\n".join(f"import {name}" for name in modules)


def test_the_lists_do_not_contradict_each_other() -> None:
    assert not (ALWAYS | MACHINE | SQLITE) & NEVER


@pytest.mark.parametrize(
    ("packages", "budget"),
    [
        (("domain", "ports"), ALWAYS | BRIDGE),
        (("adapters/records", "adapters/memory"), ALWAYS),
        (("adapters/linux",), ALWAYS | MACHINE | BRIDGE | {"_socket"}),
        (("adapters/grpc",), ALWAYS | MACHINE | {"_socket"}),
        (("adapters/sqlite",), ALWAYS | MACHINE | SQLITE),
        (("adapters/etcdv3",), ALWAYS | MACHINE | {"_socket"}),
        (("adapters/kubernetes",), ALWAYS | MACHINE | TLS),
        (("entrypoints",), ALWAYS | MACHINE),
    ],
    ids=["domain and ports", "records and memory", "linux", "grpc", "sqlite", "etcd", "kubernetes", "entrypoints"],
)
def test_no_module_on_a_plugin_path_loads_more_than_its_budget(packages: tuple[str, ...], budget: set[str]) -> None:
    wanted = [
        name
        for name in modules_under(*packages)
        if name == GUARD or (name not in LIBRARY_TRANSPORTS and not name.startswith(OPERATOR))
    ]
    assert wanted
    assert foreign(run_isolated(importing(wanted))) - budget == set()


def run_plugin(name: str, environment: dict[str, str], given: str = "") -> tuple[set[str], str]:
    """Every module that a whole plugin call loads, and its answer."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = [{name!r}]\n"
    code += "from entrypoints.main import main; main()"
    command = [sys.executable, "-ISB", "-X", "importtime", "-c", code]
    done = subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines[1:]}, done.stdout


@pytest.mark.parametrize(("name", "own"), [("calico", "calico"), ("calico-ipam", "calico_ipam")])
def test_version_loads_what_reads_a_request_and_nothing_else(name: str, own: str) -> None:
    loaded, answer = run_plugin(name, {"CNI_COMMAND": "VERSION"})
    assert json.loads(answer)["cniVersion"] == "1.1.0"
    assert foreign(loaded) <= ALWAYS | MACHINE
    assert {module for module in loaded if module.partition(".")[0] in OWN and "." in module} <= {
        *("entrypoints.main", f"entrypoints.{own}", "entrypoints.skel", "entrypoints.flags"),
        *("entrypoints.logs", "entrypoints.log_file", "entrypoints.termination", "entrypoints.version"),
        *("entrypoints.stdio", "adapters", "adapters.linux", "adapters.linux.spare_memory"),
        *("domain.value", "domain.json_text", "domain.moment", "domain.resource", "domain.ipam", "domain.ipam.address"),
        *("domain.cni", "domain.cni.errors", "domain.cni.request", "domain.cni.versions", "domain.cni.json_fields"),
        *("domain.cni.go_quote", "ports.log", "ports.errors"),
    }


@pytest.fixture
def netconf(tmp_path: Path) -> str:
    """A configuration whose datastore is ready and has one pool."""
    clock = SystemClock()
    with SqliteDatastore(str(tmp_path / "datastore.db"), clock, create=True) as datastore:
        initialise_cluster(datastore, Wish("node-a", "0" * 32, ("10.0.0.0/16",), {}), clock.deadline(10))
    settings = {"datastore_type": "sqlite", "sqlite_path": str(tmp_path / "datastore.db"), "nodename": "node-a"}
    files = {"nodename_file_optional": True, "ipam_lock_file": str(tmp_path / "lock"), "ipam": {"type": "calico-ipam"}}
    return json.dumps({"cniVersion": "1.0.0", "name": "net1", "type": "calico", **settings, **files})


@pytest.mark.parametrize("name", ["calico", "calico-ipam"])
@pytest.mark.parametrize("verb", ["ADD", "DEL", "CHECK"])
def test_a_call_on_the_embedded_datastore_stays_in_its_budget(
    name: str, verb: str, netconf: str, tmp_path: Path
) -> None:
    """As far as a call gets without root: CNI_NETNS is no namespace."""
    (tmp_path / "calico-ipam").write_text("#!/bin/sh\n")
    (tmp_path / "calico-ipam").chmod(0o755)
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": str(tmp_path / "absent"),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(tmp_path),
    }
    loaded, answer = run_plugin(name, environment, netconf)
    assert not answer or answer == "OK\n" or json.loads(answer)
    assert foreign(loaded) <= ALWAYS | MACHINE | SQLITE | CALLS
    assert "domain.cni.netconf" in loaded


def test_the_grpc_library_is_loaded_only_when_a_service_is_asked(netconf: str, tmp_path: Path) -> None:
    """The own namespace is refused before that."""
    options = {"type": "grpc", "socket": f"unix://{tmp_path}/absent"}
    environment = {
        "CNI_COMMAND": "DEL",
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": "/proc/self/ns/net",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(tmp_path),
    }
    given = json.dumps({**json.loads(netconf), "dataplane_options": options})
    loaded, answer = run_plugin("calico", environment, given)
    assert json.loads(answer)["code"] == 8
    assert "adapters.grpc.dataplane" in loaded
    assert foreign(loaded) <= ALWAYS | MACHINE | SQLITE | CALLS


@pytest.mark.parametrize(
    ("transport", "most", "unused"),
    [
        ("adapters.kubernetes.transport.on_kubernetes", 230, "kubernetes.client.models kubernetes.config"),
        ("adapters.linux.netlink.on_pyroute2", 290, "pyroute2.ndb pyroute2.ipset pyroute2.dhcp"),
        ("adapters.etcdv3.race_etcd3", 240, "kubernetes pyroute2"),
    ],
)
def test_a_library_transport_loads_of_its_library_what_it_uses(transport: str, most: int, unused: str) -> None:
    """So many modules, and none of those: with them it takes two to four times as long (519, 342, and 220)."""
    site = sysconfig.get_path("purelib")
    loaded = foreign(run_isolated(f"sys.path.append({site!r})\nimport {transport}"))
    assert "socket" in loaded
    assert not [name for name in loaded if f"{name}.".startswith(tuple(f"{one}." for one in unused.split()))]
    assert len(loaded) <= most, sorted(loaded)
