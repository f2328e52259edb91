"""A transport on the `etcd3` package and grpcio.

The package's client makes requests and holds the channel. What it lacks is added here and in `race_etcd3`: several
endpoints, the system's authorities, tokens over http (current gRPC refuses the package's way of sending them without
TLS), the revision of a write, and statuses as they are. Its message classes are ours (`etcdrpc`).

Invariant: no type of gRPC's leaves the two modules; nothing is sent twice.
"""

from __future__ import annotations

import _thread

from adapters.etcdv3 import etcdrpc
from adapters.etcdv3.messages import DELETE, PUT, RANGE, Done, read_token
from adapters.etcdv3.scrutiny import believed, deletion_result, page_result, read_result, write_result, writings_result
from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    EtcdTransport,
    EtcdTransportError,
    EtcdUntrusted,
    Heard,
    WriteOutcome,
)
from adapters.regular_file import read_regular
from adapters.wire.grpc_call import LONGEST
from adapters.wire.grpcio import GRACE, is_over, takes_only_tls_1_3
from adapters.wire.http2 import MOST
from adapters.wire.tls import SYSTEM_AUTHORITIES

etcdrpc.install()

import grpc  # noqa: E402 - beside the package
from etcd3 import Etcd3Client, transactions  # noqa: E402 - after its messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from adapters.etcdv3.settings import Endpoint
    from adapters.etcdv3.transport import EtcdTls, Page, Range, Row, Writing
    from adapters.wire.grpcio import Withheld


_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),  # else each host name is looked up for TXT records too
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel waits for what an old one to that address waited for
    ("grpc.max_receive_message_length", MOST),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_SERVERS_DEADLINE = "context deadline exceeded"
_OPERATIONS = {"response_range": RANGE, "response_put": PUT, "response_delete_range": DELETE}
_NOT_SENT = "failed to connect to all addresses; last error: "
_TLS_FAULTS = (  # a word of the library's text, and what an operator has to know
    ("CERTIFICATE_VERIFY_FAILED", "certificate problem: the server's certificate is not signed by the given authority"),
    ("Hostname Verification", "certificate problem: the server's certificate is not for this host name"),
    ("Peer name", "certificate problem: the server's certificate is not for this host name"),
    ("CERTIFICATE", "certificate problem: the server does not accept the client's certificate"),
    ("UNKNOWN_CA", "certificate problem: the server does not accept the client's certificate"),
    ("security handshaker", "certificate problem: authority, client certificate or key cannot be used together"),
    ("Unwrap failed", "certificate problem: the server does not accept the client's certificate, or wants one"),
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS there; is http meant instead of https?"),
    ("TSI_PROTOCOL_FAILURE", "no agreement on a version or a cipher of TLS"),
)


class Client(Etcd3Client):  # type: ignore[misc]  # the package has no types
    """The package's client for one endpoint, with certificates from memory."""

    def __init__(self, endpoint: Endpoint, tls: EtcdTls) -> None:
        self.endpoint = endpoint
        self._tls = tls
        if endpoint.secure and tls.only_newest and not takes_only_tls_1_3():
            raise EtcdUntrusted("TLS 1.3 alone is wanted, but the library was loaded without")
        super().__init__(endpoint.host_text, endpoint.port, ca_cert=endpoint.secure or None, grpc_options=_OPTIONS)

    def _get_secure_creds(self, *_paths: object) -> grpc.ChannelCredentials:
        """Called by the package's constructor when there is a `ca_cert`, which would name a file."""
        authorities = self._tls.ca or _system_authorities()
        return grpc.ssl_channel_credentials(authorities, self._tls.key or None, self._tls.cert or None)


