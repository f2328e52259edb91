"""`tortie ipam`, from its command line over a memory datastore to what is read (F06, F16, L04, L11)."""

from __future__ import annotations

import json
import os
import re

import pytest

from adapters.memory.node import MemoryNode
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Attribute, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from ports.datastore import (
    AllocationConfigKey,
    BlockKey,
    HandleKey,
    IPAMConfigurationKey,
    IPReservationKey,
    WorkloadEndpointKey,
)
from ports.errors import Refused
from worlds.one_node import NODE, OneNode

B0, B1 = "10.244.0.0/26", "10.244.0.64/26"
HEX = "0" * 63
OTHER, GONE = Owner(HOST, "node2"), Owner(HOST, "gone-1")


class Tortie(OneNode):
    """`done`, `unclean`, `failed` and `misunderstood` run a command and say what it wrote; see `run`."""

    def __init__(self, capsys):
        super().__init__()
        self.capsys = capsys
        self.environment = {"COLUMNS": "120"}
        self.add_node("node2")

    def run(self, *arguments):
        container = Container()
        container.datastore.override(self.datastore)
        container.clock.override(self.clock)
        container.log.override(self.log)
        container.node.override(MemoryNode(NODE))
        code = operator.run(arguments, {**self.environment, "DATASTORE_TYPE": "sqlite"}, container)
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def done(self, *arguments):
        code, out, err = self.run("ipam", *arguments)
        assert (code, err) == (0, "")
        return out

    def unclean(self, *arguments):
        code, out, err = self.run("ipam", *arguments)
        assert (code, err) == (1, "")
        return out

    def failed(self, *arguments):
        code, out, err = self.run("ipam", *arguments)
        assert (code, out) == (1, "")
        return err.removeprefix("Error: ").rstrip()

    def misunderstood(self, *arguments):
        code, out, err = self.run("ipam", *arguments)
        assert (code, out) == (2, "")
        return err

    def hold(self, cidr, ordinal, handle, **secondary):
        """One more address of a block."""
        key = BlockKey(Cidr.parse(cidr))
        attribute = Attribute(handle, {"node": NODE, **secondary})
        self.put(key, self.get(key).take((ordinal,), attribute))
        counted = self.get(HandleKey(handle)) or Handle({})
        counts = {**counted.blocks, key.cidr: counted.blocks.get(key.cidr, 0) + 1}
        self.put(HandleKey(handle), Handle(counts))

    def add_endpoint(self, container, *addresses):
        metadata = Metadata(f"{NODE}-cni-{container}-eth0", "default")
        networks = tuple(Cidr.parse_lenient(address) for address in addresses)
        record = WorkloadEndpoint(metadata, node=NODE, container_id=container, ip_networks=networks)
        self.put(WorkloadEndpointKey("default", metadata.name), record)


@pytest.fixture
def tortie(capsys):
    return Tortie(capsys)


@pytest.fixture
def busy(tortie):
    """Own, borrowed, cooling and reserved addresses in one block; a full block of another node."""
    tortie.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=300))
    tortie.put(IPReservationKey("gateways"), IPReservation(Metadata("gateways"), ("10.244.0.0/30",)))
    tortie.add_block(B0)
    for ordinal in range(4, 8):
        tortie.hold(B0, ordinal, f"net1.c{ordinal}")
        tortie.add_endpoint(f"c{ordinal}", f"10.244.0.{ordinal}")
    tortie.hold(B0, 8, "net1.b8", node="node2", pod="web-0", namespace="prod")
    tortie.add_endpoint("b8", "10.244.0.8")
    key = BlockKey(Cidr.parse(B0))
    cooling = tortie.get(key).take((9,), Attribute("x", {})).release((9,), tortie.clock.now(), 300)
    tortie.put(key, cooling)
    tortie.add_block(B1, OTHER)
    for ordinal in range(64):
        tortie.hold(B1, ordinal, "net1.all", node="node2")
    tortie.add_endpoint("all")
    return tortie


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_draws_pools_and_blocks_with_calicoctl_s_columns(busy):
    """F06: what is full, borrowed, cooling and reserved is seen at a glance."""
    assert busy.done("show", "--show-blocks").splitlines() == [
        "GROUPING  CIDR               IPS TOTAL  IPS IN USE    IPS FREE",
        "IP Pool   10.244.0.0/24            256    69 (27%)   182 (71%)",
        "          [x#+.............################                                ]",
        "          pool0, 2 of 4 blocks, 1 borrowed, 1 cooling down, 4 reserved",
        "Block     10.244.0.0/26             64      5 (8%)    54 (84%)",
        "          [xxxx####b~......................................................]",
        "          host:node1, 1 borrowed, 1 cooling down, 4 reserved",
        "Block     10.244.0.64/26            64   64 (100%)      0 (0%)",
        "          [################################################################]  host:node2",
        "IP Pool   fd00:10:244::/120        256      0 (0%)  256 (100%)",
        "          [                                                                ]  pool1, 0 of 4 blocks",
        "",
        "# in use  + some in use  b borrowed  ~ cooling down  x reserved  . free  blank: no block",
    ]


