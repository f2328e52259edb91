"""What every transport to a kube-apiserver promises, as one suite that each of them runs on servers that misbehave.

Derive a class named `Test…` and give it `library`, which chooses the transport. A real kube-apiserver has a suite of
its own below.
"""

from __future__ import annotations

import gzip
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.server import parse_server
from adapters.kubernetes.credentials.settings import Settings
from adapters.kubernetes.transport.open_transport import open_transport
from adapters.kubernetes.transport.seam import (
    STRATEGIC_MERGE_PATCH,
    ApiTransport,
    ApiTransportError,
    ApiUntrusted,
    HttpAnswer,
    HttpRequest,
)
from patience import until
from services.http_stub import HttpStub, reply
from services.tcp_proxy import BlackHole, TcpProxy

PLANTED = "planted-secret-token"
SECRET = (("Authorization", f"Bearer {PLANTED}"),)
GET = HttpRequest("GET", "/api/v1/namespaces/default/pods/a")


def nothing_runs(program: object, seconds: float) -> tuple[int, bytes]:
    raise AssertionError("no program is run here")


OUTSIDE = Outside({}, time.time_ns, time.sleep, nothing_runs)


def failure(action: Callable[[], object]) -> ApiTransportError:
    """The error, in which no secret is."""
    with pytest.raises(ApiTransportError) as caught:
        action()
    error: BaseException | None = caught.value
    while error:
        assert PLANTED not in f"{error} {error!r}"
        error = error.__cause__
    return caught.value


def echoed(answer: HttpAnswer) -> dict[str, object]:
    assert answer.status == 200
    found: dict[str, object] = json.loads(answer.body)
    return found


def took(seconds: float, most: float, action: Callable[[], object]) -> ApiTransportError:
    began = time.monotonic()
    error = failure(action)
    assert seconds - 0.1 <= time.monotonic() - began <= most
    return error


class Opening:
    library: bool

    @pytest.fixture
    def stub(self) -> Iterator[HttpStub]:
        with HttpStub() as stub:
            yield stub

    @pytest.fixture
    def connect(self) -> Iterator[Callable[..., ApiTransport]]:
        """Open, and close after the test. `url` may have a path; others are fields of `Settings`."""
        opened = []

        def connect(url: str, **fields: object) -> ApiTransport:
            settings = Settings(parse_server(url), **{"headers": SECRET, **fields})
            opened.append(open_transport(settings, lambda: settings, OUTSIDE, library=self.library))
            return opened[-1]

        yield connect
        for one in opened:
            one.close()


