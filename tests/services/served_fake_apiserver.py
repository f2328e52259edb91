"""The API server in memory behind real HTTP, for programs in processes of their own.

    with served(FakeApiserver("v3")) as url: ...

Invariant: the server has ended when the block has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qsl, urlsplit

from adapters.kubernetes.transport.seam import JSON, HttpRequest
from services.fake_apiserver import FakeApiserver


@contextmanager
def served(apiserver: FakeApiserver) -> Iterator[str]:
    """The URL."""
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            asked = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            query = tuple(parse_qsl(asked.query, keep_blank_values=True))
            kind = self.headers.get("content-type") or JSON
            with one_at_a_time:
                answer = apiserver.answer(HttpRequest(self.command, asked.path, query, body, kind))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - as the library wants it

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
