"""Readiness gates against real HTTP servers on loopback, and files that come late."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6, create_server, socket

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.readiness_http import HttpReadiness
from adapters.memory.clock import MemoryClock
from contracts.readiness import ReadinessContract
from ports.errors import Expired


class Handler(BaseHTTPRequestHandler):
    """`/status/N` answers N, `/redirect/N/rest` redirects N times to `/rest`, `/second` is ready the second time."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str | None]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers["Authorization"]))
        _, kind, *rest = self.path.split("/")
        if kind == "redirect":
            left = int(rest[0]) - 1
            tail = "/".join(rest[1:])
            self.send_response(302)
            self.send_header("lOcation", f"/redirect/{left}/{tail}" if left else f"/{tail}")
        elif kind == "second":
            self.send_response(200 if self.seen.count(self.seen[-1]) > 1 else 503)
        elif kind == "auth":
            self.send_response(200 if self.headers["Authorization"] == "Basic dTpwQHNz" else 401)
        else:
            self.send_response(int(rest[0]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


class RealFiles:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, name: str) -> str:
        return str(self._directory / name)

    def create(self, path: str) -> None:
        Path(path).write_text("")


class TestHttpReadiness(ReadinessContract):
    @pytest.fixture
    def readiness(self, clock: SystemClock) -> HttpReadiness:
        return HttpReadiness(clock)

    @pytest.fixture
    def answering(self, server: str) -> Callable[[int], str]:
        return lambda status: f"{server}/status/{status}"

    @pytest.fixture
    def files(self, tmp_path: Path) -> RealFiles:
        return RealFiles(tmp_path)

    def test_a_file_that_never_comes_is_waited_for(
        self, clock: SystemClock, readiness: HttpReadiness, files: RealFiles
    ) -> None:
        """WAIT-001."""
        before = time.monotonic()
        assert not readiness.file_appears(files.path("k8s name-space%2Fpodname eth0"), clock.deadline(3))
        assert 1 < time.monotonic() - before < 30

    def test_a_file_that_comes_late_is_seen(
        self, clock: SystemClock, readiness: HttpReadiness, files: RealFiles
    ) -> None:
        """WAIT-002."""
        path = files.path("status/k8s name-space%2Fpodname eth0")
        created: list[float] = []

        def create() -> None:
            os.mkdir(os.path.dirname(path))
            files.create(path)
            created.append(time.monotonic())

        timer = threading.Timer(1, create)
        timer.start()
        assert readiness.file_appears(path, clock.deadline(60))
        timer.join()
        assert 0 <= time.monotonic() - created[0] < 30

    def test_a_path_that_no_file_can_have_never_appears(self, readiness: HttpReadiness) -> None:
        clock = MemoryClock()
        assert not HttpReadiness(clock).file_appears("nul\0", clock.deadline(3))
        assert clock.monotonic() == 3


def test_a_gate_that_opens_later_is_probed_every_five_seconds(server: str) -> None:
    clock = MemoryClock()
    HttpReadiness(clock).gate(f"{server}/second/x", clock.deadline(30))
    assert clock.slept == [5.0]


@pytest.mark.parametrize(("redirects", "ready"), [(1, True), (10, True), (11, False)])
def test_ten_redirects_are_followed(server: str, redirects: int, ready: bool) -> None:
    clock = MemoryClock()
    readiness = HttpReadiness(clock)
    url = f"{server}/redirect/{redirects}/status/200"
    if ready:
        readiness.gate(url, clock.deadline(4))
    else:
        with pytest.raises(Expired):
            readiness.gate(url, clock.deadline(4))


def test_where_a_redirect_ends_counts(server: str) -> None:
    clock = MemoryClock()
    with pytest.raises(Expired):
        HttpReadiness(clock).gate(f"{server}/redirect/1/status/500", clock.deadline(4))


def test_credentials_in_the_url_are_sent(server: str) -> None:
    clock = MemoryClock()
    HttpReadiness(clock).gate(server.replace("//", "//u:p%40ss@") + "/auth", clock.deadline(4))


def test_a_host_name_is_looked_up(server: str) -> None:
    clock = MemoryClock()
    HttpReadiness(clock).gate(server.replace("127.0.0.1", "localhost") + "/status/200", clock.deadline(4))


def test_an_ipv6_address_is_reached() -> None:
    class Server6(ThreadingHTTPServer):
        address_family = AF_INET6

    with Server6(("::1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        clock = MemoryClock()
        HttpReadiness(clock).gate(f"http://[::1]:{server.server_port}/status/200", clock.deadline(4))
        thread.join()


def test_nobody_listening_is_not_ready() -> None:
    clock = MemoryClock()
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Expired):
            HttpReadiness(clock).gate(f"http://127.0.0.1:{unused.getsockname()[1]}/", clock.deadline(11))
    assert clock.slept == [5.0, 5.0, 1.0]


def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    """P04."""
    clock = SystemClock()
    with create_server(("127.0.0.1", 0)) as silent:
        before = time.monotonic()
        with pytest.raises(Expired):
            HttpReadiness(clock).gate(f"http://127.0.0.1:{silent.getsockname()[1]}/", clock.deadline(0.5))
        assert 0.4 < time.monotonic() - before < 30


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.0 200\n\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 302 Found\r\n\r\n", True),  # nowhere to go: the answer itself counts, as in Go
        (b"HTTP/1.1 200 OK\r\n", False),
        (b"SSH-2.0-OpenSSH\r\n", False),
        (b"HTTP/1.1 many\r\n\r\n", False),
        (b"HTTP/1.1\r\n\r\n", False),
        (b"", False),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, False),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n", False),
    ],
)
def test_odd_answers_are_ready_only_if_complete_and_good(answer: bytes, ready: bool) -> None:
    def serve(listening: socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            with suppress(OSError):  # when it was too much for the other side
                connection.sendall(answer)

    clock = MemoryClock()
    with create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            HttpReadiness(clock).gate(f"http://127.0.0.1:{listening.getsockname()[1]}/", clock.deadline(4))
            assert ready
        except Expired:
            assert not ready
        thread.join()


def test_an_https_gate_needs_a_certificate_that_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ssl

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*request.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # the refused handshake
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            clock, url = MemoryClock(), f"https://127.0.0.1:{server.server_port}/status/200"
            with pytest.raises(Expired):
                HttpReadiness(clock).gate(url, clock.deadline(4))
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            HttpReadiness(clock).gate(url, clock.deadline(4))
        finally:
            server.shutdown()
            thread.join()
