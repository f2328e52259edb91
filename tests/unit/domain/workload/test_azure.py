"""What Azure's plugin is told and what is remembered, checklist AZ-001 to AZ-006."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.errors import INVALID_CONFIG, CniError
from domain.ipam.address import Cidr
from domain.workload.azure import (
    AzureEndpoint,
    AzureNetwork,
    ask_for_release,
    ask_for_subnet,
    endpoint_path,
    endpoint_text,
    network_after_add,
    network_path,
    network_text,
    parse_endpoint,
    parse_network,
)

NETWORK = AzureNetwork("net1", ("192.168.0.0/12",))
ENDPOINT = AzureEndpoint("net1", "cid", "eth0", ("192.168.5.5/32",))
UNTOUCHED = '{ "ipam": {} }'


def test_state_reads_back_as_written():
    """AZ-001."""
    network = AzureNetwork("net1", ("192.168.0.0/24",))
    endpoint = AzureEndpoint("net1", "cid", "eth0", ("192.168.0.0/32",))
    assert network_text(network) == '{"Name":"net1","Subnets":["192.168.0.0/24"]}'
    assert parse_network(network_text(network)) == network
    assert endpoint_text(endpoint) == (
        '{"Network":"net1","ContainerID":"cid","Interface":"eth0","Addresses":["192.168.0.0/32"]}'
    )
    assert parse_endpoint(endpoint_text(endpoint)) == endpoint


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS, st.lists(TEXTS), TEXTS)
def test_any_state_reads_back(name, texts, interface):
    network = AzureNetwork(name, tuple(texts))
    endpoint = AzureEndpoint(name, name, interface, tuple(texts))
    assert parse_network(network_text(network)) == network
    assert parse_endpoint(endpoint_text(endpoint)) == endpoint


@pytest.mark.parametrize("network", [None, AzureNetwork("net1")])
def test_an_add_without_a_known_subnet_is_passed_on_unchanged(network):
    """AZ-002."""
    assert ask_for_subnet(UNTOUCHED, network) == UNTOUCHED


def test_an_add_asks_for_the_known_subnet():
    """AZ-003."""
    assert ask_for_subnet(UNTOUCHED, NETWORK) == '{"ipam":{"subnet":"192.168.0.0/12"}}'


@pytest.mark.parametrize(
    ("network", "endpoint"),
    [
        pytest.param(None, None, id="AZ-004"),
        pytest.param(AzureNetwork("net1"), AzureEndpoint("net1", "cid", "eth0"), id="AZ-004, empty lists"),
        pytest.param(AzureNetwork("net1"), ENDPOINT, id="AZ-005"),
        pytest.param(NETWORK, None, id="network alone"),
        pytest.param(NETWORK, AzureEndpoint("net1", "cid", "eth0"), id="endpoint without address"),
    ],
)
def test_a_delete_without_address_or_subnet_is_passed_on_unchanged(network, endpoint):
    assert ask_for_release(UNTOUCHED, network, endpoint) == UNTOUCHED


def test_a_delete_names_the_bare_address_and_its_subnet():
    """AZ-006."""
    asked = ask_for_release(UNTOUCHED, NETWORK, ENDPOINT)
    assert asked == '{"ipam":{"ipAddress":"192.168.5.5","subnet":"192.168.0.0/12"}}'


def test_other_members_survive_with_their_keys_sorted():
    text = '{"z": [{"b": 1, "a": 2}], "ipam": {"type": "azure-vnet-ipam"}, "a": null}'
    assert ask_for_subnet(text, NETWORK) == (
        '{"a":null,"ipam":{"subnet":"192.168.0.0/12","type":"azure-vnet-ipam"},"z":[{"a":2,"b":1}]}'
    )


def test_a_configuration_whose_ipam_is_no_object_is_an_error():
    with pytest.raises(CniError) as caught:
        ask_for_subnet('{"ipam": 5}', NETWORK)
    assert caught.value.code == INVALID_CONFIG


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected end of JSON input"),
        ("[]", "a JSON object is expected"),
        ('{"Name": 5}', "Name must be a string"),
        ('{"Name": "n", "Subnets": "x"}', "Subnets must be a list of strings"),
        ('{"Subnets": ["x", 5]}', "Subnets must be a list of strings"),
    ],
)
def test_damaged_state_is_an_error(text, why):
    with pytest.raises(ValueError, match=why):
        parse_network(text)


def test_the_network_remembers_the_masked_subnet_of_the_first_address():
    addresses = (Cidr.parse("192.168.5.5/24"), Cidr.parse("fd00::1/64"))
    assert network_after_add("net1", addresses) == AzureNetwork("net1", ("192.168.5.0/24",))
    assert network_after_add("net1", ()) == AzureNetwork("net1")


def test_where_the_state_is_kept():
    assert network_path("net1") == "/var/run/calico/azure/networks/net1/network.json"
    assert endpoint_path("net1", "cid", "eth0") == "/var/run/calico/azure/networks/net1/cid-eth0"


def test_names_of_any_length_fit_into_a_files_name():
    paths = [endpoint_path("n" * 300, "c" * 300 + tail, "eth0") for tail in "ab"]
    assert len(set(paths)) == 2
    for path in (*paths, network_path("n" * 300)):
        assert max(len(part) for part in path.split("/")) <= 255
    assert paths[0].rpartition("/")[0] == network_path("n" * 300).rpartition("/")[0]
