"""Everything the original was recorded to do without an API server, done again by our executables.

`ACCEPTED` is the whole list of deviations: per recording a pattern for the line that tells of it, and why.
"""

from __future__ import annotations

import re

import pytest

from integration.plugin.host import Container, Host
from integration.plugin.replay import Replay, recording
from integration.plugin.store import cluster_records, node_record

SCENARIOS = [
    *(f"etcd-add-del-{version}" for version in ("noversion", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0")),
    *("etcd-dual-stack", "etcd-v6-only", "etcd-host-local", "etcd-repeat", "etcd-k8s-policy-name"),
    *("not-ready", "connection-test"),
    *("ipam-auto-five", "ipam-borrow-strict-false", "ipam-borrow-strict-true", "ipam-exhaust", "ipam-pools"),
    *("ipam-reservation", "ipam-specific"),
]
ACCEPTED = {
    "connection-test": [
        (
            "step 1 stdout/details: .*error getting ClusterInformation: datastore .*/datastore.missing: no such file.*",
            "where the original waits for an etcd that is not there, the embedded datastore names the missing file",
        )
    ],
}


def unexpected(name: str, found: list[str]) -> list[str]:
    patterns = [pattern for pattern, _ in ACCEPTED.get(name, [])]
    return [line for line in found if not any(re.fullmatch(pattern, line) for pattern in patterns)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_records_and_kernel_are_as_recorded(bare_host: Host, name: str) -> None:
    replay = Replay(bare_host, recording(name))
    found = [line for number in range(len(replay.steps)) for line in replay.step(number)]
    assert not (lines := unexpected(name, found)), "\n".join(lines)


def test_the_two_flags_decide_as_recorded(bare_host: Host) -> None:
    """But for a JSON boolean (G25), which the original refuses."""
    replay = Replay(bare_host, recording("ipam-families"))
    booleans = [number for number, step in enumerate(replay.steps) if '"assign_ipv4": true' in step["call"]["stdin"]]
    found = [line for number in range(len(replay.steps)) if number not in booleans for line in replay.step(number)]
    assert len(booleans) == 1
    assert not found, "\n".join(found)


def test_bad_input_is_answered_as_recorded(bare_host: Host) -> None:
    """The 88 calls of errors.json; after each successful ADD the recorder released container e0 again."""
    recorded = recording("errors")
    replay = Replay(bare_host, recorded, label_addresses=True)
    clean_up = recorded["steps"][0]["call"]
    found = []
    for number, step in enumerate(replay.steps):
        found += replay.step(number)
        call = step["call"]
        if call["exit"] == 0 and call["env"]["CNI_COMMAND"] == "ADD":
            release = call | {"program": "calico", "stdin": clean_up["stdin"]}
            replay.call(release | {"env": call["env"] | {"CNI_COMMAND": "DEL", "CNI_CONTAINERID": "e0"}})
    assert not (lines := unexpected("errors", found)), "\n".join(lines)


@pytest.mark.parametrize("name", recording("ipam-node-names")["names"])
def test_a_node_claims_the_block_that_the_original_would(bare_host: Host, name: str) -> None:
    expected = recording("ipam-node-names")["names"][name]
    bare_host.store.create(cluster_records("10.20.0.0/16", "fd20::/48"))
    bare_host.store.put_all(node_record(name))
    before = set(bare_host.store.texts())
    answer = bare_host.add(
        Container("nn", "/var/run/netns/none"),
        program="calico-ipam",
        cniVersion="1.0.0",
        nodename=name,
        ipam={"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"},
    )
    assert (answer.exit, answer.stdout) == (expected["exit"], expected["stdout"])
    assert sorted(set(bare_host.store.texts()) - before) == expected["keys"]