@pytest.mark.parametrize("columns", ["20", "40", "60", "80", "100", "132", "200"])
def test_show_keeps_to_the_width_of_the_screen(busy, columns):
    busy.environment["COLUMNS"] = columns
    lines = busy.done("show", "--blocks").splitlines()
    bars = [line for line in lines if "[" in line]
    assert len(bars) == 4
    assert max(map(len, [line for line in lines if "[" in line or "reserved" in line])) <= max(int(columns), 80)
    if int(columns) >= 72:
        assert max(map(len, lines)) <= int(columns)
        assert all(line.index("]") - line.index("[") == 65 for line in bars)


def test_pools_of_every_size_and_state_are_drawn(tortie):
    tortie.add_pool("off", "10.8.0.0/26", disabled=True)
    tortie.add_pool("vast", "fd01::/48")
    tortie.add_block("10.8.0.0/26")
    tortie.add_block("fd01::/122", Owner("virtual", "lb"))
    tortie.hold("fd01::/122", 1, "lb-1", node="")
    tortie.add_block("192.0.2.0/30", None)
    tortie.put(IPReservationKey("r"), IPReservation(Metadata("r"), ("10.244.0.0/25",)))
    out = tortie.done("show")
    assert "off, disabled, 1 of 1 blocks" in out
    assert re.search(r"fd01::/48 +2\^80 +1 \(<1%\) +over 2\^79 \(>99%\)", out)
    assert "vast, 1 of 2^74 blocks" in out
    assert "[" + "x" * 32 + " " * 32 + "]  pool0, 0 of 4 blocks, 128 reserved" in out
    assert re.search(r"Block +192.0.2.0/30 +4 +0 \(0%\) +4 \(100%\)\n +\[\.\.\.\.\]  no owner, in no pool", out)


def test_what_is_nearly_full_is_not_shown_as_full(tortie):
    tortie.add_pool("wide", "10.0.0.0/18", block_size=20)
    tortie.add_block("10.0.0.0/20")
    key = BlockKey(Cidr.parse("10.0.0.0/20"))
    tortie.put(key, tortie.get(key).take(tuple(range(4095)), Attribute("net1.c1", {"node": NODE})))
    line = next(line for line in tortie.done("show", "--blocks").splitlines() if "10.0.0.0/20" in line)
    assert line.split()[3:] == ["4095", "(>99%)", "1", "(<1%)"]
    bar = next(line for line in tortie.done("show").splitlines() if "1 of 4 blocks" in line)
    assert bar.strip().startswith("[" + "#" * 15 + "+ ")


def test_show_of_nothing_says_what_to_do(capsys):
    tortie = Tortie(capsys)
    for name in ("pool0", "pool1"):
        assert tortie.run("delete", "ippool", name)[0] == 0
    assert tortie.done("show") == "There is no IP pool; `tortie init --pool CIDR` makes one.\n"


def test_show_as_json(busy):
    shown = json.loads(busy.done("show", "-o", "json"))
    four, six = shown["pools"]
    counts = {"total": 256, "inUse": 69, "borrowed": 1, "cooling": 1, "reserved": 4, "free": 182}
    assert {name: four[name] for name in counts} == counts
    assert (four["name"], four["cidr"], four["blockCount"], four["blockPlaces"]) == ("pool0", "10.244.0.0/24", 2, 4)
    assert "blocks" not in six
    detailed = json.loads(busy.done("show", "--blocks", "-o", "json"))["pools"][0]["blocks"]
    assert [(one["cidr"], one["affinity"], one["inUse"]) for one in detailed] == [
        (B0, "host:node1", 5),
        (B1, "host:node2", 64),
    ]


def test_show_of_one_node(busy):
    out = busy.done("show", "--node", "node2")
    assert out.startswith("Node node2 holds 65 addresses, 1 of them borrowed; 1 block of its own.\n\nGROUPING")
    assert "host:node1, 1 of them for node2, 1 borrowed" in out
    assert "IP Pool" not in out
    as_json = json.loads(busy.done("show", "--node", "node2", "-o", "json"))
    assert (as_json["inUse"], as_json["borrowed"]) == (65, 1)
    assert [(one["cidr"], one["heldByNode"]) for one in as_json["blocks"]] == [(B0, 1), (B1, 64)]
    assert busy.done("show", "--node", "gone") == (
        "Node gone holds 0 addresses, 0 of them borrowed; 0 blocks of its own. There is no such node.\n"
    )


