"""What connecting a container on Windows comes to, step by step."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.cni.result import Dns
from domain.ipam.address import Address, Cidr
from domain.windows.conf import Policy, WindowsConf
from domain.windows.names import endpoint_name, is_dockershim, joins_sandbox, network_name, overlay_mac
from domain.windows.plan import plan_for
from domain.windows.steps import (
    AwaitManagement,
    ConnectContainer,
    EnableForwarding,
    Endpoint,
    EnsureHostEndpoint,
    EnsureHostRoutes,
    EnsureNetwork,
    EnsureRemoteEndpoint,
)
from domain.workload.attachment import DEFAULT_ROUTES, Attachment

SUBNET = Cidr.parse("10.254.112.64/26")
ADDRESS = Cidr.parse("10.254.112.70/26")
NAMESPACE = "8e9a1c32-0000-4000-8000-00155d000000"
DNS = Dns(("10.96.0.10",), search=("pod.cluster.local",))


def attachment(*addresses: Cidr, netns: str = NAMESPACE, **more) -> Attachment:
    return Attachment(netns, "eth0", "cali123", addresses or (ADDRESS,), DEFAULT_ROUTES, **more)


def actions(conf: WindowsConf, wanted: Attachment) -> list:
    return [step.action for step in plan_for(conf, wanted, "c1")]


def at(number: int) -> Address:
    return SUBNET.at(number)


def test_a_bridge():
    """WFV-001: the network of the block, the host in it, forwarding, and the container behind the host."""
    conf = WindowsConf("calico-fv", dns=DNS)
    name = "calico-fv-10-254-112-64"
    policies = (
        Policy.of("OutBoundNAT", ExceptionList=["10.254.0.0/16", "{management_subnet}"]),
        Policy.of("ROUTE", DestinationPrefix="{management}/32", NeedEncap=True),
    )
    endpoint = Endpoint("c1_calico-fv", name, ADDRESS, at(2), "", DNS, policies)
    assert actions(conf, attachment(nat_exceptions=(Cidr.parse("10.254.0.0/16"),))) == [
        EnsureNetwork(name, "L2Bridge", SUBNET, at(1)),
        EnsureHostEndpoint(f"{name}_ep", name, at(2)),
        AwaitManagement(name, limit=30.0, pause=1.0),
        EnableForwarding(at(2), limit=10.0, pause=1.0),
        ConnectContainer(endpoint, NAMESPACE, "c1", default_deny=True, tries=4, pause=1.0),
    ]


def test_an_overlay():
    """WFV-015"""
    conf = WindowsConf("vx", is_overlay=True, single_network=True, vni=4097, mac_prefix="0E-2A", default_deny=False)
    policies = (Policy.of("PA", PA="{management}"),)
    endpoint = Endpoint("c1_vx", "vx", ADDRESS, at(1), "0E-2A-0a-fe-70-46", Dns(), policies)
    assert actions(conf, attachment(nat_outgoing=False)) == [
        EnsureNetwork("vx", "Overlay", SUBNET, at(1), 4097),
        AwaitManagement("vx", limit=0.0, pause=0.0),
        EnsureHostRoutes("vx"),
        EnsureRemoteEndpoint("vx_ep", "vx", at(2)),
        ConnectContainer(endpoint, NAMESPACE, "c1", default_deny=False, tries=4, pause=1.0),
    ]


def test_dockershims_sandbox_is_no_namespace():
    conf = WindowsConf("calico")
    *_, connect = actions(conf, attachment(netns="none"))
    assert (connect.netns, connect.container_id, connect.endpoint.name) == ("", "c1", "c1_calico")


def test_only_the_first_address_counts():
    *_, connect = actions(WindowsConf("calico"), attachment(ADDRESS, Cidr.parse("fd00::7/122")))
    assert connect.endpoint.address == ADDRESS


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("fd00::7/122", "fd00::7 is an IPv6 address, and Windows endpoints have IPv4 ones only"),
        ("10.0.0.7/32", "the subnet of 10.0.0.7/32 has no room for a gateway and the host beside it"),
        ("10.0.0.7/31", "the subnet of 10.0.0.7/31 has no room for a gateway and the host beside it"),
    ],
)
def test_addresses_that_windows_cannot_be_given(address, why):
    with pytest.raises(CniError) as raised:
        plan_for(WindowsConf("calico"), attachment(Cidr.parse(address)), "c1")
    assert str(raised.value) == why


def test_each_failure_names_what_could_not_be_done():
    failures = [step.failure for step in plan_for(WindowsConf("n", single_network=True), attachment(), "c1")]
    assert failures == [
        'cannot make the HNS network "n": ',
        'cannot make the host\'s endpoint "n_ep": ',
        'HNS network "n" has no management IP: ',
        "cannot enable forwarding: ",
        'cannot connect the container to the HNS network "n": ',
    ]


def test_names():
    conf = WindowsConf("calico")
    assert network_name(conf, ADDRESS) == "calico-10-254-112-64"
    assert network_name(conf.replace(single_network=True), ADDRESS) == "calico"
    assert endpoint_name("c1", NAMESPACE, "calico") == endpoint_name("c1", "none", "calico") == "c1_calico"
    assert endpoint_name("c2", "container:c1", "calico") == "c1_calico"
    assert [is_dockershim(netns) for netns in ("none", "container:c1", NAMESPACE, "")] == [True, True, False, False]
    assert [joins_sandbox(netns) for netns in ("none", "container:c1")] == [False, True]
    assert overlay_mac("0E-2A", ADDRESS.address) == "0E-2A-0a-fe-70-46"
