"""IPAM in numbers, under the names that dashboards for Calico know."""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.ipam.audit import audit
from domain.ipam.block import Attribute, Handle, new_block
from domain.ipam.inventory import LEAK, Finding, Inventory
from domain.ipam.metrics import KNOWN, metrics
from domain.ipam.pools import AllocationConfig, IPReservation, Pool
from domain.moment import SECOND, go_string, rfc3339
from domain.resource import Metadata

NOW = 1_795_957_572 * SECOND


def block(cidr, owner, *held):
    """`held` are (ordinal, attribute)."""
    made = new_block(Cidr.parse(cidr), owner, None, 1).replace(affinity=owner)
    for ordinal, attribute in held:
        made = made.take((ordinal,), attribute)
    return made


def on(node):
    return Attribute("net.c1", {"node": node} if node else {})


COOLING = Attribute(None, {}, released_at=rfc3339(NOW - SECOND))
COLD = Attribute(None, {}, released_at=rfc3339(NOW - 1000 * SECOND))


def inventory():
    records = [
        block("10.0.0.0/30", "host:a", (0, on("a")), (1, on("b")), (2, COOLING), (3, COLD)),
        block("10.0.0.4/30", "host:b"),
        block("10.0.0.8/30", "virtual:lb", *[(ordinal, on("")) for ordinal in range(4)]),
        block("10.9.0.0/30", None, (0, on("a"))),
    ]
    return Inventory(
        NOW,
        blocks={one.cidr: (one, "1") for one in records},
        handles={"net.c1": (Handle({}), "1")},
        pools=(Pool(Metadata("p"), "10.0.0.0/28", block_size=30), Pool(Metadata("off"), "10.8.0.0/24", disabled=True)),
        reservations=(IPReservation(Metadata("r"), ("10.0.0.15/32",)),),
        nodes=frozenset(["a", "b"]),
        config=AllocationConfig(cooldown_seconds=300),
    )


def numbers(found):
    return {metric.name: dict(metric.samples) for metric in found}


def test_what_stays_with_a_name_is_counted_by_who_has_it():
    def kept(number, **more):
        return Attribute(f"net.kept.shop.web-{number}", {"kept-as": f"shop/web-{number}", **more})

    until = {"late": go_string(NOW + SECOND), "over": go_string(NOW)}
    held = [kept(0, pod="web-0", node="a"), kept(1, **{"kept-until": until["late"]})]
    held += [kept(2, **{"kept-until": until["over"]}), kept(3, **{"kept-until": until["late"]})]
    one = block("10.0.0.0/29", "host:a", *enumerate([*held, on("a")]))
    stray = block("10.9.0.0/30", "host:a", (0, held[1]))
    pools = (Pool(Metadata("p"), "10.0.0.0/24", block_size=29), Pool(Metadata("q"), "10.1.0.0/24", block_size=29))
    found = numbers(metrics(Inventory(NOW, blocks={b.cidr: (b, "1") for b in (one, stray)}, pools=pools), ()))
    assert found["tortie_ipam_addresses_kept"] == {
        ("no_ippool", "unused"): 1,
        ("p", "used"): 1,
        ("p", "unused"): 2,
        ("p", "over"): 1,
        **{("q", state): 0 for state in ("used", "unused", "over")},
    }
    assert sum(found["ipam_allocations_in_use"].values()) == 6, "they are in use all the same"


