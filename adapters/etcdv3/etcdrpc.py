"""etcd's messages and services as the `etcd3` package expects to find them in its own `etcd3.etcdrpc`.

What the package brings was generated for protobuf 3 and does not load with a later one. So the messages that we use
are declared in etcd_api.proto, and this module takes the package's one's place. Services that we do not call are
there for the package's client to hold, and are empty.

Invariant: the package finds every name that it looks for when it is loaded.
"""

from __future__ import annotations

import sys

from adapters.etcdv3.etcd_api_pb2 import (
    AuthenticateRequest,
    AuthenticateResponse,
    Compare,
    DeleteRangeRequest,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    TxnResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grpc import Channel, UnaryUnaryMultiCallable

__all__ = [
    "AuthenticateRequest",
    "Compare",
    "DeleteRangeRequest",
    "PutRequest",
    "RangeRequest",
    "RequestOp",
    "TxnRequest",
]


class KVStub:
    """Transactions on a gRPC channel."""

    def __init__(self, channel: Channel) -> None:
        self.Txn: UnaryUnaryMultiCallable[TxnRequest, TxnResponse] = channel.unary_unary(
            "/etcdserverpb.KV/Txn", TxnRequest.SerializeToString, TxnResponse.FromString
        )


class AuthStub:
    """Signing in on a gRPC channel."""

    def __init__(self, channel: Channel) -> None:
        self.Authenticate: UnaryUnaryMultiCallable[AuthenticateRequest, AuthenticateResponse] = channel.unary_unary(
            "/etcdserverpb.Auth/Authenticate", AuthenticateRequest.SerializeToString, AuthenticateResponse.FromString
        )


class _Uncalled:
    def __init__(self, channel: Channel) -> None:
        pass


ClusterStub = LeaseStub = MaintenanceStub = WatchStub = _Uncalled


def install() -> None:
    """Be `etcd3.etcdrpc`. To be called before the package is first imported."""
    sys.modules["etcd3.etcdrpc"] = sys.modules[__name__]