@pytest.mark.parametrize(
    ("address", "first", "more"),
    [
        (
            "10.244.0.4",
            "is in use",
            ["Handle       net1.c4", "Sequence     17", "Endpoint     default/node1-cni-c4-eth0", "  node: node1"],
        ),
        ("10.244.0.9", "is not assigned; it was released and is cooling down", ["Free after   2026-11-29T13:11:12Z"]),
        ("10.244.0.0", "is not assigned; it is reserved, so only a request", ["Reserved by  gateways"]),
        ("10.244.0.40", "is not assigned", ["Block        10.244.0.0/26", "Affinity     host:node1"]),
        ("10.244.0.200", "is not assigned", ["Pool         pool0 (10.244.0.0/24)"]),
        ("192.0.2.1", "is not assigned; it is in no IP pool", []),
    ],
)
def test_show_ip_says_who_holds_it(busy, address, first, more):
    out = busy.done("show", "--ip", address)
    assert out.splitlines()[0].startswith(f"IP {address} {first}")
    for line in more:
        assert line in out


def test_show_ip_of_what_has_cooled_down_is_free(busy):
    busy.clock.advance(301)
    assert busy.done("show", "--ip=10.244.0.9").splitlines()[0] == "IP 10.244.0.9 is not assigned"


def test_show_ip_as_json(busy):
    shown = json.loads(busy.done("show", "--ip", "10.244.0.8", "-o", "json"))
    assert (shown["state"], shown["handle"], shown["block"]) == ("inUse", "net1.b8", B0)
    assert shown["attributes"]["pod"] == "web-0"
    busy.add_block("192.0.2.0/30", None)
    assert json.loads(busy.done("show", "--ip", "192.0.2.1", "-o", "json"))["affinity"] == "none"


def test_show_borrowed(busy):
    heading, row = busy.done("show", "--show-borrowed").splitlines()
    assert re.split(" {2,}", heading) == ["IP", "BORROWING-NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED-TO"]
    assert row.split() == ["10.244.0.8", "node2", B0, "node1", "pod", "prod/web-0"]
    assert busy.done("show", "--show-borrowed", "--node", NODE) == "No address is borrowed.\n"
    (shown,) = json.loads(busy.done("show", "--borrowed", "-o", "json"))["borrowed"]
    assert (shown["ip"], shown["allocatedTo"]) == ("10.244.0.8", "prod/web-0")
    busy.hold(B0, 20, "net1.c20", node="node2")
    busy.hold(B0, 21, "ipip-tunnel-addr-node2", node="node2", type="ipipTunnelAddress")
    rows = [line.split()[-2:] for line in busy.done("show", "--show-borrowed").splitlines()[2:]]
    assert rows == [["container", "net1.c20"], ["ipipTunnelAddress", "ipip-tunnel-addr-node2"]]


def test_show_configuration(tortie):
    rows = [line.split() for line in tortie.done("show", "--show-configuration").splitlines()]
    assert rows == [
        ["PROPERTY", "VALUE"],
        ["StrictAffinity", "false"],
        ["AutoAllocateBlocks", "true"],
        ["MaxBlocksPerHost", "0"],
        ["KubeVirtVMAddressPersistence", "Enabled"],
        ["IPCooldownSeconds", "0"],
    ]
    tortie.done("configure", "--kubevirt-persistence", "disabled")
    shown = json.loads(tortie.done("show", "--configuration", "-o", "json"))
    assert shown["KubeVirtVMAddressPersistence"] == "Disabled"


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_of_a_sound_datastore_says_so(busy):
    out = busy.done("check")
    assert out.startswith("Checked 2 pools, 2 blocks, 70 addresses, 6 handles, 2 affinities, 6 endpoints, 2 nodes.\n")
    assert out.endswith("Clean: 0 problems, 0 leaks, 0 infos.\n")
    report = json.loads(busy.done("check", "-o", "json"))
    assert (report["format"], report["clean"], report["findings"]) == (1, True, [])


@pytest.fixture
def damaged(busy):
    for number in range(8):
        busy.put(HandleKey(f"net1.{HEX}{number}"), Handle({Cidr.parse(B0): 1}))
    busy.hold(B0, 30, "net1.c30", pod="web-1", namespace="prod", timestamp="2026-01-02 03:04:05.6 +0000 UTC")
    return busy


def test_check_names_what_is_wrong_with_its_holder_and_what_to_do(damaged):
    out = damaged.unclean("check")
    assert "PROBLEM handle-orphan (8): run `tortie ipam gc --yes`, which deletes it\n" in out
    assert f"  net1.{HEX}4:\n      it counts 1 in {B0}, but no block has an address for it\n" in out
    assert "  and 3 more; --show-problem-ips or -o wide shows all\n" in out
    assert f"{HEX}5" not in out
    assert "LEAK address-without-endpoint (1): run `tortie ipam gc --leaked --yes`, which releases it\n" in out
    assert "      handle net1.c30, node node1, pod prod/web-1, since 2026-01-02 03:04:05 UTC\n" in out
    assert out.endswith("Not clean: 8 problems, 1 leak, 0 infos.\n")
    assert f"{HEX}7" in damaged.unclean("check", "--show-problem-ips")


