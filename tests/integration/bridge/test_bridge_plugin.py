"""The installed bridge plugin as a runtime calls it: every verb and version on the real kernel."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from integration.bridge.rig import VERSIONS, Container, Rig
from patience import at_best, until

OLD = ("0.1.0", "0.2.0")
DUAL = ("192.168.0.0/24", "fd00::/64", "2001:db8::/64")


def ping(container: Container, target: str) -> None:
    container.space.run("ping", "-c", "1", "-W", "10", target)


def test_br_060_the_tutorials_manual_steps(rig: Rig) -> None:
    container = rig.container("mycontainer123")
    conf = {"isGateway": True, "ipMasq": True, "ipam": rig.ipam(routes=[{"dst": "0.0.0.0/0"}])}
    result = rig.add(container, **conf)
    assert [one["name"] for one in result["interfaces"]] == ["mycni0", "eth0mycon", "eth0"]
    assert result["ips"] == [{"interface": 2, "address": "10.244.0.2/24", "gateway": "10.244.0.1"}]
    assert result["routes"] == [{"dst": "0.0.0.0/0"}]
    assert rig.net.addresses("mycni0") == ["10.244.0.1/24"]
    assert rig.net.link("eth0mycon")["master"] == "mycni0"
    assert container.space.addresses("eth0") == ["10.244.0.2/24"]
    assert [route["dst"] for route in container.space.routes()] == ["default", "10.244.0.0/24"]
    assert "UP" in container.space.link("lo")["flags"]
    ping(container, "10.244.0.1")
    other = rig.container()
    assert rig.add(other, **conf)["ips"][0]["address"] == "10.244.0.3/24"
    ping(other, "10.244.0.2")
    assert (rig.data / "net1" / "10.244.0.2").read_bytes() == b"mycontainer123\r\neth0"
    rig.check(container, result, **conf).silent()
    container.space.ip("link", "set", "eth0", "down")
    rig.refused(rig.check(container, result, **conf), 999, "eth0")
    container.space.ip("link", "set", "eth0", "up")
    container.space.ip("route", "add", "default", "via", "10.244.0.1")
    rig.check(container, result, **conf).silent()
    rig.delete(other, **conf)
    rig.delete(container, **conf)
    rig.delete(container, **conf)
    assert rig.devices() == {"mycni0"}
    assert rig.net.addresses("mycni0") == ["10.244.0.1/24"]
    assert (rig.reservations(), rig.records(), rig.nat()) == (set(), set(), [])
    container.space.remove()
    rig.delete(container, **conf)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("subnets", [("10.1.2.0/24",), ("2001:db8:1::/64",), DUAL], ids=["v4", "v6", "three"])
def test_bt_05_add_and_del_in_every_version(rig: Rig, version: str, subnets: tuple[str, ...]) -> None:
    container = rig.container()
    conf = rig.conf(cniVersion=version, isDefaultGateway=True, ipam=rig.ipam(*subnets))
    answer = rig.call("ADD", container, conf, "bridge")
    if version in OLD and len(subnets) > 2:
        said = f"CNI version {version} does not support more than 1 address per family"
        rig.refused(answer, 999, said)
        rig.refused(rig.call("DEL", container, conf, "bridge"), 999, said)
        assert rig.devices() <= {"mycni0"}
        return
    result = answer.result()
    assert result["cniVersion"] == version
    if version in OLD:
        assert set(result) == {"cniVersion", "dns", "ip6" if ":" in subnets[0] else "ip4"}
    else:
        assert [one["name"] for one in result["interfaces"]][::2] == ["mycni0", "eth0"]
        assert [one["interface"] for one in result["ips"]] == [2] * len(subnets)
        assert [one.get("version") for one in result["ips"]] == [
            None if version[0] == "1" else "6" if ":" in subnet else "4" for subnet in subnets
        ]
        assert result["interfaces"][2]["mac"] == container.space.link("eth0")["address"]
        assert result["interfaces"][0]["mac"] == rig.net.link("mycni0")["address"]
        assert ("mtu" in result["interfaces"][0]) == (version == "1.1.0")
    for family in {6 if ":" in subnet else 4 for subnet in subnets}:
        assert [route["dst"] for route in container.space.routes(family)].count("default") == 1
    if version not in {*OLD, "0.3.0", "0.3.1"}:
        rig.call("CHECK", container, {**conf, "prevResult": result}, "bridge").silent()
    rig.call("DEL", container, conf, "bridge").silent()
    assert rig.devices() == {"mycni0"}
    assert rig.reservations() == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_bt_06_layer_2(rig: Rig, version: str) -> None:
    container = rig.container()
    conf = rig.conf(cniVersion=version, ipam=None)
    answer = rig.call("ADD", container, conf, "bridge")
    if version in OLD:
        rig.refused(answer, 999, "cannot convert: no valid IP addresses")
        assert rig.devices() == {"mycni0"}
        return
    assert "ips" not in answer.result()
    assert container.space.link("eth0")["operstate"] == "UP"
    rig.call("DEL", container, conf, "bridge").silent()
    assert rig.devices() == {"mycni0"}


def test_bt_03_bt_04_the_bridge_is_made_once(rig: Rig) -> None:
    one, other = rig.container(), rig.container()
    rig.add(one, mtu=5000)
    bridge = rig.net.link("mycni0")
    assert (bridge["linkinfo"]["info_kind"], bridge["mtu"]) == ("bridge", 5000)
    rig.add(other, mtu=1400)
    assert rig.net.link("mycni0")["ifindex"] == bridge["ifindex"]
    assert other.space.link("eth0")["mtu"] == 1400


def test_bt_15_the_bridges_mac_stays_while_ports_come_and_go(rig: Rig) -> None:
    containers = [rig.container() for _ in range(3)]
    rig.add(containers[0])
    mac = rig.net.link("mycni0")["address"]
    for container in containers[1:]:
        rig.add(container)
    for container in containers:
        rig.delete(container)
    assert rig.net.link("mycni0")["address"] == mac


def test_bt_13_another_address_on_the_bridge(rig: Rig) -> None:
    one, other, third = rig.container(), rig.container(), rig.container()
    rig.add(one)
    conf = {"ipam": rig.ipam("10.99.0.0/24")}
    said = '"mycni0" already has an IP address different from 10.99.0.1/24'
    rig.refused(rig.call("ADD", other, rig.conf(**conf)), 999, "failed to set bridge addr", said)
    assert rig.devices() == {"mycni0", one.host_name}
    rig.add(third, forceAddress=True, **conf)
    assert rig.net.addresses("mycni0") == ["10.99.0.1/24"]


def test_bt_13_ipv6_addresses_that_share_no_network_stay_side_by_side(rig: Rig) -> None:
    rig.add(rig.container(), ipam=rig.ipam("fd01::/64"))
    rig.add(rig.container(), ipam=rig.ipam("fd02::/64"))
    assert set(rig.net.addresses("mycni0")) == {"fd01::1/64", "fd02::1/64"}
    answer = rig.call("ADD", rig.container(), rig.conf(ipam=rig.ipam("fd02::/80")))
    rig.refused(answer, 999, "already has an IP address different from fd02::1/80")
    rig.add(rig.container(), ipam=rig.ipam("fd02::/80"), forceAddress=True)
    assert set(rig.net.addresses("mycni0")) == {"fd01::1/64", "fd02::1/80"}


def test_bt_14_bt_24_promiscuous_mode_hairpin_and_isolation(rig: Rig) -> None:
    one, other = rig.container(), rig.container()
    result = rig.add(one, promiscMode=True, portIsolation=True)
    assert "PROMISC" in rig.net.link("mycni0")["flags"]
    port = rig.net.link(one.host_name)["linkinfo"]["info_slave_data"]
    assert (port["isolated"], port["hairpin"]) == (True, False)
    rig.check(one, result, promiscMode=True, portIsolation=True).silent()
    rig.net.ip("link", "set", one.host_name, "type", "bridge_slave", "isolated", "off")
    rig.refused(rig.check(one, result, promiscMode=True, portIsolation=True), 999, "isolation")
    rig.refused(rig.check(one, result), 999, "Promisc Mode false")
    rig.add(other, hairpinMode=True)
    port = rig.net.link(other.host_name)["linkinfo"]["info_slave_data"]
    assert (port["isolated"], port["hairpin"]) == (False, True)


def test_bt_22_the_containers_interface_stays_down(rig: Rig) -> None:
    container = rig.container()
    rig.add(container, ipam=None, disableContainerInterface=True)
    assert "UP" not in container.space.link("eth0")["flags"]


@pytest.mark.parametrize("from_where", ["CNI_ARGS", "args", "runtimeConfig"])
def test_bt_16_the_mac_and_who_decides(rig: Rig, from_where: str) -> None:
    container = rig.container()
    wishes: dict[str, Any] = {
        "args": {"cni": {"mac": "02:00:00:00:00:02"}},
        "runtimeConfig": {"mac": "02:00:00:00:00:03"},
    }
    number = ["CNI_ARGS", "args", "runtimeConfig"].index(from_where)
    told = dict(list(wishes.items())[:number])
    answer = rig.call("ADD", container, rig.conf(**told), CNI_ARGS="IgnoreUnknown=1;MAC=02:00:00:00:00:01;X=y")
    assert answer.result()["interfaces"][2]["mac"] == f"02:00:00:00:00:0{number + 1}"
    assert container.space.link("eth0")["address"] == f"02:00:00:00:00:0{number + 1}"


@pytest.mark.parametrize("backend", ["iptables", "nftables", None])
@pytest.mark.parametrize("way", ["whole", "no netns", "netns gone", "no record"])
def test_bt_18_bt_36_masquerade_rules_come_and_go(rig: Rig, backend: str | None, way: str) -> None:
    one, other = rig.container(), rig.container()
    conf = {"ipMasq": True, "ipMasqBackend": backend, "ipam": rig.ipam("10.244.0.0/24", "fd44::/64")}
    for container in (one, other):
        rig.add(container, **conf)

    def rules() -> list[str]:
        return [*rig.nat(), *rig.nat("ip6tables"), *rig.nft()]

    assert len([rule for rule in rules() if one.identity in rule]) == (2 if backend == "nftables" else 6)
    if way == "netns gone":
        one.space.remove()
    if way == "no record":
        next(rig.state.glob(f"*/{one.identity}*")).unlink()
    environment = {} if way in {"whole", "netns gone"} else {"CNI_NETNS": None}
    rig.call("DEL", one, rig.conf(**conf), **environment).silent()
    assert not [rule for rule in rules() if one.identity in rule]
    assert [rule for rule in rules() if other.identity in rule]
    until(lambda: one.host_name not in rig.devices())  # a namespace that ends takes it away when it comes to it
    rig.delete(other, **conf)
    assert rules() == []


def test_masqueraded_traffic_leaves_with_the_hosts_address(rig: Rig) -> None:
    """From the container to a namespace that knows no way back to it."""
    container, outside = rig.container(), rig.container()
    rig.net.ip("link", "add", "up0", "type", "veth", "peer", "name", "far0", "netns", outside.space.name)
    rig.net.ip("addr", "add", "192.0.2.1/24", "dev", "up0")
    rig.net.ip("link", "set", "up0", "up")
    outside.space.ip("addr", "add", "192.0.2.2/24", "dev", "far0")
    outside.space.ip("link", "set", "far0", "up")
    rig.add(container, ipMasq=True)
    ping(container, "192.0.2.2")
    rig.delete(container, ipMasq=True)
    plain = rig.container()
    rig.add(plain)
    assert plain.space.run("ping", "-c", "1", "-W", "1", "192.0.2.2", check=False).returncode != 0


def test_bt_20_the_mac_spoof_check_holds(rig: Rig) -> None:
    one, other = rig.container(), rig.container()
    result = rig.add(one, macspoofchk=True)
    rig.add(other)
    ping(one, "10.244.0.3")
    assert len([rule for rule in rig.nft() if "macspoofchk-" in rule]) == 4
    rig.check(one, result, macspoofchk=True).silent()
    one.space.ip("link", "set", "eth0", "address", "02:00:00:00:00:99")
    assert one.space.run("ping", "-c", "1", "-W", "1", "10.244.0.3", check=False).returncode != 0
    rig.delete(one, macspoofchk=True)
    assert rig.nft() == []


def test_bt_17_bt_35_a_failed_add_leaves_nothing(rig: Rig) -> None:
    """The gateway's address is in the way, which shows only after IPAM has been asked."""
    rig.net.ip("link", "add", "mycni0", "type", "bridge")
    rig.net.ip("addr", "add", "10.9.9.9/24", "dev", "mycni0")
    container = rig.container()
    answer = rig.call("ADD", container, rig.conf(ipMasq=True, macspoofchk=True))
    rig.refused(answer, 999, "already has an IP address different")
    assert rig.devices() == {"mycni0"}
    assert (rig.reservations(), rig.records(), rig.nat(), rig.nft()) == (set(), set(), [], [])
    assert container.space.names() == {"lo"}


