"""The installed bridge plugin with names, configurations and hosts that are out of the ordinary."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from integration.bridge.rig import Rig
from patience import until


def own(rig: Rig) -> dict[str, str]:
    """Where CNI_PATH has no host-local, the built-in one serves."""
    return {"CNI_PATH": str(rig.bin)}


def nothing_left(rig: Rig, *devices: str) -> None:
    assert rig.devices() == set(devices)
    assert (rig.reservations(), rig.records(), rig.nat(), rig.nft()) == (set(), set(), [], [])


def test_an_interface_that_is_never_ours(rig: Rig) -> None:
    container = rig.container(ifname="lo")
    for program in ("my-custom-cni", "bridge"):
        rig.call("DEL", container, program=program).silent()
    assert "lo" in container.space.names()


def test_names_that_the_kernel_would_fill_in(rig: Rig) -> None:
    container = rig.container(ifname="eth%d")
    before = rig.net.names()
    rig.refused(rig.call("ADD", container), 4, "interface name contains %")
    assert container.space.names() == {"lo"}
    rig.call("DEL", container).silent()
    other = rig.container()
    rig.refused(rig.call("ADD", other, rig.conf(bridge="br%d")), 7, 'invalid bridge name "br%d"')
    rig.call("DEL", other, rig.conf(bridge="br%d")).silent()
    assert rig.net.names() == before
    nothing_left(rig)


def test_a_container_of_any_length(rig: Rig) -> None:
    container, other = [rig.container("c" * 299 + tail) for tail in "ab"]
    conf = rig.conf(ipMasq=True, ipMasqBackend="nftables", macspoofchk=True)
    for one in (container, other):
        rig.call("ADD", one, conf, **own(rig)).result()
    container.space.remove()
    rig.call("DEL", container, conf, **own(rig)).silent()
    until(lambda: container.host_name not in rig.devices())
    assert len(rig.reservations()) == 1
    assert other.space.names() == {"lo", "eth0"}
    rig.call("DEL", other, conf, **own(rig)).silent()
    nothing_left(rig, "mycni0")


def test_a_link_local_gateway(rig: Rig) -> None:
    ipam = rig.ipam("2001:db8:1::/64")
    ipam["ranges"][0][0]["gateway"] = "fe80::1"
    conf = {"isDefaultGateway": True, "ipam": ipam}
    for _ in range(2):
        container = rig.container()
        result = rig.add(container, **conf)
        container.space.run("ping", "-c", "3", "-i", "0.3", "-W", "2", "fe80::1%eth0")
        rig.check(container, result, **conf).silent()
    assert "fe80::1/64" in rig.net.addresses("mycni0", scope="link")
    assert len(rig.net.addresses("mycni0", scope="link")) == 2
    rig.net.ip("address", "del", "fe80::1/64", "dev", "mycni0")
    rig.refused(rig.check(container, result, **conf), 999, 'gateway address fe80::1/64 is not on "mycni0"')


SPOILT: list[dict[str, Any]] = [
    {"bridge": "x" * 16},
    {"vlan": 9999, "vlanTrunk": [{"minID": 9, "maxID": 2}]},
    {"mtu": "big", "isGateway": 5, "dns": [], "ipMasq": "x"},
    {"ipam": {"type": "host-local", "routes": [{"dst": "default"}], "ranges": 7}},
    {"ipam": None},
    {"ipam": {"type": "dhcp"}},
    {"stateDir": "state"},
]


def test_a_del_minds_only_what_it_needs(rig: Rig) -> None:
    """Each is called twice, but for an IPAM plugin that is not there: the first DEL knows better from its record."""
    container, plain = rig.container(), rig.conf(ipMasq=True)
    for spoilt in SPOILT:
        rig.call("ADD", container, plain, **own(rig)).result()
        answer = rig.call("DEL", container, {**plain, **spoilt}, CNI_ARGS="nonsense", **own(rig))
        answer.silent()
        assert "warning" in answer.stderr.lower(), spoilt
        assert (rig.devices(), rig.reservations()) == ({"mycni0"}, set()), spoilt
        if spoilt != {"ipam": {"type": "dhcp"}}:
            rig.call("DEL", container, {**plain, **spoilt}, **own(rig)).silent()
        if "stateDir" in spoilt:  # nobody says where the record is
            rig.call("DEL", container, plain, **own(rig)).silent()
        nothing_left(rig, "mycni0")


def test_an_add_is_refused_with_key_and_value(rig: Rig) -> None:
    container = rig.container()
    routes = [{"dst": "default"}], [{"dst": "0.0.0.0/0", "scope": 300}]
    for conf, code, parts in (
        (rig.conf(mtu=67), 7, ["invalid mtu 67 (must be between 68 and 65535"]),
        (rig.conf(ipam=rig.ipam(routes=routes[0])), 999, ["invalid CIDR address: default", "ipam.routes.dst"]),
        (rig.conf(ipam=rig.ipam(routes=routes[1])), 999, ["scope 300 is not between 0 and 255"]),
    ):
        answer = rig.call("ADD", container, conf, **own(rig))
        rig.refused(answer, code, *parts)
        assert "panic" not in answer.stderr.lower()
        assert (container.space.names(), rig.reservations(), rig.records()) == ({"lo"}, set(), set())
        rig.call("DEL", container, conf, **own(rig)).silent()


def test_a_lock_that_can_be_none(rig: Rig) -> None:
    """A DEL says what to do, and does its work once that is done."""
    container = rig.container()
    rig.call("ADD", container, **own(rig)).result()
    lock = rig.data / "net1" / "lock"
    lock.unlink()
    lock.symlink_to("absent")
    rig.refused(rig.call("DEL", container, **own(rig)), 11, "is a symbolic link to nothing: remove it")
    assert not (lock.parent / "absent").exists()
    lock.unlink()
    rig.call("DEL", container, **own(rig)).silent()
    nothing_left(rig, "mycni0")


def test_the_manual_steps_say_where_they_miss_the_plugin(rig: Rig) -> None:
    script = Path(__file__).resolve().parents[3] / "docs" / "bridge-by-hand.sh"
    done = subprocess.run(["sh", script, rig.folder / "absent"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"no my-custom-cni in {rig.folder}/absent; say where it is installed" in done.stderr


def test_the_record_is_for_the_plugin_alone(rig: Rig) -> None:
    container = rig.container()
    rig.call("ADD", container, rig.conf(ipam={**rig.ipam(), "extra": "x"}), **own(rig)).result()
    (record,) = rig.state.glob("*/*")
    assert record.stat().st_mode & 0o777 == 0o600
    assert json.loads(json.loads(record.read_text())["ipamSection"])["extra"] == "x"
