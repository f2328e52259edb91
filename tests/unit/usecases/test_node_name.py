"""Under which name a machine is known (spec: cni-plugin 2.4; G4; recordings `errors` 30 and 74)."""

from __future__ import annotations

import pytest

from adapters.memory.node import MemoryNode
from domain.cni.errors import CniError
from domain.cni.netconf import NetConf
from usecases.calls.this_node import node_name, require_nodename_file

FILE = "/var/lib/calico/nodename"
ALL = {"nodename": "explicit", "hostname": "deprecated"}


@pytest.mark.parametrize(
    ("netconf", "files", "host", "name"),
    [
        pytest.param(NetConf(**ALL), {FILE: "filed"}, "Host", "explicit", id="nodename first"),
        pytest.param(NetConf(hostname="deprecated"), {FILE: "filed"}, "Host", "filed", id="then the file"),
        pytest.param(NetConf(hostname="deprecated"), {}, "Host", "deprecated", id="then hostname"),
        pytest.param(NetConf(hostname="deprecated"), {FILE: " \n"}, "Host", "deprecated", id="a blank file is none"),
        pytest.param(NetConf(), {}, " Host.Example \n", "host.example", id="then the system's, lower-cased"),
        pytest.param(NetConf(), {}, "", "", id="none at all"),
        pytest.param(NetConf(), {FILE: "Node-A\n"}, "", "Node-A", id="G4: the file's white space goes, its case stays"),
        pytest.param(NetConf(nodename_file="/n"), {"/n": "other", FILE: "filed"}, "", "other", id="a file of its own"),
    ],
)
def test_the_first_name_found_counts(netconf, files, host, name):
    assert node_name(netconf, MemoryNode(host, files)) == name


def test_a_file_that_cannot_be_read_counts_as_absent():
    node = MemoryNode("host")
    node.broken.add(FILE)
    assert node_name(NetConf(), node) == "host"


@pytest.mark.parametrize(
    ("netconf", "path", "advice"),
    [
        pytest.param(NetConf(), FILE, '"nodename_file_optional" to true', id="default file"),
        pytest.param(
            NetConf(nodename="node-a", nodename_file="/no/such/file"),
            "/no/such/file",
            'leave "nodename_file" out',
            id="recording 30",
        ),
    ],
)
def test_a_missing_mandatory_file_is_an_error(netconf, path, advice):
    with pytest.raises(CniError) as caught:
        require_nodename_file(netconf, MemoryNode("host"))
    hint = "check that the calico/node container is running and has mounted /var/lib/calico/"
    assert caught.value.code == 999
    assert caught.value.message == f"stat {path}: no such file or directory: {hint}"
    assert advice in caught.value.details


@pytest.mark.parametrize(
    ("netconf", "files"),
    [
        pytest.param(NetConf(), {FILE: ""}, id="it exists"),
        pytest.param(NetConf(nodename_file_optional=True), {}, id="it is optional"),
        pytest.param(NetConf(nodename="node-a"), {}, id="G4: nodename makes it superfluous"),
    ],
)
def test_otherwise_the_file_is_not_missed(netconf, files):
    require_nodename_file(netconf, MemoryNode("host", files))