@pytest.mark.parametrize("ending", ["nobody listens", "killed softly"])
def test_bt_35_nor_does_one_whose_answer_nobody_gets(rig: Rig, ending: str) -> None:
    conf = rig.conf(ipMasq=True, macspoofchk=True)
    for _ in range(50):  # a signal may come too late
        container = rig.container()
        with open("/dev/full", "wb") as full:
            process = rig.start(
                "my-custom-cni",
                rig.environment("ADD", container),
                stdout=full if ending == "nobody listens" else subprocess.PIPE,
            )
        process.stdin.write(json.dumps(conf).encode())
        process.stdin.close()
        if ending == "killed softly":
            until(lambda: rig.devices() or process.poll() is not None)  # noqa: B023 - at once
            process.terminate()
            said = json.loads(process.stdout.read())
        if process.wait(60) == 1:
            break
        rig.call("DEL", container, conf).silent()
        rig.net.ip("link", "del", "mycni0")
    assert process.returncode == 1
    assert ending == "nobody listens" or said["code"] == 11
    assert rig.devices() <= {"mycni0"}
    assert (rig.reservations(), rig.records(), rig.nat(), rig.nft()) == (set(), set(), [], [])
    assert container.space.names() == {"lo"}


@pytest.mark.parametrize("transport", ["lean", "library"])
def test_on_either_netlink_transport(rig: Rig, transport: str) -> None:
    container = rig.container()
    conf = rig.conf(ipMasq=True, hairpinMode=True, portIsolation=True, ipam=rig.ipam("10.244.0.0/24", "fd44::/64"))
    result = rig.call("ADD", container, conf, TORTIE_TRANSPORT=transport).result()
    rig.call("CHECK", container, {**conf, "prevResult": result}, TORTIE_TRANSPORT=transport).silent()
    rig.call("DEL", container, conf, TORTIE_TRANSPORT=transport).silent()
    assert rig.devices() == {"mycni0"}


