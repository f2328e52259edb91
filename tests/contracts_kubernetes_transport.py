"""What every transport to a kube-apiserver promises, as one suite that each of them runs on servers that misbehave.

Derive a class named `Test…` and give it `library`, which chooses the transport. A real kube-apiserver has a suite of
its own below.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from adapters.kubernetes.open_transport import open_transport
from adapters.kubernetes.outside import Outside
from adapters.kubernetes.server import parse_server
from adapters.kubernetes.settings import Settings, Tls, read_datastore_settings
from adapters.kubernetes.transport import (
    STRATEGIC_MERGE_PATCH,
    Answer,
    Request,
    Transport,
    TransportError,
    Untrusted,
)
from services.etcd import Authority
from services.http_proxy import HttpProxy
from services.http_stub import HttpStub, reply
from services.tcp_proxy import BlackHole, TcpProxy

PLANTED = "planted-secret-token"
SECRET = (("Authorization", f"Bearer {PLANTED}"),)
GET = Request("GET", "/api/v1/namespaces/default/pods/a")


def nothing_runs(program: object, seconds: float) -> tuple[int, bytes]:
    raise AssertionError("no program is run here")


OUTSIDE = Outside({}, time.time_ns, time.sleep, nothing_runs)


def failure(action: Callable[[], object]) -> TransportError:
    """The error, in which no secret is."""
    with pytest.raises(TransportError) as caught:
        action()
    error: BaseException | None = caught.value
    while error:
        assert PLANTED not in f"{error} {error!r}"
        error = error.__cause__
    return caught.value


def echoed(answer: Answer) -> dict[str, object]:
    assert answer.status == 200
    found: dict[str, object] = json.loads(answer.body)
    return found


def took(seconds: float, most: float, action: Callable[[], object]) -> TransportError:
    began = time.monotonic()
    error = failure(action)
    assert seconds - 0.1 <= time.monotonic() - began <= most
    return error


class Opening:
    library: bool

    @pytest.fixture
    def connect(self) -> Iterator[Callable[..., Transport]]:
        """Open, and close after the test. `url` may have a path; others are fields of `Settings`."""
        opened = []

        def connect(url: str, **fields: object) -> Transport:
            settings = Settings(parse_server(url), **{"headers": SECRET, **fields})  # type: ignore[arg-type]
            opened.append(open_transport(settings, lambda: settings, OUTSIDE, library=self.library))
            return opened[-1]

        yield connect
        for one in opened:
            one.close()


class KubernetesTransportContract(Opening):
    @pytest.fixture
    def stub(self) -> Iterator[HttpStub]:
        with HttpStub() as stub:
            yield stub

    # --- requests and answers ----------------------------------------------------------------------------------------

    def test_a_request_is_sent_as_it_is_meant(self, stub, connect):
        body = b'{"kind":"IPPool","name":"\xc3\xa4"}'
        request = Request("POST", "/apis/x%2Fy/a:b", (("dryRun", "All"),), body)
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
        connect(stub.url).send([Request(method, "/a", body=b"{}", content_type=STRATEGIC_MERGE_PATCH)], 5)
        assert (stub.asked[0].method, stub.asked[0].body) == (method, b"{}")
        assert stub.asked[0].headers["content-type"] == STRATEGIC_MERGE_PATCH

    def test_a_query_is_encoded_and_keeps_its_order(self, stub, connect):
        query = (("labelSelector", "a/b=c,d in (e)"), ("limit", "500"), ("continue", "x+y&z=%20#ä"))
        stub.answer = lambda asked: reply(200, asked.echo)
        (answer,) = connect(stub.url).send([Request("GET", "/a", query)], 5)
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
        (answer,) = connect(stub.url).send([Request("GET", f"/status/{status}")], 5)
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
            (answer,) = transport.send([Request("GET", f"/{way}/{number}")], 5)
            assert echoed(answer)["target"] == f"/{way}/{number}"

    def test_an_empty_answer_is_one(self, stub, connect):
        stub.answer = lambda asked: reply(200)
        assert connect(stub.url).send([GET], 5) == [Answer(200, b"", {"content-length": "0"})]

    def test_large_answers_and_requests_come_through_whole(self, stub, connect):
        body = bytes(range(256)) * 40_000
        sent: list[bytes] = []
        stub.answer = lambda asked: reply(200, asked.body)
        transport = connect(stub.url)
        sent += [answer.body for answer in transport.send([Request("PUT", "/a", body=body)] * 2, 30)]
        assert sent == [body, body]
        stub.answer = None
        assert len(transport.send([Request("GET", "/big/30000000")], 30)[0].body) == 30_000_000

    # --- several requests, one connection ----------------------------------------------------------------------------

    def test_answers_are_in_the_order_of_the_requests(self, stub, connect):
        requests = [Request("GET", f"/{way}/{number}") for number in range(20) for way in ("chunked", "pieces", "x")]
        answers = connect(stub.url).send(requests, 20)
        assert [echoed(answer)["target"] for answer in answers] == [request.path for request in requests]

    def test_one_connection_serves_all_calls(self, stub, connect):
        transport = connect(stub.url)
        for path in ("/a", "/chunked", "/status/404", "/status/204", "/status/500", "/continue"):
            transport.send([Request("GET", path), Request("POST", path, body=b"{}")], 5)
        assert stub.connections == 1

    def test_nothing_is_no_request(self, stub, connect):
        assert connect(stub.url).send([], 5) == []
        assert stub.connections == 0

    def test_a_server_that_closes_after_an_answer_gets_the_rest_on_a_new_connection(self, stub, connect):
        requests = [Request("GET", f"/{way}") for way in ("a", "then-close", "b", "until-close", "c")]
        answers = connect(stub.url).send(requests, 5)
        assert [echoed(answer)["target"] for answer in answers] == [request.path for request in requests]
        assert len(stub.asked) == 5
        assert stub.connections == 3

    def test_a_connection_that_was_closed_meanwhile_is_noticed_before_it_is_used(self, stub, connect):
        transport = connect(stub.url)
        transport.send([Request("GET", "/closes-silently")], 5)
        deadline = time.monotonic() + 5
        while stub._open and time.monotonic() < deadline:  # until the server has closed
            time.sleep(0.01)
        transport.send([Request("POST", "/a", body=b"{}")], 5)
        assert (stub.connections, len(stub.asked)) == (2, 2)

    def test_octets_that_nobody_asked_for_are_no_answer_to_the_next_request(self, stub, connect):
        stub.answer = lambda asked: reply(200, asked.echo) + reply(200, b"stray")
        transport = connect(stub.url)
        for number in range(3):
            (answer,) = transport.send([Request("GET", f"/{number}")], 5)
            assert echoed(answer)["target"] == f"/{number}"
        assert stub.connections == (1 if self.library else 3)  # the package's has read them with the answer

    def test_after_a_failure_the_next_call_begins_anew(self, stub, connect):
        transport = connect(stub.url)
        for bad in ("silence", "stalls", "resets-in-body", "garbage"):
            failure(lambda bad=bad: transport.send([Request("GET", f"/{bad}")], 0.3))
            (answer,) = transport.send([Request("GET", f"/after/{bad}")], 5)
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
                transport.send([Request("GET", "/stopped")], 5)
            (found,) = transport.send([Request("GET", "/next")], 5)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert echoed(found)["target"] == "/next"

    # --- connections that fail or break ------------------------------------------------------------------------------

    def test_nobody_who_listens_is_told_at_once_and_harmless(self, connect):
        error = took(0, 2, lambda: connect("http://127.0.0.1:1").send([GET], 10))
        assert (error.harmless, error.timed_out) == (True, False)
        assert str(error).startswith("http://127.0.0.1:1: ")
        assert "connection refused" in str(error).lower()

    def test_a_name_that_does_not_exist_is_named(self, connect):
        error = failure(lambda: connect("http://tortie-test.invalid:80").send([GET], 5))
        assert error.harmless
        assert "tortie-test.invalid" in str(error)

    def test_the_local_name_works(self, stub, connect):
        assert echoed(connect(stub.url_for("localhost")).send([GET], 5)[0])

    def test_p04_a_black_hole_takes_as_long_as_it_may_and_is_harmless(self, connect):
        with BlackHole() as hole:
            error = took(1, 2, lambda: connect(hole.url).send([GET], 1.0))
        assert (error.harmless, error.timed_out) == (True, True)

    @pytest.mark.parametrize("way", ["silence", "stalls", "stalls-in-headers", "trickles"])
    def test_p04_no_answer_takes_longer_than_it_may(self, stub, connect, way):
        error = took(1, 2, lambda: connect(stub.url).send([Request("PUT", f"/{way}", body=b"{}")], 1.0))
        assert (error.harmless, error.timed_out) == (False, True)
        assert stub.url in str(error)

    def test_p04_the_time_is_for_all_requests_together(self, stub, connect):
        stub.answer = lambda asked: (time.sleep(0.3), reply(200, b"{}"))[1]
        took(1, 2, lambda: connect(stub.url).send([GET] * 6, 1.0))

    @pytest.mark.parametrize(
        "way", ["resets", "resets-in-body", "closes", "closes-in-body", "closes-in-chunk", "bad-chunk", "garbage"]
    )
    def test_an_answer_that_is_none_may_have_had_its_effect(self, stub, connect, way):
        error = took(0, 2, lambda: connect(stub.url).send([Request("PUT", f"/{way}", body=b"{}")], 10))
        assert (error.harmless, error.timed_out) == (False, False)
        assert not isinstance(error, Untrusted)
        assert stub.url in str(error)
        assert len(stub.asked) == 1

    def test_a_large_request_that_nobody_reads_ends_in_time(self, connect):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            error = took(1, 2, lambda: connect(url).send([Request("PUT", "/a", body=b"x" * 20_000_000)], 1.0))
        assert (error.harmless, error.timed_out) == (False, True)

    def test_a_write_whose_answer_is_lost_is_not_harmless(self, stub, connect):
        with TcpProxy(stub.port) as proxy:
            proxy.replies_held.set()
            cutter = threading.Timer(0.5, proxy.cut)
            cutter.start()
            error = failure(lambda: connect(proxy.url).send([Request("PUT", "/a", body=b"{}")], 10))
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
            assert echoed(transport.send([GET], 5)[0])["headers"]["host"] == f"[::1]:{stub.port}"  # type: ignore[index]

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
        assert 0.15 < time.monotonic() - began < 2
        error = took(0, 1, lambda: transport.send([GET] * 30, 1.0))
        assert (error.harmless, error.timed_out) == (True, True)
        assert len(stub.asked) == 4

    # --- certificates ------------------------------------------------------------------------------------------------

    @pytest.fixture(scope="class")
    @classmethod
    def authority(cls, tmp_path_factory):
        return Authority(tmp_path_factory.mktemp("authority"))

    @pytest.fixture(scope="class")
    @classmethod
    def other(cls, tmp_path_factory):
        return Authority(tmp_path_factory.mktemp("other"), "another authority")

    @pytest.fixture(scope="class")
    @classmethod
    def served(cls, authority):
        """A server's context, for the loopback."""
        return context(authority.issue("server", "IP:127.0.0.1,IP:::1,DNS:localhost"))

    @pytest.fixture(scope="class")
    @classmethod
    def ca(cls, authority):
        return Tls(authority.ca.read_bytes())

    @pytest.fixture(scope="class")
    @classmethod
    def mine(cls, authority, ca):
        cert, key = (path.read_bytes() for path in authority.issue("client"))
        return ca.replace(cert=cert, key=key)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_tls(self, connect, authority, ca, version):
        served = context(authority.issue("server", "IP:127.0.0.1"))
        served.minimum_version = served.maximum_version = version
        served.set_alpn_protocols(["h2", "http/1.1"])
        with HttpStub(served) as stub:
            transport = connect(stub.url, tls=ca)
            for _ in range(3):
                answers = transport.send([GET, Request("GET", "/chunked"), Request("GET", "/big/1000000")], 10)
            assert len(answers[2].body) == 1_000_000
            assert stub.connections == 1

    def test_tls_by_name_and_over_ipv6(self, connect, served, ca):
        with HttpStub(served) as stub:
            connect(stub.url_for("localhost"), tls=ca).send([GET], 5)
        with HttpStub(served, host="::1") as stub:
            connect(stub.url, tls=ca).send([GET], 5)

    def test_tls_1_1_is_refused(self, connect, authority, ca):
        served = context(authority.issue("server", "IP:127.0.0.1"))
        served.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.deprecated_call():
            served.minimum_version = served.maximum_version = ssl.TLSVersion.TLSv1_1
        with HttpStub(served) as stub:
            error = failure(lambda: connect(stub.url, tls=ca).send([GET], 5))
        assert isinstance(error, Untrusted)
        assert "no agreement on a version" in str(error)

    def test_a_wrong_authority_is_refused(self, connect, served, other):
        with HttpStub(served) as stub:
            for tls in (Tls(other.ca.read_bytes()), Tls()):
                error = took(0, 2, lambda tls=tls: connect(stub.url, tls=tls).send([GET], 10))
                assert isinstance(error, Untrusted)
                assert "certificate problem: the server's certificate is not signed by the given authority" in str(
                    error
                )
            assert stub.asked == []

    @pytest.mark.parametrize("hosts", ["IP:127.0.0.2", "DNS:127.0.0.1", "DNS:localhost", ""])
    def test_a_certificate_for_another_host_is_refused(self, connect, authority, ca, hosts):
        """A name in the certificate that looks like the address is not the address, nor does its common name count."""
        with HttpStub(context(authority.issue("127.0.0.1", hosts))) as stub:
            error = failure(lambda: connect(stub.url, tls=ca).send([GET], 5))
            assert isinstance(error, Untrusted)
            assert "certificate problem: the server's certificate is not for this host name" in str(error)
            assert stub.asked == []

    def test_a_common_name_is_not_a_host_name(self, connect, authority, ca):
        with HttpStub(context(authority.issue("localhost"))) as stub:
            error = failure(lambda: connect(stub.url_for("localhost"), tls=ca).send([GET], 5))
            assert isinstance(error, Untrusted)
            assert "certificate problem: the server's certificate is not for this host name" in str(error)

    @pytest.mark.parametrize(("start", "days", "said"), [(-10, 5, "has expired"), (5, 10, "is not valid yet")])
    def test_a_certificate_out_of_its_time_is_refused(self, connect, tmp_path, start, days, said):
        pair = dated(tmp_path, start, days)
        with HttpStub(context(pair)) as stub:
            error = failure(lambda: connect(stub.url, tls=Tls(pair[0].read_bytes())).send([GET], 5))
            assert isinstance(error, Untrusted)
            assert f"certificate problem: the server's certificate {said}" in str(error)

    def test_a_servers_own_certificate_may_be_the_authority(self, connect, authority):
        """As the original takes it."""
        cert, key = authority.issue("lone", "IP:127.0.0.1")
        with HttpStub(context((cert, key))) as stub:
            connect(stub.url, tls=Tls(cert.read_bytes())).send([GET], 5)

    @pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # tests make errors of warnings that are off
    def test_verification_can_be_switched_off(self, connect, authority):
        with HttpStub(context(authority.issue("elsewhere", "DNS:elsewhere.example"))) as stub:
            connect(stub.url, tls=Tls(insecure=True)).send([GET], 5)

    def test_the_name_that_the_certificate_is_for_can_be_given(self, connect, authority, ca):
        with HttpStub(context(authority.issue("elsewhere", "DNS:elsewhere.example"))) as stub:
            connect(stub.url, tls=ca.replace(server_name="elsewhere.example")).send([GET], 5)
            error = failure(lambda: connect(stub.url, tls=ca.replace(server_name="else.example")).send([GET], 5))
            assert isinstance(error, Untrusted)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_a_client_certificate_is_shown(self, connect, authority, mine, version):
        with HttpStub(mutual(authority, version)) as stub:
            connect(stub.url, tls=mine).send([GET], 5)
            assert stub.peer_certificates == ["client"]

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_a_client_certificate_that_the_server_refuses_is_named(self, connect, authority, other, ca, version):
        cert, key = (path.read_bytes() for path in other.issue("client"))
        with HttpStub(mutual(authority, version)) as stub:
            for refused in (ca.replace(cert=cert, key=key), ca):
                error = failure(lambda refused=refused: connect(stub.url, tls=refused).send([GET], 5))
                assert isinstance(error, Untrusted) or (not refused.cert and version == ssl.TLSVersion.TLSv1_2)
            assert stub.asked == []

    def test_certificate_and_key_that_do_not_belong_together_are_named(self, connect, served, mine, other):
        _, key = (path.read_bytes() for path in other.issue("client"))
        with HttpStub(served) as stub:
            error = failure(lambda: connect(stub.url, tls=mine.replace(key=key)).send([GET], 5))
            assert isinstance(error, Untrusted)
            assert "cannot be used together" in str(error)

    def test_material_that_is_no_certificate_is_named_and_nobody_asked_for_a_passphrase(
        self, connect, served, ca, mine
    ):
        bad = b"-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"
        locked = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nbm9uc2Vuc2U=\n-----END ENCRYPTED PRIVATE KEY-----\n"
        with HttpStub(served) as stub:
            for tls in (Tls(bad), mine.replace(cert=bad), mine.replace(key=locked)):
                error = failure(lambda tls=tls: connect(stub.url, tls=tls).send([GET], 5))
                assert isinstance(error, Untrusted)
                assert "cannot be used together" in str(error)

    def test_a_private_key_is_on_no_disk_and_in_no_descriptor_afterwards(self, connect, authority, mine):
        with HttpStub(mutual(authority, ssl.TLSVersion.TLSv1_3)) as stub:
            transport = connect(stub.url, tls=mine)
            transport.send([GET], 5)
            assert not [link for link in descriptors() if "memfd" in link or link.endswith(".pem")]

    def test_https_where_http_is_spoken_and_the_reverse_end_soon(self, stub, connect, served, ca):
        error = took(0, 2, lambda: connect(stub.url.replace("http:", "https:"), tls=ca).send([GET], 10))
        assert isinstance(error, Untrusted)
        assert "is http meant instead of https?" in str(error)
        with HttpStub(served) as secure:
            took(0, 2, lambda: connect(secure.url.replace("https:", "http:")).send([GET], 10))

    def test_a_stalled_handshake_takes_as_long_as_it_may(self, connect, ca):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            error = took(1, 2, lambda: connect(url, tls=ca).send([GET], 1.0))
        assert error.timed_out

    @pytest.mark.parametrize("way", ["stalls", "resets", "closes-in-body"])
    def test_answers_break_over_tls_as_they_do_without(self, connect, served, ca, way):
        with HttpStub(served) as stub:
            transport = connect(stub.url, tls=ca)
            error = took(0, 2, lambda: transport.send([Request("PUT", f"/{way}", body=b"{}")], 1.0))
            assert not error.harmless
            assert error.timed_out is (way == "stalls")
            assert not isinstance(error, Untrusted)
            assert echoed(transport.send([GET], 5)[0])

    # --- proxies -----------------------------------------------------------------------------------------------------

    def test_a_proxy_passes_on_what_is_encrypted(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port) as proxy:
            transport = connect("https://localhost:7777", tls=ca, proxy=parse_server(proxy.url))
            for _ in range(2):
                transport.send([GET, GET], 5)
            assert [(asked.method, asked.target) for asked in proxy.asked] == [("CONNECT", "localhost:7777")]
            assert "authorization" not in proxy.asked[0].headers
            assert stub.connections == 1

    def test_a_proxy_is_told_who_we_are(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port, user="me:p@ss") as proxy:
            known = parse_server(proxy.url.replace("//", "//me:p%40ss@"))
            connect("https://localhost:7777", tls=ca, proxy=known).send([GET], 5)
            error = failure(
                lambda: connect("https://localhost:7777", tls=ca, proxy=parse_server(proxy.url)).send([GET], 5)
            )
            assert error.harmless
            assert "407" in str(error)

    def test_a_proxy_reads_what_is_not_encrypted(self, stub, connect):
        with HttpProxy(stub.port, user="me:pass") as proxy:
            known = parse_server(proxy.url.replace("//", "//me:pass@"))
            (answer,) = connect("http://localhost:7777/k", proxy=known).send([GET], 5)
            assert echoed(answer)["target"] == "/k/api/v1/namespaces/default/pods/a"
            assert proxy.asked[0].target == "http://localhost:7777/k/api/v1/namespaces/default/pods/a"

    def test_a_proxy_may_speak_tls_itself(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port, context=served) as proxy:
            connect("https://localhost:7777", tls=ca, proxy=parse_server(proxy.url)).send([GET, GET], 5)
            assert [asked.method for asked in proxy.asked] == ["CONNECT"]
            assert len(stub.asked) == 2

    def test_a_certificate_is_checked_behind_a_proxy_too(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port) as proxy:
            error = failure(
                lambda: connect("https://elsewhere.example", tls=ca, proxy=parse_server(proxy.url)).send([GET], 5)
            )
            assert isinstance(error, Untrusted)
            assert "not for this host name" in str(error)
            assert stub.asked == []

    def test_a_proxy_that_refuses_or_is_not_there_is_harmless(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port) as proxy:
            proxy.refusal = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
            for url in (proxy.url, "http://127.0.0.1:1"):
                transport = connect("https://localhost:7777", tls=ca, proxy=parse_server(url))
                assert took(0, 2, lambda transport=transport: transport.send([GET], 5)).harmless


