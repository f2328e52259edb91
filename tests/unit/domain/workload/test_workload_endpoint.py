"""Endpoints as values (spec: cni-plugin 3)."""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint


def test_an_endpoints_addresses_are_those_of_its_networks():
    networks = (Cidr.parse("10.0.0.1/32"), Cidr.parse("fd00::1/128"))
    endpoint = WorkloadEndpoint(Metadata("n-cni-c-eth0"), ip_networks=networks)
    assert endpoint.addresses == (Address.parse("10.0.0.1"), Address.parse("fd00::1"))
    assert WorkloadEndpoint(Metadata("x")).addresses == ()
