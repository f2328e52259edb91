"""`tortie datastore migrate` and `ipam split`, from the command line to what is stored (A11)."""

from __future__ import annotations

import json

import pytest

from adapters.records.codec import key_text
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Attribute, Handle, Owner, new_block
from domain.ipam.pools import AllocationConfig, Pool
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPPoolKey,
    WorkloadEndpointKey,
)
from worlds.tortie_command import Tortie

CIDR = Cidr.parse("10.244.0.0/26")


@pytest.fixture
def tortie(capsys):
    """A cluster with one container."""
    tortie = Tortie(capsys)
    tortie.environment["DATASTORE_TYPE"] = "sqlite"
    tortie.done("init", "--pool", "10.244.0.0/16", "--node", "n1")
    block = new_block(CIDR, "host:n1", None, 1).take((3,), Attribute("net.C1", {"node": "n1"}))
    tortie.store(BlockKey(CIDR), block)
    tortie.store(HandleKey("net.C1"), Handle({CIDR: 1}))
    tortie.store(AffinityKey(Owner(HOST, "n1"), CIDR), Affinity("confirmed"))
    tortie.store(AllocationConfigKey(), AllocationConfig(strict_affinity=True))
    endpoint = WorkloadEndpoint(Metadata("w", "default"), node="n1", container_id="C1")
    tortie.store(WorkloadEndpointKey("default", "w"), endpoint)
    return tortie


@pytest.fixture
def other(capsys):
    other = Tortie(capsys)
    other.environment["DATASTORE_TYPE"] = "sqlite"
    return other


@pytest.fixture
def exported(tortie, tmp_path):
    """A file with what was exported, in either form."""
    tortie.done("datastore", "migrate", "lock")

    def export(form):
        path = tmp_path / f"all.{form}"
        path.write_text(tortie.done("datastore", "migrate", "export", "-o", form))
        return str(path)

    return export


def stored(tortie):
    """All that is stored, but for what each datastore says for itself."""
    listed = json.loads(tortie.done("datastore", "migrate", "export", "-o", "json"))
    return listed["items"]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_was_exported_is_what_the_other_has_after_the_import(tortie, other, exported, form):
    path = exported(form)
    would = other.done("datastore", "migrate", "import", "-f", path, "--dry-run")
    assert would.startswith("Would have imported 1 clusterinformation, 1 ippool, 1 node, 1 profile")
    assert other.datastore.records_text() == {}
    said = other.done("datastore", "migrate", "import", "-f", path)
    assert "1 ipamblock, 1 ipamhandle, 1 blockaffinity, 1 ipamconfig" in said
    assert "The datastore is locked" in said
    assert stored(other) == stored(tortie)
    assert other.get(HandleKey("net.C1")) == Handle({CIDR: 1}), "a handle keeps its letters"
    other.done("datastore", "migrate", "import", "-f", path)
    assert other.done("datastore", "migrate", "unlock") == "Datastore unlocked.\n"
    assert other.get(ClusterInformationKey("default")).datastore_ready is True
    assert other.get(BlockKey(CIDR)) == tortie.get(BlockKey(CIDR))


def test_an_import_that_does_not_fit_writes_nothing(tortie, other, exported):
    path = exported("json")
    other.store(HandleKey("net.C1"), Handle({CIDR: 7}))
    before = other.datastore.records_text()
    why = other.failed("datastore", "migrate", "import", "-f", path)
    assert why == "ipamhandle net.C1 is there already, and is another one; import into an empty datastore"
    assert other.datastore.records_text() == before


