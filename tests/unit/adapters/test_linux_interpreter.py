"""How steps are carried out when the kernel is slow, stubborn or refuses: over a scripted netlink, without root."""

from __future__ import annotations

from errno import EEXIST, EINVAL, ENOBUFS, ENODEV, ENOTSUP, EOPNOTSUPP, EPERM

import pytest

from adapters.linux.files import go_text
from adapters.linux.interpreter import Interpreter
from adapters.linux.netlink.seam import KernelError, KernelRoute, LinkMissing, Netlink, Unanswered, unsupported
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.ipam.address import Address, Cidr
from domain.linux.link import Link
from domain.linux.steps import (
    AddRoute,
    AwaitLinkLocal,
    AwaitUsable,
    CreatePair,
    Device,
    EnsureRoute,
    FindLink,
    HoldMac,
    KeepLearnedRoutes,
    RemoveLeftover,
    SetUp,
    Step,
    WriteSysctl,
)
from domain.workload.attachment import Attachment
from domain.workload.plan import HOST_MAC, plan_for
from ports.errors import Expired, Refused

H, P = Device("host", "cali1"), Device("container", "eth0")
V4, V6 = Cidr.parse("10.20.0.128/32"), Cidr.parse("fd20::ae80/128")
LINK_LOCAL, OTHER_LINK_LOCAL = Cidr.parse("fe80::ecee:eeff:feee:eeee/64"), Cidr.parse("fe80::215:5dff:fe01:203/64")
AWAIT = AwaitLinkLocal(H, HOST_MAC, limit=0.5, pause=0.05, settle=0.05)
HOLD = HoldMac(H, HOST_MAC, limit=5.0, pause=0.1)
PAIR = CreatePair(H, P, "netkit", "veth", 1450, 1, HOST_MAC, 0)


