"""`tortie ipam check` and `gc` about virtual machines: the API server says which there are (F06, L12)."""

from __future__ import annotations

import json

import pytest

from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from worlds.machine_world import MachineWorld


@pytest.fixture
def world():
    """What is left of a machine that was stopped, and then deleted."""
    made = MachineWorld()
    made.create()
    pod = made.pod("a")
    made.start(pod)
    made.end(pod)
    made.forget()
    made.remove_pod(pod)
    made.clock.advance(3600)
    return made


def run(world, *arguments, environment=None, cluster=True):
    container = Container()
    container.datastore.override(world.store)
    container.clock.override(world.clock)
    if cluster:
        container.cluster.override(world.cluster)
    return operator.run(["ipam", *arguments], {"DATASTORE_TYPE": "sqlite", **(environment or {})}, container)


def test_what_is_left_of_a_machine_is_found_and_collected(world, capsys):
    assert run(world, "check", "-o", "json") == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["kind"], finding["level"], finding["handle"]) == (
        "address-of-vanished-machine",
        "leak",
        "net.vmi.shop.db",
    )
    assert run(world, "gc", "--leaked", "--yes", "--grace", "0") == 0
    assert run(world, "check") == 0
    world.check_at_rest(set())


def test_a_report_of_it_can_be_acted_on(world, capsys, tmp_path):
    report = tmp_path / "report.json"
    assert run(world, "check", "-o", str(report)) == 1
    assert run(world, "release", "--from-report", str(report)) == 0
    world.check_at_rest(set())


def test_without_an_api_server_no_machine_is_gone(world, capsys):
    assert run(world, "check", cluster=False) == 0


def test_a_kubeconfig_that_cannot_be_used_is_told_and_does_not_stop_the_rest(world, capfd, tmp_path):
    broken = tmp_path / "kubeconfig"
    broken.write_text("nothing: useful\n")
    assert run(world, "check", cluster=False, environment={"KUBECONFIG": str(broken)}) == 0
    assert "which virtual machines there are" in capfd.readouterr().err