def test_bt_33_p06_dual_stack_works_at_once(rig: Rig) -> None:
    one, other = rig.container(), rig.container()
    conf = {"ipam": rig.ipam("10.244.0.0/24", "fd44::/64")}
    rig.add(other, **conf)
    added = iter([one, *[rig.container() for _ in range(4)]])
    at_best(2, lambda: rig.add(next(added), **conf))
    infos = one.space.show("addr", "show", "dev", "eth0")[0]["addr_info"]
    assert not [info for info in infos if info["scope"] == "global" and info.get("tentative")]
    for target in ("10.244.0.1", "10.244.0.2", "fd44::1", "fd44::2"):
        ping(one, target)


def test_p06_enabledad_is_honoured(rig: Rig) -> None:
    container = rig.container()
    rig.add(container, enabledad=True, ipam=rig.ipam("fd44::/64"))
    assert container.space.sysctl("ipv6/conf/eth0/accept_dad") == "1"
    infos = container.space.show("addr", "show", "dev", "eth0")[0]["addr_info"]
    # The kernel adds the link-local address when it notices the carrier, maybe after the call.
    assert not [info for info in infos if info["scope"] == "global" and info.get("tentative")]


def test_bt_34_long_and_occupied_names(rig: Rig) -> None:
    long = rig.container("abcdefgh", "net-with-15-byt")
    assert rig.add(long)["interfaces"][1]["name"] == "net-with-1abcde"
    first, second = rig.container("same-1"), rig.container("same-2")
    assert rig.add(first)["interfaces"][1]["name"] == "eth0same-"
    result = rig.add(second)
    assert result["interfaces"][1]["name"].startswith("veth")
    rig.check(second, result).silent()
    rig.delete(second)
    assert "eth0same-" in rig.devices()


