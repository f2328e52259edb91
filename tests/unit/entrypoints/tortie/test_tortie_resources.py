"""What calicoctl's and kubectl's users expect of the commands on resources (A10, A11, A12)."""

from __future__ import annotations

import json

import pytest
import yaml

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Handle, Owner, new_block
from ports.datastore import AffinityKey, BlockKey, HandleKey, IPPoolKey, NodeKey, WorkloadEndpointKey
from worlds.tortie_command import Tortie

POOL = """
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: NAME, labels: {rack: r1}}
spec: {cidr: CIDR, blockSize: 28}
"""
NODE = "{apiVersion: projectcalico.org/v3, kind: Node, metadata: {name: n1}, spec: {}}"
ENDPOINT = """
apiVersion: projectcalico.org/v3
kind: WorkloadEndpoint
metadata: {name: n1-cni-c1-eth0, labels: {a: %s}}
spec: {node: n1, orchestrator: cni, endpoint: eth0, containerID: %s, interfaceName: cali1}
"""


def pool(name, cidr):
    return POOL.replace("NAME", name).replace("CIDR", cidr)


@pytest.fixture
def tortie(capsys):
    return Tortie(capsys)


@pytest.fixture
def file(tmp_path):
    def write(text, name="f.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def two(tortie, file):
    """Two pools and a node."""
    path = file("---\n".join([pool("a", "10.1.0.0/16"), pool("b", "10.2.0.0/16"), NODE]))
    assert tortie.done("apply", "-f", path) == "Successfully applied 3 resource(s)\n"
    return tortie


# --- get --------------------------------------------------------------------------------------------------------------


def test_several_kinds_are_shown_one_after_the_other(two):
    tables = two.done("get", "pools,nodes").split("\n\n")
    assert [table.split()[0:1] + table.split()[-1:] for table in tables] == [["NAME", "all()"], ["NAME", "n1"]]
    listed = json.loads(two.done("get", "pools,nodes", "-o", "json"))
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("List", ["IPPool", "IPPool", "Node"])
    assert two.done("get", "pools,nodes", "-o", "name") == "ippool/a\nippool/b\nnode/n1\n"


def test_names_that_were_shown_can_be_given_back(two):
    names = two.done("get", "pools,nodes", "-o", "name").split()
    listed = yaml.safe_load(two.done("get", *names, "-o", "yaml"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "n1"]
    assert two.done("delete", *names) == "Successfully deleted 3 resource(s)\n"


def test_get_by_file_shows_what_is_stored_under_its_names(two, file):
    path = file(pool("b", "10.99.0.0/16"))
    assert json.loads(two.done("get", "-f", path, "-o", "json"))["spec"]["cidr"] == "10.2.0.0/16"
    assert "resource does not exist: IPPool(z)" in two.failed("get", "-f", file(pool("z", "10.99.0.0/16")))


def test_labels_select(two, file):
    two.done("apply", "-f", file(pool("c", "10.3.0.0/16").replace("r1", "r2")))
    assert two.done("get", "pools", "-l", "rack in (r2)", "-o", "name") == "ippool/c\n"
    assert two.done("get", "pools,nodes", "-l", "!rack", "-o", "name") == "node/n1\n"


def test_an_export_can_be_applied_elsewhere(two, file, capsys):
    text = two.done("get", "pools", "--export", "-o", "yaml")
    assert "uid" not in text
    assert "resourceVersion" not in text
    assert Tortie(capsys).done("create", "-f", file(text)) == "Successfully created 2 'IPPool' resource(s)\n"


CIDR = Cidr.parse("10.1.0.0/28")


@pytest.fixture
def held(two):
    two.store(BlockKey(CIDR), new_block(CIDR, "host:n1", None, 1))
    two.store(HandleKey("net.C1"), Handle({CIDR: 1}))
    two.store(AffinityKey(Owner(HOST, "n1"), CIDR), Affinity("confirmed"))
    return two


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["blocks"], "ipamblock/10-1-0-0-28"),
        (["block", "10-1-0-0-28"], "ipamblock/10-1-0-0-28"),
        (["block", "10.1.0.0/28"], "ipamblock/10-1-0-0-28"),
        (["ipamhandle/net.C1"], "ipamhandle/net.c1"),
        (["handles"], "ipamhandle/net.c1"),
        (["affinity", "n1-10-1-0-0-28"], "blockaffinity/n1-10-1-0-0-28"),
    ],
)
def test_ipams_own_records_can_be_looked_at(held, words, name):
    assert held.done("get", *words, "-o", "name") == f"{name}\n"
    assert name.partition("/")[2] in held.done("get", *words)


