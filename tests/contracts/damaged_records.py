"""A node with containers on any datastore, each of whose records is spoilt in turn: what DEL, ADD and CHECK make of it.

Derive a class named `Test…` and give it a fixture `damaged`, a `Damaged`. Every member is missing once, and has each
of some values that it should not have; then the container ends with success, nothing of others is touched, whatever
sound records tell of is released, and what cannot be read is named.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import pytest

from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings
from domain.cni.result import result_text
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Handle, Owner
from domain.ipam.errors import IpamError
from ports.datastore import HandleKey
from ports.errors import PortError
from usecases.check_addresses import check_addresses
from worlds.one_node import OneNode, netns

DUAL = IpamSettings(type="calico-ipam", assign_ipv6="true")
OURS, SIBLING = "net1.c1", "net1.c2"
TOLD = (PortError, CniError, IpamError)
NO_OBJECTS: tuple[object, ...] = (None, 7, "x", [], {})
SPARE = (
    *("metadata.uid ", "metadata.creationTimestamp ", "spec.clusterGUID ", "profiles/"),
    *("node1: spec ", "node1: status "),
)
NOT_READY = "Calico is currently not ready to process requests"


class Texts(ABC):
    """What is stored, past the datastore: JSON values by address."""

    @abstractmethod
    def all(self) -> dict[str, object]: ...

    @abstractmethod
    def put(self, address: str, value: object) -> None:
        """In the place of what is there."""

    @abstractmethod
    def restore(self, values: dict[str, object]) -> None:
        """Exactly these."""


class Damaged:
    """`spoils` chooses the damages of one value. With `plain` containers have endpoints in the datastore."""

    def __init__(self, open_datastore: Callable, texts: Texts, *, plain: bool, spoils: Callable) -> None:
        self.node = node = OneNode(datastore=open_datastore)
        self.texts, self.spoils = texts, spoils
        self.add = node.add if plain else node.assign
        node.add_node("other")
        self.add("c1", ipam=DUAL)
        self.result = result_text(self.add("c2", ipam=DUAL), "1.0.0")
        node.add_block("10.244.0.0/26", Owner(HOST, "other"), ("net1.far", 1))
        node.put(HandleKey("net1.far"), Handle({Cidr.parse("10.244.0.0/26"): 1}))
        self.before = texts.all()

    def spoilt(self, address: str) -> Iterator[tuple[str, object]]:
        """The world with that record damaged in every way, one after the other."""
        for what, value in self.spoils(self.before[address]):
            self.texts.restore(self.before)
            self.texts.put(address, value)
            self.node.log.entries.clear()
            yield f"{address}: {what}", self.texts.all()[address]

    def errors(self) -> str:
        return "\n".join(self.node.log.shown("error"))

    def try_add(self, what: str) -> Iterator[str]:
        try:
            self.add("c3", ipam=DUAL)
        except TOLD as error:
            if "net1.c3" in json.dumps(self.texts.all()):
                yield "ADD was refused and has left something"
            named = f"{error} {getattr(error, 'details', '')}"
            if "is corrupt" not in named and NOT_READY not in named and not _means_another(what):
                yield f"ADD does not say which record is at fault: {error}"
            if any(spare in what for spare in SPARE):
                yield f"ADD is refused for what it does not need: {error}"
        self.node.dataplane.disconnect(netns("c3"), "eth0", self.node.call().deadline)

    def try_check(self, _what: str) -> Iterator[str]:
        call = self.node.call("CHECK", "c2", prev_result=self.result, ipam=DUAL)
        try:
            check_addresses(call, self.node.runtime())
        except TOLD as error:
            yield from () if str(error) else ["CHECK says nothing"]


def every_spoil(value: object) -> Iterator[tuple[str, object]]:
    yield from [(f"is {bad!r}", bad) for bad in NO_OBJECTS]
    for path in _paths(value):
        for bad in (..., 7, "x", [7], {"x": 1}, -1, 2**70):
            changed = json.loads(json.dumps(value))
            holder = changed
            for step in path[:-1]:
                holder = holder[step]
            if bad is ...:
                del holder[path[-1]]
            elif bad in (-1, 2**70) and type(holder[path[-1]]) is not int:
                continue
            else:
                holder[path[-1]] = bad
            yield f"{'.'.join(map(str, path))} {'missing' if bad is ... else f'= {bad!r}'}", changed


def some_spoils(value: object) -> Iterator[tuple[str, object]]:
    """Where each case costs more: no object at all, and what lies at the top, or in the spec, of a wrong type."""
    yield from [(f"is {bad!r}", bad) for bad in NO_OBJECTS[1:3]]
    names = [(name,) for name in value] if isinstance(value, dict) else []
    inner = value.get("spec", {}) if isinstance(value, dict) else {}
    for path in [*names, *[("spec", name) for name in inner]]:
        changed = json.loads(json.dumps(value))
        (changed if len(path) == 1 else changed["spec"])[path[-1]] = [7] if len(path) % 2 else {"x": 1}
        yield f"{'.'.join(path)} of a wrong type", changed


def one_spoil(value: object) -> Iterator[tuple[str, object]]:
    """Where each costs a good deal: one member deep inside of a wrong type."""
    path = max(_paths(value), key=len)
    yield from [one for one in every_spoil(value) if one[0] == f"{'.'.join(map(str, path))} = {{'x': 1}}"]


def _paths(value: object, before: tuple = ()) -> Iterator[tuple]:
    entries = list(value.items()) if isinstance(value, dict) else []
    entries += list(enumerate(value))[:1] if isinstance(value, list) else []
    for name, inner in entries:
        yield (*before, name)
        yield from _paths(inner, (*before, name))


class DamagedRecordsContract:
    @pytest.fixture
    def damaged(self) -> Damaged:
        raise NotImplementedError

    def test_a_container_ends_whatever_record_is_damaged(self, damaged: Damaged) -> None:
        """K03. Of what is left a damaged record is the reason, and it is named."""
        faults: list[str] = []
        for address in damaged.before:
            for what, value in damaged.spoilt(address):
                try:
                    for _ in range(2):
                        damaged.node.delete("c1", ipam=DUAL)
                except CniError as error:
                    faults += [] if str(error) == NOT_READY else [f"{what}: {error}"]
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault of that case
                    faults.append(f"{what}: {type(error).__name__} {error}")
                else:
                    faults += [f"{what}: {fault}" for fault in _faults_after_del(damaged, address, value)]
        assert faults == []

    def test_add_and_check_answer_whatever_record_is_damaged(self, damaged: Damaged) -> None:
        """An ADD that is refused leaves nothing, and says which record is at fault; what no ADD needs refuses none."""
        faults: list[str] = []
        for address in damaged.before:
            for what, _ in damaged.spoilt(address):
                for verb in (damaged.try_add, damaged.try_check):
                    try:
                        faults += [f"{what}: {fault}" for fault in verb(what)]
                    except Exception as error:  # noqa: BLE001 - as above
                        faults.append(f"{what}: {type(error).__name__} {error}")
        assert faults == []


def _faults_after_del(damaged: Damaged, address: str, value: object) -> Iterator[str]:
    after = damaged.texts.all()
    own_blocks = {one for one, text in damaged.before.items() if SIBLING in json.dumps(text) and _is_block(one)}
    left = [one for one in after if _is_of_first(one, after[one]) and one != address]
    if left and not (address in own_blocks and "is corrupt" in damaged.errors()):
        yield f"{left} left"
    for one, text in damaged.before.items():
        if one == address or _is_of_first(one, text):
            continue
        if after.get(one) != text:
            yield f"{one} has changed"
    for one in own_blocks - {address}:
        if SIBLING not in json.dumps(after.get(one)):
            yield f"{one} has lost the other container"
    if not _is_of_first(address, damaged.before[address]) and after.get(address) != value:
        yield "was rewritten"


def _is_block(address: str) -> bool:
    return ("/block/" in address and "assignment" in address) or "ipamblocks" in address


def _is_of_first(address: str, value: object) -> bool:
    return OURS in address or OURS in json.dumps(value) or "node1-cni-c1" in address


def _means_another(what: str) -> bool:
    """A pool that is sound and says something else, or nothing."""
    return "ippools/" in what and any(name in what for name in ("cidr ", "kind ", "apiVersion ", "Selector ", "Mode "))