def test_bt_38_routes_with_all_their_properties(rig: Rig) -> None:
    container = rig.container()
    routes = [
        {"dst": "10.77.0.0/16", "priority": 55, "mtu": 1300, "advmss": 1200},
        {"dst": "10.78.0.0/16", "gw": "10.244.0.9", "table": 100},
        {"dst": "10.79.0.0/16", "scope": 0},
    ]
    result = rig.add(container, cniVersion="1.1.0", ipam=rig.ipam(routes=routes))
    made = {route["dst"]: route for route in container.space.show("-4", "route", "show", "table", "all")}
    assert made["10.77.0.0/16"]["metric"] == 55
    assert made["10.77.0.0/16"]["metrics"] == [{"mtu": 1300, "advmss": 1200}]
    assert (made["10.78.0.0/16"]["gateway"], made["10.78.0.0/16"]["table"]) == ("10.244.0.9", "100")
    rig.check(container, result, cniVersion="1.1.0", ipam=rig.ipam(routes=routes)).silent()


def test_bt_39_twenty_adds_at_once(rig: Rig) -> None:
    containers = [rig.container() for _ in range(20)]
    conf = json.dumps(rig.conf(ipMasq=True)).encode()
    processes = [rig.start("my-custom-cni", rig.environment("ADD", one)) for one in containers]
    for process in processes:
        process.stdin.write(conf)
        process.stdin.close()
    answers = [json.loads(process.stdout.read()) for process in processes]
    assert [process.wait(60) for process in processes] == [0] * 20
    assert len({answer["ips"][0]["address"] for answer in answers}) == 20
    ping(containers[0], answers[19]["ips"][0]["address"].partition("/")[0])
    for container in containers:
        rig.delete(container, ipMasq=True)
    assert (rig.devices(), rig.reservations(), rig.records(), rig.nat()) == ({"mycni0"}, set(), set(), [])


