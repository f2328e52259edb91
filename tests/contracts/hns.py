"""What every way to HNS keeps: derive, provide `hns`, with no object in it, and `run_container`, which makes a
container of that id run. The management address of networks is 192.0.2.10.

Documents go in and come out as `adapters.windows.seam` has them; what v1 made, v2 shows, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.windows.seam import (
    ADDRESS_TAKEN,
    ENDPOINT,
    ENDPOINT_ATTACHED,
    ENDPOINT_NOT_FOUND,
    NAMESPACE,
    NETWORK,
    NETWORK_EXISTS,
    NETWORK_NOT_FOUND,
    Hns,
    HnsError,
    HnsMissing,
    same_id,
)

VERSION = {"SchemaVersion": {"Major": 2, "Minor": 0}}
EVERYTHING = {**VERSION, "Flags": 0}
BRIDGE = {
    "Name": "calico",
    "Type": "L2Bridge",
    "Subnets": [{"AddressPrefix": "10.0.1.0/26", "GatewayAddress": "10.0.1.1"}],
}
NOBODY = "00000000-0000-0000-0000-0000000000AA"
DENY = {"Type": "ACL", "Settings": {"Action": "Block", "Direction": "In", "Priority": 65500}}


def named(name: str) -> dict[str, Any]:
    return {**EVERYTHING, "Filter": f'{{"Name":"{name}"}}'}


def pod(name: str = "pod", address: str = "10.0.1.4", **more: Any) -> dict[str, Any]:
    configurations = [{"IpAddress": address, "PrefixLength": 26}]
    return {**VERSION, "Name": name, "IpConfigurations": configurations, **more}


def join(endpoint: str, verb: str = "Add") -> dict[str, Any]:
    return {"ResourceType": "Endpoint", "RequestType": verb, "Settings": {"EndpointId": endpoint}}


class HnsContract:
    @pytest.fixture
    def network(self, hns: Hns) -> str:
        return str(hns.call("POST", "/networks/", BRIDGE)["ID"])

    # --- v1 ---------------------------------------------------------------------------------------------------------

    def test_nothing_is_there_at_first(self, hns: Hns) -> None:
        assert hns.call("GET", "/networks/") == []
        assert hns.call("GET", "/endpoints/") == []
        assert [hns.enumerate(kind, EVERYTHING) for kind in (NETWORK, ENDPOINT, NAMESPACE)] == [(), (), ()]

    def test_a_network_is_made_shown_and_deleted(self, hns: Hns) -> None:
        made = hns.call("POST", "/networks/", BRIDGE)
        assert made["Name"] == "calico"
        assert made["ManagementIP"] == "192.0.2.10"
        assert made["Subnets"][0]["AddressPrefix"] == "10.0.1.0/26"
        assert made["Subnets"][0]["GatewayAddress"] == "10.0.1.1"
        assert hns.call("GET", f"/networks/{made['ID']}") == made
        assert hns.call("GET", "/networks/") == [made]
        hns.call("DELETE", f"/networks/{made['ID']}")
        assert hns.call("GET", "/networks/") == []

    def test_a_network_name_is_one_network(self, hns: Hns, network: str) -> None:
        with pytest.raises(HnsError) as refusal:
            hns.call("POST", "/networks/", {**BRIDGE, "Name": "CALICO"})
        assert refusal.value.hresult == NETWORK_EXISTS

    def test_a_type_that_there_is_not(self, hns: Hns) -> None:
        with pytest.raises(HnsError, match="HNSCall POST /networks/: Invalid network type"):
            hns.call("POST", "/networks/", {**BRIDGE, "Type": "Bridge"})

    def test_an_overlay_keeps_its_network_number(self, hns: Hns) -> None:
        policies = [{"Type": "VSID", "VSID": 4096}]
        subnet = {"AddressPrefix": "10.0.2.0/24", "GatewayAddress": "10.0.2.1", "Policies": policies}
        made = hns.call("POST", "/networks/", {"Name": "vxlan", "Type": "Overlay", "Subnets": [subnet]})
        assert made["Subnets"][0]["Policies"] == policies
        router, tunnel = hns.query(NETWORK, made["ID"], EVERYTHING)["Policies"]
        assert router == {"Type": "DrMacAddress", "Settings": {"Address": "00-15-5D-AA-BB-CC"}}
        assert tunnel == {"Type": "ProviderAddress", "Settings": {"ProviderAddress": "192.0.2.10"}}

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize("kind", ["networks", "endpoints"])
    def test_an_id_that_nobody_has(self, hns: Hns, method: str, kind: str) -> None:
        with pytest.raises(HnsMissing):
            hns.call(method, f"/{kind}/{NOBODY}")

    def test_the_hosts_endpoint_is_made_attached_and_deleted(self, hns: Hns, network: str) -> None:
        request = {"Name": "calico_ep", "IPAddress": "10.0.1.2", "VirtualNetwork": network}
        made = hns.call("POST", "/endpoints/", request)
        assert made["IPAddress"] == "10.0.1.2"
        assert same_id(made["VirtualNetwork"], network)
        assert made["MacAddress"]
        hns.call("POST", f"/endpoints/{made['ID']}/attach", {"SystemType": "Host", "CompartmentId": 1})
        [shown] = hns.call("GET", "/endpoints/")
        assert shown["Name"] == "calico_ep"
        hns.call("DELETE", f"/endpoints/{made['ID']}")
        assert hns.call("GET", "/endpoints/") == []

    def test_v1_policies_are_updated(self, hns: Hns, network: str) -> None:
        request = {"Name": "pod", "IPAddress": "10.0.1.4", "VirtualNetwork": network}
        made = hns.call("POST", "/endpoints/", request)
        acl = {"Type": "ACL", "Action": "Block", "Direction": "In", "Id": "CNIDefaultDenyAllPolicy"}
        hns.call("POST", f"/endpoints/{made['ID']}", {**made, "Policies": [acl]})
        assert hns.call("GET", f"/endpoints/{made['ID']}")["Policies"] == [acl]

    def test_endpoints_go_with_their_network(self, hns: Hns, network: str) -> None:
        hns.create(ENDPOINT, pod(), network)
        hns.call("DELETE", f"/networks/{network}")
        assert hns.enumerate(ENDPOINT, EVERYTHING) == ()

    def test_an_endpoint_is_added_to_a_container(
        self, hns: Hns, network: str, run_container: Callable[[str], None]
    ) -> None:
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        run_container("sandbox-1")
        hns.attach_container("sandbox-1", endpoint)
        shared = hns.call("GET", f"/endpoints/{endpoint}")["SharedContainers"]
        assert shared == ["sandbox-1"]

    def test_a_container_that_does_not_run(self, hns: Hns, network: str) -> None:
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        with pytest.raises(HnsMissing):
            hns.attach_container("nobody", endpoint)

    # --- v2 ---------------------------------------------------------------------------------------------------------

    def test_a_pods_endpoint_is_made_found_and_deleted(self, hns: Hns, network: str) -> None:
        nat = {"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.96.0.0/12"]}}
        made = hns.create(ENDPOINT, pod(Policies=[nat]), network)
        assert same_id(made["HostComputeNetwork"], network)
        assert made["Policies"] == [nat]
        assert made["IpConfigurations"] == [{"IpAddress": "10.0.1.4", "PrefixLength": 26}]
        assert hns.enumerate(ENDPOINT, named("pod")) == (made["ID"],)
        assert hns.enumerate(ENDPOINT, named("other")) == ()
        assert hns.query(ENDPOINT, made["ID"], EVERYTHING) == made
        hns.delete(ENDPOINT, made["ID"])
        assert hns.enumerate(ENDPOINT, EVERYTHING) == ()

    def test_either_generation_sees_what_the_other_made(self, hns: Hns, network: str) -> None:
        nat = {"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.96.0.0/12"]}}
        route = {"Type": "SDNRoute", "Settings": {"DestinationPrefix": "192.0.2.10/32", "NeedEncap": True}}
        dns = {"Domain": "pod.cluster.local", "ServerList": ["10.96.0.10", "10.96.0.11"]}
        made = hns.create(ENDPOINT, pod(Policies=[nat, route], Dns=dns), network)
        old = hns.call("GET", f"/endpoints/{made['ID']}")
        assert old["Policies"] == [
            {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]},
            {"Type": "ROUTE", "DestinationPrefix": "192.0.2.10/32", "NeedEncap": True},
        ]
        assert (old["IPAddress"], old["PrefixLength"]) == ("10.0.1.4", 26)
        assert (old["DNSSuffix"], old["DNSServerList"]) == ("pod.cluster.local", "10.96.0.10,10.96.0.11")
        assert hns.query(NETWORK, network, EVERYTHING)["Name"] == "calico"
        assert hns.enumerate(NETWORK, named("calico")) == (network,)

    def test_a_new_object_has_the_id_that_was_asked_for(self, hns: Hns, network: str) -> None:
        wanted = "0F0E0D0C-0B0A-0908-0706-050403020100"
        assert same_id(hns.create(ENDPOINT, pod(ID=wanted), network)["ID"], wanted)
        assert same_id(hns.query(ENDPOINT, f"{{{wanted.lower()}}}", EVERYTHING)["ID"], wanted)

    def test_texts_of_every_script_arrive_as_they_left(self, hns: Hns, network: str) -> None:
        made = hns.create(ENDPOINT, pod('a"\\\n/é漢🐈\u0001'), network)
        assert made["Name"] == 'a"\\\n/é漢🐈\u0001'

    def test_an_address_is_one_endpoints(self, hns: Hns, network: str) -> None:
        hns.create(ENDPOINT, pod(), network)
        with pytest.raises(HnsError) as refusal:
            hns.create(ENDPOINT, pod("other"), network)
        assert refusal.value.hresult == ADDRESS_TAKEN
        assert len(hns.enumerate(ENDPOINT, EVERYTHING)) == 1

    def test_no_network_no_endpoint(self, hns: Hns) -> None:
        with pytest.raises(HnsMissing) as refusal:
            hns.create(ENDPOINT, pod(), NOBODY)
        assert refusal.value.hresult == NETWORK_NOT_FOUND

    def test_policies_are_added_to_an_endpoint(self, hns: Hns, network: str) -> None:
        made = hns.create(ENDPOINT, pod(), network)
        request = {"ResourceType": "Policy", "RequestType": "Add", "Settings": {"Policies": [DENY]}}
        hns.modify(ENDPOINT, made["ID"], request)
        assert hns.query(ENDPOINT, made["ID"], EVERYTHING)["Policies"] == [DENY]

    def test_policies_are_added_to_a_network(self, hns: Hns, network: str) -> None:
        host_route = {"Type": "HostRoute", "Settings": {}}
        request = {"ResourceType": "Policy", "RequestType": "Add", "Settings": {"Policies": [host_route]}}
        hns.modify(NETWORK, network, request)
        assert host_route in hns.query(NETWORK, network, EVERYTHING)["Policies"]

    def test_an_endpoint_joins_a_namespace_and_leaves_it(self, hns: Hns, network: str) -> None:
        space = hns.create(NAMESPACE, {**VERSION, "Type": "HostDefault"})["ID"]
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        hns.modify(NAMESPACE, space, join(endpoint))
        resources = hns.query(NAMESPACE, space, EVERYTHING)["Resources"]
        assert resources == [{"Type": "Endpoint", "Data": {"Id": endpoint}}]
        assert same_id(hns.query(ENDPOINT, endpoint, EVERYTHING)["HostComputeNamespace"], space)
        hns.modify(NAMESPACE, space, join(endpoint, "Remove"))
        assert hns.query(NAMESPACE, space, EVERYTHING)["Resources"] == []

    def test_an_endpoint_is_in_one_namespace(self, hns: Hns, network: str) -> None:
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        spaces = [hns.create(NAMESPACE, {**VERSION, "Type": "HostDefault"})["ID"] for _ in range(2)]
        hns.modify(NAMESPACE, spaces[0], join(endpoint))
        with pytest.raises(HnsError) as refusal:
            hns.modify(NAMESPACE, spaces[1], join(endpoint))
        assert refusal.value.hresult == ENDPOINT_ATTACHED

    def test_a_namespace_loses_an_endpoint_that_is_deleted(self, hns: Hns, network: str) -> None:
        space = hns.create(NAMESPACE, {**VERSION, "Type": "HostDefault"})["ID"]
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        hns.modify(NAMESPACE, space, join(endpoint))
        hns.delete(ENDPOINT, endpoint)
        assert hns.query(NAMESPACE, space, EVERYTHING)["Resources"] == []
        hns.delete(NAMESPACE, space)
        assert hns.enumerate(NAMESPACE, EVERYTHING) == ()

    @pytest.mark.parametrize("kind", [NETWORK, ENDPOINT, NAMESPACE])
    def test_every_verb_says_that_nothing_is_there(self, hns: Hns, kind: str) -> None:
        request = {"ResourceType": "Policy", "RequestType": "Add", "Settings": {"Policies": [DENY]}}
        for verb in (
            lambda: hns.query(kind, NOBODY, EVERYTHING),
            lambda: hns.modify(kind, NOBODY, request),
            lambda: hns.delete(kind, NOBODY),
        ):
            with pytest.raises(HnsMissing):
                verb()

    def test_an_endpoint_that_is_not_there_joins_nothing(self, hns: Hns) -> None:
        space = hns.create(NAMESPACE, {**VERSION, "Type": "HostDefault"})["ID"]
        with pytest.raises(HnsMissing) as refusal:
            hns.modify(NAMESPACE, space, join(NOBODY))
        assert refusal.value.hresult == ENDPOINT_NOT_FOUND
