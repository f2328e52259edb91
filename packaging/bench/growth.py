"""Records of a cluster that has grown, to see whether a call costs more in it.

    blocks     of other nodes, one address taken in each, with their affinities and handles
    nodes      other nodes, without blocks
    pods       of this node: full blocks of its own, and for each address its handle and endpoint
    handles    without blocks

They are written past the product, in its spelling.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from world import NODE

_IPAM, _V3 = "/calico/ipam/v2", "/calico/resources/v3/projectcalico.org"
_AT_ONCE = 100  # operations of a transaction; an etcd takes 128
_SIZE = 64
KINDS = ("blocks", "nodes", "pods", "handles")


def records(kind: str, count: int) -> Iterator[tuple[str, str]]:
    """Keys and texts. Ranges begin far from where the node's own block is, which its name decides."""
    for number in range(count):
        if kind == "nodes":
            name = f"other-{number}"
            yield f"{_V3}/nodes/{name}", _text(_resource("Node", name, {}))
        elif kind == "handles":
            yield _handle(f"gone.{number}", _block_range(0x0A700000, number // _SIZE))
        elif kind == "blocks":
            yield from _foreign_block(number)
        else:
            yield from _own_pod(number)


def _foreign_block(number: int) -> Iterator[tuple[str, str]]:
    cidr, node = _block_range(0x0A600000, number), f"other-{number}"  # from 10.96.0.0 on
    yield from _block(cidr, node, [f"other.{number}"])
    yield _handle(f"other.{number}", cidr)


def _own_pod(number: int) -> Iterator[tuple[str, str]]:
    """With the block, for the first of each: full, though of the last block some have no pod here."""
    cidr = _block_range(0x0A700000, number // _SIZE)  # from 10.112.0.0 on
    if number % _SIZE == 0:
        yield from _block(cidr, NODE, [f"{NODE}.pod{one}" for one in range(number, number + _SIZE)])
    yield _handle(f"{NODE}.pod{number}", cidr)
    name = f"{NODE}-cni-pod{number}-eth0"
    labels = {"projectcalico.org/namespace": "default", "projectcalico.org/orchestrator": "cni"}
    spec = {
        "orchestrator": "cni",
        "node": NODE,
        "containerID": f"pod{number}",
        "endpoint": "eth0",
        "ipNetworks": [f"{_dotted(0x0A700000 + number)}/32"],
        "profiles": ["bench"],
        "interfaceName": f"calipod{number}",
        "mac": "aa:aa:aa:aa:aa:aa",
    }
    endpoint = _resource("WorkloadEndpoint", name, spec)
    endpoint["metadata"] |= {"namespace": "default", "labels": labels}
    yield f"{_V3}/workloadendpoints/default/{name}", _text(endpoint)


def _block(cidr: str, node: str, handles: list[str]) -> Iterator[tuple[str, str]]:
    taken = len(handles)
    block = {
        "cidr": cidr,
        "affinity": f"host:{node}",
        "allocations": [*range(taken), *[None] * (_SIZE - taken)],
        "unallocated": list(range(taken, _SIZE)),
        "attributes": [{"handle_id": one, "secondary": {"node": node}} for one in handles],
        "sequenceNumber": taken,
        "sequenceNumberForAllocation": {str(one): one for one in range(taken)},
        "deleted": False,
    }
    dashed = cidr.replace("/", "-")
    yield f"{_IPAM}/assignment/ipv4/block/{dashed}", _text(block)
    yield f"{_IPAM}/host/{node}/ipv4/block/{dashed}", _text({"state": "confirmed", "deleted": False})


def _handle(name: str, cidr: str) -> tuple[str, str]:
    return f"{_IPAM}/handle/{name}", _text({"block": {cidr: 1}, "deleted": False})


def _resource(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    uid = "6b0a8f9e-0000-4000-8000-000000000000"
    metadata = {"name": name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": kind, "apiVersion": "projectcalico.org/v3", "metadata": metadata, "spec": spec}


def _block_range(start: int, number: int) -> str:
    return f"{_dotted(start + number * _SIZE)}/26"


def _dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def fill_etcd(server: Any, kind: str, count: int) -> None:
    """`server` is one of tests/services/etcd."""
    puts = [{"requestPut": {"key": _b64(key), "value": _b64(text)}} for key, text in records(kind, count)]
    for start in range(0, len(puts), _AT_ONCE):
        server.ask("kv/txn", {"success": puts[start : start + _AT_ONCE]})


def fill_sqlite(path: str, kind: str, count: int) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany("INSERT INTO records VALUES (?, ?, 1)", records(kind, count))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