class ScriptedNetlink(Netlink):
    """Devices, addresses and routes as a test puts them; `refuses` maps a verb to the errno it answers."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.refuses: dict[str, int] = {}
        self.calls: list[tuple] = []
        self.known_addresses: list[Cidr] = []
        self.known_routes: list[KernelRoute] = []
        self.unknown_kinds: dict[str, int] = {}
        self.mac_answers: list[str] = []
        self.learned: list[int] = []
        self.tentative: list[bool] = []

    def put(self, name: str, index: int, mac: str = HOST_MAC, **more) -> None:
        self.links[name] = Link(index, name, "veth", False, 1500, mac, **more)

    def _called(self, verb: str, *arguments) -> None:
        self.calls.append((verb, *arguments))
        if verb in self.refuses:
            raise KernelError(self.refuses[verb])

    def link(self, name):
        found = self.links.get(name)
        if found is not None and self.mac_answers:
            return found.replace(mac=self.mac_answers.pop(0))
        return found

    def link_by_index(self, index):
        return next((link for link in self.links.values() if link.index == index), None)

    def create_pair(self, request):
        self._called("create_pair", request.kind)
        if request.kind in self.unknown_kinds:
            raise KernelError(self.unknown_kinds[request.kind])
        self.put(request.name, 7, request.mac)

    def set_up(self, index, *, up):
        self._called("set_up", index, up)

    def set_mac(self, index, mac):
        self._called("set_mac", index, mac)

    def delete_link(self, index):
        self._called("delete_link", index)
        self.links = {name: link for name, link in self.links.items() if link.index != index}

    def add_address(self, index, address):
        self._called("add_address", index, address)

    def addresses(self, index, version):
        return [cidr for cidr in self.known_addresses if cidr.version == version]

    def has_tentative(self, index):
        self._called("has_tentative", index)
        return self.tentative.pop(0) if self.tentative else False

    def add_route(self, index, destination, gateway, scope):
        self._called("add_route", index, destination, gateway, scope)
        if any(route.destination == destination for route in self.known_routes):
            raise KernelError(EEXIST)
        self.known_routes.append(KernelRoute(index, destination, gateway, scope))

    def routes(self, version):
        return [route for route in self.known_routes if route.destination.version == version]

    def learned_over(self):
        return self.learned

    def namespace_id(self, namespace):
        return 0

    def close(self):
        self.calls.append(("close",))


class ScriptedKernel:
    pod_namespace = 99

    def __init__(self) -> None:
        self.sides = {"host": ScriptedNetlink(), "container": ScriptedNetlink()}
        self.sides["host"].put("cali1", 7)
        self.sides["container"].put("eth0", 2, "02:00:00:00:00:01")
        self.settings: list[tuple[str, str, str]] = []
        self.setting_fails: dict[str, str] = {}
        self.written_before: dict[str, str] = {}

    def netlink(self, side):
        return self.sides[side]

    def read_sysctl(self, side, path):
        return self.written_before[path]

    def write_sysctl(self, side, path, value):
        if path in self.setting_fails:
            raise KernelError(EPERM, self.setting_fails[path])
        self.settings.append((side, path, value))


class Scene:
    def __init__(self) -> None:
        self.kernel = ScriptedKernel()
        self.host, self.pod = self.kernel.sides["host"], self.kernel.sides["container"]
        self.clock, self.log = MemoryClock(), RecordingLog()
        self.interpreter = Interpreter(self.kernel, self.clock, self.log, self.clock.deadline(60.0))

    def run(self, *steps):
        self.interpreter.run([step if isinstance(step, Step) else Step(step) for step in steps])

    def refusal(self, *steps) -> str:
        with pytest.raises(Refused) as refused:
            self.run(*steps)
        return str(refused.value)


@pytest.fixture
def scene():
    return Scene()


def _caused_by(number: int) -> Exception:
    error = RuntimeError("creating the pair")
    error.__cause__ = KernelError(number)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(None, False, id="DP-001"),
        pytest.param(RuntimeError("operation not supported"), False, id="DP-002"),
        pytest.param(KernelError(EOPNOTSUPP), True, id="DP-003"),
        pytest.param(KernelError(ENOTSUP), True, id="DP-004"),
        pytest.param(_caused_by(EOPNOTSUPP), True, id="DP-005"),
        pytest.param(KernelError(EINVAL), False, id="DP-006"),
        pytest.param(KernelError(EEXIST), False, id="DP-007"),
        pytest.param(KernelError(EPERM), False, id="DP-008"),
    ],
)
def test_only_not_supported_means_that_the_kernel_lacks_netkit(error, expected):
    """DP-001 DP-002 DP-003 DP-004 DP-005 DP-006 DP-007 DP-008"""
    assert unsupported(error) is expected


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (EEXIST, "file exists"),
        (EPERM, "operation not permitted"),
        (EOPNOTSUPP, "operation not supported"),
        (ENODEV, "no such device"),
        (133, "memory page has hardware error"),
        (132, "operation not possible due to RF-kill"),
        (73, "RFS specific error"),
    ],
)
def test_errnos_are_spelled_as_go_spells_them(number, text):
    assert go_text(number) == text


def test_netkit_becomes_veth_where_it_is_not_supported(scene):
    """D08"""
    scene.host.unknown_kinds["netkit"] = EOPNOTSUPP
    scene.run(PAIR)
    assert scene.host.calls == [("create_pair", "netkit"), ("create_pair", "veth")]


@pytest.mark.parametrize("number", [EPERM, EINVAL, EEXIST])
def test_any_other_refusal_of_netkit_is_reported(scene, number):
    """D08"""
    scene.host.unknown_kinds["netkit"] = number
    assert scene.refusal(PAIR) == go_text(number)
    assert scene.host.calls == [("create_pair", "netkit")]


def test_a_veth_that_is_not_supported_is_reported(scene):
    scene.host.unknown_kinds |= {"netkit": EOPNOTSUPP, "veth": EOPNOTSUPP}
    assert scene.refusal(PAIR) == "operation not supported"


def test_what_the_kernel_explains_goes_to_the_log_and_not_to_the_user(scene):
    def refuse(_index, *, up):
        raise KernelError(EINVAL, explanation="Carrier lost in the post")

    scene.host.set_up = refuse
    assert scene.refusal(Step(SetUp(H), "failed to set it up: ")) == "failed to set it up: invalid argument"
    assert scene.log.shown("info") == [
        "The kernel explains a refusal explanation=Carrier lost in the post step=failed to set it up: invalid argument"
    ]


def test_a_mac_that_is_right_is_not_set_again(scene):
    """D02"""
    scene.run(HOLD)
    assert scene.host.calls == []


def test_a_mac_that_somebody_changes_is_set_until_it_stays(scene):
    """D02"""
    scene.host.mac_answers = ["02:00:00:00:00:09"] * 5 + [HOST_MAC]
    scene.run(HOLD)
    assert set(scene.host.calls) == {("set_mac", 7, HOST_MAC)}
    assert set(scene.clock.slept) == {0.1}


def test_a_mac_that_never_stays_ends_the_call_after_five_seconds(scene):
    """D02"""
    scene.host.mac_answers = ["02:00:00:00:00:09"] * 1000
    text = f'timed out waiting for host-side interface "cali1" to accept MAC {HOST_MAC}'
    assert scene.refusal(Step(HOLD, text)) == text
    assert scene.clock.monotonic() == pytest.approx(5.0, abs=0.11)


def test_a_mac_that_cannot_be_set_is_a_warning_and_any_link_local_address_will_do(scene):
    scene.host.put("cali1", 7, "02:00:00:00:00:09")
    scene.host.refuses["set_mac"] = EPERM
    scene.host.known_addresses = [OTHER_LINK_LOCAL]
    scene.run(HOLD, AWAIT, AddRoute(P, Cidr.parse("::/0"), H, "universe"))
    assert ("add_route", 2, Cidr.parse("::/0"), OTHER_LINK_LOCAL.address, "universe") in scene.pod.calls
    (line,) = scene.log.shown("warning")
    assert "operation not permitted" in line


def test_the_next_hop_is_the_host_ends_link_local_address_and_no_other(scene):
    scene.host.known_addresses = [Cidr.parse("2001:db8::1/64"), LINK_LOCAL]
    scene.run(HOLD, AWAIT, AddRoute(P, Cidr.parse("::/0"), H, "universe"))
    assert scene.pod.calls == [("add_route", 2, Cidr.parse("::/0"), LINK_LOCAL.address, "universe")]
    assert scene.clock.slept == []


def test_a_wrong_link_local_address_restarts_the_link_with_its_mac(scene):
    scene.host.known_addresses = [OTHER_LINK_LOCAL]
    assert scene.refusal(HOLD, AWAIT) == "host-side interface got wrong link-local IP address: fe80::215:5dff:fe01:203"
    assert scene.host.calls[:3] == [("set_up", 7, False), ("set_mac", 7, HOST_MAC), ("set_up", 7, True)]
    assert 0.5 <= scene.clock.monotonic() < 0.7


def test_a_restart_goes_on_without_the_mac_where_it_cannot_be_set(scene):
    scene.host.known_addresses = [OTHER_LINK_LOCAL]
    scene.host.refuses["set_mac"] = EPERM
    scene.refusal(HOLD, AWAIT)
    assert ("set_up", 7, True) in scene.host.calls


def test_no_link_local_address_ends_the_call_after_half_a_second(scene):
    assert scene.refusal(AWAIT) == "failed to get IPv6 addresses for host side of the pod interface"
    assert 0.5 <= scene.clock.monotonic() < 0.7


def test_a_call_waits_until_the_kernel_has_settled_the_containers_addresses(scene):
    """D04"""
    scene.pod.tentative = [True, True]
    scene.run(AwaitUsable(P, limit=0.5, pause=0.002))
    assert scene.pod.calls == [("has_tentative", 2)] * 3
    assert scene.clock.slept == [0.002, 0.002]


def test_an_address_that_never_settles_is_told_and_fails_nothing(scene):
    """D04"""
    scene.pod.tentative = [True] * 1000
    scene.run(Step(AwaitUsable(P, limit=0.5, pause=0.002), fatal=False), SetUp(H))
    assert scene.log.shown("warning") == ["eth0 has a tentative IPv6 address after 0.5 seconds"]
    assert 0.5 <= scene.clock.monotonic() < 0.6
    assert scene.host.calls == [("set_up", 7, True)]


def test_a_route_that_is_refused_names_the_gateway_that_was_found(scene):
    scene.host.known_addresses = [LINK_LOCAL]
    scene.pod.refuses["add_route"] = EINVAL
    step = Step(AddRoute(P, Cidr.parse("::/0"), H, "universe"), "failed to add IPv6 route for ::/0 via {gateway}: ")
    text = "failed to add IPv6 route for ::/0 via fe80::ecee:eeff:feee:eeee: invalid argument"
    assert scene.refusal(AWAIT, step) == text


def test_a_missing_device_has_the_librarys_wording(scene):
    del scene.host.links["cali1"]
    assert scene.refusal(Step(FindLink(H), 'failed to lookup "cali1": ')) == 'failed to lookup "cali1": Link not found'
    assert LinkMissing().errno == ENODEV


def test_a_setting_that_need_not_be_written_is_a_warning(scene):
    """D04"""
    scene.kernel.setting_fails["net/x"] = "open /proc/sys/net/x: no such file or directory"
    scene.run(Step(WriteSysctl("host", "net/x", "0"), "failed to set net.x=0: ", False), SetUp(H))
    assert scene.log.shown("warning") == ["failed to set net.x=0: open /proc/sys/net/x: no such file or directory"]
    assert scene.host.calls == [("set_up", 7, True)]


def test_a_setting_that_must_be_written_ends_the_call(scene):
    scene.kernel.setting_fails["net/x"] = "open /proc/sys/net/x: permission denied"
    text = scene.refusal(Step(WriteSysctl("host", "net/x", "1"), "failed to set net.x=1: "), SetUp(H))
    assert text == "failed to set net.x=1: open /proc/sys/net/x: permission denied"
    assert scene.host.calls == []


def test_routers_are_heeded_where_they_were_and_the_host_begins_to_forward(scene):
    """Not where somebody has decided otherwise, and not over a device that is gone by now."""
    for number in range(4):
        scene.host.put(f"up{number}", 20 + number)
        scene.kernel.written_before[f"net/ipv6/conf/up{number}/accept_ra"] = str(number)
    scene.host.learned = [20, 21, 22, 99]
    scene.run(KeepLearnedRoutes())
    assert scene.kernel.settings == [("host", "net/ipv6/conf/up1/accept_ra", "2")]
    assert len(scene.log.shown("warning")) == 1


@pytest.mark.parametrize(("forwarding", "written"), [("1", 0), ("0", 1)])
def test_a_host_that_forwards_already_is_left_as_it_is(scene, forwarding, written):
    scene.host.put("up1", 21)
    scene.host.learned = [21]
    scene.kernel.written_before = {"net/x": forwarding, "net/ipv6/conf/up1/accept_ra": "1"}
    scene.run(KeepLearnedRoutes("net/x"))
    assert len(scene.kernel.settings) == written


def test_host_routes_that_are_there_are_fine_and_the_remaining_ones_are_made(scene):
    """CNI-033 G13"""
    steps = [EnsureRoute(H, V4, "link"), EnsureRoute(H, V6, "link")]
    scene.host.known_routes = [KernelRoute(7, V4, None, "link")]
    scene.run(*steps)
    assert KernelRoute(7, V6, None, "link") in scene.host.known_routes
    scene.host.known_routes[1] = KernelRoute(7, V6, None, "universe")  # as the kernel shows IPv6 routes
    scene.run(*steps)
    assert len(scene.host.known_routes) == 2


@pytest.mark.parametrize(
    ("there", "shown"),
    [
        (KernelRoute(9, V4, None, "link"), "route (Ifindex: 9, Dst: 10.20.0.128/32, Scope: link, Iface: cali9)"),
        (KernelRoute(12, V4, None, "link"), "route (Ifindex: 12, Dst: 10.20.0.128/32, Scope: link, Iface: unknown)"),
        (KernelRoute(7, V4, None, "host"), "route (Ifindex: 7, Dst: 10.20.0.128/32, Scope: host, Iface: cali1)"),
    ],
)
def test_a_host_route_over_another_device_or_of_another_scope_is_refused(scene, there, shown):
    scene.host.put("cali9", 9)
    scene.host.known_routes = [there]
    assert scene.refusal(EnsureRoute(H, V4, "link")) == (
        "route (Ifindex: 7, Dst: 10.20.0.128/32, Scope: link) already exists for an interface other than 'cali1': "
        + shown
    )


def test_a_host_route_of_another_length_is_not_the_same_route(scene):
    """G13"""
    scene.host.known_routes = [KernelRoute(7, Cidr.parse("10.20.0.128/26"), None, "link")]
    scene.host.refuses["add_route"] = EEXIST
    assert scene.refusal(EnsureRoute(H, V4, "link")).endswith("it cannot be found any more")


def test_a_host_route_that_is_refused_otherwise_says_why(scene):
    scene.host.refuses["add_route"] = EPERM
    text = "failed to add route (Ifindex: 7, Dst: 10.20.0.128/32, Scope: link, Iface: cali1): operation not permitted"
    assert scene.refusal(EnsureRoute(H, V4, "link")) == text


def test_a_host_device_whose_other_end_lives_elsewhere_is_kept_unless_forced(scene):
    """D05"""
    scene.host.put("cali1", 7, peer_index=2, peer_namespace=5)
    assert "is in use" in scene.refusal(RemoveLeftover(H, P))
    assert scene.host.calls == []
    scene.run(RemoveLeftover(H, P, force=True))
    assert scene.host.calls == [("delete_link", 7)]


@pytest.mark.parametrize(("peer_index", "removed"), [(2, True), (3, False)])
def test_a_host_device_of_this_container_goes_if_its_other_end_is_the_interface(scene, peer_index, removed):
    """D05"""
    scene.host.put("cali1", 7, peer_index=peer_index, peer_namespace=0)
    if removed:
        scene.run(RemoveLeftover(H, P))
    else:
        scene.refusal(RemoveLeftover(H, P))
    assert (scene.host.links == {}) is removed


def test_time_runs_out_between_two_steps(scene):
    scene.clock.advance(60.0)
    with pytest.raises(Expired, match="FindLink"):
        scene.run(FindLink(H))


def test_time_runs_out_while_waiting(scene):
    scene.clock.advance(59.95)
    with pytest.raises(Expired, match="link-local address of cali1"):
        scene.run(AWAIT)


def test_undo_removes_the_pair_of_this_run_by_its_index(scene):
    """G26"""
    scene.run(PAIR, FindLink(H))
    scene.interpreter.undo(scene.kernel)
    assert scene.host.calls[-1] == ("delete_link", 7)


def test_undo_removes_a_pair_that_was_made_but_not_confirmed(scene):
    """A signal between the kernel's deed and our reading its answer."""

    def interrupted(request):
        scene.host.put(request.name, 8)
        raise KeyboardInterrupt

    scene.host.create_pair = interrupted
    with pytest.raises(KeyboardInterrupt):
        scene.run(PAIR)
    scene.interpreter.undo(scene.kernel)
    assert scene.host.calls == [("delete_link", 8)]