def test_check_shows_every_address_when_asked(damaged):
    out = damaged.unclean("check", "--show-all-ips")
    assert "  10.244.0.4  handle net1.c4, node node1\n" in out
    assert "  10.244.0.9  cooling down\n" in out


def test_check_as_json_has_a_stable_shape(damaged):
    report = json.loads(damaged.unclean("check", "-o", "json"))
    assert list(report) == [
        *("format", "version", "clusterGUID", "clusterType", "clusterInformationRevision", "datastoreLocked"),
        *("allocations", "leakedHandles"),
        *("takenAt", "time", "clean", "problems", "leaks", "infos", "young", "checked", "findings"),
    ]
    assert (report["clean"], report["problems"], report["leaks"]) == (False, 8, 1)
    assert report["findings"][-1] == {
        "kind": "address-without-endpoint",
        "level": "leak",
        "subject": "10.244.0.30",
        "reason": "its container has no endpoint",
        "advice": "run `tortie ipam gc --leaked --yes`, which releases it",
        "collectable": True,
        "address": "10.244.0.30",
        "block": B0,
        "handle": "net1.c30",
        "revision": report["findings"][-1]["revision"],
        "holder": {
            "handle": "net1.c30",
            "node": NODE,
            "namespace": "prod",
            "pod": "web-1",
            "timestamp": "2026-01-02 03:04:05.6 +0000 UTC",
        },
    }
    assert damaged.unclean("check", "-o", "json") != ""


def test_lines_that_do_not_fit_are_folded_and_other_advice_is_given(damaged):
    damaged.environment["COLUMNS"] = "60"
    damaged.datastore.load({"/calico/resources/v3/projectcalico.org/workloadendpoints/default/x": "[]"})
    damaged.hold(B0, 31, "net1.c31")
    out = damaged.unclean("check")
    assert f"  net1.{HEX}4:\n      it counts 1 in {B0}, but no block has an address for it\n" in out
    assert "PROBLEM record-unreadable (1): restore it from a backup" in out
    assert "workloadendpoint default/x" in out
    assert "      handle net1.c30, node node1, pod prod/web-1\n      since 2026-01-02 03:04:05 UTC\n" in out


def test_a_corrupt_record_of_any_kind_is_named(busy):
    """K03."""
    for key_text, name in {
        "/calico/ipam/v2/assignment/ipv4/block/10.244.0.0-26": "ipamblock 10-244-0-0-26",
        "/calico/ipam/v2/handle/net1.c4": "ipamhandle net1.c4",
        "/calico/ipam/v2/host/node1/ipv4/block/10.244.0.0-26": "blockaffinity node1-10-244-0-0-26",
    }.items():
        whole = busy.datastore.snapshot()
        busy.datastore.load({key_text: '{"cidr":7}'})
        busy.datastore.load({key_text: "<html>"})
        assert name in busy.unclean("check")
        busy.datastore.restore(whole)


# --- gc ---------------------------------------------------------------------------------------------------------------


def test_gc_only_says_what_it_would_do(damaged):
    """L04, F16."""
    before = damaged.datastore.records_text()
    out = damaged.done("gc")
    assert out.startswith("Would collect 8 (dry run):\n\nPROBLEM handle-orphan (8)")
    assert "  and 3 more; -o wide shows all\n" in out
    assert "With --yes this is done, after a second look 90 s later; what is in use by then stays.\n" in out
    assert out.endswith("1 leak would need --leaked.\n")
    assert "at once" in damaged.done("gc", "--leaked", "--grace", "0")
    as_json = json.loads(damaged.done("gc", "--leaked", "-o", "json"))
    assert (as_json["dryRun"], len(as_json["findings"])) == (True, 9)
    assert damaged.datastore.records_text() == before
    assert damaged.clock.slept == []


def test_gc_does_it_after_the_grace_period(damaged):
    assert damaged.done("gc", "--yes") == "Collected 8 of 8.\n  8 handle-orphan\n"
    assert [round(seconds) for seconds in damaged.clock.slept] == [90]
    assert damaged.done("gc") == "Nothing to collect.\n1 leak would need --leaked.\n"
    assert damaged.done("gc", "--yes") == "Nothing to collect.\n"
    done = json.loads(damaged.done("gc", "--leaked", "--force", "--grace=0", "-o", "json"))
    assert (done["dryRun"], done["done"], done["kept"], done["failed"]) == (False, 1, 0, 0)
    assert done["findings"][0]["outcome"] == "done"
    assert damaged.done("check").endswith("Clean: 0 problems, 0 leaks, 0 infos.\n")