BREAKS = {
    "mac": lambda rig, one: one.space.ip("link", "set", "eth0", "address", "02:00:00:00:00:99"),
    "address": lambda rig, one: one.space.ip("addr", "flush", "dev", "eth0"),
    "route": lambda rig, one: one.space.ip("route", "del", "default"),
    "port": lambda rig, one: rig.net.ip("link", "set", one.host_name, "nomaster"),
    "bridge": lambda rig, one: rig.net.ip("link", "set", "mycni0", "down"),
    "gateway": lambda rig, one: rig.net.ip("addr", "flush", "dev", "mycni0"),
    "rules": lambda rig, one: rig.net.run("iptables", "-t", "nat", "-F", "POSTROUTING"),
    "reservation": lambda rig, one: next(rig.data.glob("net1/10.*")).unlink(),
}


@pytest.mark.parametrize("what", BREAKS)
def test_bt_40_check_notices(rig: Rig, what: str) -> None:
    container = rig.container()
    result = rig.add(container, ipMasq=True)
    rig.check(container, result, ipMasq=True).silent()
    BREAKS[what](rig, container)
    rig.refused(rig.check(container, result, ipMasq=True), 999)


def test_k01_del_of_what_is_gone_or_never_was(rig: Rig) -> None:
    never = rig.container()
    plain = rig.folder / "plain"
    plain.touch()
    for path in (never.netns, "/var/run/netns/absent", str(plain), None):
        rig.call("DEL", never, rig.conf(ipMasq=True, macspoofchk=True), CNI_NETNS=path).silent()
    added = rig.container()
    rig.add(added)
    rig.call("DEL", added, rig.conf(), CNI_NETNS=str(plain)).silent()
    assert (rig.devices(), rig.reservations()) == ({"mycni0"}, set())


