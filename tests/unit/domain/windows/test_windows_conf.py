"""What a network configuration says to Windows nodes."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.cni.netconf import parse_netconf
from domain.cni.result import Dns
from domain.json_text import dumps
from domain.windows.conf import Policy, WindowsConf, read_windows_conf


def conf(**keys) -> WindowsConf:
    return read_windows_conf(parse_netconf(dumps({"name": "calico", **keys})))


def refusal(**keys) -> str:
    with pytest.raises(CniError) as raised:
        conf(**keys)
    return str(raised.value)


def test_a_configuration_that_says_nothing():
    assert conf() == WindowsConf("calico")
    assert conf().default_deny


def test_flags_and_numbers():
    said = {"windows_use_single_network": True, "windows_disable_default_deny_all_policy": True}
    said |= {"windows_loopback_DSR": True, "windows_pod_deletion_timestamp_timeout": 12}
    said["windows_disable_host_subnet_nat_exclusion"] = True
    assert conf(**said) == WindowsConf(
        "calico",
        single_network=True,
        default_deny=False,
        loopback_dsr=True,
        host_subnet_exclusion=False,
        deletion_timeout=12,
    )


def test_an_overlay_has_a_number_and_a_prefix():
    plain = conf(mode="vxlan")
    assert (plain.is_overlay, plain.vni, plain.mac_prefix) == (True, 4096, "0E-2A")
    other = conf(mode="vxlan", vxlan_vni=4097, vxlan_mac_prefix="aa-BB")
    assert (other.vni, other.mac_prefix) == (4097, "aa-BB")


@pytest.mark.parametrize("prefix", ["0E2A", "0E-2", "0E:2A", "0G-2A", "0E-2A-"])
def test_a_prefix_that_is_none(prefix):
    why = f"endpointMacPrefix [{prefix}] is invalid, value must be of the format xx-xx"
    assert refusal(mode="vxlan", vxlan_mac_prefix=prefix) == why
    assert conf(vxlan_mac_prefix=prefix).mac_prefix == prefix  # only an overlay has use for it


def test_windows_has_no_small_overlay_numbers():
    assert refusal(mode="vxlan", vxlan_vni=4095) == "Windows does not support VXLANVNI < 4096"
    assert not conf(vxlan_vni=4095).is_overlay


def test_policies_of_endpoints_in_either_generations_words():
    """The installer writes `Name` and `Value`, others `name` and `value`."""
    older = {"Name": "EndpointPolicy", "Value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]}}
    newer = {"name": "endpointpolicy", "value": {"type": "OutBoundNAT", "Settings": {"Exceptions": ["10.96.0.0/12"]}}}
    other = {"name": "NetworkPolicy", "value": {"Type": "VLAN"}}
    policy = Policy.of("OutBoundNAT", ExceptionList=["10.96.0.0/12"])
    assert conf(policies=[older, other, None, newer]).policies == (policy, policy)


def test_members_of_a_policy_that_are_no_object():
    assert Policy("ACL", "[]").members() == {}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (
            "policies",
            {},
            "failed to load netconf: json: cannot unmarshal object into Go struct field NetConf.policies of",
        ),
        ("policies", [{"name": "EndpointPolicy"}], 'an EndpointPolicy of "policies" has no "Type": {}'),
        ("policies", [{"name": "EndpointPolicy", "value": {"Type": 1}}], 'has no "Type": {"Type":1}'),
        ("dns", [], "failed to load netconf: json: cannot unmarshal array into Go struct field NetConf.dns of"),
    ],
)
def test_what_cannot_be_used(key, value, why):
    assert why in refusal(**{key: value})


def test_name_servers_of_the_runtime_come_before_those_of_the_configuration():
    """WFV-009 WFV-014"""
    configured = {"Nameservers": ["10.96.0.10"], "Search": ["pod.cluster.local"]}
    assert conf(DNS=configured).dns == Dns(("10.96.0.10",), search=("pod.cluster.local",))
    wanted = {"servers": ["10.96.0.11"], "searches": ["svc.cluster.local"], "domain": "d", "options": ["ndots:5"]}
    assert conf(DNS=configured, runtimeConfig={"dns": wanted}).dns == Dns(
        ("10.96.0.11",), "d", ("svc.cluster.local",), ("ndots:5",)
    )
    assert conf(DNS=configured, runtimeConfig={"dns": {"searches": ["s"]}}).dns.nameservers == ("10.96.0.10",)
