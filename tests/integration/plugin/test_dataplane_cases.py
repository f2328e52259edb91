"""Reports of users about devices, addresses and routes (L01, D02, D03, D04, D05, D08), on the installed plugins."""

from __future__ import annotations

import subprocess
from select import select
from subprocess import DEVNULL

import pytest

from integration.plugin.host import Container, Host
from integration.plugin.store import cluster_records
from patience import at_best

BOTH = {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}
V6_ONLY = {"type": "calico-ipam", "assign_ipv4": "false", "assign_ipv6": "true"}
BY_US = "fe80::ecee:eeff:feee:eeee"
READ_ONLY_SYSCTLS = 'mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec "$@"'


@pytest.fixture
def dual(bare_host: Host) -> Host:
    """A host with pools of both families and addresses of its own, reachable over a default route."""
    bare_host.store.create(cluster_records("10.20.0.0/24", "fd20::/64"))
    net = bare_host.net
    net.ip("link", "add", "tmp0", "type", "veth", "peer", "name", "tmp1")
    net.ip("link", "set", "tmp0", "up")
    net.ip("link", "set", "tmp1", "up")
    for address in ("192.0.2.1/24", "2001:db8::1/64"):
        net.ip("addr", "add", address, "dev", "tmp0", *(["nodad"] if ":" in address else []))
    net.ip("route", "add", "default", "via", "192.0.2.2", "dev", "tmp0")
    net.ip("-6", "route", "add", "default", "via", "2001:db8::2", "dev", "tmp0")
    return bare_host


# --- L01: a step after IPAM fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ipam", ["calico-ipam", "host-local"])
@pytest.mark.parametrize("fault", ["absent namespace", "eth0 exists", "sysctls cannot be written"])
def test_l01_a_failed_add_leaves_records_and_devices_as_they_were(host: Host, ipam: str, fault: str) -> None:
    if ipam == "host-local":
        host.use_host_local()
    neighbour = host.container("n")
    host.add(neighbour).result()
    before = host.left()
    container = host.container("f")
    through = ""
    if fault == "absent namespace":
        container.inside.remove()
    elif fault == "eth0 exists":
        container.inside.ip("link", "add", "eth0", "type", "bridge")
    else:
        through = READ_ONLY_SYSCTLS
    answer = host.add(container, through=through)
    assert answer.error(999)["msg"]
    assert host.left() == before
    if ipam == "calico-ipam":
        host.store.check()
    if fault == "eth0 exists":
        assert container.inside.link("eth0")["linkinfo"]["info_kind"] == "bridge"
    elif fault == "sysctls cannot be written":
        assert "read-only file system" in answer.error(999)["msg"]
        assert container.inside.names() == {"lo"}
        host.add(container).result()  # and a retry works


# --- D02: the host end's MAC ----------------------------------------------------------------------------------------


def test_d02_the_host_end_has_its_mac_from_the_first_moment(host: Host) -> None:
    container = host.container()
    monitor = host.start({}, "-o", "monitor", "link", program=host.tool("ip"), stdin=DEVNULL, stderr=DEVNULL)
    assert monitor.stdout
    while not select([monitor.stdout], [], [], 0.1)[0]:  # until the monitor listens
        host.net.ip("link", "add", "tmp0", "type", "bridge")
        host.net.ip("link", "del", "tmp0")
    host.net.ip("link", "add", "tmp0", "type", "bridge")
    host.add(container).result()
    host.net.ip("link", "set", "tmp0", "name", "tmp1")
    events = []
    for line in iter(monitor.stdout.readline, b""):
        if b"tmp1" in line:
            break
        events += [line.decode()] if container.host_name in line.decode() else []
    assert events
    assert all("link/ether ee:ee:ee:ee:ee:ee " in event for event in events), events
    assert assign_type(host, container) == "3"  # set by its maker: udev leaves such addresses alone
    mac = container.inside.link("eth0")["address"]
    assert mac not in {"ee:ee:ee:ee:ee:ee", "00:00:00:00:00:00"}
    assert int(mac[:2], 16) & 3 == 2  # local, of one machine


