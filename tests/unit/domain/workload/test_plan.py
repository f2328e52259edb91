"""The plan of a workload, compared step by step with the table of the Linux dataplane."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.linux.steps import (
    AddAddress,
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
    SetMac,
    SetUp,
    Step,
    WriteSysctl,
)
from domain.workload.attachment import Attachment
from domain.workload.plan import plan_for

H, P = Device("host", "cali1"), Device("container", "eth0")
MAC = "ee:ee:ee:ee:ee:ee"
V4, V6 = Cidr.parse("10.20.0.128/26"), Cidr.parse("fd20::ae80/122")
DEFAULTS = (Cidr.parse("0.0.0.0/0"), Cidr.parse("::/0"))
LOOKUP_H, LOOKUP_P = 'failed to lookup "cali1": ', 'failed to lookup "eth0": '
HOST_SYSCTL = "error configuring sysctls for interface: cali1, error: failed to set "
HOST_ROUTE = "error adding host side routes for interface: cali1, error: "
FORWARDING = "error configuring sysctls for the container netns, error: "

BEGINNING = (
    Step(RemoveLeftover(H, P, False), "failed to delete old hostVeth cali1: "),
    Step(CreatePair(H, P, "veth", "", 0, 1, MAC, 0)),
    Step(FindLink(H), LOOKUP_H),
    Step(HoldMac(H, MAC, 5.0, 0.1), f'timed out waiting for host-side interface "cali1" to accept MAC {MAC}'),
)
DAD_OFF = Step(WriteSysctl("container", "net/ipv6/conf/eth0/accept_dad", "0"), "failed to disable DAD for eth0: ")
HOST_V4 = (
    Step(
        WriteSysctl("host", "net/ipv4/conf/cali1/route_localnet", "1"),
        f"{HOST_SYSCTL}net.ipv4.conf.cali1.route_localnet=1: ",
    ),
    Step(
        WriteSysctl("host", "net/ipv4/neigh/cali1/proxy_delay", "0"),
        f"{HOST_SYSCTL}net.ipv4.neigh.cali1.proxy_delay=0: ",
        False,
    ),
    Step(WriteSysctl("host", "net/ipv4/conf/cali1/proxy_arp", "1"), f"{HOST_SYSCTL}net.ipv4.conf.cali1.proxy_arp=1: "),
    Step(
        WriteSysctl("host", "net/ipv4/conf/cali1/forwarding", "1"), f"{HOST_SYSCTL}net.ipv4.conf.cali1.forwarding=1: "
    ),
)
HOST_V6 = (
    Step(KeepLearnedRoutes(), "failed to keep the host's routers: ", False),
    Step(
        WriteSysctl("host", "net/ipv6/conf/cali1/accept_dad", "0"), f"{HOST_SYSCTL}net.ipv6.conf.cali1.accept_dad=0: "
    ),
    Step(
        WriteSysctl("host", "net/ipv6/conf/cali1/disable_ipv6", "0"),
        f"{HOST_SYSCTL}net.ipv6.conf.cali1.disable_ipv6=0: ",
    ),
    Step(WriteSysctl("host", "net/ipv6/conf/cali1/proxy_ndp", "1"), f"{HOST_SYSCTL}net.ipv6.conf.cali1.proxy_ndp=1: "),
    Step(
        WriteSysctl("host", "net/ipv6/conf/cali1/forwarding", "1"), f"{HOST_SYSCTL}net.ipv6.conf.cali1.forwarding=1: "
    ),
    Step(
        WriteSysctl("host", "net/ipv6/conf/cali1/addr_gen_mode", "0"),
        f"{HOST_SYSCTL}net.ipv6.conf.cali1.addr_gen_mode=0: ",
        False,
    ),
)
BOTH_UP = (
    Step(
        WriteSysctl("host", "net/ipv6/conf/cali1/accept_ra", "0"),
        f"{HOST_SYSCTL}net.ipv6.conf.cali1.accept_ra=0: ",
        False,
    ),
    Step(SetUp(H), 'failed to set "cali1" up: '),
    Step(FindLink(P), LOOKUP_P),
    Step(SetUp(P), 'failed to set "eth0" up: '),
)
GATEWAY = Address.parse("169.254.1.1")
ROUTES_V4 = (
    Step(AddRoute(P, Cidr.parse("169.254.1.1/32"), None, "link"), "failed to add route inside the container: "),
    Step(AddRoute(P, DEFAULTS[0], GATEWAY, "universe"), "failed to add IPv4 route for 0.0.0.0/0 via 169.254.1.1: "),
)
ROUTES_V6 = (
    *[
        Step(
            WriteSysctl("container", f"net/ipv6/conf/{scope}/disable_ipv6", "0"),
            f"failed to set net.ipv6.conf.{scope}.disable_ipv6=0: ",
        )
        for scope in ("all", "default", "lo")
    ],
    Step(AwaitLinkLocal(H, MAC, 0.5, 0.002, 0.05)),
    Step(AddRoute(P, DEFAULTS[1], H, "universe"), "failed to add IPv6 route for ::/0 via {gateway}: "),
)
ADDRESS_V4 = Step(AddAddress(P, Cidr.parse("10.20.0.128/32")), 'failed to add IP addr to "eth0": ')
ADDRESS_V6 = Step(AddAddress(P, Cidr.parse("fd20::ae80/128")), 'failed to add IP addr to "eth0": ')
NO_FORWARDING_V4 = Step(WriteSysctl("container", "net/ipv4/ip_forward", "0"), FORWARDING)
NO_FORWARDING_V6 = Step(WriteSysctl("container", "net/ipv6/conf/all/forwarding", "0"), FORWARDING)
FIND_H = Step(FindLink(H), LOOKUP_H)
HOST_ROUTE_V4 = Step(EnsureRoute(H, Cidr.parse("10.20.0.128/32"), "link"), HOST_ROUTE)
USABLE = Step(AwaitUsable(P, 0.5, 0.002), fatal=False)
HOST_ROUTE_V6 = Step(EnsureRoute(H, Cidr.parse("fd20::ae80/128"), "link"), HOST_ROUTE)


def attachment(*addresses: Cidr, **more: object) -> Attachment:
    return Attachment("/var/run/netns/n", "eth0", "cali1", addresses, DEFAULTS, **more)


def test_an_ipv4_workload():
    """CNI-004 CNI-005 CNI-006 CNI-007 D03"""
    assert plan_for(attachment(V4)) == (
        *BEGINNING,
        *HOST_V4,
        *BOTH_UP,
        *ROUTES_V4,
        ADDRESS_V4,
        NO_FORWARDING_V4,
        FIND_H,
        HOST_ROUTE_V4,
    )


def test_an_ipv6_workload():
    assert plan_for(attachment(V6)) == (
        *BEGINNING,
        DAD_OFF,
        *HOST_V6,
        *BOTH_UP,
        *ROUTES_V6,
        ADDRESS_V6,
        NO_FORWARDING_V6,
        FIND_H,
        HOST_ROUTE_V6,
        USABLE,
    )


def test_a_dual_stack_workload():
    assert plan_for(attachment(V4, V6)) == (
        *BEGINNING,
        DAD_OFF,
        *HOST_V4,
        *HOST_V6,
        *BOTH_UP,
        *ROUTES_V4,
        *ROUTES_V6,
        ADDRESS_V4,
        ADDRESS_V6,
        NO_FORWARDING_V4,
        NO_FORWARDING_V6,
        FIND_H,
        HOST_ROUTE_V4,
        HOST_ROUTE_V6,
        USABLE,
    )


def test_an_ipv4_workload_writes_nothing_of_ipv6_that_must_succeed():
    """D04: it works on a kernel without IPv6."""
    touched = [step for step in plan_for(attachment(V4)) if "ipv6" in str(step.action)]
    assert [step.action for step in touched] == [WriteSysctl("host", "net/ipv6/conf/cali1/accept_ra", "0")]
    assert not touched[0].fatal


def test_the_link_goes_up_only_after_duplicate_address_detection_is_off():
    """D04"""
    actions = [step.action for step in plan_for(attachment(V6))]
    for device, path in ((H, "net/ipv6/conf/cali1/accept_dad"), (P, "net/ipv6/conf/eth0/accept_dad")):
        assert actions.index(WriteSysctl(device.side, path, "0")) < actions.index(SetUp(device))


def test_a_mac_is_set_after_the_link_is_up():
    plan = plan_for(attachment(V4, mac="1C0C.0AC0.FFEE"))
    at = plan.index(Step(SetUp(P), 'failed to set "eth0" up: '))
    assert plan[at + 1] == Step(
        SetMac(P, "1c:0c:0a:c0:ff:ee"),
        "failed to set container-side interface MAC to 1C0C.0AC0.FFEE as requested via cni.projectcalico.org/hwAddr: ",
    )


def test_an_unreadable_mac_makes_no_plan():
    where = "provided via cni.projectcalico.org/hwAddr"
    text = f"failed to parse MAC address 12:34 {where}: address 12:34: invalid MAC address"
    with pytest.raises(ValueError, match="failed") as refused:
        plan_for(attachment(V4, mac="12:34"))
    assert str(refused.value) == text


def test_forwarding_inside_is_switched_on_when_asked_for():
    plan = plan_for(attachment(V4, V6, allow_ip_forwarding=True))
    assert Step(WriteSysctl("container", "net/ipv4/ip_forward", "1"), FORWARDING) in plan
    assert Step(WriteSysctl("container", "net/ipv6/conf/all/forwarding", "1"), FORWARDING) in plan


def test_host_routes_can_be_left_out():
    plan = plan_for(attachment(V4, host_routes=False))
    assert plan[-1] == NO_FORWARDING_V4


@pytest.mark.parametrize(
    ("device_type", "kinds"), [("", ("veth", "")), ("veth", ("veth", "")), ("netkit", ("netkit", "veth"))]
)
def test_netkit_may_become_veth_and_nothing_else_may(device_type, kinds):
    """DP-009 DP-010 DP-011 D08"""
    pair = plan_for(attachment(V4, device_type=device_type, mtu=1450, num_queues=4))[1].action
    assert pair == CreatePair(H, P, *kinds, 1450, 4, MAC, 0)


def test_fewer_than_one_queue_is_one():
    assert plan_for(attachment(V4, num_queues=0))[1].action.queues == 1


def test_replacing_a_host_device_that_is_in_use_is_passed_on():
    assert plan_for(attachment(V4, replace_host_link=True))[0].action == RemoveLeftover(H, P, True)


def test_routes_go_by_family_and_lose_their_host_bits():
    routes = (Cidr.parse("10.9.8.7/16"), Cidr.parse("fd00::7/64"))
    plan = plan_for(attachment(V4).replace(routes=routes))
    assert [step.action.destination for step in plan if isinstance(step.action, AddRoute)] == [
        Cidr.parse("169.254.1.1/32"),
        Cidr.parse("10.9.0.0/16"),
    ]
