"""What others have written into the datastore never gets at the operator's terminal, nor forges a row of a table."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import sys

import pytest
import yaml

from adapters.memory.node import MemoryNode
from domain.cluster import ClusterInformation
from domain.ipam.address import Cidr
from domain.ipam.block import CONFIRMED, HOST, Affinity, Attribute, Handle, Owner, new_block
from domain.ipam.pools import IPReservation, Pool
from domain.resource import Metadata
from domain.workload.endpoint import Profile, WorkloadEndpoint
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from ports.datastore import (
    AffinityKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPPoolKey,
    IPReservationKey,
    ProfileKey,
    WorkloadEndpointKey,
)
from worlds.one_node import NODE, OneNode

EVIL = "\x1b[2J\a\r\x9b31m\u202e\u2028\u200f\x00\nPROBLEM forged (1): run `rm -rf x`"
BLOCK = Cidr.parse("10.66.0.0/30")
KINDS = ["ippools", "nodes", "wep", "profiles", "ipreservations", "clusterinformations", "ipamconfigurations"]
COMMANDS = [
    *[["get", kind, "-A", *wide] for kind in KINDS for wide in ([], ["-o", "wide"])],
    *[["ipam", "show", *more] for more in ([], ["--blocks"], ["--ip", "10.66.0.1"], ["--show-borrowed"])],
    ["ipam", "show", "--node", EVIL.replace("\0", "")],
    ["ipam", "show", "--show-configuration"],
    ["ipam", "check"],
    ["ipam", "check", "--show-all-ips"],
    ["ipam", "gc", "--leaked"],
    ["ipam", "gc", "--leaked", "--yes", "--grace", "0"],
    ["ipam", "release", "--ip", "10.66.0.1", "--handle", EVIL],
    ["ipam", "release", "--handle", EVIL, "--force"],
    ["ipam", "release", "--ip", EVIL],
    ["get", "node", "\x1b[2J"],
    ["get", "\x1b[2J"],
    ["apply", "-f", "\x1b[2J"],
    ["init", "--pool", "10.66.0.0/24", "--node", NODE],
    ["init", "--pool", EVIL, "--node", NODE],
]


@pytest.fixture
def world(capsys, tmp_path, monkeypatch):
    """Every kind of record, with such a text wherever a text may stand."""
    monkeypatch.chdir(tmp_path)
    node = OneNode()
    name = Metadata(EVIL, "default", labels={EVIL: EVIL}, annotations={EVIL: EVIL})
    attribute = Attribute(EVIL, {"node": EVIL, "pod": EVIL, "namespace": EVIL, EVIL: EVIL, "timestamp": EVIL})
    block = new_block(BLOCK, Owner(HOST, EVIL), None, 1).take((1, 2), attribute)
    endpoint = WorkloadEndpoint(
        name,
        node=EVIL,
        pod=EVIL,
        workload=EVIL,
        interface_name=EVIL,
        profiles=(EVIL,),
        ip_networks=(Cidr.parse("10.66.0.1/32"),),
    )
    for key, record in (
        (BlockKey(BLOCK), block),
        (AffinityKey(Owner(HOST, "a\x1b"), BLOCK), Affinity(CONFIRMED)),
        (HandleKey("h\x1b\n"), Handle({BLOCK: 3})),
        (IPPoolKey("p"), Pool(Metadata("p"), "10.66.0.0/24", node_selector=EVIL)),
        (IPReservationKey("r"), IPReservation(Metadata("r"), (EVIL,))),
        (ProfileKey("x"), Profile(Metadata("x"), labels_to_apply={EVIL: EVIL})),
        (
            ClusterInformationKey("default"),
            ClusterInformation(Metadata("default"), cluster_guid=EVIL, datastore_ready=True),
        ),
        (WorkloadEndpointKey("default", "e"), endpoint.replace(metadata=name.replace(name="e"))),
    ):
        node.put(key, record)
    node.datastore.load(
        {
            "/calico/ipam/v2/handle/bad\x1b\n": "{",
            "/calico/resources/v3/projectcalico.org/nodes/n": '{"metadata":{"name":"\\u001b\\n"}}',
        }
    )

    def run(*arguments, **environment):
        container = Container()
        container.datastore.override(node.datastore)
        container.clock.override(node.clock)
        container.log.override(node.log)
        container.node.override(MemoryNode(NODE))
        code = operator.run(arguments, {"DATASTORE_TYPE": "sqlite", **environment}, container)
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:40]
)
def test_text_for_people_has_nothing_that_is_not_printable(world, arguments):
    _, out, err = world(*arguments)
    for line in itertools.chain(out.split("\n"), err.split("\n")):
        assert line.isprintable(), ascii(line)
        assert not line.startswith("PROBLEM forged")
    assert out or err


@pytest.mark.parametrize("kind", KINDS)
def test_tables_have_a_row_a_record(world, kind):
    _, out, _ = world("get", kind, "-A")
    _, listed, _ = world("get", kind, "-A", "-o", "json")
    assert out.count("\n") == 1 + len(json.loads(listed)["items"])


def test_data_stays_data(world):
    """What programs read is escaped by its own format, and comes out as it was written."""
    _, as_json, _ = world("get", "profiles", "-o", "json")
    _, as_yaml, _ = world("get", "profiles", "-o", "yaml")
    assert json.loads(as_json) == yaml.safe_load(as_yaml)
    (evil,) = [item for item in json.loads(as_json)["items"] if item["metadata"]["name"] == "x"]
    assert evil["spec"]["labelsToApply"] == {EVIL: EVIL}


def test_colours_are_ours_alone(world):
    _, out, _ = world("ipam", "show", "--blocks", TERM="xterm")
    assert not re.search(r"\x1b\[2J", out)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["apply", "-f", "/dev/zero"], "Error: /dev/zero: larger than 16 MiB\n"),
        (["apply", "-f", "-"], "Error: standard input: larger than 16 MiB\n"),
        (["get", "nodes", "--config", "/dev/zero"], "Error: /dev/zero: larger than 16 MiB\n"),
        (["ipam", "gc", "--from-report", "/dev/zero"], "Error: /dev/zero: larger than 64 MiB\n"),
        (["ipam", "release", "--from-report", "/dev/zero"], "Error: /dev/zero: larger than 64 MiB\n"),
        (["apply", "--config", "/", "-f", "-"], "Error: /: Is a directory\n"),
    ],
)
def test_a_file_that_never_ends_is_read_so_far_and_no_further(world, monkeypatch, arguments, why):
    with open("/dev/zero", encoding="utf-8") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        assert world(*arguments) == (1, "", why)


def test_a_pipe_is_a_file_like_any_other(world):
    """`tortie apply -f <(…)`."""
    reading, writing = os.pipe()
    os.write(writing, b"{apiVersion: projectcalico.org/v3, kind: Node, metadata: {name: piped}}")
    os.close(writing)
    try:
        assert world("apply", "-f", f"/dev/fd/{reading}")[0] == 0
    finally:
        os.close(reading)


def test_a_locale_without_the_character_is_no_crash(world, monkeypatch):
    octets = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(octets, encoding="ascii"))
    world("get", "profiles", "-o", "json")
    assert "\u202e" in octets.getvalue().decode()


def test_nobody_hears_the_error(world, monkeypatch):
    class Deaf(io.StringIO):
        def write(self, _text):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Deaf())
    assert world("get", "node", "absent")[0] == 1
    sys.stderr.close()