def test_undo_removes_a_pair_whose_making_was_answered_by_nobody(scene):
    """The answer found no memory on its way; the pair may be there."""

    def lost(request):
        scene.host.put(request.name, 8)
        raise Unanswered(ENOBUFS)

    scene.host.create_pair = lost
    assert "no buffer space available" in scene.refusal(PAIR)
    scene.interpreter.undo(scene.kernel)
    assert scene.host.calls == [("delete_link", 8)]


@pytest.mark.parametrize("refused", [True, False])
def test_undo_leaves_what_this_run_did_not_make(scene, refused):
    """G26: a device that was there is not ours to remove."""
    if refused:
        scene.host.unknown_kinds["netkit"] = EEXIST
        scene.refusal(PAIR)
    scene.interpreter.undo(scene.kernel)
    assert ("delete_link", 7) not in scene.host.calls


def test_undo_after_the_pair_has_gone_is_fine(scene):
    scene.run(PAIR)
    scene.host.links.clear()
    scene.interpreter.undo(scene.kernel)
    assert scene.host.calls == [("create_pair", "netkit")]


def test_the_whole_plan_runs_and_uses_each_side_for_its_own(scene):
    scene.host.links.clear()
    scene.host.known_addresses = [LINK_LOCAL]
    wanted = Attachment("/n", "eth0", "cali1", (V4, V6), (Cidr.parse("::/0"),), mac="02:00:00:00:00:01")
    scene.run(*plan_for(wanted))
    assert ("add_address", 2, V6) in scene.pod.calls
    assert ("set_mac", 2, "02:00:00:00:00:01") in scene.pod.calls
    assert ("add_route", 2, Cidr.parse("169.254.1.1/32"), None, "link") in scene.pod.calls
    assert (
        "add_route",
        2,
        Cidr.parse("::/0"),
        Address.parse("fe80::ecee:eeff:feee:eeee"),
        "universe",
    ) in scene.pod.calls
    assert {route.destination for route in scene.host.known_routes} == {V4, V6}
    assert ("container", "net/ipv4/ip_forward", "0") in scene.kernel.settings