def test_gc_gives_back_what_nodes_left_that_are_gone(busy):
    """L11."""
    busy.put(AllocationConfigKey(), AllocationConfig())
    busy.add_block("10.244.0.128/26", GONE)
    busy.hold("10.244.0.128/26", 0, "ipip-tunnel-addr-gone-1", node="gone-1", type="ipipTunnelAddress")
    out = busy.unclean("check")
    assert "LEAK address-of-vanished-node (1)" in out
    assert "10.244.0.128: its node gone-1 does not exist\n" in out
    assert "LEAK block-of-vanished-node (1)" in out
    assert busy.done("gc", "--leaked", "--yes") == (
        "Collected 2 of 2.\n  1 address-of-vanished-node\n  1 block-of-vanished-node\n"
    )
    assert busy.blocks() == [B0, B1]


def test_gc_reports_what_it_kept_and_what_failed(damaged):
    failing = {HandleKey(f"net1.{HEX}{number}") for number in range(7)}

    def hook(verb, key):
        if verb == "delete" and key in failing:
            raise Refused("the datastore is read-only")

    damaged.datastore.before = hook
    out = damaged.unclean("gc", "--yes", "--grace", "0")
    assert out.startswith("Collected 1 of 8.\n  1 handle-orphan\n")
    assert f"Failed handle-orphan net1.{HEX}0: the datastore is read-only\n" in out
    assert out.endswith("  and 2 more failed; -o wide shows all\n")
    as_json = json.loads(damaged.unclean("gc", "--yes", "--grace", "0", "-o", "json"))
    assert (as_json["failed"], as_json["findings"][0]["why"]) == (7, "the datastore is read-only")


def test_gc_takes_a_report_for_its_first_look(damaged, tmp_path):
    """F16: what an earlier report and a look now agree on."""
    report = str(tmp_path / "report.json")
    damaged.unclean("check", "-o", report)
    assert os.stat(report).st_mode & 0o777 == 0o600
    damaged.put(HandleKey("net1.young"), Handle({}))
    damaged.clock.advance(3600)
    assert damaged.done("gc", "--from-report", report).startswith("Would collect 8 (dry run)")
    out = damaged.done("gc", "--from-report", report, "--yes")
    assert out.startswith("Collected 8 of 9.\n  8 handle-orphan\nKept handle-orphan net1.young: not there, or not like")
    assert damaged.clock.slept == []


# --- release ----------------------------------------------------------------------------------------------------------


def test_release_an_address(damaged):
    assert damaged.done("release", "--ip=10.244.0.30") == "Successfully released IP address 10.244.0.30\n"
    assert damaged.done("release", "--ip=10.244.0.30", "--ip", "10.244.0.31") == (
        "IP address 10.244.0.30 is not assigned\nIP address 10.244.0.31 is not assigned\n"
    )


def test_release_only_the_allocation_that_is_meant(damaged):
    code, out, err = damaged.run("ipam", "release", "--ip", "10.244.0.30", "--handle", "net1.other")
    assert (code, out) == (1, "")
    assert "the given handle (net1.other) does not match (net1.c30)" in err
    sequence = damaged.block(B0).sequences[30]
    assert "does not match" in damaged.failed("release", "--ip", "10.244.0.30", "--sequence", str(sequence + 1))
    damaged.done("release", "--ip", "10.244.0.30", "--handle", "net1.c30", "--sequence", str(sequence))


def test_release_of_what_a_workload_has_needs_force(busy):
    assert busy.failed("release", "--ip", "10.244.0.4").startswith(
        "10.244.0.4 is in use: endpoint default/node1-cni-c4-eth0 has it; delete the workload, or release it"
    )
    assert "the container of net1.all has an endpoint" in busy.failed("release", "--ip", "10.244.0.70")
    assert busy.failed("release", "--handle", "net1.c5").startswith("10.244.0.5 is in use")
    busy.put(HandleKey("net1.c9"), Handle({}))
    busy.add_endpoint("c9")
    assert busy.failed("release", "--handle", "net1.c9").startswith("net1.c9 is in use: its container has an endpoint")
    assert busy.done("release", "--ip", "10.244.0.4", "--force") == "Successfully released IP address 10.244.0.4\n"
    assert busy.done("release", "--handle", "net1.c5", "--force").splitlines() == [
        "Successfully released IP address 10.244.0.5",
        "Successfully released handle net1.c5",
    ]


def test_release_a_handle_whose_record_is_gone_or_that_is_none(damaged):
    damaged.remove(HandleKey("net1.c30"))
    assert "10.244.0.30" in damaged.done("release", "--handle", "net1.c30")
    assert damaged.failed("release", "--handle", "net1.c30") == ("no handle net1.c30, and no address is held under it")


