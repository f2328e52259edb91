"""Thousands of blocks of other nodes, made within seconds.

On a server of our own they are put straight into its etcd, as the server itself writes them; elsewhere they are
created one by one, over several connections.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

from services.apiserver import ApiServer
from services.custom_resources import GROUPS, kinds
from services.kube_client import KubeClient, Refused
from services.kubernetes_server import KubernetesServer

_AT_ONCE = 100  # operations of a transaction; the server takes 128
_CONNECTIONS = 8


class Crowd:
    """What `fill` made is gone again at the end."""

    def __init__(self, server: KubernetesServer, group: str) -> None:
        self._server = server
        self._group = group
        self._made: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        made, self._made = self._made, []
        if isinstance(self._server, ApiServer):
            operations = [{"requestDeleteRange": {"key": _b64(self._key(plural, name))}} for plural, name in made]
            self._transact(operations)
        else:
            self._by_request(made, lambda client, plural, name: _drop(client, f"{self._path(plural)}/{name}"))

    def fill(self, count: int) -> None:
        """So many blocks of the range 10.80.0.0/13, each of a node of its own, with the affinity."""
        objects = {
            (plural, one["metadata"]["name"]): one for number in range(count) for plural, one in self._pair(number)
        }
        self._made += objects
        if isinstance(self._server, ApiServer):
            self._transact(
                [
                    {"requestPut": {"key": _b64(self._key(*place)), "value": _b64(json.dumps(_stored(one)))}}
                    for place, one in objects.items()
                ]
            )
        else:
            self._by_request(
                list(objects), lambda client, plural, name: client.create(self._path(plural), objects[plural, name])
            )

    def seen(self) -> dict[str, int]:
        """How many there are of each kind, to whoever asks the server."""
        found = {}
        for plural in ("ipamblocks", "blockaffinities"):
            first = self._server.client.get(f"{self._path(plural)}?limit=1")
            found[plural] = len(first["items"]) + first["metadata"].get("remainingItemCount", 0)
        return found

    def _pair(self, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
        node, start = f"foreign-{number}", number * 64
        cidr = f"10.{80 + (start >> 16)}.{(start >> 8) & 255}.{start & 255}/26"
        dashed = cidr.replace(".", "-").replace("/", "-")
        attribute = {"handle_id": f"k8s-pod-network.{number:064x}", "secondary": {"node": node}}
        block = {
            "cidr": cidr,
            "affinity": f"host:{node}",
            "allocations": [0, *[None] * 63],
            "unallocated": list(range(1, 64)),
            "attributes": [attribute],
            "sequenceNumber": 1,
            "sequenceNumberForAllocation": {"0": 0},
            "strictAffinity": False,
            "deleted": False,
        }
        deleted: object = "false" if self._group == "v1" else False
        affinity = {"cidr": cidr, "node": node, "type": "host", "state": "confirmed", "deleted": deleted}
        yield "ipamblocks", self._object("ipamblocks", dashed, block)
        yield "blockaffinities", self._object("blockaffinities", f"{node}-{dashed}", affinity)

    def _object(self, plural: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        whole = {"apiVersion": GROUPS[self._group], "kind": kinds(self._group)[plural]}
        return whole | {"metadata": {"name": name}, "spec": spec}

    def _path(self, plural: str) -> str:
        return f"/apis/{GROUPS[self._group]}/{plural}"

    def _key(self, plural: str, name: str) -> str:
        return f"/registry/{GROUPS[self._group].partition('/')[0]}/{plural}/{name}"

    def _transact(self, operations: list[dict[str, Any]]) -> None:
        assert isinstance(self._server, ApiServer)
        # A transaction is one revision, and a server takes itself to be up to date after the first change of it. So the
        # last change of either kind is alone in one: who has seen it has seen all before.
        lasts = [operations.pop(), operations.pop()] if len(operations) > 1 else []
        for start in range(0, len(operations), _AT_ONCE):
            self._server.etcd.ask("kv/txn", {"success": operations[start : start + _AT_ONCE]})
        for last in lasts:
            self._server.etcd.ask("kv/txn", {"success": [last]})

    def _by_request(self, places: list[tuple[str, str]], work: Any) -> None:
        clients = [self._server.connect() for _ in range(_CONNECTIONS)]

        def run(number: int) -> None:
            for plural, name in places[number::_CONNECTIONS]:
                work(clients[number], plural, name)

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(run, range(_CONNECTIONS)))


def _stored(one: dict[str, Any]) -> dict[str, Any]:
    """With what the server adds to an object that is new."""
    metadata = one["metadata"] | {"uid": str(uuid.uuid4()), "generation": 1}
    return one | {"metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"}}


def _drop(client: KubeClient, path: str) -> None:
    with suppress(Refused):
        client.delete(path)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
