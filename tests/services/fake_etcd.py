"""An etcd in memory below the lean transport: what a real one answers to our transactions, as octets.

    etcd = FakeEtcd()
    etcd.lie = lambda request, response: …      may change the response, a protobuf message, in its place
    datastore = EtcdDatastore(settings, clock, etcd.open)

Invariant: without a lie it answers as one member of one cluster does.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.etcdv3.etcd_api_pb2 import Compare, TxnRequest, TxnResponse
from adapters.etcdv3.settings import EtcdSettings, parse_endpoints
from adapters.etcdv3.transport_lean import LeanEtcdTransport

SETTINGS = EtcdSettings(parse_endpoints("http://etcd.test:2379"))
CLUSTER = 0xCA11C0


class FakeEtcd:
    """`rows` are (value, revision of the last change) by key. `asked` counts requests."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[bytes, int]] = {}
        self.revision = 100
        self.asked = 0
        self.lie: Callable[[TxnRequest, TxnResponse], None] = lambda _request, _response: None

    def open(self, endpoints, _tls, _seconds, _question=None) -> FakeTransport:
        return FakeTransport(self, endpoints[0])

    def answer(self, request: TxnRequest) -> TxnResponse:
        self.asked += 1
        response = TxnResponse(succeeded=all(map(self._holds, request.compare)))
        operations = request.success if response.succeeded else request.failure
        if any(not one.HasField("request_range") for one in operations):
            self.revision += 1
        for operation in operations:
            self._carry_out(operation, response.responses.add())
        response.header.cluster_id, response.header.revision = CLUSTER, self.revision
        self.lie(request, response)
        return response

    def _holds(self, guard) -> bool:
        found = self.rows.get(guard.key)
        if guard.target == Compare.MOD:
            return (found[1] if found else 0) == guard.mod_revision
        return (found is None) == (guard.version == 0)

    def _carry_out(self, operation, response) -> None:
        if operation.HasField("request_put"):
            self.rows[operation.request_put.key] = (operation.request_put.value, self.revision)
            response.response_put.SetInParent()
        elif operation.HasField("request_delete_range"):
            gone = self.rows.pop(operation.request_delete_range.key, None)
            response.response_delete_range.deleted = int(gone is not None)
            response.response_delete_range.SetInParent()
        else:
            wanted = operation.request_range
            end = wanted.range_end or wanted.key + b"\0"
            response.response_range.SetInParent()
            for key in sorted(self.rows):
                if wanted.key <= key < end:
                    value, changed = self.rows[key]
                    response.response_range.kvs.add(key=key, value=value, mod_revision=changed)


class FakeTransport(LeanEtcdTransport):
    def __init__(self, etcd: FakeEtcd, endpoint) -> None:
        self.endpoint = endpoint
        self._etcd = etcd

    def _ask(self, request, _seconds):
        return self._etcd.answer(TxnRequest.FromString(request.message)).SerializeToString()

    def close(self) -> None:
        pass
