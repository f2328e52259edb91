"""Which policies an endpoint on Windows has, and what both generations of HNS are told of them."""

from __future__ import annotations

import pytest

from adapters.windows.documents import Found, newer_policy, older_policy
from domain.ipam.address import Address, Cidr
from domain.json_text import dumps
from domain.windows.conf import Policy, WindowsConf
from domain.windows.policies import OutgoingNat, endpoint_policies

ADDRESS = Address.parse("10.0.1.7")
POOLS = (Cidr.parse("10.0.1.0/24"), Cidr.parse("10.0.2.0/24"))
SERVICES = Policy.of("OutBoundNAT", ExceptionList=["10.96.0.0/12"])
ELSE = Policy("SomethingElse")
NAT, NO_NAT = OutgoingNat(exceptions=POOLS), OutgoingNat(wanted=False, exceptions=POOLS)
ROUTE = '{"DestinationPrefix":"10.11.128.13/32","NeedEncap":true,"Type":"ROUTE"}'
NEWER_ROUTE = '{"Type":"SDNRoute","Settings":{"DestinationPrefix":"10.11.128.13/32","NeedEncap":true}}'


def found() -> Found:
    """What the host has told by the time that policies are written."""
    host = Found()
    host.management, host.management_subnet = Address.parse("10.11.128.13"), Cidr.parse("10.11.128.13/19")
    return host


def texts(*given: Policy, nat: OutgoingNat = NAT, **conf):
    policies = endpoint_policies(WindowsConf("calico", policies=given, **conf), nat, ADDRESS)
    host = found()
    return [dumps(older_policy(one, host)) for one in policies], [dumps(newer_policy(one, host)) for one in policies]


def test_without_nat_its_policy_goes_and_others_stay():
    """WIN-001"""
    older, newer = texts(SERVICES, ELSE, nat=NO_NAT)
    assert older == ['{"Type":"SomethingElse"}', ROUTE]
    assert newer == ['{"Type":"SomethingElse","Settings":{}}', NEWER_ROUTE]


def test_pools_and_the_hosts_subnet_are_excepted_beside_services():
    """WIN-002"""
    older, newer = texts(SERVICES, ELSE)
    networks = '["10.96.0.0/12","10.0.1.0/24","10.0.2.0/24","10.11.128.0/19"]'
    assert older == [f'{{"ExceptionList":{networks},"Type":"OutBoundNAT"}}', '{"Type":"SomethingElse"}', ROUTE]
    assert newer[0] == f'{{"Type":"OutBoundNAT","Settings":{{"Exceptions":{networks}}}}}'


def test_nat_comes_by_itself_after_what_is_configured():
    """WIN-003"""
    older, newer = texts(ELSE)
    networks = '["10.0.1.0/24","10.0.2.0/24","10.11.128.0/19"]'
    assert older == ['{"Type":"SomethingElse"}', f'{{"ExceptionList":{networks},"Type":"OutBoundNAT"}}', ROUTE]
    assert newer[1] == f'{{"Type":"OutBoundNAT","Settings":{{"Exceptions":{networks}}}}}'


def test_without_nat_none_comes():
    """WIN-004"""
    older, _ = texts(ELSE, nat=NO_NAT)
    assert older == ['{"Type":"SomethingElse"}', ROUTE]


def test_an_exception_is_named_once():
    older, _ = texts(Policy.of("outboundnat", ExceptionList=["10.0.1.0/24"]), host_subnet_exclusion=False)
    assert older[0] == '{"ExceptionList":["10.0.1.0/24","10.0.2.0/24"],"Type":"outboundnat"}'


def test_the_hosts_subnet_can_be_left_out():
    older, _ = texts(host_subnet_exclusion=False)
    assert older[0] == '{"ExceptionList":["10.0.1.0/24","10.0.2.0/24"],"Type":"OutBoundNAT"}'


def test_an_overlay_sends_from_the_hosts_address():
    older, newer = texts(nat=NO_NAT, is_overlay=True)
    assert older == ['{"PA":"10.11.128.13","Type":"PA"}']
    assert newer == ['{"Type":"ProviderAddress","Settings":{"ProviderAddress":"10.11.128.13"}}']


def test_traffic_that_comes_back_to_its_pod_is_translated():
    older, newer = texts(nat=NO_NAT, loopback_dsr=True)
    assert older == [ROUTE, '{"Destinations":["10.0.1.7"],"Type":"OutBoundNAT"}']
    assert newer[1] == '{"Type":"OutBoundNAT","Settings":{"Destinations":["10.0.1.7"]}}'


@pytest.mark.parametrize("type", ["ROUTE", "SDNROUTE", "SDNRoute"])
def test_routes_have_one_name_in_the_newer_generation(type):
    policy = Policy.of(type, DestinationPrefix="10.96.0.0/12", NeedEncap=True)
    assert newer_policy(policy, found())["Type"] == "SDNRoute"
    assert older_policy(policy, found())["Type"] == type


def test_a_policy_without_exceptions_of_its_own_gets_them():
    older, _ = texts(Policy.of("OutBoundNAT", ExceptionList="odd", VIP="1.2.3.4"), host_subnet_exclusion=False)
    assert older[0] == '{"ExceptionList":["10.0.1.0/24","10.0.2.0/24"],"Type":"OutBoundNAT","VIP":"1.2.3.4"}'
