"""Whatever stands in a record, each command answers or names it; nothing of others is touched (K03)."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from domain.ipam.address import Cidr
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation
from domain.resource import Metadata
from domain.workload.endpoint import Profile
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from ports.datastore import AllocationConfigKey, IPAMConfigurationKey, IPReservationKey, ProfileKey
from strategies import json_values
from worlds.one_node import NODE, OneNode

IPAM = "/calico/ipam/v2/"
KINDS = ("ippools", "nodes", "wep", "profiles", "ipreservations", "clusterinformations", "ipamconfigurations")
READING = [
    ["ipam", "check"],
    ["ipam", "check", "--show-all-ips", "-o", "json"],
    ["ipam", "show", "--blocks"],
    ["ipam", "show", "--blocks", "-o", "json"],
    ["ipam", "show", "--ip", "10.244.0.129"],
    ["ipam", "show", "--node", NODE],
    ["ipam", "show", "--show-borrowed"],
    ["ipam", "show", "--show-configuration"],
    ["ipam", "gc", "--leaked"],
    *[["get", kind, "-A", "-o", form] for kind in KINDS for form in ("wide", "json", "yaml")],
]
WRITING = [
    ["ipam", "gc", "--yes", "--leaked", "--grace", "0"],
    ["ipam", "release", "--ip", "10.244.0.129", "--force"],
    ["ipam", "release", "--handle", "net1.c1", "--force"],
    ["init", "--pool", "10.99.0.0/16", "--node", NODE],
]
_NUMBERS = (2**31, 2**63 - 1, 2**63, -1, -(2**70), 10**400, 0.5, 1e308)
_TEXTS = (
    "",
    "\0",
    "\x1b[2J",
    "x" * 300,
    "::/0",
    "0.0.0.0/0",
    "10.244.0.128/26",
    "host:",
    "virtual:x",
    ":",
    "all() &&",
    "NaN",
)
_TIMES = ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
_OTHERS = ([], {}, [[]], True, None, [1, 1], ["10.0.0.0/8"], {"a": {}})
ODD = st.sampled_from([*_NUMBERS, *_TEXTS, *_TIMES, *_OTHERS])


def filled():
    node = OneNode()
    for container in ("c1", "c2"):
        node.add(container)
    node.put(IPReservationKey("r"), IPReservation(Metadata("r"), ("10.244.0.0/28",)))
    node.put(ProfileKey("p"), Profile(Metadata("p"), labels_to_apply={"a": "b"}))
    node.put(AllocationConfigKey(), AllocationConfig())
    node.put(IPAMConfigurationKey("default"), IPAMConfiguration(Metadata("default")))
    node.clock.advance(600)
    return node


WHOLE = filled().datastore.records_text()
ENDPOINT = next(key for key in WHOLE if "workloadendpoints" in key)


def run(node, arguments):
    """Exit code and outputs; what nobody foresaw is raised."""
    container = Container()
    container.datastore.override(node.datastore)
    container.clock.override(node.clock)
    container.log.override(RecordingLog())
    container.node.override(MemoryNode(NODE))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = operator.run(arguments, {"DATASTORE_TYPE": "sqlite", "COLUMNS": "120"}, container)
    return code, out.getvalue(), err.getvalue()


@st.composite
def mutated(draw):
    """A record's key, and its text with something else in the place of a member, however deep, or twice of an item."""
    key = draw(st.sampled_from(sorted(WHOLE)))
    value = json.loads(WHOLE[key])
    if draw(st.integers(0, 9)) == 0:
        return key, json.dumps(draw(json_values | ODD))
    place = value
    while True:
        step = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[step]
        if isinstance(inner, (dict, list)) and inner and draw(st.integers(0, 3)):
            place = inner
            continue
        how = draw(st.integers(0, 3))
        if how == 0:
            del place[step]
        elif how == 1 and isinstance(place, list):
            place.append(inner)
        else:
            place[step] = draw(ODD | json_values)
        return key, json.dumps(value)


def check_commands(key, text):
    node = filled()
    node.datastore.load({key: text})
    before = node.datastore.records_text()
    for arguments in READING:
        code, out, err = run(node, arguments)
        assert code in (0, 1), (arguments, err)
        assert out or err, arguments
        assert "fault of tortie" not in err
        if "json" in arguments and out:
            json.loads(out)
        assert node.datastore.records_text() == before, arguments
    with tempfile.TemporaryDirectory() as folder:
        for number, arguments in enumerate(WRITING):
            copies = ["--copies", f"{folder}/{number}"] if arguments[0] == "ipam" else []
            code, _, err = run(node, [*arguments, *copies])
            assert code in (0, 1), (arguments, err)
    after = node.datastore.records_text()
    made = {one for one in after if "/ippools/pool2" in one or "default-ipv4" in one}
    for one in {*before, *after} - made:
        assert one.startswith(IPAM) or before.get(one) == after.get(one), one


@settings(max_examples=20)
@example((ENDPOINT, WHOLE[ENDPOINT].replace('"spec":{', '"spec":{"x":{"y":[1.50,1e308]},')))
@given(mutated())
def test_whatever_stands_in_a_record_commands_answer_or_name_it(record):
    check_commands(*record)


def test_annotations_of_a_mebibyte():
    value = json.loads(WHOLE[ENDPOINT])
    value["metadata"]["annotations"] = {"a" * 2**10: "b" * 2**20, "\x1b": "\n" * 100}
    check_commands(ENDPOINT, json.dumps(value))


def test_a_name_of_another_kind():
    for key in (
        "handle/a/b",
        "assignment/ipv4/block/10.244.0.0-99",
        "assignment/ipv4/block/0.0.0.0-0",
        "host/n/ipv4",
        "x",
    ):
        check_commands(IPAM + key, "{")
    assert Cidr.parse("0.0.0.0/0").size == 2**32
