"""`tortie ipam` about addresses that stay with a name (F01)."""

from __future__ import annotations

import json

import pytest

from domain.ipam.address import Address
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from ports.datastore import WorkloadEndpointKey
from worlds.ipam_world import NEVER
from worlds.kept_life import SECONDS, SPACE, KeptWorld


@pytest.fixture
def world():
    """A pod of a StatefulSet on node-a has an address; of node-b's the pod has gone."""
    made = KeptWorld()
    used, left = made.pod("web-0", owner="StatefulSet"), made.pod("db-x7", "node-b", keep="db")
    made.used, made.left = made.add_pod(used), made.add_pod(left)
    made.del_pod(left)
    key = WorkloadEndpointKey(SPACE, "node--a-k8s-web--0-eth0")
    record = WorkloadEndpoint(Metadata(key.name, SPACE), node="node-a", pod="web-0", container_id=f"c-{used.uid}")
    record = record.replace(ip_networks=(Address.parse(made.used[0]).host_cidr,))
    made.store.create(key, record, NEVER)
    return made


@pytest.fixture
def run(world, capsys):
    def run(*arguments):
        container = Container()
        container.datastore.override(world.store)
        container.clock.override(world.clock)
        code = operator.run(["ipam", *arguments], {"DATASTORE_TYPE": "sqlite", "COLUMNS": "120"}, container)
        return code, *capsys.readouterr()

    return run


def test_show_has_each_name_who_has_its_address_and_until_when_it_is_kept(world, run):
    code, out, _ = run("show", "--kept")
    head, free, used = out.splitlines()
    assert code == 0
    assert head.split() == ["NAME", "IP", "POD", "NODE", "KEPT", "UNTIL", "OWNER"]
    assert free.split() == ["shop/db", *world.left, "node-b", "2026-11-29", "13:22:52", "UTC"]
    assert used.split() == ["shop/web-0", *world.used, "shop/web-0", "node-a", "StatefulSet/web"]
    (_, only) = run("show", "--kept", "--node", "node-a")[1].splitlines()
    assert only.split() == used.split()


def test_show_as_json(world, run):
    _, out, _ = run("show", "--kept", "-o", "json")
    free, used = json.loads(out)["kept"]
    assert free == {
        "name": "shop/db",
        "ip": world.left[0],
        "pod": "",
        "node": "node-b",
        "keptUntil": free["keptUntil"],
        "owner": "",
        "handle": "net.kept.shop.db",
        "unused": True,
        "over": False,
    }
    assert (used["pod"], used["owner"], used["unused"]) == ("shop/web-0", "StatefulSet/web owner-uid", False)
    world.clock.advance(SECONDS)
    assert json.loads(run("show", "--kept", "-o", "json")[1])["kept"][0]["over"]
    assert " over" in run("show", "--kept")[1]


def test_of_one_address(world, run):
    out = run("show", "--ip", world.left[0])[1]
    assert out.startswith(f"IP {world.left[0]} is kept for a name, and no pod has it\n")
    assert "kept-as: shop/db" in out
    assert json.loads(run("show", "--ip", world.left[0], "-o", "json")[1])["state"] == "kept"
    assert run("show", "--ip", world.used[0])[1].startswith(f"IP {world.used[0]} is in use\n")


def test_without_any_it_says_so(run, world):
    assert run("show", "--kept", "--node", "node-c") == (0, "No address is kept for a name.\n", "")


def test_release_gives_up_what_is_kept_for_a_name(world, run):
    assert run("release", "--kept", "shop/db") == (0, f"Successfully released IP address {world.left[0]}\n", "")
    assert run("release", "--kept", "shop/db") == (
        1,
        "",
        "Error: nothing is kept for shop/db; `tortie ipam show --kept` has the names\n",
    )


def test_a_spare_address_is_released_by_itself(world, run):
    assert run("release", "--ip", world.left[0]) == (0, f"Successfully released IP address {world.left[0]}\n", "")
    assert world.left[0] not in run("show", "--kept")[1]


def test_release_of_what_a_pod_has_wants_force(world, run):
    code, out, err = run("release", "--kept", "shop/web-0")
    assert (code, out) == (1, "")
    assert f"{world.used[0]} is in use: endpoint shop/node--a-k8s-web--0-eth0 has it" in err
    assert run("release", "--kept", "shop/web-0", "--force")[0] == 0


def test_release_of_what_a_call_has_just_taken_wants_force(world, run):
    """Its endpoint is not written yet; another pod would be given the address beside it."""
    (address,) = world.add_pod(world.pod("db-x8", "node-b", keep="db"))
    for chosen in (("--kept", "shop/db"), ("--ip", address), ("--handle", "net.kept.shop.db")):
        code, out, err = run("release", *chosen)
        assert (code, out) == (1, "")
        assert f"{address} is in use: an ADD has just taken it for db-x8, and may be at work still" in err
    world.clock.advance(100)
    assert run("release", "--kept", "shop/db") == (0, f"Successfully released IP address {address}\n", "")


def test_release_wants_one_thing(run):
    code, _, err = run("release", "--kept", "shop/db", "--ip", "10.9.0.8")
    assert code == 2
    assert "give --ip, --handle, --kept or --from-report" in err


def test_check_calls_it_no_leak_and_gc_gives_it_up_in_time(world, run):
    world.clock.advance(SECONDS - 100)
    assert "0 leaks" in run("check")[1]
    world.clock.advance(101)
    code, out, _ = run("check")
    assert (code, "kept-address-time-is-over (1)" in out) == (0, True)
    assert "1 kept-address-time-is-over" in run("gc", "--yes", "--grace", "0")[1]
    assert "kept-as shop/web-0" in run("check", "--show-all-ips")[1]