def test_release_from_reports_takes_what_all_of_them_name(damaged, tmp_path):
    first, second = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    damaged.unclean("check", "-o", first)
    damaged.hold(B0, 33, "net1.c33")
    damaged.unclean("check", "-o", second)
    out = damaged.done("release", "--from-report", first, "--from-report", second)
    assert out.splitlines()[:3] == ["Collected 9 of 10.", "  1 address-without-endpoint", "  8 handle-orphan"]
    assert "10.244.0.33" in damaged.unclean("check")
    assert json.loads(damaged.done("release", "--from-report", second, "-o", "json"))["done"] == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>", "not JSON"),
        ("[]", "not a report of `tortie ipam check -o json`"),
        ('{"version":2}', "not a report of"),
        ('{"version":1,"takenAt":5,"findings":[]}', "not a whole report"),
        ('{"version":1,"takenAt":"²","findings":[]}', "not a whole report"),
        ('{"version":1,"takenAt":"5","findings":["x"]}', "a finding must be an object"),
        ('{"version":1,"takenAt":"5","findings":[{"kind":7,"subject":null}]}', ""),
    ],
)
def test_only_reports_are_taken_for_reports(damaged, tmp_path, text, why):
    path = tmp_path / "r.json"
    path.write_text(text)
    code, _, err = damaged.run("ipam", "release", "--from-report", str(path))
    assert why in err
    assert (code == 0) == (not why)
    assert len(damaged.counts()) == 15


def test_a_report_that_cannot_be_read_or_written_is_named(damaged, tmp_path):
    missing = str(tmp_path / "none" / "r.json")
    assert damaged.failed("gc", "--from-report", missing) == f"{missing}: No such file or directory"
    assert damaged.failed("check", "-o", missing) == f"{missing}: No such file or directory"
    folder = tmp_path / "d.json"
    folder.mkdir()
    assert damaged.failed("check", "-o", str(folder)) == f"{folder}: Is a directory"
    assert sorted(os.listdir(tmp_path)) == ["d.json"]
    assert "Not clean" in damaged.unclean("check", "-o", os.devnull)


# --- configure --------------------------------------------------------------------------------------------------------


def test_configure_says_what_it_set(tortie):
    assert tortie.done("configure", "--strictaffinity=true", "--max-blocks-per-host=4") == (
        "Successfully set StrictAffinity to: true\nSuccessfully set MaxBlocksPerHost to: 4\n"
    )
    assert tortie.done("configure", "--auto-allocate-blocks", "false", "--cooldown", "30").endswith(
        "Successfully set IPCooldownSeconds to: 30\n"
    )
    stored = tortie.get(AllocationConfigKey())
    assert (stored.strict_affinity, stored.auto_allocate_blocks) == (True, False)
    assert (stored.max_blocks_per_host, stored.cooldown_seconds) == (4, 30)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--auto-allocate-blocks=false"], "Cannot disable 'StrictAffinity' and 'AutoAllocateBlocks' at the same time"),
        (["--max-blocks-per-host=2"], "MaxBlocksPerHost requires StrictAffinity to be enabled"),
        (["--cooldown=1201"], "IPCooldownSeconds must be 0 to 1200, but is 1201"),
    ],
)
def test_configure_refuses_what_cannot_work(tortie, arguments, why):
    assert tortie.failed("configure", *arguments) == why


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Show how full IP pools and blocks are"),
        (["show", "--ip", "zz"], "invalid IP address: zz"),
        (["show", "--ip", "10.0.0.1", "--show-borrowed"], "not allowed with argument"),
        (["check", "-o", "jsn"], "nor is it the name of a file"),
        (["gc", "--grace", "soon"], "'soon' is not a number of seconds"),
        (["gc", "--grace", "-1"], "not a number of seconds"),
        (["gc", "--grace", "nan"], "not a number of seconds"),
        (["release"], "give --ip, --handle, --kept or --from-report"),
        (["release", "--ip", "10.0.0.1", "--from-report", "x.json"], "give --ip, --handle, --kept or --from-report"),
        (["release", "--handle", "h", "--sequence", "4"], "--sequence goes with one --ip"),
        (["configure"], "give at least one setting"),
        (["configure", "--strictaffinity", "maybe"], "'maybe' is neither true nor false"),
        (["configure", "--max-blocks-per-host", "-3"], "whole number"),
        (["configure", "--kubevirt-persistence", "x"], "'x' is neither Enabled nor Disabled"),
    ],
)
def test_a_command_line_that_means_nothing_ends_with_2(tortie, arguments, why):
    assert why in tortie.misunderstood(*arguments)


def test_deleting_a_pool_in_use_is_done_with_a_warning(busy):
    code, out, err = busy.run("delete", "ippool", "pool0", "pool1")
    assert (code, out) == (0, "Successfully deleted 2 'IPPool' resource(s)\n")
    assert err == "Warning: IPPool pool0: 69 of its addresses are still in use\n"
    busy.add_pool("bad", "no range")
    assert busy.run("delete", "ippool", "bad")[2] == ""


