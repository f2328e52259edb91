"""Which modules the executable has loaded when it starts, in which order (packaging/executable/freeze.py)."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def ahead(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of our modules alone: the standard library is taken for granted, and not followed."""
    sys.path.insert(0, str(ROOT / "packaging" / "executable"))
    try:
        import freeze

        class Own(freeze.Graph):
            def exists(self, name: str) -> bool:
                return name.partition(".")[0] in sys.stdlib_module_names or bool(super().exists(name))

        graph = Own(ROOT, tmp_path_factory.mktemp("no-library"), Path(sysconfig.get_path("purelib")))
        assert graph.follow(freeze.ENTRY, "the test")
        return list(graph.ahead())
    finally:
        sys.path.remove(str(ROOT / "packaging" / "executable"))


def test_all_that_a_verb_may_load_is_loaded_ahead(ahead: list[str]) -> None:
    verbs = ("add_workload", "delete_workload", "check_workload", "assign_addresses", "release_addresses", "add_bridge")
    adapters = ("sqlite.datastore", "etcdv3.transport_lean", "kubernetes.datastore", "linux.dataplane")
    assert {*(f"usecases.{verb}" for verb in verbs), *(f"adapters.{name}" for name in adapters)} <= set(ahead)


def test_what_only_the_operators_commands_load_is_not(ahead: list[str]) -> None:
    """Each call of a plugin would pay for it; they load it when they are asked."""
    assert [name for name in ahead if name.startswith("entrypoints.tortie.")] == ["entrypoints.tortie.guard"]
    assert not {"entrypoints.install", "usecases.collect_ipam", "usecases.doctor.patient"} & set(ahead)


def test_what_each_call_uses_comes_first_and_what_few_use_last(ahead: list[str]) -> None:
    assert ahead[:3] == ["entrypoints.main", "entrypoints.calico", "entrypoints.calico_ipam"]
    seldom = ahead.index("usecases.pods.network_pod")
    assert 3 <= ahead.index("usecases.add_workload") < ahead.index("adapters.linux.dataplane") < seldom


def test_what_needs_a_library_at_once_is_not(ahead: list[str]) -> None:
    transports = {name for name in ahead if name.rpartition(".")[2].startswith("on_") or name.endswith("etcd3")}
    assert transports == {"adapters.etcdv3.load_etcd3"}  # which loads the library when it is called