class KubernetesTransportContract(Opening):
    # --- requests and answers ----------------------------------------------------------------------------------------

    def test_a_request_is_sent_as_it_is_meant(self, stub, connect):
        body = b'{"kind":"IPPool","name":"\xc3\xa4"}'
        request = HttpRequest("POST", "/apis/x%2Fy/a:b", (("dryRun", "All"),), body)
        (answer,) = connect(stub.url).send([request], 5)
        assert answer.headers["x-twice"] == "a"
        (asked,) = stub.asked
        assert (asked.method, asked.target, asked.body) == ("POST", "/apis/x/y/a:b?dryRun=All", body)
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["authorization"] == f"Bearer {PLANTED}"
        assert asked.headers["accept"] == "application/json"
        assert asked.headers["host"] == f"127.0.0.1:{stub.port}"
        assert asked.headers["content-length"] == str(len(body))

    @pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE"])
    def test_every_method_has_its_body_and_its_type(self, stub, connect, method):
        connect(stub.url).send([HttpRequest(method, "/a", body=b"{}", content_type=STRATEGIC_MERGE_PATCH)], 5)
        assert (stub.asked[0].method, stub.asked[0].body) == (method, b"{}")
        assert stub.asked[0].headers["content-type"] == STRATEGIC_MERGE_PATCH

    def test_a_query_is_encoded_and_keeps_its_order(self, stub, connect):
        query = (("labelSelector", "a/b=c,d in (e)"), ("limit", "500"), ("continue", "x+y&z=%20#ä"))
        stub.answer = lambda asked: reply(200, asked.echo)
        (answer,) = connect(stub.url).send([HttpRequest("GET", "/a", query)], 5)
        assert echoed(answer)["target"] == "/a?labelSelector=a/b=c,d in (e)&limit=500&continue=x+y&z=%20#ä"

    def test_the_prefix_of_the_servers_url_comes_before_every_path(self, stub, connect):
        transport = connect(f"{stub.url}/k8s/clusters/c-1/")
        transport.send([GET], 5)
        assert stub.asked[0].target == "/k8s/clusters/c-1/api/v1/namespaces/default/pods/a"
        assert transport.server == f"{stub.url}/k8s/clusters/c-1"

    def test_headers_may_be_repeated(self, stub, connect):
        groups = (("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
        connect(stub.url, headers=groups).send([GET], 5)
        assert [value for name, value in stub.asked[0].pairs if name == "impersonate-group"] == ["a", "b"]

    @pytest.mark.parametrize("status", [200, 201, 204, 304, 307, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503])
    def test_any_status_is_an_answer_and_nothing_is_sent_twice(self, stub, connect, status):
        (answer,) = connect(stub.url).send([HttpRequest("GET", f"/status/{status}")], 5)
        assert answer.status == status
        assert answer.headers["retry-after"] == "1"
        assert len(stub.asked) == 1

    def test_a_redirect_is_not_followed(self, stub, connect):
        stub.answer = lambda asked: reply(302, Location=f"{stub.url}/elsewhere")
        (answer,) = connect(stub.url).send([GET], 5)
        assert (answer.status, len(stub.asked)) == (302, 1)

    @pytest.mark.parametrize("way", ["plain", "chunked", "until-close", "then-close", "continue", "pieces"])
    def test_the_length_of_an_answer_can_be_told_in_every_way(self, stub, connect, way):
        transport = connect(stub.url)
        for number in range(2):
            (answer,) = transport.send([HttpRequest("GET", f"/{way}/{number}")], 5)
            assert echoed(answer)["target"] == f"/{way}/{number}"

    def test_an_empty_answer_is_one(self, stub, connect):
        stub.answer = lambda asked: reply(200)
        assert connect(stub.url).send([GET], 5) == [HttpAnswer(200, b"", {"content-length": "0"})]

    def test_large_answers_and_requests_come_through_whole(self, stub, connect):
        body = bytes(range(256)) * 40_000
        sent: list[bytes] = []
        stub.answer = lambda asked: reply(200, asked.body)
        transport = connect(stub.url)
        sent += [answer.body for answer in transport.send([HttpRequest("PUT", "/a", body=body)] * 2, 30)]
        assert sent == [body, body]
        stub.answer = None
        assert len(transport.send([HttpRequest("GET", "/big/30000000")], 30)[0].body) == 30_000_000

    # --- several requests, one connection ----------------------------------------------------------------------------

    def test_answers_are_in_the_order_of_the_requests(self, stub, connect):
        requests = [
            HttpRequest("GET", f"/{way}/{number}") for number in range(20) for way in ("chunked", "pieces", "x")
        ]
        answers = connect(stub.url).send(requests, 20)
        assert [echoed(answer)["target"] for answer in answers] == [request.path for request in requests]

    def test_one_connection_serves_all_calls(self, stub, connect):
        transport = connect(stub.url)
        for path in ("/a", "/chunked", "/status/404", "/status/204", "/status/500", "/continue"):
            transport.send([HttpRequest("GET", path), HttpRequest("POST", path, body=b"{}")], 5)
        assert stub.connections == 1

    def test_nothing_is_no_request(self, stub, connect):
        assert connect(stub.url).send([], 5) == []
        assert stub.connections == 0

    def test_a_server_that_closes_after_an_answer_gets_the_rest_on_a_new_connection(self, stub, connect):
        requests = [HttpRequest("GET", f"/{way}") for way in ("a", "then-close", "b", "until-close", "c")]
        answers = connect(stub.url).send(requests, 5)
        assert [echoed(answer)["target"] for answer in answers] == [request.path for request in requests]
        assert len(stub.asked) == 5
        assert stub.connections == 3

    def test_a_connection_that_was_closed_meanwhile_is_noticed_before_it_is_used(self, stub, connect):
        transport = connect(stub.url)
        transport.send([HttpRequest("GET", "/closes-silently")], 5)
        until(lambda: not stub._open, "the server to close")
        transport.send([HttpRequest("POST", "/a", body=b"{}")], 5)
        assert (stub.connections, len(stub.asked)) == (2, 2)

    def test_octets_that_nobody_asked_for_are_no_answer_to_the_next_request(self, stub, connect):
        stub.answer = lambda asked: reply(200, asked.echo) + reply(200, b"stray")
        transport = connect(stub.url)
        for number in range(3):
            (answer,) = transport.send([HttpRequest("GET", f"/{number}")], 5)
            assert echoed(answer)["target"] == f"/{number}"
        assert stub.connections == (1 if self.library else 3)  # the package's has read them with the answer

    def test_after_a_failure_the_next_call_begins_anew(self, stub, connect):
        transport = connect(stub.url)
        for bad in ("silence", "stalls", "resets-in-body", "garbage"):
            failure(lambda bad=bad: transport.send([HttpRequest("GET", f"/{bad}")], 0.3))
            (answer,) = transport.send([HttpRequest("GET", f"/after/{bad}")], 5)
            assert echoed(answer)["target"] == f"/after/{bad}"

    def test_an_exception_in_the_middle_leaves_no_answer_for_the_next_call(self, stub, connect):
        """As a termination signal raises one, after which undo goes on with the same transport."""

        class Stop(BaseException):
            pass

        stops = iter([True])
        transport = connect(stub.url)
        transport.send([GET], 5)

        def answer(asked):
            if asked.target == "/stopped":
                signal_main()
            return reply(200, asked.echo)

        def signal_main() -> None:
            if next(stops, False):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
                time.sleep(0.2)

        def stop(*_args: object) -> None:
            raise Stop

        before = signal.signal(signal.SIGUSR1, stop)
        try:
            stub.answer = answer
            with pytest.raises(Stop):
                transport.send([HttpRequest("GET", "/stopped")], 5)
            (found,) = transport.send([HttpRequest("GET", "/next")], 5)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert echoed(found)["target"] == "/next"

    # --- connections that fail or break ------------------------------------------------------------------------------

    def test_nobody_who_listens_is_told_at_once_and_harmless(self, connect):
        error = took(0, 30, lambda: connect("http://127.0.0.1:1").send([GET], 60))
        assert (error.harmless, error.timed_out) == (True, False)
        assert str(error).startswith("http://127.0.0.1:1: ")
        assert "connection refused" in str(error)

    def test_a_name_that_does_not_exist_is_named(self, connect):
        error = failure(lambda: connect("http://tortie-test.invalid:80").send([GET], 5))
        assert error.harmless
        assert "tortie-test.invalid" in str(error)

    def test_the_local_name_works(self, stub, connect):
        assert echoed(connect(stub.url_for("localhost")).send([GET], 5)[0])

    def test_p04_a_black_hole_takes_as_long_as_it_may_and_is_harmless(self, connect):
        with BlackHole() as hole:
            error = took(1, 20, lambda: connect(hole.url).send([GET], 1.0))
        assert (error.harmless, error.timed_out) == (True, True)

    @pytest.mark.parametrize(
        "way", ["silence", "stalls", "stalls-in-headers", "trickles", "trickles-headers", "trickles-remarks"]
    )
    def test_p04_no_answer_takes_longer_than_it_may(self, stub, connect, way):
        error = took(1, 20, lambda: connect(stub.url).send([HttpRequest("PUT", f"/{way}", body=b"{}")], 1.0))
        assert (error.harmless, error.timed_out) == (False, True)
        assert stub.url in str(error)

    @pytest.mark.parametrize("way", ["large", "headers"])
    def test_an_answer_without_end_is_given_up(self, stub, connect, way):
        error = failure(lambda: connect(stub.url).send([HttpRequest("GET", f"/{way}")], 20))
        assert (error.harmless, error.timed_out) == (False, False)
        assert stub.url in str(error)
        assert "more than" in str(error)
        assert error.final == (way == "large")

    def test_a_compressed_answer_stays_as_it_is(self, stub, connect):
        """Unpacked it could have any size."""
        packed = gzip.compress(b"x" * 1000)
        stub.answer = lambda asked: reply(200, packed, Content_Encoding="gzip")
        (answer,) = connect(stub.url).send([GET], 5)
        assert (answer.body, answer.headers["content-encoding"]) == (packed, "gzip")

    def test_p04_the_time_is_for_all_requests_together(self, stub, connect):
        stub.answer = lambda asked: (time.sleep(0.3), reply(200, b"{}"))[1]
        took(1, 20, lambda: connect(stub.url).send([GET] * 6, 1.0))

    @pytest.mark.parametrize(
        "way", ["resets", "resets-in-body", "closes", "closes-in-body", "closes-in-chunk", "bad-chunk", "garbage"]
    )
    def test_an_answer_that_is_none_may_have_had_its_effect(self, stub, connect, way):
        error = took(0, 30, lambda: connect(stub.url).send([HttpRequest("PUT", f"/{way}", body=b"{}")], 60))
        assert (error.harmless, error.timed_out) == (False, False)
        assert not isinstance(error, ApiUntrusted)
        assert stub.url in str(error)
        assert len(stub.asked) == 1

    def test_a_large_request_that_nobody_reads_ends_in_time(self, connect):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            error = took(1, 20, lambda: connect(url).send([HttpRequest("PUT", "/a", body=b"x" * 20_000_000)], 1.0))
        assert (error.harmless, error.timed_out) == (False, True)

    def test_a_write_whose_answer_is_lost_is_not_harmless(self, stub, connect):
        with TcpProxy(stub.port) as proxy:
            proxy.replies_held.set()
            cutter = threading.Thread(target=lambda: (until(lambda: stub.asked), proxy.cut()))
            cutter.start()
            error = failure(lambda: connect(proxy.url).send([HttpRequest("PUT", "/a", body=b"{}")], 60))
            cutter.join()
        assert not error.harmless
        assert len(stub.asked) == 1

    def test_closing_is_safe_at_any_time_and_twice(self, stub, connect):
        transport = connect(stub.url)
        transport.close()
        transport.send([GET], 5)
        transport.close()
        transport.close()
        assert echoed(transport.send([GET], 5)[0])

    def test_ipv6(self, connect):
        with HttpStub(host="::1") as stub:
            transport = connect(stub.url)
            assert transport.server == f"http://[::1]:{stub.port}"
            assert echoed(transport.send([GET], 5)[0])["headers"]["host"] == f"[::1]:{stub.port}"

    # --- credentials -------------------------------------------------------------------------------------------------

    def test_new_credentials_are_used_from_the_next_request_on(self, stub):
        def settings(token: str) -> Settings:
            return Settings(parse_server(stub.url), headers=(("Authorization", token),), credentials=f"of {token}")

        now = settings("one")
        transport = open_transport(now, lambda: now, OUTSIDE, library=self.library)
        assert not transport.renew()
        transport.send([GET], 5)
        now = settings("two")
        assert transport.renew()
        assert transport.credentials == "of two"
        transport.send([GET], 5)
        assert not transport.renew()
        transport.close()
        assert [asked.headers["authorization"] for asked in stub.asked] == ["one", "two"]

    def test_the_pace_is_kept(self, stub, connect):
        transport = connect(stub.url, qps=10.0, burst=2)
        began = time.monotonic()
        for _ in range(4):
            transport.send([GET], 5)
        assert 0.15 < time.monotonic() - began < 20
        error = took(0, 20, lambda: transport.send([GET] * 30, 1.0))
        assert (error.harmless, error.timed_out) == (True, True)
        assert len(stub.asked) == 4