class RealServerContract:
    """`server` is an ApiServer on IPv6, with RBAC."""

    library: bool

    @pytest.fixture
    def connect(self) -> Iterator[Callable[..., Transport]]:
        """By a kubeconfig."""
        opened = []

        def connect(path: Path) -> Transport:
            def read() -> Settings:
                return read_datastore_settings(lambda name: str(path) if name == "KUBECONFIG" else "", OUTSIDE)

            opened.append(open_transport(read(), read, OUTSIDE, library=self.library))
            return opened[-1]

        yield connect
        for one in opened:
            one.close()

    @pytest.fixture
    def admin(self, server, connect, tmp_path) -> Transport:
        server.cluster.clear()
        return connect(server.kubeconfig(tmp_path / "admin"))

    def test_every_verb_and_what_the_server_says_to_it(self, server, admin):
        path = "/api/v1/namespaces/default/configmaps"

        def ask(method: str, name: str = "", body: object = None, kind: str = "application/json") -> tuple[int, dict]:
            octets = b"" if body is None else json.dumps(body).encode()
            (answer,) = admin.send([Request(method, f"{path}/{name}".rstrip("/"), (), octets, kind)], 10)
            return answer.status, json.loads(answer.body)

        made = {"metadata": {"name": "one"}, "data": {"a": "ä"}}
        assert ask("POST", body=made)[0] == 201
        status, said = ask("POST", body=made)
        assert (status, said["reason"]) == (409, "AlreadyExists")
        status, found = ask("GET", "one")
        assert (status, found["data"]) == (200, {"a": "ä"})
        assert ask("PUT", "one", found | {"data": {"b": "c"}})[0] == 200
        status, said = ask("PUT", "one", found)
        assert (status, said["reason"]) == (409, "Conflict")
        status, patched = ask("PATCH", "one", {"data": {"d": "e"}}, STRATEGIC_MERGE_PATCH)
        assert (status, patched["data"]) == (200, {"b": "c", "d": "e"})
        status, said = ask("DELETE", "one", {"preconditions": {"uid": "another"}})
        assert (status, said["reason"]) == (409, "Conflict")
        assert ask("DELETE", "one", {"preconditions": {"uid": patched["metadata"]["uid"]}})[0] == 200
        status, said = ask("GET", "one")
        assert (status, said["reason"]) == (404, "NotFound")

    def test_lists_come_whole_and_by_label(self, server, admin):
        for number in range(40):
            data = {"metadata": {"name": f"n{number}", "labels": {"odd": str(number % 2)}}, "data": {"x": "y" * 20_000}}
            server.client.create("/api/v1/namespaces/default/configmaps", data)
        try:
            path = "/api/v1/namespaces/default/configmaps"
            every, odd = admin.send(
                [Request("GET", path), Request("GET", path, (("labelSelector", "odd in (1)"), ("limit", "500")))], 20
            )
        finally:
            for number in range(40):
                server.client.delete(f"/api/v1/namespaces/default/configmaps/n{number}")
        assert len(every.body) > 800_000
        assert (
            len([item for item in json.loads(every.body)["items"] if "odd" in item["metadata"].get("labels", {})]) == 40
        )
        assert len(json.loads(odd.body)["items"]) == 20

    def test_many_reads_at_once_are_answered_in_order(self, admin):
        names = ["default", "kube-system", "absent", "kube-public"] * 15
        answers = admin.send([Request("GET", f"/api/v1/namespaces/{name}") for name in names], 20)
        for name, answer in zip(names, answers):
            found = json.loads(answer.body)
            assert (found["details"] if name == "absent" else found["metadata"])["name"] == name

    @pytest.mark.parametrize("form", ["files", "inside", "token", "token file", "authority in a file", "insecure"])
    def test_every_form_of_credentials(self, server, connect, tmp_path, form):
        server.cluster.clear()
        server.cluster.add_namespace("gold")
        server.cluster.add_account("gold", "robot")
        token = server.cluster.token("gold", "robot")
        (tmp_path / "token").write_text(f"{token}\n")
        forms: dict[str, dict[str, object]] = {
            "files": {"user": server.client_certificate("robot", "system:masters")},
            "inside": {"user": server.client_certificate("robot", "system:masters", inline=True)},
            "token": {"token": token},
            "token file": {"token_file": tmp_path / "token"},
            "authority in a file": {"ca_file": True},
            "insecure": {"token": token, "insecure_skip_tls_verify": True},
        }
        transport = connect(server.kubeconfig(tmp_path / "config", **forms[form]))
        quiet = pytest.warns(Warning, match="Unverified") if form == "insecure" and self.library else nullcontext()
        with quiet:
            (answer,) = transport.send(
                [Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)], 10
            )
        assert answer.status == 201, answer
        who = json.loads(answer.body)["status"]["userInfo"]["username"]
        expected = {"files": "robot", "inside": "robot", "authority in a file": "admin"}
        assert who == expected.get(form, "system:serviceaccount:gold:robot")

    def test_c14_a_token_that_is_replaced_is_read_again(self, server, connect, tmp_path):
        server.cluster.clear()
        server.cluster.add_namespace("gold")
        server.cluster.add_account("gold", "robot")
        path = server.kubeconfig(tmp_path / "config", token=server.sign_token("gold", "robot", seconds=-600))
        transport = connect(path)
        request = Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)
        assert transport.send([request], 10)[0].status == 401
        assert ", expired at 20" in transport.credentials
        assert not transport.renew()
        server.kubeconfig(path, token=server.sign_token("gold", "robot", seconds=600))
        assert transport.renew()
        assert transport.send([request], 10)[0].status == 201
        assert ", valid until 20" in transport.credentials

    def test_a_wrong_authority_and_a_wrong_name_are_refused(self, server, connect, tmp_path):
        other = Authority(tmp_path / "other", "another authority")
        inside = base64.b64encode(other.ca.read_bytes()).decode()
        foreign = server.kubeconfig(tmp_path / "foreign", certificate_authority_data=inside)
        named = server.kubeconfig(tmp_path / "named", tls_server_name="elsewhere.example")
        for path in (foreign, named):
            error = failure(lambda path=path: connect(path).send([GET], 10))
            assert isinstance(error, Untrusted)
        right = server.kubeconfig(tmp_path / "right", tls_server_name="kubernetes.default.svc")
        assert connect(right).send([GET], 10)[0].status == 404

    def test_through_a_proxy(self, server, connect, tmp_path):
        with HttpProxy(server.port, to=server.address) as proxy:
            transport = connect(server.kubeconfig(tmp_path / "config", proxy_url=proxy.url))
            assert [answer.status for answer in transport.send([GET, GET], 10)] == [404, 404]
            assert [asked.target for asked in proxy.asked] == [f"[::1]:{server.port}"]


REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


def context(pair: tuple[Path, Path]) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*pair)
    return made


def mutual(authority: Authority, version: ssl.TLSVersion) -> ssl.SSLContext:
    """Of a server that wants a certificate of that authority."""
    made = context(authority.issue("mutual", "IP:127.0.0.1"))
    made.minimum_version = made.maximum_version = version
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(authority.ca)
    return made


def dated(folder: Path, start: int, days: int) -> tuple[Path, Path]:
    """A certificate for the loopback, signed by itself, valid from `start` days from now on."""
    cert, key, request = folder / "dated.pem", folder / "dated-key.pem", folder / "dated.csr"
    extensions, index = folder / "dated.ext", folder / "index.txt"
    extensions.write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:TRUE\n")
    index.touch()
    config = folder / "ca.conf"
    config.write_text(
        f"[ca]\ndefault_ca=a\n[a]\ndatabase={index}\nnew_certs_dir={folder}\nserial={folder}/serial\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
    )
    (folder / "serial").write_text("01\n")
    times = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + day * 86400)) for day in (start, start + days)]
    make = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=dated"]
    subprocess.run(["openssl", *make, "-keyout", key, "-out", request], check=True, capture_output=True)
    sign = ["ca", "-batch", "-selfsign", "-config", config, "-in", request, "-keyfile", key, "-out", cert, "-notext"]
    limits = ["-extfile", extensions, "-startdate", times[0], "-enddate", times[1]]
    subprocess.run(["openssl", *sign, *limits], check=True, capture_output=True)
    return cert, key


def descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(entry.readlink()))
    return found
