"""Connections on bare sockets, against real listeners: each way to be refused, to be kept waiting, or to be fooled."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from adapters.wire.faults import AllFailed, Fault, TimedOut, Untrusted
from adapters.wire.sockets import connect_tcp, connect_unix
from adapters.wire.tls import TlsSettings, make_context, start_tls
from adapters.wire.waiting import drive, race
from services.etcd import Authority
from services.tcp_proxy import BlackHole

ROOT = Path(__file__).resolve().parents[3]


def within(work, seconds: float = 30.0):
    return drive(work, time.monotonic() + seconds)


@contextmanager
def listener(host: str = "127.0.0.1", serve=None):
    """Port of one that does `serve(connection)` for each that connects; without it nothing is ever accepted."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:

        def accept():
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        serve(connection)

        if serve is not None:
            threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # ends `accept`


def echo(connection):
    while octets := connection.recv(65536):
        connection.sendall(octets)


# --- sockets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_octets_go_there_and_back(host):
    with listener("127.0.0.1" if host == "localhost" else host, echo) as port:
        stream = within(connect_tcp(host, port))
        message = os.urandom(3_000_000)
        came = bytearray()

        def talk():
            sent = 0
            while len(came) < len(message):  # in pieces: whoever sends without reading waits for ever
                if sent < len(message):
                    yield from stream.send(message[sent : sent + 65536])
                    sent += 65536
                came.extend((yield from stream.receive()))

        within(talk(), 60)
        assert came == message
        stream.close()
        stream.close()


def test_a_refusal_names_the_address():
    with pytest.raises(AllFailed, match=r"^dial tcp 127\.0\.0\.1:1: connect: connection refused$"):
        within(connect_tcp("127.0.0.1", 1))


@pytest.mark.parametrize("host", ["tortie-test.invalid", "a\0b", "", "x" * 70 + ".invalid", "no host at all"])
def test_what_is_no_host_is_told(host):
    with pytest.raises(Fault, match="lookup"):
        within(connect_tcp(host, 1))


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_what_is_no_port_is_told(port):
    with pytest.raises(Fault, match="no port"):
        within(connect_tcp("127.0.0.1", port))


def test_nobody_waits_longer_than_asked():
    with BlackHole() as hole:
        began = time.monotonic()
        with pytest.raises(TimedOut):
            within(connect_tcp("127.0.0.1", hole.port), 0.3)
        assert 0.25 < time.monotonic() - began < 10


def test_one_of_several_that_answers_is_enough():
    with BlackHole() as hole, listener(serve=echo) as port:
        began = time.monotonic()
        stream = within(race([connect_tcp("127.0.0.1", one) for one in (1, hole.port, port)], 0.25), 60)
        assert stream.connection.getpeername()[1] == port
        assert time.monotonic() - began < 20
        stream.close()


def test_unix_sockets(tmp_path):
    path = str(tmp_path / "s.sock")
    with pytest.raises(Fault, match=r"^dial unix .*s\.sock: connect: no such file or directory$"):
        within(connect_unix(path))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(0)
        stream = within(connect_unix(path))
        with pytest.raises(TimedOut):  # its queue is full
            within(connect_unix(path), 0.1)
        stream.close()
    with pytest.raises(Fault, match="connection refused"):
        within(connect_unix(path))
    with pytest.raises(Fault, match="too long"):
        within(connect_unix("/x" * 200))


def test_a_connection_that_breaks_is_told():
    def reset(connection):
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with listener(serve=reset) as port:
        stream = within(connect_tcp("127.0.0.1", port))
        within(stream.send(b"x"))
        with pytest.raises(Fault, match="the connection broke: connection reset by peer"):
            within(stream.receive())
        with pytest.raises(Fault, match="the connection broke: broken pipe"):
            within(stream.send(b"x"))
        stream.close()


def test_a_sender_without_end_does_not_get_round_the_deadline():
    def chatter(connection):
        while True:
            connection.sendall(b"x" * 65536)

    def swallow(stream):
        while True:
            yield from stream.receive()

    with listener(serve=chatter) as port:
        stream = within(connect_tcp("127.0.0.1", port))
        with pytest.raises(TimedOut):
            within(swallow(stream), 0.2)
        stream.close()


def test_a_receiver_that_does_not_read_does_not_get_round_the_deadline():
    with listener() as port:
        stream = within(connect_tcp("127.0.0.1", port))
        with pytest.raises(TimedOut):
            within(stream.send(b"x" * 100_000_000), 0.2)
        stream.close()


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"), "another authority")