@pytest.mark.parametrize(
    "previous",
    [{}, None, {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "x"}]}, {"cniVersion": "0.4.0"}],
)
def test_b04_del_with_a_prev_result_of_little_use(rig: Rig, previous: object) -> None:
    container = rig.container()
    rig.add(container, ipMasq=True)
    conf = {**rig.conf(ipMasq=True), "prevResult": previous}
    rig.call("DEL", container, conf, CNI_NETNS=None).silent()
    assert (rig.devices(), rig.reservations(), rig.nat()) == ({"mycni0"}, set(), [])


# --- GC and STATUS ----------------------------------------------------------------------------------------------------


def collect(rig: Rig, *valid: Container, **members: Any):
    listed = [{"containerID": one.identity, "ifname": one.ifname} for one in valid]
    conf = {**rig.conf(cniVersion="1.1.0", **members), "cni.dev/valid-attachments": listed}
    return rig.call("GC", None, conf)


@pytest.mark.parametrize("backend", ["iptables", "nftables"])
def test_bt_30_bt_31_gc_removes_what_is_stale_and_keeps_the_rest(rig: Rig, backend: str) -> None:
    kept, stale, gone = rig.container(), rig.container(), rig.container()
    conf = {"ipMasq": True, "ipMasqBackend": backend, "macspoofchk": True}
    for container in (kept, stale, gone):
        rig.add(container, **conf)
    neighbour = rig.container()
    rig.call("ADD", neighbour, rig.conf(name="other", bridge="br2", ipam=rig.ipam("10.3.0.0/24"), **conf)).result()
    gone.space.remove()
    for _ in range(2):
        collect(rig, kept, **conf).silent()
        until(lambda: gone.host_name not in rig.devices())  # its namespace ends when the kernel comes to it
        assert rig.devices() == {"mycni0", kept.host_name, "br2", neighbour.host_name}
        rules = "\n".join([*rig.nat(), *rig.nft()])
        assert kept.identity in rules
        assert neighbour.identity in rules
        assert stale.identity not in rules
        assert gone.identity not in rules
        assert rig.reservations() == {"10.244.0.2", "10.3.0.2"}
        assert len(rig.records()) == 2


def test_gc_without_a_list_does_nothing(rig: Rig) -> None:
    container = rig.container()
    rig.add(container)
    rig.call("GC", None, rig.conf(cniVersion="1.1.0")).silent()
    assert container.host_name in rig.devices()


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_gc_and_status_are_of_version_1_1(rig: Rig, version: str) -> None:
    for verb in ("GC", "STATUS"):
        answer = rig.call(verb, None, rig.conf(cniVersion=version))
        rig.refused(answer, 1, f"config version does not allow {verb}")


def test_b01_host_local_is_tidied_up_on_request(rig: Rig) -> None:
    folder = rig.data / "net1"
    folder.mkdir(parents=True)
    for number in range(2, 252):
        (folder / f"10.244.0.{number}").write_bytes(b"dead%d\r\neth0" % number)
        os.utime(folder / f"10.244.0.{number}", (1, 1))
    (folder / "last_reserved_ip.0").write_text("10.244.0.251")
    (folder / "lock").touch()
    (folder / "10.244.0.252").write_bytes(b"young\r\neth0")
    valid = [{"containerID": f"dead{number}", "ifname": "eth0"} for number in (2, 3, 4)]
    conf = {**rig.conf(cniVersion="1.1.0", gcHostLocal=True), "cni.dev/valid-attachments": valid}
    rig.call("GC", None, conf).silent()
    assert rig.reservations() == {"10.244.0.2", "10.244.0.3", "10.244.0.4", "10.244.0.252"}
    assert {"lock", "last_reserved_ip.0"} <= {file.name for file in folder.iterdir()}
    rig.add(rig.container())


def test_gc_and_status_survive_a_delegate_that_has_neither(rig: Rig) -> None:
    """Debian's host-local refuses the verbs, and the version; its addresses are released all the same."""
    container = rig.container()
    rig.add(container)
    conf = {**rig.conf(cniVersion="1.1.0"), "cni.dev/valid-attachments": []}
    rig.call("STATUS", None, conf, CNI_PATH=rig.path).silent()
    rig.call("GC", None, conf, CNI_PATH=rig.path).silent()
    assert (rig.devices(), rig.records(), rig.reservations()) == ({"mycni0"}, set(), set())


