"""What the kernel looks like after a container was connected, beside the recordings of the original."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from contracts.dataplane import HOST, V4, V6
from domain.ipam.address import Cidr
from patience import at_best
from ports.errors import Refused
from worlds.linux_world import TRANSPORTS, LinuxWorld

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
LINK_FIELDS = ("flags", "mtu", "qdisc", "operstate", "inet6_addr_gen_mode", "num_tx_queues", "num_rx_queues", "txqlen")
ADDRESS_FIELDS = ("family", "local", "prefixlen", "scope", "broadcast", "nodad")
ROUTE_FIELDS = ("type", "dst", "gateway", "protocol", "scope", "metric")


@pytest.fixture(params=TRANSPORTS)
def world(tmp_path, request):
    with LinuxWorld(tmp_path, request.param) as world:
        yield world


def _link(links, name):
    (link,) = [link for link in links if link["ifname"] == name]
    return {field: link.get(field) for field in LINK_FIELDS} | {"kind": link["linkinfo"]["info_kind"]}


def _addresses(links, name):
    (link,) = [link for link in links if link["ifname"] == name]
    return [
        tuple([entry.get(field) for field in ADDRESS_FIELDS]) for entry in link["addr_info"] if entry["scope"] != "link"
    ]


def _routes(routes):
    return [tuple([route.get(field) for field in ROUTE_FIELDS]) for route in routes]


def _settings(world, netns, name, recorded):
    return {path: world.setting(netns, path.replace("calic0ffee01234", name)) for path in recorded}


def _tentative(world, netns):
    """Global IPv6 addresses of eth0 that still wait for duplicate address detection; there must be one at all."""
    listed = world.show(netns, "-6", "addr", "show", "dev", "eth0", "scope", "global")
    entries = [entry for link in listed for entry in link.get("addr_info", []) if entry]
    assert entries
    return [entry for entry in entries if entry.get("tentative")]


@pytest.mark.parametrize(
    ("recording", "addresses", "more"),
    [
        ("etcd-add-del-1.0.0", ["10.20.0.128/26"], {}),
        ("etcd-dual-stack", ["10.20.0.128/26", "fd20::ae80/122"], {"mtu": 1430, "num_queues": 2}),
        ("etcd-v6-only", ["fd20::ae80/122"], {"allow_ip_forwarding": True}),
    ],
)
def test_the_kernel_looks_as_after_the_original(world, recording, addresses, more):
    """CNI-004 CNI-005 CNI-006 CNI-007 D03 G12"""
    steps = json.loads((GOLDEN / f"{recording}.json").read_text())["steps"]
    kernel = next(step["kernel"] for step in steps if step["call"]["env"].get("CNI_COMMAND") == "ADD")
    host_before, pod_before = kernel["host"]["calic0ffee01234"], kernel["pod"]
    netns, name = world.make_namespace(), world.new_name()
    world.inside(netns, "ip", "link", "set", "lo", "up")
    world.connect(world.attachment(netns, name, *map(Cidr.parse, addresses), **more))

    host_links, pod_links = world.show(HOST, "link", "show", "dev", name), world.show(netns, "link")
    assert _link(host_links, name) == _link(host_before["link"], "calic0ffee01234")
    assert _link(pod_links, "eth0") == _link(pod_before["link"], "eth0")
    assert host_links[0]["address"] == "ee:ee:ee:ee:ee:ee"
    assert _addresses(world.show(netns, "addr"), "eth0") == _addresses(pod_before["addr"], "eth0")
    for family, key in (("-4", "route4"), ("-6", "route6")):
        assert _routes(world.show(HOST, family, "route", "show", "dev", name)) == _routes(host_before[key])
        assert _routes(world.show(netns, family, "route", "show")) == _routes(pod_before[key])
    inherited = ["rp_filter"] + ([] if any("." in address for address in addresses) else ["forwarding"])
    assert _settings(world, HOST, name, host_before["sysctl"]) == host_before["sysctl"] | {
        f"ipv4/conf/calic0ffee01234/{setting}": world.setting(HOST, f"ipv4/conf/default/{setting}")
        for setting in inherited  # what nobody sets is as this machine has it
    }
    assert _settings(world, netns, name, pod_before["sysctl"]) == pod_before["sysctl"]


def test_the_host_end_is_born_with_its_mac(world):
    """D02: nothing that watches for new links ever sees another one."""
    netns, name = world.make_namespace(), world.new_name()
    monitor = subprocess.Popen(["ip", "-o", "monitor", "link"], stdout=subprocess.PIPE, text=True)
    try:
        marker = world.new_name()
        while not world.see(HOST, marker).link:
            world.make_link(HOST, marker)
        for line in monitor.stdout:  # the monitor is listening once it reports the marker
            if f" {marker}:" in line:
                break
        world.connect(world.attachment(netns, name))
        world.ip(HOST, "link", "delete", marker)
        seen = []
        for line in monitor.stdout:
            if f" {name}@" in line:
                seen.append(line)
            if "Deleted" in line and marker in line:
                break
    finally:
        monitor.terminate()
        monitor.wait()
        monitor.stdout.close()
    assert seen
    assert all("link/ether ee:ee:ee:ee:ee:ee" in line for line in seen)


def test_the_first_ping_is_answered(world):
    """D03"""
    netns, name, bridge = world.make_namespace(), world.new_name(), world.new_name()
    world.make_link(HOST, bridge)
    world.ip(HOST, "addr", "add", "10.231.9.1/32", "dev", bridge)
    world.ip(HOST, "addr", "add", "fd2e:9::1/128", "dev", bridge, "nodad")
    world.connect(world.attachment(netns, name, V4, V6))
    for address in ("10.231.9.1", "fd2e:9::1"):
        world.inside(netns, "ping", "-c1", "-W10", address)


def test_two_containers_reach_each_other(world):
    """D03"""
    one, other = world.make_namespace(), world.make_namespace()
    world.connect(world.attachment(one, world.new_name(), V4))
    world.connect(world.attachment(other, world.new_name(), Cidr.parse("10.231.7.10/26")))
    world.inside(one, "ping", "-c1", "-W10", "10.231.7.10")


def test_an_ipv6_address_can_be_used_at_once(world):
    """D04"""
    netns = ""

    def connect():
        nonlocal netns
        if netns:
            world.dataplane.disconnect(netns, "eth0", world.soon())
        netns = world.make_namespace()
        for scope in ("all", "default", "lo"):
            world.inside(netns, "sh", "-c", f"echo 1 > /proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        world.connect(world.attachment(netns, world.new_name(), V4, V6))

    at_best(2, connect)
    assert _tentative(world, netns) == []
    for scope in ("all", "default", "lo", "eth0"):
        assert world.setting(netns, f"ipv6/conf/{scope}/disable_ipv6") == "0"


CONNECT_ONCE = textwrap.dedent(
    """
    import json, sys
    from pathlib import Path
    from worlds.linux_world import TRANSPORTS, LinuxWorld
    from domain.ipam.address import Cidr
    netns, name, *addresses = sys.argv[1:]
    world = LinuxWorld(Path("."))
    world.connect(world.attachment(netns, name, *map(Cidr.parse, addresses)))
    print(json.dumps(world.log.shown("warning")))
    """
)


def _connect_elsewhere(prefix, netns, name, *addresses):
    """In a process of its own, behind a command such as `ip netns exec`: the warnings it logged."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    line = [*prefix, sys.executable, "-W", "error", "-c", CONNECT_ONCE, netns, name, *addresses]
    done = subprocess.run(line, check=False, capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_kernel_without_ipv6_does_for_an_ipv4_container(world, tmp_path):
    """D04"""
    netns, name = world.make_namespace(), world.new_name()
    hide = f'mount --make-rprivate / && mount --bind {tmp_path} /proc/sys/net/ipv6 && exec "$@"'
    warnings = _connect_elsewhere(["unshare", "--mount", "sh", "-c", hide, "sh"], netns, name, str(V4))
    assert len(warnings) == 1
    assert warnings[0].endswith("open /proc/sys/net/ipv6/conf/" + f"{name}/accept_ra: no such file or directory")
    assert V4.address.host_cidr in world.see(netns, "eth0").addresses


def test_a_host_whose_defaults_forbid_ipv6_is_set_right_for_our_link_only(world):
    """D04: the host is a namespace of its own here, whose defaults may be spoilt."""
    host, netns, name = world.make_namespace(), world.make_namespace(), "cali0123456789a"
    spoilt = {"disable_ipv6": "1", "addr_gen_mode": "1", "accept_dad": "1"}
    for setting, value in spoilt.items():
        world.inside(host, "sh", "-c", f"echo {value} > /proc/sys/net/ipv6/conf/default/{setting}")
    # Nor is there a warning that ten seconds have passed without an address.
    assert _connect_elsewhere(["ip", "netns", "exec", os.path.basename(host)], netns, name, str(V4), str(V6)) == []
    for setting, value in spoilt.items():
        assert world.setting(host, f"ipv6/conf/default/{setting}") == value
    gateway = [route["gateway"] for route in world.show(netns, "-6", "route", "show", "default")]
    assert gateway == ["fe80::ecee:eeff:feee:eeee"]
    assert _tentative(world, netns) == []


def test_a_mac_that_the_kernel_refuses_leaves_nothing(world):
    """G26"""
    netns, name = world.make_namespace(), world.new_name()
    with pytest.raises(Refused) as refused:
        world.connect(world.attachment(netns, name, mac="01:00:00:00:00:01"))
    assert str(refused.value) == (
        "failed to set container-side interface MAC to 01:00:00:00:00:01 as requested via "
        "cni.projectcalico.org/hwAddr: cannot assign requested address"
    )
    assert world.see(HOST, name).link is None
    assert world.see(netns, "eth0").link is None


def test_a_host_name_that_is_too_long_leaves_nothing(world):
    netns = world.make_namespace()
    with pytest.raises(Refused):
        world.connect(world.attachment(netns, "cali56789012345678"))
    assert world.see(netns, "eth0").link is None


def _kernel_has_netkit(world) -> bool:
    name = world.new_name()
    made = subprocess.run(["ip", "link", "add", name, "type", "netkit"], check=False, capture_output=True)
    return made.returncode == 0


def test_netkit_is_made_with_the_host_end_as_primary(world):
    """DP-011"""
    if not _kernel_has_netkit(world):
        pytest.skip("NOT RUN: DP-011 needs a kernel with netkit (6.7 or later, CONFIG_NETKIT); this one has none")
    netns, name = world.make_namespace(), world.new_name()
    world.connect(world.attachment(netns, name, mtu=1450, device_type="netkit"))
    (host,) = world.show(HOST, "link", "show", "dev", name)
    (pod,) = world.show(netns, "link", "show", "dev", "eth0")
    assert host["linkinfo"]["info_kind"] == pod["linkinfo"]["info_kind"] == "netkit"
    assert host["linkinfo"]["info_data"]["type"] == "primary"
    assert host["mtu"] == pod["mtu"] == 1450


def test_netkit_becomes_veth_on_a_kernel_that_lacks_it(world):
    """D08"""
    if _kernel_has_netkit(world):
        pytest.skip("NOT RUN: this kernel has netkit, so nothing makes it fall back")
    netns, name = world.make_namespace(), world.new_name()
    world.connect(world.attachment(netns, name, mtu=1450, device_type="netkit"))
    assert world.see(HOST, name).link.kind == world.see(netns, "eth0").link.kind == "veth"
    assert world.see(netns, "eth0").link.mtu == 1450
    assert world.log.shown("warning") == ["The kernel has no such device type taken=veth wanted=netkit"]
