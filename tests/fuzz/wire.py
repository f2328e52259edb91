"""What servers send: HTTP/2, header fields, gRPC, protobuf messages, HTTP/1.1, names from DNS."""

from __future__ import annotations

import http.client
import io

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import hpack
from google.protobuf.message import DecodeError

from adapters.etcdv3 import etcd_api_pb2, messages
from adapters.etcdv3.discovery import _Unanswered, parse_answer
from adapters.etcdv3.scrutiny import deletion_result, read_result, write_result, writings_result
from adapters.etcdv3.transport import Writing
from adapters.grpc import cni_dataplane_pb2
from adapters.grpc.messages import read_add_reply, read_del_reply
from adapters.kubernetes.answers import NoReply, Reply, read_answer
from adapters.kubernetes.paths import stranger
from adapters.kubernetes.transport.http11 import Reader
from adapters.kubernetes.transport.seam import HttpAnswer, HttpRequest
from adapters.linux.readiness_http import _answer
from adapters.wire.faults import Fault
from adapters.wire.grpc_call import Channel
from adapters.wire.hpack import Decoder
from adapters.wire.http2 import Http2
from adapters.wire.protobuf import fields
from domain.json_text import dumps
from fuzz.target import Allowed, Target, attempt, octets_of, require

# --- HTTP/2 ----------------------------------------------------------------------------------------------------------

_LARGE = "a number too large"  # ours has a bound of 28 bits, the library's none
_FIELDS = [(":status", "200"), ("content-type", "application/grpc"), ("x", "y" * 40)]


def _pieces(octets: bytes, size: int) -> list[bytes]:
    """Blocks of one connection: a length in an octet before each."""
    found = []
    while octets:
        length = octets[0] + 1
        found.append(octets[1 : 1 + length])
        octets = octets[1 + length :]
    return found[:size]


def _hpack(octets: bytes) -> None:
    ours, theirs = Decoder(), hpack.Decoder(max_header_list_size=1 << 24)
    for block in _pieces(octets, 8):
        read, found = attempt(lambda piece=block: ours.decode(piece), ValueError)
        try:
            known = [(bytes(name), bytes(value)) for name, value in theirs.decode(block, raw=True)]
        except (hpack.HPACKError, UnicodeDecodeError, IndexError):
            require(not read, "the library refuses what we take", octets, found)
            return
        if not read:
            require(_LARGE in str(found), "we refuse what the library takes", octets, found, known)
            return
        require(found == known, "we read different fields", octets, found, known)


def _server(*, body: bytes = b"\0\0\0\0\3abc", trailers: bool = True, split: bool = False) -> bytes:
    """What a server of the library sends to a first request."""
    ours = Http2()
    ours.begin(((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"x")), b"body")
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    server.receive_data(ours.take())
    server.send_headers(1, _FIELDS, end_stream=not (body or trailers))
    pieces = [body[:2], body[2:]] if split else [body] if body else []
    for at, piece in enumerate(pieces, 1):
        server.send_data(1, piece, end_stream=not trailers and at == len(pieces))
    if trailers:
        server.send_headers(1, [("grpc-status", "0"), ("grpc-message", "a%20b")], end_stream=True)
    return server.data_to_send()


def _library_client() -> h2.connection.H2Connection:
    client = h2.connection.H2Connection(h2.config.H2Configuration(validate_inbound_headers=False))
    client.initiate_connection()
    client.increment_flow_control_window(1 << 29)
    client.send_headers(1, [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "x")])
    client.send_data(1, b"body", end_stream=True)
    client.data_to_send()
    return client


_STRICTER = (
    "HTTP/2: a frame that is too large",
    "a number too large",
    "does not speak HTTP/2",
    "a push that was declined",
)