def test_the_datastore_can_be_named_anywhere(tmp_path, capsys):
    path = str(tmp_path / "d.db")
    assert operator.main(["init", "--pool", "10.9.0.0/24", "--node", "n", "--datastore-path", path], {}) == 0
    for words in (["--datastore-path", path, "ipam", "check"], ["ipam", "check", "--datastore-path", path]):
        capsys.readouterr()
        assert operator.main(words, {}) == 0
        assert capsys.readouterr().out.endswith("Clean: 0 problems, 0 leaks, 0 infos.\n")


def test_pools_are_shown_whatever_their_ranges(capsys):
    """Host bits, a bare pool of one block, a range that is none."""
    tortie = Tortie(capsys)
    tortie.add_pool("odd", "10.7.0.9/26")
    tortie.add_pool("none", "no range")
    tortie.add_pool("small", "10.6.0.0/30", block_size=26, disabled=True)
    out = tortie.done("show", "--blocks")
    assert "odd, 0 of 1 blocks" in out
    assert "no range" not in out
    assert "[    ]  small, disabled, 0 of 1 blocks" in out


def test_release_as_json(damaged):
    shown = json.loads(damaged.done("release", "--ip=10.244.0.30", "--ip", "10.244.0.31", "-o", "json"))
    assert shown == {"released": ["10.244.0.30"], "notAssigned": ["10.244.0.31"]}
    damaged.hold(B0, 33, "net1.c33")
    shown = json.loads(damaged.done("release", "--handle", "net1.c33", "-o", "json"))
    assert shown == {"released": ["10.244.0.33"], "notAssigned": [], "handle": "net1.c33"}


def test_totals_as_json_are_whole(tortie):
    tortie.add_pool("vast", "fd01::/48")
    (vast,) = [one for one in json.loads(tortie.done("show", "-o", "json"))["pools"] if one["name"] == "vast"]
    assert vast["total"] == vast["free"] == 2**80


def test_check_says_how_many_it_is_too_early_to_judge(tortie):
    tortie.add("c1")
    assert "younger" not in tortie.done("check")
    (endpoint,) = tortie.endpoints()
    tortie.remove(WorkloadEndpointKey(endpoint.metadata.namespace, endpoint.metadata.name))
    assert "\n1 address younger than 90 s not judged.\nClean: " in tortie.done("check")
    assert json.loads(tortie.done("check", "-o", "json"))["young"] == 1
    tortie.clock.advance(91)
    assert "younger" not in tortie.unclean("check")


# --- damaged records -------------------------------------------------------------------------------------------------

HANDLE, BLOCK = "/calico/ipam/v2/handle/net1.c30", "/calico/ipam/v2/assignment/ipv4/block/10.244.0.0-26"


@pytest.fixture
def torn(damaged, tmp_path, monkeypatch):
    """The record of a handle that holds an address is half a text."""
    monkeypatch.chdir(tmp_path)
    damaged.datastore.load({HANDLE: '{"block":{"10.2'})
    return damaged


def test_show_says_what_it_leaves_out(torn):
    for more in ([], ["--blocks"], ["--ip", "10.244.0.30"], ["-o", "json"], ["--node", NODE]):
        code, out, err = torn.run("ipam", "show", *more)
        assert (code, out == "") == (1, False)
        assert err == (
            "Warning: ipamhandle net1.c30 cannot be read and is left out: unexpected end of JSON input; "
            "`tortie ipam check` says what to do\n"
        )


def test_get_says_what_it_leaves_out(torn):
    torn.datastore.load({"/calico/resources/v3/projectcalico.org/ippools/p": "[]"})
    for more in ([], ["-o", "json"], ["-o", "wide"]):
        code, out, err = torn.run("get", "ippools", *more)
        assert (code, out == "", err.count("\n")) == (1, False, 1)
        assert err.startswith("Warning: ippool p cannot be read and is left out: the record must be an object")
    assert torn.run("get", "nodes")[0::2] == (0, "")
    told = torn.run("get", "ippool", "p")[2]
    assert told.startswith("Error: record ippool p is corrupt: the record must be an object, not a list; `tortie ipam")


