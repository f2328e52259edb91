"""Damaged records on the datastores that live in memory: the dict, and the little API server in both groups."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from adapters.memory.datastore import MemoryDatastore
from contracts.damaged_records import Damaged, DamagedRecordsContract, Texts, every_spoil, some_spoils
from services.fake_apiserver import FakeApiserver
from worlds.kubernetes_world import Administered


class DictTexts(Texts):
    def open(self, clock) -> MemoryDatastore:
        self.store = MemoryDatastore(clock)
        return self.store

    def all(self) -> dict[str, object]:
        return {address: json.loads(text) for address, text in self.store.records_text().items()}

    def put(self, address: str, value: object) -> None:
        self.store.load({address: json.dumps(value)})

    def restore(self, values: dict[str, object]) -> None:
        self.store.restore(({}, self.store.snapshot()[1]))
        self.store.load({address: json.dumps(value) for address, value in values.items()})


class TestOnADict(DamagedRecordsContract):
    @pytest.fixture
    def damaged(self) -> Damaged:
        texts = DictTexts()
        return Damaged(texts.open, texts, plain=True, spoils=every_spoil)


class ObjectTexts(Texts):
    """An object's identity is the server's, which gives no other."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.server = FakeApiserver(group)

    def open(self, clock) -> Administered:
        return Administered(self.server.transport(), clock, self.server, self.group)

    def all(self) -> dict[str, object]:
        return {"|".join(key): deepcopy(value) for key, value in self.server.objects.items()}

    def put(self, address: str, value: object) -> None:
        key = tuple(address.split("|"))
        if isinstance(value, dict):
            kept = {name: self.server.objects[key][name] for name in ("kind", "apiVersion", "metadata")}
            self.server.objects[key] = {**value, **kept}

    def restore(self, values: dict[str, object]) -> None:
        self.server.objects = {tuple(address.split("|")): deepcopy(value) for address, value in values.items()}


class TestOnAnApiServer(DamagedRecordsContract):
    @pytest.fixture(params=["v1", "v3"])
    def damaged(self, request: pytest.FixtureRequest) -> Damaged:
        texts = ObjectTexts(request.param)
        return Damaged(texts.open, texts, plain=False, spoils=some_spoils)