def _http2(octets: bytes) -> None:
    ours = Http2()
    exchange = ours.begin(
        ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"x")), b"body"
    )
    ours.take()
    fault = ""
    try:
        for start in range(0, len(octets), 97):
            ours.feed(octets[start : start + 97])
            require(len(ours.take()) < 1 << 20, "more is sent than was asked for", octets)
    except Fault as error:
        fault = str(error)
    known = _by_library_client(octets)
    if known is None:
        return
    require(not fault or any(why in fault for why in _STRICTER), "we refuse what the library takes", octets, fault)
    header, body = known
    if not fault and header is not None:
        require(exchange.fields == header, "we read different fields", octets, exchange.fields, header)
        require(bytes(exchange.body) == body, "we read different bodies", octets, exchange.body, body)


def _by_library_client(octets: bytes) -> tuple[list[tuple[bytes, bytes]] | None, bytes] | None:
    """Header and body of the first answer; None for what the library refuses: it looks at more than we do, at states
    and at what a header may hold.
    """
    try:
        events = _library_client().receive_data(octets)
    except (h2.exceptions.ProtocolError, hpack.HPACKError, ValueError, KeyError, IndexError):
        return None
    ours = [event for event in events if getattr(event, "stream_id", None) == 1]
    headers = [event.headers for event in ours if isinstance(event, h2.events.ResponseReceived)]
    body = b"".join([event.data for event in ours if isinstance(event, h2.events.DataReceived)])
    header = [(bytes(name), bytes(value)) for name, value in headers[-1]] if headers else None
    return header, body


class _Spoken:
    """A stream on which all has been said already."""

    def __init__(self, octets: bytes) -> None:
        self._left = [octets[start : start + 61] for start in range(0, len(octets), 61)]

    def send(self, octets: bytes):  # a piece of Work, as those of a real stream
        return
        yield

    def receive(self):
        return self._left.pop(0) if self._left else b""
        yield

    def close(self) -> None:
        pass


def _result_of(work):
    try:
        while True:
            next(work)
    except StopIteration as ended:
        return ended.value


def _grpc(octets: bytes) -> None:
    channel = Channel(_Spoken(octets), "x", secure=False)
    for _ in range(2):
        with Allowed(Fault):
            message = _result_of(channel.call("/a.B/C", b"abc", 5.0, "token"))
            require(isinstance(message, bytes) and len(message) <= len(octets), "more than was sent", octets)


# --- protobuf --------------------------------------------------------------------------------------------------------


def _by_library(kind, octets: bytes):
    """The message, or None for octets that the library refuses."""
    message = kind()
    try:
        message.ParseFromString(octets)
    except (DecodeError, UnicodeDecodeError):
        return None
    return message


def _etcd(octets: bytes) -> None:
    read, done = attempt(lambda: messages.read_done(octets), ValueError)
    with Allowed(ValueError):
        messages.read_token(octets)
    with Allowed(ValueError):
        sum(1 for _ in fields(octets))
    theirs = _by_library(etcd_api_pb2.TxnResponse, octets)
    require(not read or theirs is not None or _is_odd(octets), "the library refuses what we take", octets, done)
    if not read or theirs is None or theirs.SerializeToString(deterministic=True) != octets:
        return  # two spellings of one member, or members of other kinds: whoever sends that is no etcd
    ranges = [one.response_range for one in theirs.responses if one.WhichOneof("response") == "response_range"]
    rows = [[(kv.key, kv.value, kv.mod_revision) for kv in one.kvs] for one in ranges]
    require(done.succeeded == theirs.succeeded, "we read different outcomes", octets)
    require(done.revision == theirs.header.revision, "we read different revisions", octets)
    require([list(one) for one in done.rows] == rows, "we read different rows", octets, done.rows, rows)


def _scrutiny(octets: bytes) -> None:
    """An answer to each kind of transaction: what is believed is about what was asked for."""
    read, done = attempt(lambda: messages.read_done(octets), ValueError)
    if not read:
        return
    with Allowed(ValueError):
        for rows in read_result(done, [(b"/calico/a", b"/calico/b")]):
            require(all(b"/calico/a" <= key < b"/calico/b" for key, _, _ in rows), "a stranger's row", octets, rows)
    for judge in (
        lambda: (write_result(done, b"/calico/a", 5),),
        lambda: (write_result(done, b"/calico/a", 0, messages.DELETE),),
        lambda: writings_result(done, (Writing(b"/calico/a", b"", 5), Writing(b"/calico/b", None, 0))),
        lambda: (deletion_result(done),),
    ):
        with Allowed(ValueError):
            require(all(one.revision >= 0 for one in judge()), "a revision that no store has", octets)


