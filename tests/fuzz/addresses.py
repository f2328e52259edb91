"""Addresses, ranges, MACs, quantities, instants, names and selectors: small texts that stand in many places."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import re

from domain.cni.errors import CniError
from domain.cni.gate_url import parse_gate_url, resolve_redirect, shown
from domain.cni.go_quote import go_quoted
from domain.cni.versions import check_version, parse_version
from domain.ipam.address import Address, Cidr
from domain.linux.link import parse_mac
from domain.moment import go_string, parse_go_string, parse_rfc3339, rfc3339
from domain.workload.annotations import parse_prefix
from domain.workload.identity import Identity, full_name, parse_name, split_name
from domain.workload.kubevirt import machines_named_by
from domain.workload.mesos import mesos_endpoint_labels, sanitise_label
from domain.workload.qos import parse_quantity
from domain.workload.selector import SelectorError, parse_selector, selects
from fuzz.target import Allowed, Target, attempt, octets_of, require, text_of


def _by_library(text: str, read: type) -> object:
    """What `ipaddress` makes of it, zones apart; None for what it refuses."""
    with contextlib.suppress(ValueError):
        return None if "%" in text else read(text)
    return None


def _address(octets: bytes) -> None:
    text = text_of(octets)
    read, found = attempt(lambda: Address.parse(text), ValueError)
    theirs = _by_library(text, ipaddress.ip_address)
    require(read is (theirs is not None), "only one of us takes the address", text)
    if read:
        mapped = getattr(theirs, "ipv4_mapped", None) or theirs
        require(str(found) == str(mapped), "we read different addresses", text, found, mapped)
        require(Address.parse(str(found)) == found, "an address does not read back", text)


def _cidr(octets: bytes) -> None:
    text = text_of(octets)
    read, found = attempt(lambda: Cidr.parse(text), ValueError)
    _, _, length = text.partition("/")
    plain = length.isascii() and length.isdigit() and len(length) <= 3
    theirs = _by_library(text, ipaddress.ip_interface) if plain else None
    if theirs is None or getattr(theirs, "ipv4_mapped", None) is None:
        require(read is (theirs is not None), "only one of us takes the range", text)
    if read:
        require(Cidr.parse(str(found)) == found, "a range does not read back", text)
        if theirs is not None and getattr(theirs, "ipv4_mapped", None) is None:
            require(str(found.network) == str(theirs.network), "we read different ranges", text)
    with Allowed(ValueError):
        network = parse_prefix(text).network
        require(network.first in range(network.end) and network.address in network, "outside of itself", text)


def _moment(octets: bytes) -> None:
    text = text_of(octets)
    for read, write in ((parse_rfc3339, rfc3339), (parse_go_string, go_string)):
        with Allowed(ValueError):
            instant = read(text)
            again = read(write(instant))
            require(again == (instant // 10**9 * 10**9 if write is rfc3339 else instant), "does not read back", text)
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", text):
        read, found = attempt(lambda: parse_rfc3339(text), ValueError)
        known, theirs = attempt(lambda: datetime.datetime.fromisoformat(text), ValueError)
        require(not known or read, "a time that the library reads is refused", text)
        require(not read or known or text.startswith("0000"), "a time that no clock shows is taken", text)
        if read and known:
            require(found // 10**9 == int(theirs.timestamp()), "we read different times", text)


def _gate(octets: bytes) -> None:
    text = text_of(octets)
    require(isinstance(shown(text), str), "nothing to show", text)
    with Allowed(ValueError):
        gate = parse_gate_url(text)
        if gate.fetchable:
            line = gate.target + gate.authority
            require(line.isascii() and not set(line) & set(" \r\n\0"), "not one line", text, line)
            resolve_redirect(gate, text)


def _names(octets: bytes) -> None:
    text = text_of(octets)
    require(go_quoted(text)[:1] == '"', "not quoted", text)
    sanitise_label(text)
    mesos_endpoint_labels(((text, text),))
    split_name(text)
    machines_named_by(text)
    with Allowed(ValueError):
        identity = parse_name(text)
        require(isinstance(identity, Identity), "no identity", text)
        require(full_name(identity) == text, "a name does not read back", text, full_name(identity))
    with Allowed(ValueError, CniError):
        parse_version(text)
    with Allowed(CniError):
        check_version("ADD", text)


def _mac(octets: bytes) -> None:
    text = text_of(octets)
    with Allowed(ValueError):
        mac = parse_mac(text)
        require(parse_mac(mac) == mac, "a MAC does not read back", text, mac)


def _quantity(octets: bytes) -> None:
    with Allowed(ValueError):
        require(isinstance(parse_quantity(text_of(octets)), int), "no number", octets)


def _selector(octets: bytes) -> None:
    text = text_of(octets)
    with Allowed(SelectorError):
        parse_selector(text)
        for labels in ({}, {"a": "b"}, {"has": "x", "role": "db", "": ""}):
            require(isinstance(selects(text, labels), bool), "neither selects nor not", text)


TARGETS = (
    Target(
        "address",
        _address,
        octets_of("10.0.0.1", "::", "fd00::10.0.0.1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "fe80::1%eth0", "01.2.3.4"),
        most=64,
    ),
    Target(
        "cidr",
        _cidr,
        octets_of("10.0.0.0/8", "::/0", "fd00::1/128", "::ffff:1.2.3.4/100", "1.2.3.4/032", "1.2.3.4/33", "1.2.3.4"),
        most=64,
    ),
    Target(
        "moment",
        _moment,
        octets_of(
            *("2026-11-29T13:06:12Z", "2026-11-29t13:06:12.5+01:00", "2026-11-29 13:06:12.3456789 +0000 UTC"),
            *("2024-02-29T23:59:60Z", "0000-01-01T00:00:00z", "+026-1 -1_T 1:00:00Z", "9999-12-31T24:00:00-23:59"),
        ),
        most=64,
    ),
    Target(
        "gate_url",
        _gate,
        octets_of("http://u:p@[::1]:80/a%20b?c#d", "https://host", "/path", "*", "//x", "http://h:x/", "../y?z"),
        most=256,
    ),
    Target(
        "names",
        _names,
        octets_of("node1-k8s-pod--1-eth0", "n-cni-c-eth0", "a/b..c-.d", "1.0.0", "v0.3.1", "k8s.net.vmi.ns.name"),
        most=128,
    ),
    Target("mac", _mac, octets_of("aa:bb:cc:dd:ee:ff", "aa-bb-cc-dd-ee-ff", "aabb.ccdd.eeff", "0:1:2"), most=64),
    Target("quantity", _quantity, octets_of("10M", "1.5Gi", "1e3", "-2k", "0.0001m", "1E", "+.5", "9" * 30), most=64),
    Target(
        "selector",
        _selector,
        octets_of(
            *("all()", "a == 'b' && !has(c) || (d in {'e', \"f\"})", "a not in {}", "a contains 'x'", "global()"),
            *("a starts with 'b'", "a ends with 'b'", "!(a != 'b')", "(" * 60 + "all()" + ")" * 60, "!" * 90 + "all()"),
        ),
        form="text",
        most=2048,
    ),
)
