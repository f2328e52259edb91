"""Virtual machines that move, end and meet an administrator at the worst time: case D09, by the installed executables.

Invariant: whatever the order of events, a machine never changes its address while it lives, and once it is gone and
its sandboxes have been taken down, nothing is left and `tortie ipam check` has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from integration.kubevirt.machines import MACHINE, Launcher, MachineHost
from integration.plugin.host import Answer
from integration.plugin.mortal import all_at_once

ONE = {"type": "calico-ipam"}


def addresses_in(answer: Answer) -> list[str]:
    return [ip["address"].partition("/")[0] for ip in answer.result()["ips"]]


# --- live migration, with devices -----------------------------------------------------------------------------------


def test_d09_a_machine_moves_to_another_node(host: MachineHost) -> None:
    """The address goes along, and the route to it leads to one node only."""
    host.ipam = ONE
    there = host.beside("node-b")
    there.ipam = ONE
    host.running()
    source = host.launcher("source", inside=True)
    (address,) = addresses_in(host.add(source))
    assert [route["dst"] for route in host.net.routes(4)] == [address]

    target = there.launcher("target", migration=host.migrate(), inside=True)
    answer = there.add(target)
    assert addresses_in(answer) == [address]
    assert target.inside.addresses("eth0") == source.inside.addresses("eth0") == [f"{address}/32"]
    assert there.devices() == {target.host_name}
    assert there.net.routes(4) == [], "Felix adds it when the machine has arrived"
    host.owned([address], source, target)

    host.promote(target)
    host.owned([address], target, source)
    host.delete(source).silent()
    host.owned([address], target)
    assert (host.devices(), host.net.routes(4)) == (set(), [])
    host.remove(source)
    host.clean()

    host.delete_machine()
    there.delete(target).silent()
    there.remove(target)
    host.forget()
    for node in (host, there):
        node.nothing()
    host.clean()


def test_d09_a_migration_fails(host: MachineHost) -> None:
    """Its target goes, and the source is where it was."""
    host.running()
    source = host.launcher("source")
    addresses = host.assign(source)
    target = host.launcher("target", migration=host.migrate())
    host.assign(target, routed=False)
    host.release(target)
    host.remove(target)
    host.owned(addresses, source)
    host.clean()


def test_d09_two_targets_at_once(host: MachineHost) -> None:
    """An earlier migration was given up without its pod having gone: the later target counts."""
    host.running()
    source = host.launcher("source")
    addresses = host.assign(source)
    late, target = (host.launcher(name, migration=host.migrate()) for name in ("late", "target"))
    assert host.assign(late, routed=False) == addresses
    assert host.assign(target, routed=False) == addresses
    host.owned(addresses, source, target)
    host.release(late)
    host.owned(addresses, source, target)
    host.promote(target)
    host.release(source)
    host.owned(addresses, target)


# --- several calls at once ------------------------------------------------------------------------------------------


def at_once(host: MachineHost, verb: str, launchers: list[Launcher]) -> list[Answer]:
    """As on nodes of their own: no lock keeps them apart."""

    def ask(numbered: tuple[int, Launcher]) -> Answer:
        number, launcher = numbered
        lock = str(host.folder / f"ipam-{number}.lock")
        return host.ask(verb, launcher, ipam_lock_file=lock)

    return all_at_once(ask, list(enumerate(launchers)))


def test_d09_a_pod_is_networked_twice_at_once(host: MachineHost) -> None:
    """By a runtime that gave up on the first sandbox: one address of each version, whoever is first."""
    host.running()
    pod = host.launcher("source")
    sandboxes = [pod, *[Launcher(pod.pod) for _ in range(3)]]
    found = [addresses_in(answer) for answer in at_once(host, "ADD", sandboxes)]
    assert found == [found[0]] * 4
    assert len(found[0]) == 2
    host.owned(found[0], pod)
    host.delete_machine()
    for answer in at_once(host, "DEL", sandboxes):
        answer.silent()
    host.nothing()


def test_d09_pods_of_a_machine_are_networked_at_once(host: MachineHost) -> None:
    """Started twice by mistake, and moved twice at the same time; then they all go at once, with the machine."""
    host.running()
    sources = [host.launcher(f"source{number}") for number in range(3)]
    found = [addresses_in(answer) for answer in at_once(host, "ADD", sources)]
    assert found == [found[0]] * 3
    targets = [host.launcher(f"target{number}", migration=host.migrate()) for number in range(3)]
    for answer in at_once(host, "ADD", targets):
        assert addresses_in(answer) == found[0]
        assert "routes" not in answer.result()
    host.store.check()
    owners = {(active["pod"], alternate["pod"]) for active, alternate in host.slots().values()}
    assert {one for one, _ in owners} <= {one.pod for one in sources}
    assert {two for _, two in owners} <= {two.pod for two in targets}
    host.delete_machine()
    for answer in at_once(host, "DEL", [*sources, *targets]):
        answer.silent()
    host.nothing()


# --- the cluster's setting changes ----------------------------------------------------------------------------------


def test_addresses_are_kept_no_more_between_add_and_del(host: MachineHost) -> None:
    """What the machine has goes with the pod (L13: the original loses it)."""
    host.running()
    source = host.launcher("source")
    host.assign(source)
    host.persist("Disabled")
    host.release(source)
    host.nothing()


def test_addresses_are_kept_from_now_on_between_add_and_del(host: MachineHost) -> None:
    """What the container has goes with the container (L13: the original's DEL fails)."""
    host.persist("Disabled")
    host.running()
    old = host.launcher("old")
    before = host.assign(old)
    host.persist("Enabled")
    new = host.launcher("new")
    addresses = host.assign(new)
    assert not set(addresses) & set(before)
    host.release(old)
    host.owned(addresses, new)


def test_a_target_is_refused_while_its_source_keeps_what_it_has(host: MachineHost) -> None:
    """Nothing is kept any more: the migration fails, and the machine runs on."""
    host.running()
    source = host.launcher("source")
    addresses = host.assign(source)
    host.persist("Disabled")
    target = host.launcher("target", migration=host.migrate())
    host.ask("ADD", target).error(999, "not allowed when KubeVirtVMAddressPersistence is disabled")
    host.release(target)
    host.owned(addresses, source)
    host.persist(None)
    assert host.assign(target, routed=False) == addresses


# --- everything ends, in every order --------------------------------------------------------------------------------

EVENTS = ("DEL", "pod", "machine")
ENDS = [*permutations(EVENTS), ("machine deleting", "pod", "DEL", "machine")]


@pytest.mark.parametrize("order", ENDS, ids=["-".join(order).replace(" ", "_") for order in ENDS])
def test_nothing_is_left_in_whatever_order_things_go(host: MachineHost, order: tuple[str, ...]) -> None:
    """`DEL` is the runtime's; pod and machine disappear from the API server. A machine that is off when it is deleted
    has no pod whose DEL could free anything: then it is garbage, and collected as such.
    """
    host.running()
    source = host.launcher("source")
    addresses = host.assign(source)

    def machine_goes() -> None:
        host.delete_machine()
        host.forget()

    events: dict[str, Callable[[], None]] = {
        "DEL": lambda: host.release(source),
        "pod": lambda: host.remove(source),
        "machine": machine_goes,
        "machine deleting": host.delete_machine,
    }
    for event in order:
        events[event]()
    if order.index("DEL") > min(order.index(one) for one in order if one.startswith("machine")):
        host.nothing()
    else:
        assert list(host.slots()) == addresses
        host.age()
        assert sorted(host.collected()) == sorted(addresses)
        host.nothing()
    host.clean()


def test_a_machine_of_the_same_name_gets_addresses_of_its_own_accord(host: MachineHost) -> None:
    """Created anew after it was gone: it is the same handle, of which nothing is left over."""
    host.running()
    old = host.launcher("old")
    host.assign(old)
    host.delete_machine()
    host.release(old)
    host.remove(old)
    host.forget()
    host.running()
    new = host.launcher("new")
    host.owned(host.assign(new), new)
    host.delete_machine(MACHINE)
    host.release(new)
    host.nothing()