@pytest.fixture(scope="module")
def mine(authority):
    cert, key = authority.issue("client")
    return TlsSettings(authority.ca.read_bytes(), cert.read_bytes(), key.read_bytes(), protocols=(b"h2",))


def issued(authority, name: str, start: int, end: int):
    """A server's certificate that is valid from and to so many days from now."""
    days = [datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=day) for day in (start, end)]
    cert, key = authority.issue(name, "IP:127.0.0.1")
    request, extensions = authority.folder / f"{name}.csr", authority.folder / f"{name}.ext"
    authority.folder.joinpath("index.txt").write_text("")
    config = authority.folder / "ca.cnf"
    config.write_text(
        f"[ca]\ndefault_ca=here\n[here]\ndatabase={authority.folder}/index.txt\nnew_certs_dir={authority.folder}\n"
        f"rand_serial=yes\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n"
    )
    words = ["openssl", "ca", "-batch", "-config", config, "-in", request, "-out", cert, "-extfile", extensions]
    words += ["-cert", authority.ca, "-keyfile", authority.folder / "ca-key.pem", "-notext"]
    words += ["-startdate", f"{days[0]:%Y%m%d%H%M%SZ}", "-enddate", f"{days[1]:%Y%m%d%H%M%SZ}"]
    subprocess.run(words, check=True, capture_output=True)
    return cert, key