def test_ipams_own_records_cannot_be_written(held, file):
    path = file(held.done("get", "blocks", "-o", "yaml"))
    assert "kind IPAMBlock is IPAM's own, which `tortie ipam` repairs" in held.failed("apply", "-f", path)
    assert "are IPAM's own" in held.misunderstood("delete", "blocks", "--all")
    assert held.failed("get", "block", "10.9.0.0/28") == "resource does not exist: IPAMBlock(10.9.0.0/28)"
    assert held.failed("get", "block", "10.9/x") == "resource does not exist: IPAMBlock(10.9/x)"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["get"], "give a KIND, such as ippools or nodes (`tortie help get` has all), or -f FILE"),
        (["get", "pools", "-f", "x"], "give a KIND"),
        (["get", "pools,frobs"], "unknown kind 'frobs'; known are ippools"),
        (["get", "pool/a", "b"], "'b': after KIND/NAME, give KIND/NAME"),
        (["get", "pools", "a", "-l", "x=y"], "leave out the names, or the selector"),
        (["get", "blocks", "-l", "x=y"], "no labels to select by"),
        (["get", "pools", "-l", "x>y"], "is no label selector"),
        (["get", "pools", "-o", "jsonpath={.x}"], "jsonpath is not known here"),
        (["delete", "pools", "a", "--all"], "a kind with --all"),
        (["delete", "--all"], "a kind with --all"),
        (["delete", "frob", "x"], "unknown kind 'frob'"),
        (["label", "node", "n1"], "give at least one label"),
        (["label", "node", "n1", "a"], "'a' is no label; write a=VALUE, or a --remove"),
        (["label", "node", "n1", "a=b", "--remove"], "with --remove name the label only"),
        (["label", "node", "n1", "-a=b"], "unrecognized arguments"),
        (["label", "node", "n1", "a b=c"], "'a b' cannot be a label's name"),
        (["label", "node", "n1", "a=b c"], "'b c' cannot be a label's value"),
        (["label", "frob", "n1", "a=b"], "unknown kind"),
        (["patch", "pool", "-p", "{}"], "give one KIND NAME, or KIND/NAME"),
        (["patch", "pool", "a"], "one of the arguments -p/--patch --patch-file is required"),
        (["help", "frob"], "there is no command 'frob'"),
        (["frob"], "invalid choice: 'frob'"),
    ],
)
def test_a_command_line_that_means_nothing_says_what_would(two, arguments, why):
    err = two.misunderstood(*arguments)
    assert why in err
    assert err.splitlines()[-1].startswith("`tortie help")


# --- files ------------------------------------------------------------------------------------------------------------


def test_of_a_folder_every_manifest_is_taken_in_order(tortie, file, tmp_path):
    for name, cidr in (("b", "10.2.0.0/16"), ("a", "10.1.0.0/16")):
        file(pool(name, cidr), f"set/{name}.yml")
    file("not a manifest", "set/README.txt")
    file(NODE, "set/deeper.yaml")
    (tmp_path / "set/sub").mkdir()
    (tmp_path / "set/sub/c.json").write_text(json.dumps(yaml.safe_load(pool("c", "10.3.0.0/16"))))
    folder = str(tmp_path / "set")
    assert tortie.done("apply", "-f", folder) == "Successfully applied 3 resource(s)\n"
    assert "IPPool(c)" in tortie.failed("get", "ippool", "c")
    assert tortie.done("apply", "-R", "-f", folder) == "Successfully applied 4 resource(s)\n"
    (tmp_path / "empty").mkdir()
    empty = str(tmp_path / "empty")
    assert tortie.failed("apply", "-f", empty) == f"{empty}: no .json, .yaml, .yml in this folder"
    assert tortie.done("apply", "-f", empty, "--skip-empty") == "Successfully applied 0 resource(s)\n"
    assert tortie.done("apply", "-f", file("---"), "--skip-empty") == "Successfully applied 0 resource(s)\n"


def test_a_fault_in_one_of_several_files_names_the_file(tortie, file):
    good, bad = file(pool("a", "10.1.0.0/16"), "a.yaml"), file(pool("b", "10.2.0.0"), "b.yaml")
    assert tortie.failed("apply", "-f", good, "-f", bad).startswith(f"{bad}: IPPool(b): '10.2.0.0' is not a CIDR")
    assert tortie.done("get", "pools", "-o", "name") == ""


def test_anchors_and_merge_keys_work(tortie, file):
    """A12."""
    text = """
apiVersion: v1
kind: List
items:
- &base
  apiVersion: projectcalico.org/v3
  kind: IPPool
  metadata: {name: p1}
  spec: &spec {cidr: 10.9.0.0/16, blockSize: 28}
- <<: *base
  metadata: {name: p2}
  spec: {<<: *spec, cidr: 10.10.0.0/16}
"""
    assert tortie.done("apply", "-f", file(text)) == "Successfully applied 2 'IPPool' resource(s)\n"
    assert tortie.done("get", "pools", "-o", "custom-columns=N:.metadata.name,C:.spec.cidr,B:.spec.blockSize") == (
        "N    C              B\np1   10.9.0.0/16    28\np2   10.10.0.0/16   28\n"
    )


