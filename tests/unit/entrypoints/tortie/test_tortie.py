"""The operator command `tortie`, from its command line to the datastore and back."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest
import yaml

from domain.cluster import Node
from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from entrypoints.tortie import main as operator
from entrypoints.version import VERSION
from entrypoints.wiring.container import Container
from ports.datastore import IPPoolKey, NodeKey, WorkloadEndpointKey
from worlds.tortie_command import Tortie

V4, V6 = "10.244.0.0/16", "fd00:10:244::/48"
POOL = """
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: extra}
spec: {cidr: 10.9.0.0/16, blockSize: 28}
"""


@pytest.fixture
def tortie(capsys):
    return Tortie(capsys)


@pytest.fixture
def file(tmp_path):
    def write(text, name="f.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


# --- init -------------------------------------------------------------------------------------------------------------


def test_init_says_what_it_made_and_what_existed(tortie):
    assert tortie.done("init", "--pool", V4, "--pool", V6) == (
        "made    ClusterInformation default  datastore ready\n"
        "made    Node host-1.example\n"
        f"made    IPPool default-ipv4-ippool  {V4}, blocks of /26\n"
        f"made    IPPool default-ipv6-ippool  {V6}, blocks of /122\n"
    )
    again = tortie.done("init", "--pool", V4, "--pool", V6).splitlines()
    assert [line.split()[0] for line in again] == ["exists"] * 4


def test_init_takes_the_node_name_from_option_environment_or_host(tortie):
    tortie.environment["NODENAME"] = "from-environment"
    tortie.done("init", "--pool", V4)
    tortie.done("init", "--pool", V4, "--node", "from-option")
    assert tortie.done("get", "nodes").split() == ["NAME", "from-environment", "from-option"]


def test_init_of_a_further_node_needs_no_pool(tortie):
    tortie.done("init", "--pool", V4)
    assert tortie.done("init", "--node", "node-b").splitlines() == [
        "exists  ClusterInformation default  datastore ready",
        "made    Node node-b",
    ]


def test_init_makes_a_cluster_guid_of_32_hex_digits(tortie):
    tortie.done("init", "--pool", V4)
    guid = json.loads(tortie.done("get", "clusterinformation", "default", "-o", "json"))["spec"]["clusterGUID"]
    assert len(guid) == 32
    assert set(guid) <= set("0123456789abcdef")


def test_init_gives_each_block_size_to_its_ip_version(tortie):
    out = tortie.done("init", "--pool", V4, "--pool", V6, "--block-size", "28", "--block-size", "120")
    assert "blocks of /28" in out
    assert "blocks of /120" in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pool", V4, "--pool", "10.0.0.0/8"], "overlaps 10.244.0.0/16 of IPPool default-ipv4-ippool"),
        (["--pool", "10.244.1.0/16"], "write 10.244.0.0/16"),
        (["--pool", "nonsense"], "'nonsense' is not a CIDR"),
        (["--pool", V4, "--block-size", "12"], "block size 12 is not possible; choose 20 to 32 for IPv4"),
        (
            ["--pool", "fd01::/48", "--block-size", "26"],
            "block size 26 is for IPv4, and there is no pool of that version",
        ),
        (["--pool", V4, "--block-size", "26", "--block-size", "122"], "block size 122 is for IPv6"),
        (["--pool", "224.0.0.0/4"], "lies in the multicast range"),
        (["--pool", V4, "--pool", "127.0.0.0/8"], "lies in the loopback range"),
        (["--pool", "10.0.0.0/30", "--block-size", "28"], "smaller than one block of /28"),
        (["--pool", V4, "--node", "a_b"], "error with field node = 'a_b'"),
        ([], "there is no IP pool yet; name the range of the first one (--pool CIDR)"),
    ],
)
def test_init_refuses_what_cannot_be_right_and_writes_nothing(tortie, arguments, why):
    assert why in tortie.failed("init", *arguments)
    assert tortie.datastore.records_text() == {}


# --- get --------------------------------------------------------------------------------------------------------------


def test_get_shows_calicoctl_s_columns(tortie):
    tortie.done("init", "--pool", V4)
    assert tortie.done("get", "ippools").splitlines() == [
        "NAME                  CIDR            SELECTOR",
        "default-ipv4-ippool   10.244.0.0/16   all()",
    ]
    heading, row = tortie.done("get", "ipp", "-o", "wide").splitlines()
    assert heading.split() == [
        *("NAME", "CIDR", "NAT", "IPIPMODE", "VXLANMODE", "DISABLED", "DISABLEBGPEXPORT", "SELECTOR"),
    ]
    assert row.split() == ["default-ipv4-ippool", V4, "true", "Never", "Never", "false", "false", "all()"]


def test_get_gives_one_object_for_one_name_and_a_list_otherwise(tortie):
    tortie.done("init", "--pool", V4, "--pool", V6)
    one = json.loads(tortie.done("get", "ippool", "default-ipv4-ippool", "-o", "json"))
    assert (one["kind"], one["metadata"]["name"]) == ("IPPool", "default-ipv4-ippool")
    two = ("default-ipv6-ippool", "default-ipv4-ippool")
    several = yaml.safe_load(tortie.done("get", "ippool", *two, "-o", "yaml"))
    assert several["kind"] == "IPPoolList"
    assert [item["metadata"]["name"] for item in several["items"]] == list(two)
    everything = json.loads(tortie.done("get", "ippools", "-o", "json"))
    assert len(everything["items"]) == 2
    assert json.loads(tortie.done("get", "workloadendpoints", "-o", "json"))["items"] == []


def endpoint(namespace):
    name = f"n-cni-{namespace}-eth0"
    record = WorkloadEndpoint(
        Metadata(name, namespace),
        orchestrator="cni",
        node="n",
        container_id=namespace,
        endpoint="eth0",
        interface_name="cali1",
        ip_networks=(Cidr.parse("10.0.0.1/32"), Cidr.parse("fd00::1/128")),
        profiles=("net1",),
    )
    return WorkloadEndpointKey(namespace, name), record


def test_endpoints_are_shown_by_namespace(tortie):
    for namespace in ("default", "prod"):
        tortie.store(*endpoint(namespace))
    headings = ["WORKLOAD", "NODE", "NETWORKS", "INTERFACE"]
    rows = [line.split() for line in tortie.done("get", "wep").splitlines()]
    assert rows == [headings, ["default", "n", "10.0.0.1/32,fd00::1/128", "cali1"]]
    assert "prod" in tortie.done("get", "wep", "-n", "prod")
    rows = [line.split() for line in tortie.done("get", "wep", "-A").splitlines()]
    assert [row[0] for row in rows] == ["NAMESPACE", "default", "prod"]
    wide = tortie.done("get", "wep", "n-cni-prod-eth0", "-n", "prod", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", *headings, "PROFILES", "NATS"]
    assert "one namespace" in tortie.misunderstood("get", "wep", "x", "-A")


def test_get_of_what_is_not_there_fails(tortie):
    assert tortie.failed("get", "ippool", "nope") == "resource does not exist: IPPool(nope)"


@pytest.mark.parametrize("verb", ["get", "delete"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["ippools", "a/b"], "IPPool name 'a/b': `/` and control characters cannot be part of it"),
        (["ippools", "default-ipv4-ippool", "/"], "IPPool name '/': "),
        (["nodes", "a\n"], r"Node name 'a\n': "),
        (["nodes", "a\udcff"], r"Node name 'a\udcff': "),
        (["nodes", ""], "Node: a name must not be empty"),
        (["wep", "x", "-n", "a/b"], "namespace 'a/b': "),
    ],
)
def test_what_cannot_be_a_name_is_refused_and_nothing_is_done(tortie, verb, arguments, why):
    tortie.done("init", "--pool", V4)
    assert tortie.failed(verb, *arguments).startswith(why)
    assert tortie.done("get", "ippools").count("\n") == 2


def test_what_cannot_be_a_namespace_has_no_endpoints_to_list(tortie):
    assert tortie.failed("get", "wep", "-n", "a/b").startswith("namespace 'a/b': ")


# --- create, apply, delete --------------------------------------------------------------------------------------------


def test_what_get_shows_can_be_applied_again(tortie, file):
    tortie.done("init", "--pool", V4, "--pool", V6)
    for form in ("json", "yaml"):
        for kind in ("ippools", "nodes", "clusterinformations"):
            before = tortie.done("get", kind, "-o", form)
            count = len(yaml.safe_load(before)["items"])
            said = tortie.done("apply", "-f", file(before))
            assert said.startswith(f"Successfully applied {count} '")
            strip = "resourceVersion"
            after = tortie.done("get", kind, "-o", form)
            kept = [line for line in before.splitlines() if strip not in line]
            assert [line for line in after.splitlines() if strip not in line] == kept


def test_apply_creates_then_replaces(tortie, file):
    assert tortie.done("apply", "-f", file(POOL)) == "Successfully applied 1 'IPPool' resource(s)\n"
    tortie.done("apply", "-f", file(POOL.replace("blockSize: 28", "blockSize: 28, disabled: true")))
    pool = json.loads(tortie.done("get", "pool", "extra", "-o", "json"))
    assert pool["spec"]["disabled"] is True


def test_create_refuses_what_exists(tortie, file):
    assert tortie.done("create", "-f", file(POOL)) == "Successfully created 1 'IPPool' resource(s)\n"
    assert tortie.failed("create", "-f", file(POOL)).startswith("resource already exists: IPPool(extra)")


def test_a_stale_resource_version_is_refused_with_what_to_do(tortie, file):
    tortie.done("apply", "-f", file(POOL))
    stale = tortie.done("get", "pool", "extra", "-o", "yaml")
    tortie.done("apply", "-f", file(POOL))
    why = tortie.failed("apply", "-f", file(stale))
    assert why.startswith("update conflict: IPPool(extra): it is no longer at resourceVersion 1; get it again")


def test_a_rival_that_never_stops_is_reported(tortie, file):
    tortie.done("apply", "-f", file(POOL))
    key = IPPoolKey("extra")

    def rival(verb, need):
        if verb == "update":
            deadline = tortie.clock.deadline(60)
            stored = tortie.datastore.get(key, deadline)
            tortie.datastore.update(key, stored.record, stored.revision, deadline)

    tortie.datastore.before = rival
    assert tortie.failed("apply", "-f", file(POOL)) == "update conflict: IPPool(extra)"


def test_several_documents_and_lists_are_applied_in_order(tortie, file):
    node = json.dumps(
        {
            "kind": "NodeList",
            "apiVersion": "projectcalico.org/v3",
            "items": [
                {"kind": "Node", "apiVersion": "projectcalico.org/v3", "metadata": {"name": name}, "spec": {}}
                for name in ("a", "b")
            ],
        }
    )
    assert tortie.done("apply", "-f", file(f"---\n---\n{node}\n---{POOL}")) == "Successfully applied 3 resource(s)\n"
    assert tortie.done("get", "nodes").split() == ["NAME", "a", "b"]


def test_nothing_is_written_when_one_of_the_documents_is_bad(tortie, file):
    bad = POOL.replace("blockSize", "blocksize").replace("extra", "other")
    assert "spec.blocksize" in tortie.failed("apply", "-f", file(POOL + "---" + bad))
    assert tortie.datastore.records_text() == {}


def test_a_fault_after_some_were_written_says_how_many(tortie, file):
    why = tortie.failed("create", "-f", file(POOL + "---" + POOL.replace("extra", "twin")))
    assert why == (
        "IPPool twin: 10.9.0.0/16 overlaps 10.9.0.0/16 of IPPool extra; choose a range of its own "
        "(created 1 of 2 resources before that)"
    )


def test_an_endpoint_goes_to_the_namespace_of_the_command_line(tortie, file):
    text = """
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n-cni-cid-eth0}
spec: {orchestrator: cni, node: n, containerID: cid, endpoint: eth0, interfaceName: cali1, mac: 11:22:33:44:55:00}
"""
    tortie.done("apply", "-f", file(text), "-n", "prod")
    stored = json.loads(tortie.done("get", "wep", "n-cni-cid-eth0", "-n", "prod", "-o", "json"))
    assert stored["spec"]["mac"] == "11:22:33:44:55:00"
    tortie.done("delete", "-f", file(text), "-n", "prod")
    assert tortie.done("get", "wep", "-A").count("\n") == 1


def test_delete_by_name_and_by_file(tortie, file):
    tortie.done("init", "--pool", V4, "--pool", V6)
    assert tortie.done("delete", "ippool", "default-ipv4-ippool", "default-ipv6-ippool") == (
        "Successfully deleted 2 'IPPool' resource(s)\n"
    )
    tortie.done("apply", "-f", file(POOL))
    tortie.done("delete", "-f", file(POOL))
    assert tortie.failed("delete", "-f", file(POOL)).startswith("resource does not exist: IPPool(extra)")
    tortie.done("delete", "--skip-not-exists", "-f", file(POOL))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no resource in it"),
        ("---\n", "no resource in it"),
        ("a: [", "neither YAML nor JSON"),
        ("just text", "a manifest must be an object"),
        ("kind: IPPool", "apiVersion is missing; write apiVersion: projectcalico.org/v3"),
        (POOL.replace("IPPool", "Pod"), "kind 'Pod' is not one of IPPool"),
        (POOL.replace("name: extra", ""), "metadata.name is missing"),
        (POOL.replace("28", "x"), "spec.blockSize must be a number"),
        (POOL.replace("10.9.0.0/16", "10.9.0.0/33"), "10.9.0.0/33"),
        (POOL.replace("10.9.0.0/16", "224.9.0.0/16"), "multicast"),
        (POOL.replace("10.9.0.0/16", "127.9.0.0/16"), "loopback"),
        (POOL.replace("name: extra", "name: a/b"), "a/b"),
        (POOL.replace("blockSize", "cidr"), "'cidr' is given twice in one mapping in line 5"),
        ("[" * 10_000, "neither YAML nor JSON"),
    ],
)
def test_a_bad_file_is_one_clear_error(tortie, file, text, why):
    assert why in tortie.failed("apply", "-f", file(text))


@pytest.mark.parametrize("verb", ["create", "apply", "delete"])
def test_a_bad_resource_is_named_by_its_file_and_place(tortie, file, tmp_path, verb):
    bad = POOL.replace("IPPool", "Pod")
    assert tortie.failed(verb, "-f", file(bad)).startswith(f"{tmp_path}/f.yaml: kind 'Pod' is not one of ")
    several = file(f"{POOL}---{bad}---{POOL}")
    assert tortie.failed(verb, "-f", several).startswith(f"{several}, resource 2 of 3: kind 'Pod' is not one of ")
    assert tortie.done("get", "ippools").splitlines()[1:] == []


def test_a_file_that_cannot_be_read_is_named(tortie, tmp_path):
    assert tortie.failed("apply", "-f", str(tmp_path / "absent")) == f"{tmp_path}/absent: No such file or directory"
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in tortie.failed("apply", "-f", str(tmp_path / "bytes"))


def test_a_dash_is_standard_input(tortie, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POOL.encode())))
    tortie.done("apply", "-f", "-")
    assert "extra" in tortie.done("get", "pools")


# --- command line and streams -----------------------------------------------------------------------------------------


def test_version(tortie):
    assert tortie.done("version").startswith("tortie v")


def test_help_is_shown_when_asked_for(tortie):
    assert "Make a datastore ready" in tortie.done("--help")
    assert "--block-size" in tortie.done("init", "--help")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "COMMAND"),
        (["frobnicate"], "invalid choice"),
        (["init", "--pool"], "--pool"),
        (["init", "--pool", V4, "--block-size", "x"], "invalid int value"),
        (["get", "pods"], "unknown kind 'pods'; known are ippools"),
        (["get", "nodes", "-o", "xml"], "'xml' is none of json, yaml, wide, name and custom-columns="),
        (["apply"], "-f"),
        (["delete"], "either a kind with at least one name, a kind with --all, or -f FILE"),
        (["delete", "node"], "either a kind with at least one name, a kind with --all, or -f FILE"),
        (["delete", "node", "n", "-f", "x"], "either a kind with at least one name, a kind with --all, or -f FILE"),
    ],
)
def test_a_command_line_that_is_not_understood_ends_with_2(tortie, arguments, why):
    assert why in tortie.misunderstood(*arguments)


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_datastore_is_the_file_that_the_command_line_or_the_environment_names(tmp_path, capsys, place):
    path = str(tmp_path / "folder" / "d.db")
    option = ["--datastore-path", path]
    other = {"TORTIE_SQLITE_PATH": str(tmp_path / "other"), "DATASTORE_TYPE": "etcdv3"}

    def tortie(*words):
        arguments = [*option, *words] if place == "before" else [*words, *option]
        return operator.main(arguments, other)

    assert tortie("get", "nodes") == 1
    assert f"datastore {path}: no such file; `tortie init --pool CIDR` makes one" in capsys.readouterr().err
    assert tortie("init", "--pool", V4, "--node", "n") == 0
    assert os.stat(path).st_mode & 0o777 == 0o600
    capsys.readouterr()
    assert operator.main(["get", "nodes"], {"TORTIE_SQLITE_PATH": path}) == 0
    assert capsys.readouterr().out.split() == ["NAME", "n"]
    assert os.listdir(os.path.dirname(path)) == ["d.db"]


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_is_also_an_option_as_it_is_the_plugins(tortie, option):
    assert tortie.done(option) == f"{VERSION}\n"


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["delete", "node"], "tortie delete"),
        (["ipam", "release"], "tortie ipam release"),
        (["ipam", "show", "--address", "10.0.0.1"], "tortie ipam show"),
        (["get", "nodes", "--config", "c", "--datastore-path", "d"], "tortie get"),
    ],
)
def test_an_objection_names_its_command_and_where_its_help_is(tortie, arguments, usage):
    code, _, err = tortie(*arguments)
    assert (code, err.startswith(f"{usage}: error: ")) == (2, True), err
    assert err.endswith(f"\n`{usage.replace('tortie', 'tortie help')}` shows what there is.\n")


def test_an_init_without_a_pool_makes_no_file(tmp_path, capsys):
    path = tmp_path / "d.db"
    assert operator.main(["init", "--node", "n", "--datastore-path", str(path)], {}) == 1
    assert "no such file" in capsys.readouterr().err
    assert not path.exists()


def test_a_refused_init_makes_no_file(tmp_path, capsys):
    path = tmp_path / "d.db"
    assert operator.main(["init", "--pool", "nonsense", "--node", "n", "--datastore-path", str(path)], {}) == 1
    assert "'nonsense' is not a CIDR" in capsys.readouterr().err
    assert not path.exists()


def test_another_datastore_type_is_refused(capsys):
    assert operator.main(["get", "nodes"], {"DATASTORE_TYPE": "zoo"}) == 1
    why = 'unknown datastore type: zoo; set "datastore_type" or DATASTORE_TYPE to "kubernetes", "etcdv3" or "sqlite"'
    assert capsys.readouterr().err == f"Error: {why}\n"


def test_a_file_that_is_no_datastore_is_one_clear_error(tmp_path, capsys):
    path = tmp_path / "d.db"
    path.write_text("not a database, but long enough to be read as one" * 100)
    assert operator.main(["get", "nodes", "--datastore-path", str(path)], {}) == 1
    assert capsys.readouterr().err.startswith(f"Error: datastore {path}: it is not a SQLite database")


class Raising(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def flush(self):
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (OSError(28, "No space left on device"), 1, "Error: cannot write the output: No space left on device\n"),
    ],
)
@pytest.mark.parametrize("words", [("version",), ("get", "--help")])
def test_output_that_cannot_be_delivered(tortie, monkeypatch, error, code, said, words):
    out = Raising(error)
    monkeypatch.setattr(sys, "stdout", out)
    assert tortie(*words)[0::2] == (code, said)
    if sys.stdout is not out:
        sys.stdout.close()


def test_closed_streams_are_no_crash(tortie, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert tortie.failed("apply", "-f", "-").startswith("standard input: no resource in it")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        code = operator.run(["version"], {}, Container())
        sys.stdout.close()
    assert (code, capsys.readouterr().err) == (1, "Error: cannot write the output: standard output is closed\n")
    monkeypatch.setattr(sys, "stderr", None)
    assert tortie("get", "node", "absent") == (1, "", "")
    monkeypatch.setattr(sys, "stdout", None)
    assert operator.run(["get"], {}, Container()) == 2


def test_closing_a_datastore_that_was_never_opened_is_fine(tortie):
    tortie.store(NodeKey("n"), Node(Metadata("n")))
    assert tortie.done("get", "node", "n").split() == ["NAME", "n"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("frob", 'unknown datastore type: frob; set "datastore_type" or DATASTORE_TYPE to "kubernetes", "etcdv3" or'),
        ("etcdv3", 'no etcd endpoints specified; set "etcd_endpoints" in the network configuration, or ETCD_ENDPOINTS'),
    ],
)
def test_settings_that_lead_nowhere_are_told_with_what_to_set(capsys, kind, why):
    """A9."""
    assert operator.main(["get", "nodes"], {"DATASTORE_TYPE": kind}) == 1
    assert capsys.readouterr().err.startswith(f"Error: {why}")