class Etcd3Transport(EtcdTransport):
    """On a client whose channel is connected."""

    def __init__(self, client: Client, withheld: Callable[[], Withheld]) -> None:
        self._client = client
        self._withheld = withheld
        self.endpoint = client.endpoint

    def authenticate(self, user: str, password: str, seconds: float) -> str:
        request = etcdrpc.AuthenticateRequest(name=user, password=password)
        stub = etcdrpc.AuthStub(self._client.channel)
        answer = self._call(stub.Authenticate, request, seconds, token="")
        return believed(lambda: read_token(answer.SerializeToString()))

    def read(self, ranges: Sequence[tuple[bytes, bytes]], seconds: float) -> list[list[Row]]:
        wanted = [transactions.Get(first, end or None) for first, end in ranges]
        return believed(lambda: read_result(self._transact((), wanted, (), seconds), ranges))

    def read_page(self, wanted: Range, most: int, revision: int, seconds: float) -> Page:
        first, end = wanted
        operation = self._client._ops_to_requests((transactions.Get(first, end or None),))
        operation[0].request_range.limit, operation[0].request_range.revision = most, revision
        request = etcdrpc.TxnRequest(success=operation)
        return believed(lambda: page_result(self._transacted(request, seconds), wanted, most, revision))

    def create(self, key: bytes, value: bytes, seconds: float) -> WriteOutcome:
        return self._write(key, 0, transactions.Put(key, value), seconds)

    def replace(self, key: bytes, value: bytes, revision: int, seconds: float) -> WriteOutcome:
        return self._write(key, revision, transactions.Put(key, value), seconds)

    def delete(self, key: bytes, revision: int | None, seconds: float) -> WriteOutcome:
        deletion = transactions.Delete(key, prev_kv=True)
        if revision is not None:
            return self._write(key, revision, deletion, seconds, DELETE)
        return believed(lambda: deletion_result(self._transact((), (deletion,), (), seconds)))

    def write_all(self, writings: Sequence[Writing], seconds: float) -> tuple[WriteOutcome, ...]:
        guards = [_guard(one.key, one.revision) for one in writings]
        wanted = [
            transactions.Delete(one.key, prev_kv=True) if one.value is None else transactions.Put(one.key, one.value)
            for one in writings
        ]
        otherwise = [transactions.Get(one.key) for one in writings]
        return believed(lambda: writings_result(self._transact(guards, wanted, otherwise, seconds), writings))

    def close(self) -> None:
        with self._withheld():
            let_go(self._client)

    def _write(self, key: bytes, expected: int, operation: Any, seconds: float, kind: int = PUT) -> WriteOutcome:
        """If the key is at that revision; 0: if it is not there."""
        otherwise = (transactions.Get(key),)
        done = self._transact((_guard(key, expected),), (operation,), otherwise, seconds)
        return believed(lambda: write_result(done, key, expected, kind))

    def _transact(self, guards: Sequence[Any], wanted: Sequence[Any], otherwise: Sequence[Any], seconds: float) -> Done:
        """The whole answer; the package's own `transaction` would leave the revision out."""
        request = etcdrpc.TxnRequest(
            compare=[guard.build_message() for guard in guards],
            success=self._client._ops_to_requests(wanted),
            failure=self._client._ops_to_requests(otherwise),
        )
        return self._transacted(request, seconds)

    def _transacted(self, request: Any, seconds: float) -> Done:
        done = _done(self._call(self._client.kvstub.Txn, request, seconds, token=self.token))
        self.heard = Heard(done.cluster, done.revision)
        return done

    def _call(self, procedure: Any, request: Any, seconds: float, *, token: str) -> Any:
        metadata = (("token", token),) if token else None
        with self._withheld() as signals:
            future = procedure.future(request, timeout=seconds, metadata=metadata)
            if is_over(future, seconds, signals):
                return outcome(future)
            future.cancel()
            raise EtcdTransportError(DEADLINE_EXCEEDED, "no answer")


def _guard(key: bytes, expected: int) -> Any:
    return transactions.Mod(key) == expected if expected else transactions.Version(key) == 0


def let_go(client: Client) -> None:
    """Close it, and wait for that as long as it may take. The library waits until its work on the connection is over,
    which a server that sends headers without end can prevent for ever; then the work ends with the process.
    """
    closed = _thread.allocate_lock()
    closed.acquire()

    def close() -> None:
        try:
            client.close()
        finally:
            closed.release()

    _thread.start_new_thread(close, ())
    closed.acquire(timeout=GRACE)


def _done(answer: Any) -> Done:
    ranges = [one.response_range for one in answer.responses if one.HasField("response_range")]
    deleted = [one.response_delete_range.deleted for one in answer.responses if one.HasField("response_delete_range")]
    return Done(
        answer.succeeded,
        answer.header.revision,
        tuple([[(row.key, row.value, row.mod_revision) for row in one.kvs] for one in ranges]),
        sum(deleted),
        tuple([_OPERATIONS.get(one.WhichOneof("response"), 0) for one in answer.responses]),
        any(one.more for one in ranges),
        answer.header.cluster_id,
    )


def outcome(future: Any) -> Any:
    """The answer of a call that is over, or our error for the library's."""
    try:
        return future.result()
    except grpc.RpcError as error:
        raise _translated(error) from error


def _translated(error: Any) -> EtcdTransportError:
    status: int = error.code().value[0]
    message: str = error.details()[:LONGEST] if error.details() else error.code().name.lower().replace("_", " ")
    if _NOT_SENT not in message:
        # The server stops at our deadline, too. It has no status for that, and its answer may be here before ours.
        return EtcdTransportError(DEADLINE_EXCEEDED if message == _SERVERS_DEADLINE else status, message)
    message = message.partition(_NOT_SENT)[2].removeprefix("UNKNOWN: ").removeprefix("UNAVAILABLE: ")
    for word, fault in _TLS_FAULTS:
        if word in message:
            return EtcdUntrusted(f"{fault} ({message})")
    return EtcdTransportError(status, message, harmless=True)


def _system_authorities() -> bytes | None:
    """The first bundle there is; else gRPC's own."""
    for path in SYSTEM_AUTHORITIES:
        try:
            return read_regular(path)
        except OSError:
            continue
    return None