def test_numbers_of_pools_and_nodes():
    """The address that has cooled down is free, though nobody has written that yet."""
    found = numbers(metrics(inventory(), ()))
    assert found["ipam_ippool_size"] == {("p",): 16, ("off",): 256}
    assert found["ipam_blocks"] == {
        ("p", "a"): 1,
        ("p", "b"): 1,
        ("p", "virtual:lb"): 1,
        ("no_ippool", "no_affinity"): 1,
    }
    assert found["ipam_allocations_in_use"] == {
        ("p", "a"): 1,
        ("p", "b"): 1,
        ("p", "virtual:lb"): 0,
        ("p", "no_node"): 4,
        ("no_ippool", "no_affinity"): 0,
        ("no_ippool", "a"): 1,
    }
    borrowed = {labels: number for labels, number in found["ipam_allocations_borrowed"].items() if number}
    assert borrowed == {("p", "b"): 1}
    assert set(found["ipam_allocations_gc_candidates"].values()) == {0}
    assert found["tortie_ipam_addresses_free"] == {("p",): 8, ("off",): 256}
    assert found["tortie_ipam_addresses_cooling"] == {("p",): 1, ("off",): 0}
    assert found["tortie_ipam_addresses_reserved"] == {("p",): 1, ("off",): 0}
    assert found["tortie_ipam_ippool_enabled"] == {("p",): 1, ("off",): 0}
    assert found["tortie_ipam_blocks_max"] == {("p",): 4, ("off",): 4}
    assert found["tortie_ipam_blocks_full"] == {("p",): 1, ("off",): 0}
    assert found["tortie_ipam_blocks_empty"] == {("p",): 1, ("off",): 0}
    assert [found[f"tortie_ipam_{name}"] for name in ("handles", "endpoints", "nodes")] == [{(): 1}, {(): 0}, {(): 2}]
    assert found["tortie_ipam_look_timestamp_seconds"] == {(): NOW // SECOND}


def test_what_is_free_and_held_and_cooling_and_reserved_is_the_pool():
    found = numbers(metrics(inventory(), ()))
    held = sum(number for (pool, _), number in found["ipam_allocations_in_use"].items() if pool == "p")
    others = [found[f"tortie_ipam_addresses_{state}"]["p",] for state in ("free", "cooling", "reserved")]
    assert held + sum(others) == 16


def test_each_block_by_itself_only_if_asked():
    assert "tortie_ipam_block_addresses" not in numbers(metrics(inventory(), ()))
    found = numbers(metrics(inventory(), (), blocks=True))["tortie_ipam_block_addresses"]
    of_first = {labels[3]: number for labels, number in found.items() if labels[2] == "10.0.0.0/30"}
    assert of_first == {"free": 1, "used": 1, "borrowed": 1, "cooling": 1, "reserved": 0}
    assert ("no_ippool", "no_affinity", "10.9.0.0/30", "used") in found
    assert sum(found.values()) == 16


def test_leaks_are_counted_where_they_are_used():
    findings = [
        Finding("x", "10.0.0.1", "", "", LEAK, {"node": "b"}, address=Address.parse("10.0.0.1")),
        Finding("x", "10.0.0.2", "", "", LEAK, address=Address.parse("10.0.0.2")),
        Finding("x", "192.0.2.1", "", "", LEAK, {"node": "b"}, address=Address.parse("192.0.2.1")),
        Finding("y", "10.0.0.0/30", "", "", LEAK),
        Finding("z", "10.0.0.1", "", "", address=Address.parse("10.0.0.1")),
    ]
    found = numbers(metrics(inventory(), findings))
    leaked = {labels: number for labels, number in found["ipam_allocations_gc_candidates"].items() if number}
    assert leaked == {("p", "b"): 1, ("p", "no_node"): 1, ("no_ippool", "b"): 1}
    assert found["tortie_ipam_findings"] == {("leak", "x"): 3, ("leak", "y"): 1, ("problem", "z"): 1}


def test_an_empty_datastore_has_what_counts_records_only():
    found = metrics(Inventory(NOW), ())
    assert [metric.name for metric in found] == [
        *("tortie_ipam_handles", "tortie_ipam_endpoints", "tortie_ipam_nodes", "tortie_ipam_look_timestamp_seconds")
    ]


def test_labels_are_those_that_are_said():
    found = metrics(inventory(), audit(inventory()), blocks=True)
    labels = {name: labels for name, labels, _ in KNOWN}
    assert [metric.name for metric in found] == [*labels]
    for metric in found:
        assert metric.labels == labels[metric.name]
        assert all(len(values) == len(metric.labels) for values, _ in metric.samples)
        assert [*metric.samples] == sorted(metric.samples)
