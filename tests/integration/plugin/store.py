"""The records of a datastore, read and written past the product, and records to begin with."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

from adapters.sqlite.database import open_database
from services.etcd import EtcdServer

V3 = "/calico/resources/v3/projectcalico.org"
IPAM = "/calico/ipam/v2"
NODE = "node-a"
_UID = "6b0a8f9e-0000-4000-8000-{:012x}"


class Records(ABC):
    """The records of a datastore of any technology. `settings` are the configuration's members that lead there."""

    settings: dict[str, Any]

    @abstractmethod
    def begin(self) -> None:
        """Make it, or empty it."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def nowhere(self) -> dict[str, Any]:
        """Settings that lead to a datastore that is not there."""

    @abstractmethod
    def write(self, key: str, text: str) -> None: ...

    @abstractmethod
    def drop(self, key: str) -> None:
        """Delete a record that must be there."""

    @abstractmethod
    def texts(self) -> dict[str, str]:
        """All records, in key order."""

    def has_any(self, prefix: str) -> bool:
        """Whether any key begins with it."""
        return any(key.startswith(prefix) for key in self.texts())

    def create(self, records: dict[str, str]) -> None:
        """A fresh datastore with these records."""
        self.begin()
        self.put_all(records)

    def put(self, key: str, value: object) -> None:
        self.write(key, value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))

    def put_all(self, records: dict[str, Any]) -> None:
        for key, value in records.items():
            self.put(key, value)

    def under(self, prefix: str) -> dict[str, Any]:
        """Records by what follows the prefix in their key."""
        return {key[len(prefix) :]: json.loads(text) for key, text in self.texts().items() if key.startswith(prefix)}

    def endpoints(self) -> dict[str, Any]:
        return self.under(f"{V3}/workloadendpoints/")

    def profiles(self) -> dict[str, Any]:
        return self.under(f"{V3}/profiles/")

    def handles(self) -> dict[str, Any]:
        return self.under(f"{IPAM}/handle/")

    def blocks(self) -> dict[str, Any]:
        return self.under(f"{IPAM}/assignment/")

    def allocated(self) -> dict[str, list[tuple[str, int]]]:
        """Handle → (block, ordinal) of every address that is taken."""
        taken: dict[str, list[tuple[str, int]]] = {}
        for block in self.blocks().values():
            for ordinal, index in enumerate(block["allocations"]):
                if index is not None:
                    handle = block["attributes"][index]["handle_id"]
                    taken.setdefault(handle, []).append((block["cidr"], ordinal))
        return taken

    def check(self) -> None:
        """Blocks and handles agree with themselves and with each other."""
        counts: dict[str, dict[str, int]] = {}
        for block in self.blocks().values():
            free = {ordinal for ordinal, index in enumerate(block["allocations"]) if index is None}
            assert sorted(block["unallocated"]) == sorted(free), block
        for handle, places in self.allocated().items():
            for cidr, _ in places:
                per_block = counts.setdefault(handle, {})
                per_block[cidr] = per_block.get(cidr, 0) + 1
        assert {name: record["block"] for name, record in self.handles().items()} == counts


class Store(Records):
    """The records of a datastore file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def settings(self) -> dict[str, str]:
        return {"datastore_type": "sqlite", "sqlite_path": str(self.path)}

    def begin(self) -> None:
        open_database(str(self.path), create=True).close()

    def exists(self) -> bool:
        return self.path.is_file()

    def nowhere(self) -> dict[str, Any]:
        return {"datastore_type": "sqlite", "sqlite_path": str(self.path.with_suffix(".missing"))}

    def write(self, key: str, text: str) -> None:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.execute("UPDATE meta SET revision = revision + 1")
            connection.execute("INSERT OR REPLACE INTO records SELECT ?, ?, revision FROM meta", (key, text))

    def drop(self, key: str) -> None:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.execute("UPDATE meta SET revision = revision + 1")
            assert connection.execute("DELETE FROM records WHERE key = ?", (key,)).rowcount == 1, key

    def texts(self) -> dict[str, str]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            return dict(connection.execute("SELECT key, text FROM records ORDER BY key").fetchall())

    def has_any(self, prefix: str) -> bool:
        """Quickly, for those who wait for a moment of a call."""
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            query = "SELECT 1 FROM records WHERE key >= ? AND key < ? LIMIT 1"
            return bool(connection.execute(query, (prefix, prefix + "~")).fetchall())

    def check(self) -> None:
        """The file is whole, too."""
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        super().check()


class EtcdRecords(Records):
    """The records of an etcd that the host reaches at a port of its own loopback."""

    def __init__(self, server: EtcdServer, port: int) -> None:
        self.server = server
        self.settings = {"datastore_type": "etcdv3", "etcd_endpoints": f"http://127.0.0.1:{port}"}

    def begin(self) -> None:
        self.server.clear()

    def exists(self) -> bool:
        return True

    def nowhere(self) -> dict[str, Any]:
        return self.settings | {"etcd_endpoints": "http://127.0.0.1:2370"}

    def write(self, key: str, text: str) -> None:
        self.server.put(key, text)

    def drop(self, key: str) -> None:
        assert self.server.drop(key), key

    def texts(self) -> dict[str, str]:
        return self.server.texts()


def cluster_records(
    *pools: str, ready: bool | None = True, block_sizes: dict[str, int] | None = None
) -> dict[str, str]:
    """What `tortie init` would have written: readiness, one node, pools named after their ranges."""
    sizes = block_sizes or {}
    records: dict[str, Any] = {
        f"{V3}/clusterinformations/default": _resource(
            "ClusterInformation", "default", {"clusterGUID": "0" * 32, "datastoreReady": ready}
        ),
        **node_record(NODE),
    }
    for cidr in pools:
        records |= pool_record(cidr, blockSize=sizes.get(cidr, 122 if ":" in cidr else 26))
    return {key: json.dumps(value, separators=(",", ":")) for key, value in records.items()}


def node_record(name: str) -> dict[str, Any]:
    return {f"{V3}/nodes/{name}": _resource("Node", name, {})}


def pool_record(cidr: str, **spec: Any) -> dict[str, Any]:
    name = cidr.replace(".", "-").replace(":", "-").replace("/", "-").replace("--", "-")
    whole = {
        "cidr": cidr,
        "vxlanMode": "Never",
        "ipipMode": "Never",
        "natOutgoing": True,
        "nodeSelector": "all()",
        "allowedUses": ["Workload", "Tunnel"],
        "assignmentMode": "Automatic",
    } | spec
    return {f"{V3}/ippools/{name}": _resource("IPPool", name, whole)}


def _resource(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": name,
        "uid": _UID.format(crc32(f"{kind} {name}".encode())),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"kind": kind, "apiVersion": "projectcalico.org/v3", "metadata": metadata, "spec": spec}