def test_gc_sets_aside_what_cannot_be_read_and_says_where_the_copy_is(torn, tmp_path):
    out = torn.unclean("check")
    assert "PROBLEM record-unreadable (1): run `tortie ipam gc --yes`, which sets it aside, with a copy" in out
    assert "ipamhandle net1.c30: unexpected end of JSON input" in out
    assert not os.listdir(tmp_path)
    code, out, err = torn.run("ipam", "gc", "--yes", "--copies", "copies.json")
    assert (code, err) == (0, "What was set aside is in copies.json\n")
    assert "1 record-unreadable" in out
    assert os.stat("copies.json").st_mode & 0o777 == 0o600
    with open("copies.json", encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == [
            {"record": "ipamhandle net1.c30", "fault": "unexpected end of JSON input", "text": '{"block":{"10.2'}
        ]
    assert torn.counts()["net1.c30"] == {B0: 1}


def test_the_copy_is_a_new_file_or_nothing_is_done(torn, tmp_path):
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    before = torn.datastore.records_text()
    for name, why in (("there", "File exists"), ("link", "File exists"), ("no/x", "No such file or directory")):
        torn.clock.advance(100)
        code, _, err = torn.run("ipam", "gc", "--yes", "--copies", name)
        assert (code, err) == (1, f"Error: {name}, for copies of damaged records: {why}\n")
    assert torn.datastore.records_text() == before
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_several_copies_stand_in_one_file(torn, tmp_path):
    torn.datastore.load({BLOCK: "{"})
    assert torn.run("ipam", "gc", "--yes", "--grace", "0")[0] == 0
    (name,) = os.listdir(tmp_path)
    assert re.fullmatch(r"tortie-set-aside-\d{8}T\d{6}Z\.json", name)
    assert [json.loads(line)["record"] for line in (tmp_path / name).read_text().splitlines()] == [
        "ipamblock 10-244-0-0-26",
        "ipamhandle net1.c30",
    ]


def test_release_of_a_damaged_handle_names_the_way_or_insists(torn, tmp_path):
    why = torn.failed("release", "--handle", "net1.c30")
    assert why.startswith(
        "ipamhandle net1.c30 is damaged: unexpected end of JSON input; run `tortie ipam gc --yes`, or"
    )
    code, out, err = torn.run("ipam", "release", "--handle", "net1.c30", "--force", "--copies", "kept")
    assert (code, err) == (0, "What was set aside is in kept\n")
    assert out == "Successfully released IP address 10.244.0.30\nSuccessfully released handle net1.c30\n"
    assert torn.holders()["10.244.0.30"] is None  # it is cooling down
    assert "net1.c30" not in torn.counts()
    assert "record-unreadable" not in torn.unclean("check")


def test_release_of_a_handle_says_what_a_damaged_block_keeps(damaged):
    damaged.datastore.load({BLOCK: "{"})
    code, out, err = damaged.run("ipam", "release", "--handle", "net1.c5", "--force")
    assert (code, out) == (1, "")
    assert "Error: ipamblock 10-244-0-0-26 is damaged, and keeps what it holds for net1.c5; run `tortie ipam gc" in err


def test_release_of_an_address_needs_no_handle(torn):
    assert torn.done("release", "--ip", "10.244.0.30") == "Successfully released IP address 10.244.0.30\n"
    assert torn.holders()["10.244.0.30"] is None  # it is cooling down
    assert torn.run("ipam", "gc", "--yes", "--grace", "0")[0] == 0
    assert "net1.c30" not in torn.counts()


def test_release_from_a_damaged_block_names_it(torn):
    torn.datastore.load({BLOCK: "{"})
    code, out, err = torn.run("ipam", "release", "--ip", "10.244.0.30", "--force")
    assert (code, out) == (1, "")
    assert err.startswith("Error: record ipamblock 10-244-0-0-26 is corrupt: ")
    assert err.endswith("; `tortie ipam check` says what to do\n")


CONFIG = "/calico/ipam/v2/config"
RESOURCE = "/calico/resources/v3/projectcalico.org/ipamconfigurations/default"


@pytest.mark.parametrize("damage", [[CONFIG], [RESOURCE], [CONFIG, RESOURCE]])
def test_damaged_settings_are_given_anew(tortie, tmp_path, monkeypatch, damage):
    """From the other record that holds them, if that is sound."""
    monkeypatch.chdir(tmp_path)
    tortie.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    tortie.put(IPAMConfigurationKey("default"), IPAMConfiguration(Metadata("default"), cooldown_seconds=30))
    tortie.datastore.load(dict.fromkeys(damage, "{"))
    assert "give the settings anew with `tortie ipam configure`" in tortie.unclean("check")
    code, out, err = tortie.run("ipam", "configure", "--strictaffinity=true")
    assert (code, out) == (0, "Successfully set StrictAffinity to: true\n")
    assert err.startswith("What was set aside is in tortie-set-aside-")
    (copies,) = os.listdir(tmp_path)
    assert (tmp_path / copies).read_text().count("\n") == len(damage)
    config, resource = tortie.get(AllocationConfigKey()), tortie.get(IPAMConfigurationKey("default"))
    expected = 0 if len(damage) == 2 else 30
    assert (config.strict_affinity, config.cooldown_seconds) == (True, expected)
    assert (resource.strict_affinity, resource.cooldown_seconds) == (True, expected)
    assert "settings-differ" not in tortie.done("check")


def test_other_damaged_records_are_not_the_settings_affair(tortie, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tortie.datastore.load({CONFIG: "{", HANDLE: "{"})
    assert tortie.run("ipam", "configure", "--strictaffinity=true")[0] == 0
    assert tortie.datastore.records_text()[HANDLE] == "{"