def test_an_import_gives_no_address_to_two(tortie, other, exported):
    """Into a cluster that runs, with a pool or a block of its own over the same addresses."""
    path = exported("json")
    other.done("init", "--pool", "10.99.0.0/24", "--node", "n9")
    other.done("delete", "ippool", "default-ipv4-ippool")
    small = Cidr.parse("10.244.0.16/28")
    other.store(BlockKey(small), new_block(small, "host:n9", None, 1).take((0,), Attribute("net.C9", {"node": "n9"})))
    before = other.datastore.records_text()
    why = other.failed("datastore", "migrate", "import", "-f", path)
    assert (
        why
        == "ipamblock 10-244-0-0-26 overlaps ipamblock 10-244-0-16-28, which is there; import into an empty datastore"
    )
    other.store(IPPoolKey("mine"), Pool(Metadata("mine"), "10.244.128.0/17"))
    why = other.failed("datastore", "migrate", "import", "-f", path, "--dry-run")
    assert why == "ippool default-ipv4-ippool overlaps ippool mine, which is there; import into an empty datastore"
    other.done("delete", "ippool", "mine")
    assert other.datastore.records_text() == before


def test_an_import_locks_before_it_writes(tortie, other, exported):
    path = exported("json")
    other.done("init", "--pool", "10.99.0.0/24", "--node", "n9")
    other.done("delete", "ippool", "default-ipv4-ippool")

    def written(verb, key):
        if verb == "create":
            ready = other.get(ClusterInformationKey("default")).datastore_ready
            assert ready is False, f"{key} was written while calls could allocate"

    other.datastore.before = written
    other.done("datastore", "migrate", "import", "-f", path)
    assert other.get(BlockKey(CIDR)) == tortie.get(BlockKey(CIDR))


def test_what_kubernetes_says_itself_is_left_out(tortie, other, exported):
    path = exported("json")
    other.environment["DATASTORE_TYPE"] = "kubernetes"
    code, out, err = other("datastore", "migrate", "import", "-f", path)
    assert (code, err) == (
        0,
        "Left out, since Kubernetes says it itself: 1 node, 1 profile, 1 workloadendpoint\n",
    )
    assert "1 ipamblock" in out
    assert other.get(WorkloadEndpointKey("default", "w")) is None


def test_an_export_is_of_a_locked_datastore_that_can_be_read(tortie):
    assert "the datastore is not locked" in tortie.failed("datastore", "migrate", "export")
    tortie.done("datastore", "migrate", "lock")
    tortie.datastore.load({key_text(HandleKey("broken")): "{"})
    assert tortie.failed("datastore", "migrate", "export").startswith("ipamhandle broken cannot be read, and would be")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "nothing in it that `tortie datastore migrate export` writes"),
        ("{", "unexpected end of JSON input"),
        ('{"kind": "IPAMHandle", "metadata": {"name": "x"}, "spec": {"handleID": "y"}}', "its name is 'x'"),
        ("kind: Frob\napiVersion: projectcalico.org/v3", "kind 'Frob' is not one of"),
    ],
)
def test_a_file_that_is_no_export_is_refused(other, tmp_path, text, why):
    path = tmp_path / "x"
    path.write_text(text)
    said = other.failed("datastore", "migrate", "import", "-f", str(path))
    assert said.startswith(f"{path}: ")
    assert why in said


def test_a_pool_is_split_while_the_datastore_is_locked(tortie):
    words = ("ipam", "split", "4", "--cidr", "10.244.0.0/16")
    assert "the datastore is not locked" in tortie.failed(*words)
    would = tortie.done(*words, "--dry-run")
    assert would.splitlines()[:2] == [
        "Would split IPPool default-ipv4-ippool 10.244.0.0/16 into:",
        "  split-default-ipv4-ippool-0  10.244.0.0/18",
    ]
    assert tortie.done("get", "pools", "-o", "name") == "ippool/default-ipv4-ippool\n"
    tortie.done("datastore", "migrate", "lock")
    assert tortie.done(*words).replace("Successfully", "Would", 1).splitlines()[1:] == would.splitlines()[1:]
    names = "".join(f"ippool/split-default-ipv4-ippool-{at}\n" for at in range(4))
    assert tortie.done("get", "pools", "-o", "name") == names
    assert tortie.done("ipam", "check").endswith("Clean: 0 problems, 0 leaks, 0 infos.\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["2"], "say which pool: --name POOL or --cidr CIDR"),
        (["two", "--name", "x"], "invalid int value: 'two'"),
        (["2", "--cidr", "x"], "argument --cidr: invalid IP address: x"),
        (["--name", "x"], "the following arguments are required: NUMBER"),
    ],
)
def test_a_split_that_is_not_understood(tortie, arguments, why):
    assert why in tortie.misunderstood("ipam", "split", *arguments)


