"""Limits on a pod's traffic (spec: cni-plugin 5.2), and the recording that has some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workload.pod import Pod
from domain.workload.pod_endpoint import pod_endpoint
from domain.workload.qos import qos_controls

GOLDEN = Path(__file__).parents[3] / "golden"
QOS = "qos.projectcalico.org/"
KUBERNETES = "kubernetes.io/ingress-bandwidth"
KINDS = ["Bandwidth", "Burst", "Peakrate", "Minburst", "PacketRate", "PacketBurst", "MaxConnections"]
KEYS = [direction + kind for kind in KINDS for direction in ("ingress", "egress")]
FOUR_GIBI = 4294967296


def controls(**limits: str) -> tuple[dict[str, object], int]:
    """What the endpoint holds, and the number of warnings."""
    text, warnings = qos_controls({QOS + key: raw for key, raw in limits.items()})
    return json.loads(text or "{}"), len(warnings)


def test_no_annotation_leaves_no_member():
    assert qos_controls({}) == ("", ())
    assert qos_controls({QOS + "ingressBandwidth": "", QOS + "dscp": ""}) == ("", ())


def test_members_are_in_the_record_s_order():
    limits = {"Bandwidth": "1M", "Burst": "2M", "Peakrate": "3M", "Minburst": "4k"}
    limits |= {"PacketRate": "5", "PacketBurst": "6", "MaxConnections": "7"}
    annotations = {f"{QOS}{key}": limits[key.removeprefix("ingress").removeprefix("egress")] for key in reversed(KEYS)}
    text, warnings = qos_controls(annotations | {QOS + "dscp": "EF"})
    assert list(json.loads(text)) == [*KEYS, "dscp"]
    assert json.loads(text)["egressMinburst"] == 4000
    assert warnings == ()


def test_defaults_come_with_what_they_refine():
    assert controls(ingressBandwidth="10M") == ({"ingressBandwidth": 10_000_000, "ingressBurst": FOUR_GIBI}, 0)
    assert controls(egressPacketRate="100") == ({"egressPacketRate": 100, "egressPacketBurst": 5}, 0)


def test_calico_s_own_bandwidth_beats_kubernetes_s():
    both = {KUBERNETES: "1M", QOS + "ingressBandwidth": "2M"}
    assert json.loads(qos_controls(both)[0])["ingressBandwidth"] == 2_000_000
    assert json.loads(qos_controls({KUBERNETES: "1M"})[0])["ingressBandwidth"] == 1_000_000
    text, warnings = qos_controls(both | {QOS + "ingressBandwidth": "fast"})
    assert json.loads(text)["ingressBandwidth"] == 1_000_000
    assert warnings == ("qos.projectcalico.org/ingressBandwidth is not followed: no Kubernetes quantity: fast",)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("Bandwidth", 1000, 10**15),
        ("Burst", 1000, 34359738360),
        ("Peakrate", 1010, 1_010_000_000_000_000),
        ("Minburst", 1000, 100_000_000),
        ("PacketRate", 1, 10_000),
        ("PacketBurst", 1, 10_000),
        ("MaxConnections", 1, 4294967295),
    ],
)
def test_limits_are_brought_within_their_bounds_with_a_warning(kind, low, high):
    others = {"ingressBandwidth": "1k", "ingressPeakrate": "1.01k", "ingressPacketRate": "1"}
    for asked, given_, warned in [(low - 1, low, 1), (low, low, 0), (high, high, 0), (high + 1, high, 1)]:
        # A bandwidth must stay below the peak.
        allowed = others | ({"ingressPeakrate": "", "ingressMinburst": ""} if kind == "Bandwidth" else {})
        found, warnings = controls(**allowed | {"ingress" + kind: str(asked)})
        assert (found["ingress" + kind], warnings) == (given_, warned)


@pytest.mark.parametrize(
    ("limits", "kept", "warnings"),
    [
        ({"egressBurst": "1M"}, {}, 1),
        ({"egressPeakrate": "1M", "egressMinburst": "1500"}, {}, 2),
        ({"egressMinburst": "1500"}, {}, 1),
        ({"egressPacketBurst": "9"}, {}, 1),
        (
            {"egressBandwidth": "1M", "egressPeakrate": "1M", "egressMinburst": "1500"},
            {"egressBandwidth": 1_000_000, "egressBurst": FOUR_GIBI},
            2,
        ),
        ({"egressMaxConnections": "x"}, {}, 1),
    ],
)
def test_a_limit_without_the_one_it_refines_is_dropped(limits, kept, warnings):
    assert controls(**limits) == (kept, warnings)


@pytest.mark.parametrize(
    ("raw", "mark"),
    [
        ("0", 0),
        ("63", 63),
        ("DF", "DF"),
        ("ef", "EF"),
        ("AF11", "AF11"),
        ("AF43", "AF43"),
        ("CS0", "CS0"),
        ("CS6", "CS6"),
    ],
)
def test_a_mark_is_a_number_or_a_standard_name(raw, mark):
    assert controls(dscp=raw) == ({"dscp": mark}, 0)


@pytest.mark.parametrize("raw", ["64", "-1", "AF10", "AF44", "AF51", "CS7", "1.5", "²", "9" * 9999])
def test_any_other_mark_is_left_out(raw):
    assert controls(dscp=raw) == ({}, 1)


@given(st.dictionaries(st.sampled_from([QOS + key for key in [*KEYS, "dscp"]] + [KUBERNETES]), st.text(max_size=6)))
def test_no_annotation_is_an_error(annotations):
    text, _ = qos_controls(annotations)
    assert text == "" or json.loads(text)


def test_a_recorded_pod_s_limits_are_on_its_endpoint():
    step = json.loads((GOLDEN / "kdd-qos.json").read_text())["steps"][0]
    annotations = step["datastore"]["pods/web-0"]["metadata"]["annotations"]
    endpoint = pod_endpoint(Pod("web-0", "gold", annotations=annotations, node="node-a"))
    assert json.loads(endpoint.qos_controls) == {
        "ingressBandwidth": 10_000_000,
        "egressBandwidth": 5_000_000,
        "ingressBurst": FOUR_GIBI,
        "egressBurst": FOUR_GIBI,
    }
