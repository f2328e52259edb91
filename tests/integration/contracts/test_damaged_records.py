"""Damaged records on the embedded datastore and on etcd: what DEL, ADD and CHECK make of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.settings import read_settings
from adapters.etcdv3.transport_lean import open_lean
from adapters.sqlite.datastore import SqliteDatastore
from contracts.damaged_records import Damaged, DamagedRecordsContract, Texts, one_spoil
from services.etcd import EtcdServer, shared_etcd


class SqliteTexts(Texts):
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def open(self, clock) -> SqliteDatastore:
        self.store = SqliteDatastore(self.path, clock, create=True)
        return self.store

    def all(self) -> dict[str, object]:
        with sqlite3.connect(self.path) as other:
            rows = other.execute("SELECT key, text FROM records").fetchall()
        other.close()
        return {key: json.loads(text) for key, text in rows}

    def put(self, address: str, value: object) -> None:
        self.restore({**self.all(), address: value})

    def restore(self, values: dict[str, object]) -> None:
        with sqlite3.connect(self.path) as other:
            other.execute("DELETE FROM records")
            rows = [(key, json.dumps(value)) for key, value in values.items()]
            other.executemany("INSERT INTO records (key, text, revision) VALUES (?, ?, 1)", rows)
        other.close()


class TestOnSqlite(DamagedRecordsContract):
    @pytest.fixture
    def damaged(self, tmp_path: Path) -> Iterator[Damaged]:
        texts = SqliteTexts(tmp_path / "datastore.db")
        yield Damaged(texts.open, texts, plain=True, spoils=one_spoil)
        texts.store.close()


@pytest.fixture(scope="module")
def server() -> Iterator[EtcdServer]:
    with shared_etcd() as etcd:
        yield etcd


class EtcdTexts(Texts):
    def __init__(self, server: EtcdServer) -> None:
        self.server = server

    def open(self, clock) -> EtcdDatastore:
        settings = read_settings(lambda name: {"ETCD_ENDPOINTS": self.server.url}.get(name, ""), {})
        self.store = EtcdDatastore(settings, clock, open_lean)
        return self.store

    def all(self) -> dict[str, object]:
        return {key: json.loads(text) for key, text in self.server.texts().items()}

    def put(self, address: str, value: object) -> None:
        self.server.put(address, json.dumps(value))

    def restore(self, values: dict[str, object]) -> None:
        now = self.all()
        for address in now.keys() - values.keys():
            self.server.drop(address)
        for address, value in values.items():
            if now.get(address) != value:
                self.put(address, value)


class TestOnEtcd(DamagedRecordsContract):
    @pytest.fixture
    def damaged(self, server: EtcdServer) -> Iterator[Damaged]:
        server.clear()
        texts = EtcdTexts(server)
        yield Damaged(texts.open, texts, plain=True, spoils=one_spoil)
        texts.store.close()