@pytest.mark.parametrize(
    ("label", "container", "where"),
    [("1", "c1", "metadata.labels.a"), ("true", "c1", "metadata.labels.a"), ("x", "12345", "spec.containerID")],
)
def test_a_number_for_a_text_is_refused_with_what_to_write(tortie, file, label, container, where):
    """A12: as calicoctl does, which says nothing of quotes."""
    why = tortie.failed("apply", "-f", file(ENDPOINT % (label, container)))
    assert where in why
    assert why.endswith("write it in quotes")
    quoted = ENDPOINT.replace("cni-c1", f"cni-{container}") % (f'"{label}"', f'"{container}"')
    tortie.done("apply", "-f", file(quoted))


def test_convert_shows_what_would_be_stored(tortie, file):
    shown = yaml.safe_load(tortie.done("convert", "-f", file(pool("a", "10.1.0.0/16"))))
    assert (shown["spec"]["blockSize"], shown["spec"]["nodeSelector"]) == (28, "all()")
    assert "uid" not in shown["metadata"]
    raw = {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPPool",
        "metadata": {"name": "a", "resourceVersion": "5", "uid": "u"},
        "spec": {"cidr": "10.1.0.0/16", "blockSize": 26},
    }
    listed = {"kind": "List", "apiVersion": "v1", "items": [raw, raw]}
    assert "`tortie convert` takes what kubectl shows" in tortie.failed("apply", "-f", file(json.dumps(raw)))
    converted = json.loads(tortie.done("convert", "-o", "json", "-f", file(json.dumps(listed))))
    assert [item["apiVersion"] for item in converted["items"]] == ["projectcalico.org/v3"] * 2
    assert tortie.done("apply", "-f", file(json.dumps(converted["items"][0]))).startswith("Successfully")
    block = {**raw, "kind": "IPAMBlock"}
    assert "'IPAMBlock' is not among those that can be applied" in tortie.failed(
        "convert", "-f", file(json.dumps(block))
    )
    old = file("{apiVersion: v1, kind: ipPool, metadata: {cidr: 10.1.0.0/16}}")
    assert "that of Calico 2" in tortie.failed("convert", "-f", old)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_replace_wants_what_is_there(two, file):
    assert two.failed("replace", "-f", file(pool("z", "10.9.0.0/16"))) == "resource does not exist: IPPool(z)"
    changed = pool("a", "10.1.0.0/16").replace("r1", "r9")
    assert two.done("replace", "-f", file(changed)) == "Successfully replaced 1 'IPPool' resource(s)\n"
    assert two.get(IPPoolKey("a")).metadata.labels == {"rack": "r9"}


def test_create_may_pass_over_what_is_there(two, file):
    path = file("---\n".join([pool("a", "10.1.0.0/16"), pool("c", "10.3.0.0/16")]))
    assert "already exists" in two.failed("create", "-f", path)
    assert two.done("create", "--skip-exists", "-f", path) == "Successfully created 2 'IPPool' resource(s)\n"
    assert two.get(IPPoolKey("c")) is not None


@pytest.mark.parametrize("flag", ["--dry-run", "--dry-run=client", "--dry-run=server"])
def test_a_dry_run_says_what_would_be_and_writes_nothing(two, file, flag):
    before = two.datastore.records_text()
    path = file("---\n".join([pool("a", "10.1.0.0/16").replace("r1", "r9"), pool("c", "10.3.0.0/16")]))
    applied = "Would have applied 2 'IPPool' resource(s); nothing is written\n"
    assert two.done("apply", flag, "-f", path) == applied
    assert "already exists" in two.failed("create", flag, "-f", path)
    assert "does not exist: IPPool(c)" in two.failed("replace", flag, "-f", path)
    assert two.done("delete", "pools", "--all", flag).startswith("Would have deleted 2")
    assert two.done("label", flag, "node", "n1", "a=b") == "Would have labelled Node(n1); nothing is written\n"
    assert two.datastore.records_text() == before
    overlapping = file(pool("c", "10.1.0.0/24"))
    assert "10.1.0.0/16" in two.failed("apply", flag, "-f", overlapping)


def test_all_of_a_kind_are_deleted_at_once(two, file):
    two.done("apply", "-f", file(ENDPOINT % ("x", "c1")), "-n", "prod")
    assert two.done("delete", "wep", "--all") == "Successfully deleted 0 resource(s)\n"
    assert two.done("delete", "wep", "--all", "-n", "prod").startswith("Successfully deleted 1")
    assert two.done("delete", "pools,nodes", "--all") == "Successfully deleted 3 resource(s)\n"


