"""Side by side with the CNI project's own `bridge`: the same input, the same result, kernel state and rules.

Debian's packages are the reference, or the folder in TORTIE_REFERENCE_CNI, as with a newer release. What that one
does not know yet is not compared. Differences on purpose are in docs/differences.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from integration.bridge.rig import REFERENCE, Container, Rig, state_of

PLUGINS = Path(os.environ.get("TORTIE_REFERENCE_CNI", REFERENCE))
OURS = "bridge"
GATEWAY = {"isGateway": True}
DEFAULT = {"isDefaultGateway": True}


def knows_1_1() -> bool:
    if not (PLUGINS / "bridge").exists():
        pytest.fail(f"{PLUGINS} has no bridge plugin to compare with: install containernetworking-plugins")
    environment = {"CNI_COMMAND": "VERSION"}
    told = subprocess.run([PLUGINS / "bridge"], env=environment, input=b"{}", capture_output=True, check=True)
    return "1.1.0" in json.loads(told.stdout)["supportedVersions"]


@pytest.fixture
def hosts(bridge_binaries: Path, tmp_path: Path) -> Iterator[tuple[Rig, Rig]]:
    """Two alike: for ours and for the reference."""
    with ExitStack() as undo:
        rigs = []
        for name in ("ours", "reference"):
            (tmp_path / name).mkdir()
            rig = Rig(bridge_binaries, tmp_path / name, undo)
            rig.path = str(PLUGINS)
            rigs.append(rig)
        yield rigs[0], rigs[1]


def both(hosts: tuple[Rig, Rig], verb: str, containers: tuple[Container, Container], **members: Any):
    programs = (OURS, PLUGINS / "bridge")
    return [
        rig.call(verb, container, rig.conf(**{"type": "bridge", **members}), program)
        for rig, container, program in zip(hosts, containers, programs, strict=True)
    ]


def without_chance(result: dict[str, Any]) -> dict[str, Any]:
    """A result without MACs and names at random."""
    interfaces = [
        {key: value for key, value in one.items() if key not in {"mac", "mtu"}} for one in result.get("interfaces", ())
    ]
    for number, one in enumerate(interfaces):
        if number == 1:
            assert one.pop("name").startswith("veth")
        if "sandbox" in one:
            one["sandbox"] = "a namespace"
    whole = {**result, "interfaces": interfaces}
    if whole.get("dns") == {}:  # which releases say it and which leave it out
        del whole["dns"]
    return whole


def pair(hosts: tuple[Rig, Rig]) -> tuple[Container, Container]:
    return hosts[0].container("same"), hosts[1].container("same")


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "layer 2": {"ipam": None},
    "plain": {},
    "gateway": GATEWAY,
    "default gateway": DEFAULT,
    "dual stack": {**DEFAULT, "subnets": ("10.244.0.0/24", "fd44::/64")},
    "three ranges": {**DEFAULT, "subnets": ("192.168.0.0/24", "fd00::/64", "2001:db8::/64")},
    "hairpin": {**GATEWAY, "hairpinMode": True},
    "promiscuous": {**GATEWAY, "promiscMode": True},
    "mtu": {**GATEWAY, "mtu": 1400},
    "dns": {**GATEWAY, "dns": {"nameservers": ["192.0.2.53"], "search": ["a.example"]}},
    "routes": {**GATEWAY, "routes": [{"dst": "10.77.0.0/16"}, {"dst": "10.78.0.0/16", "gw": "10.244.0.9"}]},
    "default route of ipam": {**GATEWAY, "routes": [{"dst": "0.0.0.0/0"}]},
    "mac": {**GATEWAY, "runtimeConfig": {"mac": "02:00:00:00:00:07"}},
}


@pytest.mark.parametrize("version", ["0.2.0", "1.0.0"])
@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_the_same_input_gives_the_same_result_and_kernel_state(hosts: tuple[Rig, Rig], what: str, version: str) -> None:
    members = {"cniVersion": version, **CONFIGURATIONS[what]}
    subnets, routes = members.pop("subnets", ()), members.pop("routes", None)
    containers = pair(hosts)
    answers = []
    for number, rig in enumerate(hosts):
        ipam = rig.ipam(*subnets, **({"routes": routes} if routes else {}))
        conf = rig.conf(**{"type": "bridge", "ipam": ipam, **members})
        program = PLUGINS / "bridge" if number else OURS
        answers.append(rig.call("ADD", containers[number], conf, program))
    ours, reference = answers
    assert ours.exit == reference.exit, answers
    if reference.exit:
        ours_told, told = json.loads(ours.stdout), json.loads(reference.stdout)
        assert (ours_told["code"], ours_told["msg"]) == (told["code"], told["msg"])
        return
    assert without_chance(ours.result()) == without_chance(reference.result())
    states = [state_of(rig, container) for rig, container in zip(hosts, containers, strict=True)]
    if not knows_1_1():  # older releases look for duplicate addresses in their own way
        for state in states:
            del state["settings"], state["host settings"], state["inside"]["txqlen"]
            if what == "three ranges":
                del state["routes"]  # and give every IPv6 range a default route
    assert states[0] == states[1]


REFUSED: dict[str, dict[str, Any]] = {
    "ipam is not there": {"ipam": {"type": "absent"}},
    "wrong type": {"mtu": "big"},
    "bad mac": {"runtimeConfig": {"mac": "x"}},
    "no name": {"name": None},
    "bad name": {"name": "a b"},
    "hairpin and promiscuous": {"hairpinMode": True, "promiscMode": True},
    "bad vlan": {"vlan": 5000},
    "bad version": {"cniVersion": "9.9.9"},
    "no ranges": {"ipam": {"type": "host-local"}},
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_same_refusals(hosts: tuple[Rig, Rig], what: str) -> None:
    answers = both(hosts, "ADD", pair(hosts), **REFUSED[what])
    ours, reference = [json.loads(answer.stdout) for answer in answers]
    assert ours["code"] == reference["code"]
    if what not in {"bad mac", "wrong type", "bad vlan"} or knows_1_1():
        assert ours["msg"] == reference["msg"].rstrip(".")


@pytest.mark.parametrize("backend", ["iptables", "nftables"])
def test_bt_18_the_same_masquerade_rules(hosts: tuple[Rig, Rig], backend: str) -> None:
    members: dict[str, Any] = {"ipMasq": True}
    if knows_1_1():
        members["ipMasqBackend"] = backend
    elif backend == "nftables":
        pytest.skip("THE REFERENCE IS TOO OLD FOR NFTABLES: set TORTIE_REFERENCE_CNI to a newer release")
    containers = pair(hosts)
    for answer in both(hosts, "ADD", containers, **members):
        answer.result()
    rules = [[*rig.nat(), *rig.nft()] for rig in hosts]
    assert rules[0] == rules[1] != []
    for answer in both(hosts, "DEL", containers, **members):
        answer.silent()
    assert [[*rig.nat(), *rig.nft()] for rig in hosts] == [[], []]


def test_bt_20_the_same_mac_spoof_rules(hosts: tuple[Rig, Rig]) -> None:
    if not knows_1_1():
        pytest.skip("THE REFERENCE MAY WANT ANOTHER NFT: set TORTIE_REFERENCE_CNI to a newer release")
    containers = pair(hosts)
    mac = {"runtimeConfig": {"mac": "02:00:00:00:00:07"}}
    answers = both(hosts, "ADD", containers, macspoofchk=True, **mac)
    names = [answer.result()["interfaces"][1]["name"] for answer in answers]
    rules = [[rule.replace(name, "veth") for rule in rig.nft()] for rig, name in zip(hosts, names, strict=True)]
    assert rules[0] == rules[1]
    assert len(rules[0]) == 4


@pytest.mark.parametrize("first", ["ours", "reference"])
@pytest.mark.parametrize("masquerade", [True, False])
def test_what_one_adds_the_other_deletes(hosts: tuple[Rig, Rig], first: str, masquerade: bool) -> None:
    rig = hosts[0]
    programs: list[str | Path] = [OURS, PLUGINS / "bridge"]
    if first == "reference":
        programs.reverse()
    container = rig.container()
    conf = rig.conf(type="bridge", ipMasq=masquerade, **DEFAULT)
    result = rig.call("ADD", container, conf, programs[0]).result()
    rig.call("CHECK", container, {**conf, "prevResult": result}, programs[1]).silent()
    rig.call("DEL", container, conf, programs[1]).silent()
    assert rig.devices() == {"mycni0"}
    assert (rig.reservations(), rig.nat()) == (set(), [])


def test_the_built_in_host_local_and_the_real_one_share_a_directory(hosts: tuple[Rig, Rig]) -> None:
    """In turns, on one range: nobody gets what the other has given out, and each releases what the other reserved."""
    rig = hosts[0]
    containers = [rig.container() for _ in range(6)]
    paths = [str(PLUGINS), str(rig.bin)]
    given = [
        rig.call("ADD", container, rig.conf(), CNI_PATH=paths[number % 2]).result()["ips"][0]["address"]
        for number, container in enumerate(containers)
    ]
    assert given == [f"10.244.0.{number}/24" for number in range(2, 8)]
    for number, container in enumerate(containers):
        result = {"cniVersion": "1.0.0"}
        rig.call("CHECK", container, {**rig.conf(ipam=rig.ipam()), "prevResult": result}, CNI_PATH=paths[number % 2])
        rig.call("DEL", container, rig.conf(), CNI_PATH=paths[(number + 1) % 2]).silent()
    assert rig.reservations() == set()


@pytest.mark.parametrize(
    "ipam",
    [
        {"subnet": "10.0.0.0/31"},
        {"subnet": "10.1.2.3/24"},
        {"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"},
        {"ranges": [[{"subnet": "10.0.0.0/16"}], [{"subnet": "10.0.2.0/24"}]]},
        {"ranges": [[]]},
        {"ranges": []},
        {"subnet": "10.0.0.0/30", "rangeStart": "10.0.0.1", "rangeEnd": "10.0.0.1"},
    ],
)
def test_the_built_in_host_local_refuses_in_the_same_words(hosts: tuple[Rig, Rig], ipam: dict[str, Any]) -> None:
    answers = []
    for rig, path in zip(hosts, (str(hosts[0].bin), str(PLUGINS)), strict=True):
        conf = rig.conf(ipam={"type": "host-local", "dataDir": str(rig.data), **ipam})
        answers.append(rig.call("ADD", rig.container(), conf, CNI_PATH=path))
    ours, real = [json.loads(answer.stdout) for answer in answers]
    assert (ours["code"], ours["msg"]) == (real["code"], real["msg"])


def test_br_050_chained_with_portmap_and_tuning(hosts: tuple[Rig, Rig]) -> None:
    """As a runtime runs a list: each plugin gets the result before it, and DEL goes backwards."""
    rig = hosts[0]
    container = rig.container()
    ports = {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}
    chain: list[tuple[str | Path, dict[str, Any]]] = [
        ("my-custom-cni", {}),
        (PLUGINS / "portmap", {"type": "portmap", "runtimeConfig": ports}),
        (PLUGINS / "tuning", {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.log_martians": "1"}}),
    ]
    result: dict[str, Any] | None = None
    for program, members in chain:
        conf = rig.conf(**members)
        result = rig.call("ADD", container, {**conf, **({"prevResult": result} if result else {})}, program).result()
    assert result is not None
    assert [one["name"] for one in result["interfaces"]] == ["mycni0", container.host_name, "eth0"]
    assert container.space.sysctl("ipv4/conf/eth0/log_martians") == "1"
    assert any("dport" in rule and "8080" in rule for rule in rig.nat())
    for program, members in chain if knows_1_1() else chain[::2]:  # older ones look for IPv6 rules that they never made
        rig.call("CHECK", container, {**rig.conf(**members), "prevResult": result}, program).silent()
    for program, members in reversed(chain):
        rig.call("DEL", container, {**rig.conf(**members), "prevResult": result}, program).silent()
    assert (rig.devices(), rig.reservations()) == ({"mycni0"}, set())