def _is_odd(octets: bytes) -> bool:
    """Members below one that nobody asks for are left unread by us; the library looks at all."""
    return bool(octets)


def _dataplane(octets: bytes) -> None:
    with Allowed(ValueError):
        read_del_reply(octets)
    read, reply = attempt(lambda: read_add_reply(octets), ValueError)
    theirs = _by_library(cni_dataplane_pb2.AddReply, octets)
    if read and theirs is not None and theirs.SerializeToString(deterministic=True) == octets:
        error = None if theirs.successful else theirs.error_message
        require(reply.error == error, "we read different outcomes", octets, reply, theirs)
        require(reply.host_interface == theirs.host_interface_name, "we read different names", octets)
        require(reply.mac == theirs.container_mac, "we read different MACs", octets)


# --- HTTP/1.1 --------------------------------------------------------------------------------------------------------


class _Socket:
    """As much of a socket as `http.client` needs to read from octets."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(self._octets))


def _http11(octets: bytes) -> None:
    """The first octet says which method was asked with, and in what pieces the answer comes."""
    chosen, sent = (octets[0] if octets else 0), octets[1:]
    method, size = ("GET", "HEAD", "CONNECT")[chosen % 3], 1 + chosen // 3
    left = [sent[start : start + size] for start in range(0, len(sent), size)]
    reader = Reader(lambda: left.pop(0) if left else b"")
    read, found = attempt(lambda: reader.answer(method), Fault)
    received = bytearray(sent)
    with Allowed(ValueError, IndexError):
        _answer(received)
    head = sent.rpartition(b"\r\n\r\n")[0]
    if not read or b"\n" in head.replace(b"\r\n", b"") or b"\r" in head.replace(b"\r\n", b""):
        return  # the library ends lines in more ways than one
    answer = found[0]
    require(len(answer.body) <= len(sent), "more than was sent", octets)
    theirs = http.client.HTTPResponse(_Socket(sent), method=method)
    try:
        theirs.begin()
        body = theirs.read()
    except (http.client.HTTPException, ValueError):
        return  # the library has other bounds
    if theirs.headers.defects or theirs.status < 200:
        return  # the library takes the rest of a header for the body, and most remarks for the answer
    require(answer.status == theirs.status, "we read different statuses", octets, answer.status, theirs.status)
    said = (theirs.getheader("transfer-encoding") or "").lower(), theirs.headers.get_all("content-length") or ()
    if said[0] in ("", "chunked") and len(said[1]) < 2 and method != "CONNECT" and theirs.status >= 200:
        require(answer.body == body, "we read different bodies", octets, answer.body, body)


def _api_answer(octets: bytes) -> None:
    """Status, Retry-After and body, as lines."""
    status, after, body = [*octets.split(b"\n", 2), b"", b""][:3]
    number = int(status) if status.isdigit() and len(status) == 3 else 200
    found = read_answer(HttpAnswer(number, body, {"retry-after": after.decode("latin-1")}))
    require(isinstance(found, Reply | NoReply), "neither reply nor fault", octets)
    if isinstance(found, Reply):
        for path in _PATHS:
            for method in ("GET", "PUT", "DELETE"):
                require(isinstance(stranger(HttpRequest(method, path), found.object), str), "no verdict", octets)
        dumps([found.message, found.reason, found.ok, [list(cause) for cause in found.causes]])
    else:
        require(0 <= found.after < 10**9 and found.text, "no time to wait", octets)


_PATHS = (
    *("/apis", "/apis/crd.projectcalico.org/v1/ippools", "/apis/projectcalico.org/v3/ippools/pool1"),
    *("/api/v1/namespaces/default/pods/web-0", "/api/v1/nodes/node1", "/api/v1/namespaces/default/pods"),
)

# --- DNS -------------------------------------------------------------------------------------------------------------

_QUESTION = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\5_etcd\4_tcp\1x\0\0\x21\0\1"
_RECORD = b"\xc0\x0c\0\x21\0\1\0\0\0\x05\0\x0b\0\1\0\2\x09\x4b\1a\xc0\x17\0"


def _dns(octets: bytes) -> None:
    with Allowed(_Unanswered):
        for priority, weight, port, name in parse_answer(octets, _QUESTION):
            require(max(priority, weight, port) < 1 << 16 and len(name) < 20_000, "no server", octets)


def _block(fields_: list[tuple[str, str]]) -> bytes:
    encoded = hpack.Encoder().encode(fields_)
    return bytes([len(encoded) - 1]) + encoded


_TXN = etcd_api_pb2.TxnResponse(succeeded=True)
_TXN.header.revision = 77
_ROWS = _TXN.responses.add().response_range.kvs.add()
_ROWS.key, _ROWS.value, _ROWS.mod_revision = b"/calico/x", b"{}", 5
_TXN.responses.add().response_delete_range.deleted = 3
_TXN.responses.add().response_put.SetInParent()
_ANSWERS = []
for _kind in ("response_range", "response_put", "response_delete_range"):
    for _done in (True, False):
        _ONE = etcd_api_pb2.TxnResponse(succeeded=_done)
        _ONE.header.revision = 9
        getattr(_ONE.responses.add(), _kind).SetInParent()
        _ANSWERS.append(_ONE.SerializeToString())
_ONE.responses[0].response_delete_range.deleted = 1
_ANSWERS.append(_ONE.SerializeToString())
_STATUS = dumps({"kind": "Status", "message": "no", "reason": "Conflict", "details": {"causes": [{"reason": "r"}]}})

TARGETS = (
    Target("hpack", _hpack, (_block(_FIELDS) * 3, b"\2\x3f\xe1\x1f" + _block(_FIELDS), b"\0\x20" + _block(_FIELDS))),
    Target(
        "http2",
        _http2,
        (
            *(_server(), _server(body=b"", trailers=False), _server(body=b"x" * 300, trailers=False, split=True)),
            _server()[:40] + b"\0\0\x08\6\0\0\0\0\0pingpong" + _server()[40:],
            _server() + b"\0\0\x0b\7\0\0\0\0\0\0\0\0\1\0\0\0\0bye" + b"\0\0\4\3\0\0\0\0\1\0\0\0\7",
        ),
    ),
    Target("grpc", _grpc, (_server(), _server(body=b"\1\0\0\0\1a"), _server(body=b"", trailers=True))),
    Target(
        "etcd_answer",
        _etcd,
        (_TXN.SerializeToString(), b"\x12\1t"),
    ),
    Target("etcd_scrutiny", _scrutiny, (_TXN.SerializeToString(), *_ANSWERS)),
    Target(
        "dataplane_answer",
        _dataplane,
        (
            cni_dataplane_pb2.AddReply(
                successful=True, host_interface_name="cali1", container_mac="aa"
            ).SerializeToString(),
            cni_dataplane_pb2.AddReply(error_message="é").SerializeToString(),
        ),
    ),
    Target(
        "http11",
        _http11,
        octets_of(
            *("\x60HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "\3HTTP/1.0 404 no\r\nA: b\r\na: c\r\n\r\nrest"),
            "\x30HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n"
            "A\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
            "\x06HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 301 x\r\nLocation: /y\r\nConnection: close\r\n\r\n",
        ),
        form="text",
    ),
    Target(
        "api_answer",
        _api_answer,
        octets_of(
            f"409\n3\n{_STATUS}", '200\n\n{"kind": "Pod"}', "404\n\n404 page not found\n", "503\n5\n<html>", "429"
        ),
        form="text",
    ),
    Target(
        "dns_answer",
        _dns,
        (_QUESTION[:2] + b"\x81\x80\0\1\0\1" + _QUESTION[8:] + _RECORD, _QUESTION[:3] + b"\3"),
        most=512,
    ),
)
