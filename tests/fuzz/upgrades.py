"""An upgrade from host-local of whatever is in the directory, for whatever the API server says about pods.

Invariant: it ends; the datastore is ready; each address that a pod has is recorded for one container or still has its
file; what is said to be left is what is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from domain.ipam.upgrade import LOCK
from domain.json_text import JsonError, parse
from domain.workload.pod import Pod
from fuzz.target import Target, attempt, octets_of, require, text_of
from worlds.one_node import NODE
from worlds.upgrading_node import UpgradingNode

_MOST = 40  # files or pods: an upgrade asks for each, and blocks are looked through by the test


def _members(given: object, name: str) -> Mapping[str, Any]:
    found = given.get(name) if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(found: object) -> tuple[str, ...]:
    return tuple([one for one in found if isinstance(one, str)]) if isinstance(found, list) else ()


def _pod(name: str, given: object) -> Pod:
    said = given if isinstance(given, dict) else {}
    annotations = {key: text for key, text in _members(said, "annotations").items() if isinstance(text, str)}
    phase = said.get("phase")
    return Pod(
        name,
        "web",
        node=NODE,
        ips=_texts(said.get("ips")),
        annotations=annotations,
        phase=phase if isinstance(phase, str) else "",
        host_network=said.get("host") is True,
    )


def _upgrade(octets: bytes) -> None:
    _, given = attempt(lambda: parse(text_of(octets)), JsonError)
    node = UpgradingNode({LOCK: ""})
    assert node.files.texts is not None
    for name, text in list(_members(given, "files").items())[:_MOST]:
        if name and "/" not in name and "\0" not in name and name != LOCK:
            node.files.texts[name] = text if isinstance(text, str) else "open f: permission denied"
            if not isinstance(text, str):
                node.files.unreadable.add(name)
    for name, said in list(_members(given, "pods").items())[:_MOST]:
        node.cluster.pods["web", name] = _pod(name, said)
    before = dict(node.files.texts)
    foreseen = node.foresee()
    outcome = node.upgrade()
    require(foreseen == outcome, "what was foreseen is not what came", given, foreseen, outcome)
    fates = [*outcome.moved, *outcome.before, *outcome.stale, *[one.name for one in outcome.left]]
    require(sorted(fates) == sorted(set(before) - {LOCK}), "not one fate for each file", given, outcome)
    require(node.is_ready() is True, "not ready", given)
    after = set(node.files.texts or ()) - {LOCK}
    require(after == {one.name for one in outcome.left}, "what is left is not there, or more is", given, outcome)
    require(node.counts_match(), "handles count something else than blocks hold", given, node.counts())
    again = node.upgrade()
    require(not (again.moved or again.before or again.stale), "there was more to do", given, again)


_IP, _SANDBOX = "10.244.0.5", "cni.projectcalico.org/containerID"
_FILES = {
    _IP: "c1\r\neth0",
    "fd00:10:244::5": "c1",
    "192.0.2.1": "c2",
    "last_reserved_ip.0": _IP,
    "x": "",
    "10.244.0.6": 1,
}
_PODS = {
    "a": {"ips": [_IP, "fd00:10:244::5"], "phase": "Running", "annotations": {_SANDBOX: "c1"}},
    "b": {"ips": ["192.0.2.1"], "phase": "Succeeded"},
    "c": {"annotations": {"cni.projectcalico.org/podIPs": "10.244.0.6/32"}, "host": False},
    "d": {"ips": [_IP], "phase": "Failed"},
}

TARGETS = (
    Target(
        "upgrade",
        _upgrade,
        octets_of(
            json.dumps({"files": {"10.244.0.6": 1}, "pods": {"a": {"ips": ["10.244.0.6"], "host": False}}}),
            json.dumps({"files": _FILES, "pods": _PODS}),
            json.dumps({"files": {_IP: "c1", "10.244.0.70": "c1"}, "pods": {"a": {"ips": [_IP, "10.244.0.70"]}}}),
            json.dumps({"files": {"10.244.0.1": "c1"}, "pods": {"a": {"ips": ["10.244.0.1"]}}}),
        ),
        form="json",
    ),
)