def test_a_split_that_cannot_be(tortie):
    assert tortie.failed("ipam", "split", "2", "--name", "x", "--force") == "resource does not exist: IPPool(x)"
    why = tortie.failed("ipam", "split", "3", "--name", "default-ipv4-ippool", "--force")
    assert "give a power of two" in why
    assert tortie.done("ipam", "split", "2", "--name", "default-ipv4-ippool", "--force").startswith("Successfully")


def test_a_report_has_calicoctls_members_and_is_read_by_ours(tortie, tmp_path):
    """A11: `ipam check -o FILE`."""
    tortie.store(HandleKey("orphan"), Handle({CIDR: 1}))
    tortie.clock.sleep(200)
    path = tmp_path / "report.json"
    code, _, _ = tortie("ipam", "check", "-o", str(path))
    report = json.loads(path.read_text())
    assert code == 1
    assert report["clusterGUID"] == tortie.get(ClusterInformationKey("default")).cluster_guid
    assert (report["datastoreLocked"], report["leakedHandles"]) == (False, ["orphan"])
    assert report["allocations"] == {
        "10.244.0.3": [
            {
                "ip": "10.244.0.3",
                "handle": "net.C1",
                "sequenceNumber": 1,
                "node": "n1",
                "inUse": True,
                "borrowed": False,
                "owners": [],
            }
        ]
    }
    assert tortie.done("ipam", "release", "--from-report", str(path)).startswith("Collected 1 of 1.")
    assert tortie.get(HandleKey("orphan")) is None
    report["version"] = report.pop("format")
    path.write_text(json.dumps(report))
    assert tortie.done("ipam", "release", "--from-report", str(path)) == "Nothing to collect.\n"


def test_addresses_that_calicoctl_calls_unused_are_released_if_they_are(tortie, tmp_path):
    """A11: a report of calicoctl's own."""
    stored = tortie.datastore.get(BlockKey(CIDR), tortie.clock.deadline(60))
    block = stored.record.take((5, 6), Attribute("net.gone", {"node": "n1"}))
    tortie.datastore.update(stored.key, block, stored.revision, tortie.clock.deadline(60))
    tortie.store(HandleKey("net.gone"), Handle({CIDR: 2}))
    tortie.clock.sleep(200)
    unused = {"inUse": False, "owners": None}
    report = {
        "version": "v3.29.0",
        "clusterGUID": "x",
        "allocations": {
            "10.244.0.3": [{**unused, "ip": "10.244.0.3", "handle": "net.C1", "sequenceNumber": 1}],
            "10.244.0.5": [{**unused, "ip": "10.244.0.5", "handle": "net.gone", "sequenceNumber": block.sequences[5]}],
            "10.244.0.6": [{**unused, "ip": "10.244.0.6", "handle": "net.gone", "sequenceNumber": 77}],
            "10.244.0.7": None,
        },
        "leakedHandles": ["x"],
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    said = tortie.done("ipam", "release", "--from-report", str(path))
    assert said.startswith("Collected 1 of 2.\n  1 address-without-endpoint\nKept address-without-endpoint 10.244.0.6")
    assert tortie.get(BlockKey(CIDR)).held_by("net.gone") == (6,)
    assert "not a report" in tortie.failed("ipam", "gc", "--yes", "--from-report", str(path))
    report["allocations"] = []
    path.write_text(json.dumps(report))
    assert tortie.done("ipam", "release", "--from-report", str(path)) == "Nothing to collect.\n"
