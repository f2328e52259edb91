"""`tortie ipam upgrade` and `calico-ipam -upgrade`: what is said, and how they end."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.reservation_files import HostLocalDirectory
from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from adapters.sqlite.datastore import SqliteDatastore
from domain.ipam.upgrade import Left
from entrypoints import upgrade
from entrypoints.tortie import main as operator
from entrypoints.tortie.command_line import parsed
from entrypoints.tortie.session import Session
from entrypoints.upgrade import Places, guarded, old_programs, refusal
from entrypoints.wiring import calico, datastores
from entrypoints.wiring.container import Container
from ports.errors import BadConfiguration, Unavailable
from usecases.initialise_cluster import Wish, initialise_cluster
from usecases.upgrade.reservations import Outcome
from worlds.one_node import NODE
from worlds.upgrading_node import PROGRAMS, UpgradingNode

_BIN = os.path.dirname(PROGRAMS[0])


class Tortie(UpgradingNode):
    """Reservations are real files, everything else is in memory."""

    def __init__(self, folder: Path, capsys) -> None:
        super().__init__()
        self.folder, self.capsys = folder / "k8s-pod-network", capsys
        self.environment = {"DATASTORE_TYPE": "sqlite", "NODENAME": NODE}

    def keep(self, address: str, container: str = "c1", **more) -> None:
        self.add_pod(address, **more)
        self.folder.mkdir(exist_ok=True)
        (self.folder / address).write_text(f"{container}\r\neth0")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = operator.run(self.words(*arguments), self.environment, self.container())
        return (code, *self.capsys.readouterr())

    def words(self, *arguments: str) -> list[str]:
        return ["ipam", "upgrade", "--directory", str(self.folder), "--cni-bin-dir", _BIN, *arguments]

    def container(self) -> Container:
        container = Container()
        container.datastore.override(self.datastore)
        container.datastore_cluster.override(self.cluster)
        container.clock.override(self.clock)
        container.log.override(self.log)
        container.node.override(self.node)
        return container


@pytest.fixture
def tortie(tmp_path, capsys):
    return Tortie(tmp_path, capsys)


def test_nothing_to_do(tortie):
    assert tortie.run() == (0, f"No reservation of host-local in {tortie.folder}.\n", "")


def test_reservations_move(tortie):
    tortie.keep("10.244.0.2")
    tortie.keep("10.244.0.3", "c2")
    (tortie.folder / "last_reserved_ip.0").write_text("10.244.0.3")
    code, out, err = tortie.run()
    assert (code, err) == (0, "")
    assert out == "Moved 2 to calico-ipam, and 0 that were recorded already.\nRemoved 1 that no pod has.\n"
    assert not tortie.folder.exists()
    assert tortie.moved() == {"10.244.0.2": "c1", "10.244.0.3": "c2"}
    assert not set(PROGRAMS) & set(tortie.node.files)
    assert tortie.is_ready() is True


def test_it_says_what_it_is_doing(tortie):
    tortie.keep("10.244.0.2")
    said: list[str] = []
    session, options = Session(tortie.container()), parsed(tortie.words("--node", NODE))
    session.doing = said.append
    options.command.run(options, session)
    assert "moved 1 of 1 reservations" in said


def test_a_dry_run_says_what_would_become_of_each_and_changes_nothing(tortie):
    tortie.keep("10.244.0.2")
    tortie.keep("192.0.2.2")
    before = tortie.datastore.records_text()
    code, out, _ = tortie.run("--dry-run", "-o", "json")
    assert code == 1
    said = json.loads(out)
    assert [one["name"] for one in said.pop("left")] == ["192.0.2.2"]
    assert said == {"dryRun": True, "moved": ["10.244.0.2"], "recordedBefore": [], "stale": []}
    code, out, _ = tortie.run("--dry-run")
    assert out.splitlines()[:3] == [
        "Would move 1 to calico-ipam, and 0 that were recorded already.",
        "Would remove 0 that no pod has.",
        "Would leave 1:",
    ]
    assert "192.0.2.2: 192.0.2.2 is in no enabled IP pool" in out
    assert tortie.datastore.records_text() == before
    assert set(PROGRAMS) <= set(tortie.node.files)
    assert sorted(path.name for path in tortie.folder.iterdir()) == ["10.244.0.2", "192.0.2.2"]


def test_of_many_that_are_left_the_first_are_shown(tortie):
    for number in range(1, 30):
        tortie.keep(f"192.0.2.{number}")
    code, out, _ = tortie.run()
    assert code == 1
    assert out.splitlines()[-1] == "  and 9 more; -o wide shows all"


def test_a_failure_is_told_and_the_cluster_is_ready_again(tortie):
    tortie.keep("10.244.0.2")
    tortie.node.broken.add(PROGRAMS[0])
    code, out, err = tortie.run()
    assert (code, out) == (1, "")
    assert err.startswith("Error: failed to remove binary /host/opt/cni/bin/calico: ")
    assert tortie.is_ready() is True


def test_an_interrupted_upgrade_leaves_the_cluster_ready(tortie):
    tortie.keep("10.244.0.2")
    tortie.clock.sleep = lambda _seconds: os.kill(os.getpid(), signal.SIGTERM)
    code, out, err = tortie.run()
    assert (code, out) == (1, "")
    assert err == f"Error: {upgrade.INTERRUPTED}\n"
    assert tortie.is_ready() is True


def test_the_nodes_name_is_needed(tortie):
    del tortie.environment["NODENAME"]
    tortie.keep("10.244.0.2")
    code, _, err = tortie.run()
    assert (code, err) == (
        1,
        "Error: the name of this node is not known; give --node, or set KUBERNETES_NODE_NAME\n",
    )
    assert tortie.run("--node", NODE)[0] == 0


def test_without_anybody_to_ask_for_pods_it_says_what_to_set(tortie):
    tortie.keep("10.244.0.2")
    tortie.cluster.namespaces = None
    for words in ([], ["--dry-run"]):
        code, _, err = tortie.run(*words)
        assert (code, err) == (
            1,
            "Error: nobody can be asked for the node's pods; set KUBECONFIG to a file that leads to their API server\n",
        )
    assert tortie.is_ready() is True


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "1e9"])
def test_a_wait_that_is_none(tortie, text):
    code, _, err = tortie.run("--wait", text)
    assert code == 2
    assert "is not a number of seconds from 0 to 3600" in err


# --- the init container -----------------------------------------------------------------------------------------------


def test_places_are_the_originals_unless_variables_say_otherwise():
    assert Places.of({}) == Places("/var/lib/cni/networks/k8s-pod-network", "/host/opt/cni/bin", 5.0)
    told = {"TORTIE_HOST_LOCAL_DIR": "/a", "TORTIE_CNI_BIN_DIR": "/b", "TORTIE_UPGRADE_WAIT": "0"}
    assert Places.of(told) == Places("/a", "/b", 0.0)
    with pytest.raises(BadConfiguration, match=r"^TORTIE_UPGRADE_WAIT 'x' is not a number of seconds from 0 to 3600$"):
        Places.of({"TORTIE_UPGRADE_WAIT": "x"})


def test_programs_of_others_are_removed_and_our_own_stays(tmp_path):
    """It is what runs right now, perhaps, and refuses calls by itself while the datastore is not ready."""
    own = Path(getattr(sys.modules["__main__"], "__file__", None) or sys.executable)
    (tmp_path / "host-local").write_text("old")
    (tmp_path / "calico").write_text("old")
    assert old_programs(str(tmp_path)) == (str(tmp_path / "calico"), str(tmp_path / "host-local"))
    (tmp_path / "calico").unlink()
    (tmp_path / "calico").symlink_to(own)
    assert old_programs(str(tmp_path)) == (str(tmp_path / "host-local"),)


def test_what_is_left_is_one_line():
    left = tuple(Left(f"10.0.0.{n}", "why") for n in range(5))
    assert refusal(Outcome(("a",), ("b",), (), left)) == (
        "5 of host-local's reservations are left, 2 moved: "
        "10.0.0.0: why; 10.0.0.1: why; 10.0.0.2: why; and 2 more; then upgrade again"
    )
    assert refusal(Outcome(left=left[:1])) == (
        "1 of host-local's reservations are left, 0 moved: 10.0.0.0: why; then upgrade again"
    )


def test_what_nobody_foresaw_is_taken_back_too():
    clock, undone = SystemClock(), []

    def fail(undo):
        undo.register("it", lambda _deadline: undone.append(1))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        guarded(fail, clock, RecordingLog())
    assert undone == [1]


def test_a_signal_that_comes_while_a_failure_ends_it_changes_nothing():
    undone = []

    def fail(undo):
        undo.register("it", lambda _deadline: undone.append(1))
        raise Unavailable("away")

    class Killing(SystemClock):
        def deadline(self, budget):
            os.kill(os.getpid(), signal.SIGTERM)
            return super().deadline(budget)

    with pytest.raises(Unavailable):
        guarded(fail, Killing(), RecordingLog())
    assert undone == [1]


@pytest.mark.parametrize(
    ("environment", "type"),
    [
        ({}, "kubernetes"),
        ({"ETCD_ENDPOINTS": "http://127.0.0.1:1"}, "kubernetes"),
        ({"DATASTORE_TYPE": "etcdv3"}, "etcdv3"),
        ({"DATASTORE_TYPE": "sqlite"}, "sqlite"),
        ({"CALICO_DATASTORE_TYPE": "etcdv3", "DATASTORE_TYPE": "kubernetes"}, "etcdv3"),
        ({"DATASTORE_TYPE": "nonsense"}, "kubernetes"),
    ],
)
def test_the_datastore_is_kubernetes_unless_one_of_ours_is_named(environment, type):
    assert datastores.datastore_kind(upgrade.upgraded_environment(environment)) == type


def test_the_pace_is_an_upgrades_own_unless_it_is_set():
    """The whole cluster waits for its end."""
    environment = upgrade.upgraded_environment({"K8S_CLIENT_BURST": "7"})
    assert (environment["K8S_CLIENT_QPS"], environment["K8S_CLIENT_BURST"]) == ("200", "7")


def test_settings_that_lead_nowhere_are_one_line(capfd, tmp_path):
    environment = {"KUBERNETES_NODE_NAME": "n", "KUBECONFIG": str(tmp_path / "absent")}
    assert upgrade.main(environment) == 1
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert str(tmp_path / "absent") in line


def test_settings_that_cannot_work_are_not_tried_again(capfd, tmp_path):
    """An embedded datastore has no API server; the original ends as well if it has no client."""
    (tmp_path / "10.0.0.1").write_text("c1")
    database = tmp_path / "datastore.db"
    with SqliteDatastore(str(database), SystemClock(), create=True) as datastore:
        initialise_cluster(datastore, Wish("n", "0" * 32, ("10.0.0.0/16",), {}), SystemClock().deadline(10))
    environment = {"KUBERNETES_NODE_NAME": "n", "DATASTORE_TYPE": "sqlite", "TORTIE_SQLITE_PATH": str(database)}
    environment |= {"TORTIE_HOST_LOCAL_DIR": str(tmp_path), "TORTIE_UPGRADE_WAIT": "0"}
    assert upgrade.main(environment) == 1
    assert capfd.readouterr().err.splitlines()[-1] == (
        "Error: failed to initialize api client: nobody can be asked for the node's pods; "
        "set KUBECONFIG to a file that leads to their API server"
    )


def test_the_directory_is_the_real_one(tmp_path):
    (tmp_path / "10.0.0.1").write_text("c1")
    files = upgrade.open_reservations(str(tmp_path), SystemClock())
    assert isinstance(files, HostLocalDirectory)
    assert files.read("10.0.0.1") == "c1"
    assert isinstance(calico.node(), type(MemoryNode()).__mro__[1])