def test_a_patch_changes_what_it_names(two, file):
    """A11."""
    said = two.done(
        "patch", "ippool", "a", "-p", '{"spec": {"disabled": true}, "metadata": {"labels": {"rack": null}}}'
    )
    assert said == "Successfully patched IPPool(a)\n"
    assert (two.get(IPPoolKey("a")).disabled, two.get(IPPoolKey("a")).metadata.labels) == (True, {})
    operations = '[{"op": "test", "path": "/spec/disabled", "value": true}, {"op": "remove", "path": "/spec/disabled"}]'
    two.done("patch", "ippool/a", "--type", "json", "--patch-file", file(operations))
    assert not two.get(IPPoolKey("a")).disabled


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-p", '{"spec": {"blockSize": 26}}'], "its block size is 28 and cannot become 26"),
        (["-p", '{"spec": {"nope": 1}}'], "unknown field spec.nope"),
        (["-p", '{"metadata": {"name": "z"}}'], "cannot change kind, name or namespace; it would be IPPool(z)"),
        (["-p", "x"], "the patch must be one object or, with --type json, a list"),
        (["-p", "{"], "the patch: neither YAML nor JSON"),
        (["-p", "[]"], "a list is a patch of --type json"),
        (["-p", "{}", "--type", "json"], "a list is a patch of --type json"),
        (["--type", "json", "-p", '[{"op": "remove", "path": "/nope"}]'], "IPPool(a): operation 1: there is no /nope"),
    ],
)
def test_a_patch_that_cannot_be_is_refused(two, arguments, why):
    before = two.datastore.records_text()
    assert why in two.failed("patch", "ippool", "a", *arguments)
    assert two.datastore.records_text() == before
    assert two.failed("patch", "ippool", "z", "-p", "{}") == "resource does not exist: IPPool(z)"


def test_a_patch_is_tried_again_on_what_a_rival_has_written(two):
    def rival(verb, key):
        if verb == "update" and key == IPPoolKey("a") and not done:
            done.append(key)
            stored = two.datastore.get(key, two.clock.deadline(60))
            two.datastore.update(key, stored.record.replace(nat_outgoing=True), stored.revision, two.clock.deadline(60))

    done = []
    two.datastore.before = rival
    two.done("patch", "ippool", "a", "-p", '{"spec": {"disabled": true}}')
    assert (two.get(IPPoolKey("a")).disabled, two.get(IPPoolKey("a")).nat_outgoing) == (True, True)


def test_a_patch_of_one_version_leaves_a_later_one(two):
    def patch(revision):
        return json.dumps({"spec": {"disabled": True}, "metadata": {"resourceVersion": revision}})

    read = two.datastore.get(IPPoolKey("a"), two.clock.deadline(60)).revision
    two.done("label", "ippool", "a", "rack=later", "--overwrite")
    why = two.failed("patch", "ippool", "a", "-p", patch(read))
    assert why == f"IPPool(a) is not at resourceVersion {read}; get it again, or leave resourceVersion out"
    assert not two.get(IPPoolKey("a")).disabled
    now = two.datastore.get(IPPoolKey("a"), two.clock.deadline(60)).revision
    two.done("patch", "ippool", "a", "-p", patch(now))
    assert two.get(IPPoolKey("a")).disabled


def test_labels_are_set_changed_and_removed(two):
    """A11."""
    assert two.done("label", "node", "n1", "rack=r7", "x.io/zone=a") == "Successfully labelled Node(n1)\n"
    assert two.get(NodeKey("n1")).metadata.labels == {"rack": "r7", "x.io/zone": "a"}
    two.done("label", "node/n1", "rack=r7")
    assert two.failed("label", "node", "n1", "rack=r8") == "Node(n1): label rack is r7 already; --overwrite changes it"
    two.done("label", "node", "n1", "rack=r8", "--overwrite")
    two.done("label", "node", "n1", "x.io/zone", "--remove")
    assert two.get(NodeKey("n1")).metadata.labels == {"rack": "r8"}
    two.done("label", "node", "n1", "rack-")
    assert two.failed("label", "node", "n1", "rack-") == "Node(n1): there is no label rack to remove"


def test_an_endpoint_is_patched_in_its_namespace(two, file):
    two.done("apply", "-f", file(ENDPOINT % ("x", "c1")), "-n", "prod")
    two.done("label", "wep", "n1-cni-c1-eth0", "b=y", "-n", "prod")
    assert two.get(WorkloadEndpointKey("prod", "n1-cni-c1-eth0")).metadata.labels["b"] == "y"