def test_bt_32_status(rig: Rig) -> None:
    conf = rig.conf(cniVersion="1.1.0", ipMasq=True)
    rig.call("STATUS", None, conf).silent()
    assert rig.devices() == set()
    rig.net.ip("link", "add", "mycni0", "type", "veth")
    rig.refused(rig.call("STATUS", None, conf), 50, '"mycni0" already exists but is not a bridge')
    absent = {**conf, "bridge": "br7", "ipam": {"type": "absent"}}
    rig.refused(rig.call("STATUS", None, absent), 50, 'failed to find plugin "absent" in path')
    rig.call("STATUS", None, {**conf, "bridge": "br7", "ipam": {}}).silent()


# --- protocol ---------------------------------------------------------------------------------------------------------


def test_version_reads_no_configuration(rig: Rig) -> None:
    process = rig.start("my-custom-cni", {"CNI_COMMAND": "VERSION"})
    out, _ = process.communicate(b"garbage")
    assert json.loads(out) == {"cniVersion": "1.1.0", "supportedVersions": list(VERSIONS)}


@pytest.mark.parametrize(
    ("environment", "members", "code", "said"),
    [
        ({"CNI_CONTAINERID": None, "CNI_IFNAME": None}, {}, 4, "required env variables [CNI_CONTAINERID,CNI_IFNAME]"),
        ({"CNI_COMMAND": "FROB"}, {}, 4, "unknown CNI_COMMAND: FROB"),
        ({}, {"name": None}, 7, "missing network name"),
        ({}, {"name": "a b"}, 7, "invalid characters found in network name"),
        ({}, {"cniVersion": "9.9.9"}, 1, "incompatible CNI versions"),
        ({"CNI_NETNS": "/proc/self/ns/net"}, {}, 8, "plugin's netns and netns from CNI_NETNS should not be the same"),
        ({"CNI_ARGS": "MAC"}, {}, 999, 'ARGS: invalid pair "MAC"'),
        ({"CNI_ARGS": "A=b"}, {}, 999, 'ARGS: unknown args ["A=b"]'),
        ({"CNI_NETNS": "/absent"}, {}, 999, 'failed to open netns "/absent"'),
        ({}, {"ipam": {"type": "absent"}}, 999, 'failed to find plugin "absent" in path'),
        ({}, {"vlan": 5000}, 999, "invalid VLAN ID 5000 (must be between 0 and 4094)"),
    ],
)
def test_br_001_errors_and_their_codes(rig: Rig, environment, members, code, said) -> None:
    container = rig.container()
    answer = rig.call("ADD", container, rig.conf(**members), **environment)
    rig.refused(answer, code, said)
    assert rig.devices() <= {"mycni0"}
    assert "Traceback" not in answer.stdout + answer.stderr


def test_cni_debug_speaks_on_stderr_alone(rig: Rig) -> None:
    container = rig.container()
    quiet = rig.call("ADD", container)
    assert quiet.stderr == ""
    rig.call("DEL", container)
    loud = rig.call("ADD", container, CNI_DEBUG="1")
    assert container.identity in loud.stderr
    assert 'network="net1"' in loud.stderr
    json.loads(loud.stdout)


def test_bt_07_to_bt_11_vlans(rig: Rig) -> None:
    """Kernels can be built without VLAN filtering in bridges; then the refusal must say so and leave nothing."""
    container = rig.container()
    conf = {"vlan": 100, "vlanTrunk": [{"id": 101}, {"minID": 200, "maxID": 210}]}
    answer = rig.call("ADD", container, rig.conf(**conf))
    if answer.exit and "operation not supported" in answer.stdout:
        assert rig.devices() == set()
        pytest.skip("THIS KERNEL HAS NO VLAN FILTERING IN BRIDGES: VLANs were not tried on a kernel")
    result = answer.result()
    assert [one["name"] for one in result["interfaces"]][3] == "mycni0.100"
    shown = json.loads(rig.net.run("bridge", "-j", "vlan", "show", "dev", container.host_name).stdout)
    vlans = {one["vlan"] for one in shown[0]["vlans"]}
    assert 100 in vlans
    assert 1 not in vlans
    rig.check(container, result, **conf).silent()