def assign_type(host: Host, container: Container) -> str:
    file = f"/sys/class/net/{container.host_name}/addr_assign_type"
    command = ["ip", "netns", "exec", host.net.name, "cat", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# --- D03: reachable at once -----------------------------------------------------------------------------------------


def test_d03_the_first_ping_works(dual: Host) -> None:
    first, second = dual.container("a"), dual.container("b")
    dual.add(first, ipam=BOTH).result()
    name = first.host_name
    expected = {f"ipv4/conf/{name}/proxy_arp": "1", f"ipv4/neigh/{name}/proxy_delay": "0"}
    assert dual.net.sysctls(*expected) == expected
    for target in ("192.0.2.1", "2001:db8::1"):
        first.inside.ping_once(target)

    result = dual.add(second, ipam=BOTH).result()
    target = result["ips"][0]["address"].partition("/")[0]
    first.inside.ping_once(target)


# --- D04: IPv6 absent, switched off, or odd -------------------------------------------------------------------------


def test_d04_a_kernel_without_ipv6_does_not_hinder_ipv4(host: Host) -> None:
    hidden = 'mkdir -p "$0.none"; mount --bind "$0.none" /proc/sys/net/ipv6; exec "$@"'.replace("$0", str(host.folder))
    container = host.container()
    answer = host.add(container, through=hidden)
    (address,) = [ip["address"] for ip in answer.result()["ips"]]
    assert container.inside.addresses("eth0") == [address]
    host.delete(container, through=hidden).silent()
    assert host.left() == {}


@pytest.mark.parametrize("ipam", [BOTH, V6_ONLY])
def test_d04_a_container_with_ipv6_switched_off_gets_it_switched_on(dual: Host, ipam: dict[str, str]) -> None:
    container = dual.container()

    def add() -> None:
        nonlocal container
        container = dual.container()
        for name in ("all", "default", "lo"):
            container.inside.set_sysctl(f"ipv6/conf/{name}/disable_ipv6", "1")
        dual.add(container, ipam=ipam).result()

    at_best(8, add)
    check_ipv6(dual, container)


def test_d04_odd_ipv6_defaults_of_the_host_do_not_matter_and_stay(dual: Host) -> None:
    odd = {"disable_ipv6": "1", "accept_dad": "1", "addr_gen_mode": "1"}
    odd = {f"ipv6/conf/default/{key}": value for key, value in odd.items()}
    for key, value in odd.items():
        dual.net.set_sysctl(key, value)
    container = dual.container()

    def add() -> None:
        nonlocal container
        container = dual.container()
        dual.add(container, ipam=BOTH).result()

    at_best(8, add)
    check_ipv6(dual, container)
    assert dual.net.sysctls(*odd) == odd


def check_ipv6(host: Host, container: Container) -> None:
    """The container has a usable IPv6 address and reaches the host with the first packet."""
    inside = container.inside
    infos = inside.show("-6", "addr", "show", "dev", "eth0")[0]["addr_info"]
    (info,) = [info for info in infos if info.get("scope") == "global"]
    assert "tentative" not in info
    assert info["prefixlen"] == 128
    switches = {f"ipv6/conf/{name}/disable_ipv6": "0" for name in ("all", "default", "lo", "eth0")}
    assert inside.sysctls(*switches) == switches
    (route,) = [route for route in inside.routes(6) if route["dst"] == "default"]
    assert (route["gateway"], route["dev"]) == (BY_US, "eth0")
    assert host.net.addresses(container.host_name, "link") == [f"{BY_US}/64"]
    inside.ping_once("2001:db8::1")


# --- D05: names that are taken --------------------------------------------------------------------------------------


def test_d05_a_leftover_device_of_that_name_is_replaced(host: Host) -> None:
    container = host.container()
    host.net.ip("link", "add", container.host_name, "type", "bridge")
    host.add(container).result()
    assert host.net.link(container.host_name)["linkinfo"]["info_kind"] == "veth"


def test_d05_what_a_killed_add_of_the_same_container_left_is_replaced(host: Host) -> None:
    container = host.container()
    pair = ["link", "add", container.host_name, "type", "veth", "peer", "name", "eth0", "netns", container.inside.name]
    host.net.ip(*pair)
    host.add(container).result()
    host.delete(container).silent()
    assert host.left() == {}


def test_d05_a_pair_whose_other_end_lives_elsewhere_is_not_touched(host: Host) -> None:
    container, living = host.container("a"), host.container("b")
    pair = ["link", "add", container.host_name, "type", "veth", "peer", "name", "eth0", "netns", living.inside.name]
    host.net.ip(*pair)
    before = host.net.link(container.host_name)["ifindex"]
    host.add(container).error(999, container.host_name)
    assert host.net.link(container.host_name)["ifindex"] == before
    assert "eth0" in living.inside.names()
    assert {"devices"} >= set(host.left())


def test_d05_names_fit_and_stay_the_same_on_a_retry(host: Host) -> None:
    first, second = host.container("a"), host.container("b")
    names = [host.add(container).result()["interfaces"][0]["name"] for container in (first, second)]
    assert len(set(names)) == 2
    assert all(len(name) <= 15 for name in names)
    host.delete(first).silent()
    assert host.add(first).result()["interfaces"][0]["name"] == names[0]


# --- D08: netkit ----------------------------------------------------------------------------------------------------


def netkit_refusal(host: Host) -> str:
    """Why this kernel makes no netkit devices; "" if it does."""
    probe = host.net.run("ip", "link", "add", "tmpnk", "type", "netkit", check=False)
    if probe.returncode == 0:
        host.net.ip("link", "del", "tmpnk")
        return ""
    return probe.stderr.strip()


def test_d08_netkit_where_the_kernel_has_it_else_veth(host: Host) -> None:
    refusal = netkit_refusal(host)
    container = host.container()
    host.add(container, device_type="netkit", mtu=1400, num_queues=2).result()
    kind = "veth" if refusal else "netkit"
    for link in (host.net.link(container.host_name), container.inside.link("eth0")):
        assert (link["linkinfo"]["info_kind"], link["mtu"]) == (kind, 1400)
    host.delete(container).silent()
    assert host.left() == {}


def test_d08_a_real_netkit_pair(host: Host) -> None:
    refusal = netkit_refusal(host)
    if refusal:
        pytest.skip(f"NOT RUN: this kernel makes no netkit devices ({refusal})")
    container = host.container()
    host.add(container, device_type="netkit").result()
    assert host.net.link(container.host_name)["linkinfo"]["info_data"]["mode"] == "l2"
    assert host.net.link(container.host_name)["address"] == "ee:ee:ee:ee:ee:ee"


def test_d08_an_unknown_device_type_is_refused(host: Host) -> None:
    host.add(host.container(), device_type="foo").error(999, 'unknown device_type "foo"', "veth", "netkit")
    assert host.left() == {}