@contextmanager
def secure_listener(pair, clients_of=None, alpn=("h2",)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.set_alpn_protocols(list(alpn))
    if clients_of is not None:
        context.load_verify_locations(clients_of.ca)
        context.verify_mode = ssl.CERT_REQUIRED

    def serve(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(connection, server_side=True) as wrapped:
            echo(wrapped)

    with listener(serve=serve) as port:
        yield port


def greeted(port: int, settings: TlsSettings, host: str = "127.0.0.1") -> tuple[str | None, bytes]:
    context = make_context(settings)

    def greet():
        stream = yield from start_tls((yield from connect_tcp("127.0.0.1", port)), context, host)
        try:
            yield from stream.send(b"hello")
            return stream.alpn, (yield from stream.receive())
        finally:
            stream.close()

    return within(greet())


@pytest.fixture(scope="module")
def secure(authority):
    with secure_listener(authority.issue("server", "IP:127.0.0.1,DNS:localhost"), clients_of=authority) as port:
        yield port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_both_sides_show_certificates_and_agree_on_a_protocol(secure, mine, host):
    assert greeted(secure, mine, host) == ("h2", b"hello")
    assert greeted(secure, mine.replace(protocols=(b"http/1.1",)), host) == (None, b"hello")


def test_large_messages_go_through(secure, mine):
    def talk():
        stream = yield from start_tls((yield from connect_tcp("127.0.0.1", secure)), make_context(mine), "localhost")
        came = bytearray()
        for turn in range(1, 41):
            yield from stream.send(b"x" * 50_000)
            while len(came) < turn * 50_000:
                came.extend((yield from stream.receive(1000)))
        stream.close()
        return bytes(came)

    assert within(talk(), 60) == b"x" * 2_000_000


UNFIT = "cannot be used together"
JUNK = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("change", "host", "text"),
    [
        (lambda mine, other: mine, "127.0.0.2", "not for this host name"),
        (lambda mine, other: mine, "elsewhere.example", "not for this host name"),
        (lambda mine, other: mine.replace(ca=other.ca), "127.0.0.1", "not signed by the given authority"),
        (lambda mine, other: mine.replace(ca=b""), "127.0.0.1", "not signed by the given authority"),
        (lambda mine, other: mine.replace(cert=b"", key=b""), "127.0.0.1", "does not accept the client's certificate"),
        (
            lambda mine, other: mine.replace(cert=other.cert, key=other.key),
            "127.0.0.1",
            "does not accept the client's certificate",
        ),
        (lambda mine, other: mine.replace(key=other.key), "127.0.0.1", UNFIT),
        (lambda mine, other: mine.replace(ca=JUNK), "127.0.0.1", UNFIT),
        (lambda mine, other: mine.replace(ca=b"\xff\xfe"), "127.0.0.1", UNFIT),
        (lambda mine, other: mine.replace(cert=JUNK), "127.0.0.1", UNFIT),
    ],
)
def test_who_cannot_be_trusted_is_told_with_the_reason(secure, mine, foreign, change, host, text):
    cert, key = foreign.issue("client")
    other = TlsSettings(foreign.ca.read_bytes(), cert.read_bytes(), key.read_bytes())
    with pytest.raises(Untrusted, match="certificate problem: ") as caught:
        greeted(secure, change(mine, other), host)
    assert text in str(caught.value)


def test_the_common_name_does_not_count(authority, mine):
    with secure_listener(authority.issue("named.example")) as port:
        with pytest.raises(Untrusted, match="not for this host name"):
            greeted(port, mine, "named.example")
        assert greeted(port, mine.replace(verified=False), "named.example") == ("h2", b"hello")


@pytest.mark.parametrize(("days", "text"), [((-2, -1), "has expired"), ((1, 2), "is not valid yet")])
def test_certificates_count_only_in_their_time(authority, mine, days, text):
    with secure_listener(issued(authority, f"server{days[0]}", *days)) as port:
        with pytest.raises(Untrusted, match=f"certificate problem: the server's certificate {text}"):
            greeted(port, mine)
        assert greeted(port, mine.replace(verified=False)) == ("h2", b"hello")


def test_an_unverified_server_may_be_anybody(secure, mine, foreign):
    settings = mine.replace(ca=foreign.ca.read_bytes(), verified=False)
    assert greeted(secure, settings, "elsewhere.example") == ("h2", b"hello")


def test_an_encrypted_key_is_told_and_nobody_asked_for_its_password(secure, mine, authority):
    words = ["openssl", "ec", "-in", authority.issue("other")[1], "-aes128", "-passout", "pass:planted"]
    key = subprocess.run(words, check=True, capture_output=True).stdout
    with pytest.raises(Untrusted, match="the key is encrypted"):
        greeted(secure, mine.replace(key=key))


@pytest.mark.parametrize("host", ["", "a\0b", ".x"])
def test_what_is_no_host_name_is_told(secure, mine, host):
    with pytest.raises(Fault, match="TLS handshake failed"):
        greeted(secure, mine, host)


def test_authorities_may_have_comments_in_any_language(secure, mine):
    assert greeted(secure, mine.replace(ca="# Größe\n".encode() + mine.ca)) == ("h2", b"hello")


def test_the_environment_may_name_the_systems_authorities(secure, mine, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    assert greeted(secure, mine.replace(ca=b"")) == ("h2", b"hello")


def test_a_server_without_tls_is_recognised(mine):
    def http(connection):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with listener(serve=http) as port, pytest.raises(Untrusted, match="is http meant instead of https"):
        greeted(port, mine)


@pytest.mark.parametrize("octets", [b"", b"\x16\x03\x03", b"\x16\x03\x03\xff\xff" + b"x" * 70_000, b"\0" * 1000])
def test_a_server_that_breaks_off_or_talks_nonsense_is_a_fault(mine, octets):
    def nonsense(connection):
        connection.recv(1000)
        connection.sendall(octets)

    with listener(serve=nonsense) as port, pytest.raises(Fault):
        greeted(port, mine)


def test_a_handshake_that_is_never_answered_ends_in_time(mine):
    def handshake(port):
        yield from start_tls((yield from connect_tcp("127.0.0.1", port)), make_context(mine), "127.0.0.1")

    with listener() as port, pytest.raises(TimedOut):
        within(handshake(port), 0.2)


def test_nothing_stays_open(secure, mine):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    greeted(secure, mine)
    before = descriptors()
    for _ in range(20):  # the server is in this process and closes its own ends when it comes to it
        for host in ("127.0.0.1", "elsewhere.example"):
            with suppress(Fault):
                greeted(secure, mine, host)
        for host in ("127.0.0.1", "tortie-test.invalid"):
            with suppress(Fault):
                within(connect_tcp(host, 1))
    assert descriptors() < before + 10


# --- what it costs to load -------------------------------------------------------------------------------------------

LOADED = """
import sys
before = set(sys.modules)
sys.path.insert(0, {root!r})
import adapters.wire.grpc_call, adapters.wire.sockets, adapters.wire.waiting, adapters.wire.tls
import adapters.etcdv3.transport_lean, adapters.grpc.transport_lean, adapters.grpc.messages
print(*sorted(name for name in set(sys.modules) - before if name.split(".")[0] not in ("adapters", "domain")))
"""


def test_nothing_is_loaded_but_c_modules():
    code = LOADED.format(root=str(ROOT))
    words = [sys.executable, "-I", "-S", "-E", "-c", code]
    loaded = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert loaded <= {"__future__", "_socket", "_ssl", "select", "errno", "abc", "_abc"} | BY_OS


BY_OS = {"os", "os.path", "stat", "_stat", "posixpath", "genericpath", "_collections_abc"}
"""Loaded by `os`, which a plugin's own start has loaded already."""
