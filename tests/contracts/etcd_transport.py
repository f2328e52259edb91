"""What every transport to etcd promises, as one suite that each of them runs, on a real etcd.

Derive a class named `Test…` and give it a fixture `opener`, which is an `adapters.etcdv3.transport.Open`, and
`loading`, which is code that makes one from `tls` and `Withheld`.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    PERMISSION_DENIED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    EtcdTls,
    EtcdTransportError,
    EtcdUntrusted,
    WriteOutcome,
    Writing,
)
from patience import at_best, until
from services.etcd import Authority, Etcd
from services.tcp_proxy import BlackHole, TcpProxy

ANY = (b"\0", b"\xff")
NOBODY = "http://127.0.0.1:1"
ROOT = Path(__file__).resolve().parents[2]
ASK = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import EtcdTls, EtcdTransportError
from adapters.linux.process.signals import Withheld
tls = EtcdTls(Path({ca!r}).read_bytes(), only_newest={newest})
{loading}
try:
    opener(parse_endpoints({url!r}), tls, 5.0)
except EtcdTransportError as error:
    print(type(error).__name__, error)
"""


def failure(action) -> EtcdTransportError:
    with pytest.raises(EtcdTransportError) as caught:
        action()
    return caught.value


class EtcdTransportContract:
    loading: str

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls):
        with Etcd() as etcd:
            yield etcd

    @pytest.fixture(scope="class")
    @classmethod
    def authority(cls, tmp_path_factory):
        return Authority(tmp_path_factory.mktemp("authority"))

    @pytest.fixture(scope="class")
    @classmethod
    def secure(cls, authority):
        with Etcd(tls=authority) as etcd:
            yield etcd

    @pytest.fixture
    def connect(self, opener):
        """Open, and close after the test."""
        opened = []

        def connect(url, tls=EtcdTls(), seconds=30.0):  # noqa: B008 - it is a value
            opened.append(opener(parse_endpoints(url), tls, seconds))
            return opened[-1]

        yield connect
        for one in opened:
            one.close()

    @pytest.fixture
    def etcd(self, server, connect):
        server.clear()
        return connect(server.url)

    # --- reading and writing -----------------------------------------------------------------------------------------

    def test_create_writes_what_is_not_there(self, etcd):
        made = etcd.create(b"/k", b"v", 5)
        assert made.done
        assert etcd.read([(b"/k", b"")], 5) == [[(b"/k", b"v", made.revision)]]

    def test_create_leaves_what_is_there_and_tells_its_revision(self, etcd):
        first = etcd.create(b"/k", b"v", 5)
        assert etcd.create(b"/k", b"w", 5) == WriteOutcome(False, first.revision)
        assert etcd.read([(b"/k", b"")], 5)[0][0][1] == b"v"

    def test_replace_writes_over_the_revision_it_names(self, etcd):
        first = etcd.create(b"/k", b"v", 5)
        second = etcd.replace(b"/k", b"w", first.revision, 5)
        assert second.done
        assert second.revision > first.revision
        assert etcd.read([(b"/k", b"")], 5) == [[(b"/k", b"w", second.revision)]]
        assert etcd.replace(b"/k", b"x", first.revision, 5) == WriteOutcome(False, second.revision)

    def test_replace_writes_nothing_where_nothing_is(self, etcd):
        assert etcd.replace(b"/k", b"v", 7, 5) == WriteOutcome(False, 0)
        assert etcd.read([ANY], 5) == [[]]

    def test_delete_takes_away_the_revision_it_names(self, etcd):
        first = etcd.create(b"/k", b"v", 5)
        second = etcd.replace(b"/k", b"w", first.revision, 5)
        assert etcd.delete(b"/k", first.revision, 5) == WriteOutcome(False, second.revision)
        assert etcd.delete(b"/k", second.revision, 5).done
        assert etcd.delete(b"/k", second.revision, 5) == WriteOutcome(False, 0)
        assert etcd.read([ANY], 5) == [[]]

    def test_delete_without_a_revision_takes_whatever_is_there(self, etcd):
        etcd.create(b"/k", b"v", 5)
        assert etcd.delete(b"/k", None, 5).done
        assert etcd.delete(b"/k", None, 5) == WriteOutcome(False, 0)

    def test_several_keys_are_written_at_once_or_none(self, etcd):
        first = etcd.create(b"/a", b"v", 5)
        swap = [Writing(b"/a", None, first.revision), Writing(b"/b", b"", 0), Writing(b"/c", b"w", 0)]
        done = etcd.write_all(swap, 5)
        assert done == (WriteOutcome(True, first.revision + 1),) * 3
        there = [(b"/b", b"", done[0].revision), (b"/c", b"w", done[0].revision)]
        assert etcd.read([ANY], 5) == [there]
        again = etcd.write_all([Writing(b"/d", b"x", 0), *swap], 5)
        assert again == tuple([WriteOutcome(False, revision) for revision in (0, 0, *[done[0].revision] * 2)])
        assert etcd.read([ANY], 5) == [there]

    def test_ranges_are_answered_in_the_order_asked_and_rows_in_key_order(self, etcd):
        for key in (b"/b/2", b"/b/10", b"/a", b"/b", b"/c", b"/b/\xff"):
            etcd.create(key, key.upper(), 5)
        found = etcd.read([(b"/b/", b"/b0"), (b"/a", b""), (b"/none", b""), (b"/b", b"")], 5)
        assert [[key for key, _, _ in rows] for rows in found] == [
            [b"/b/10", b"/b/2", b"/b/\xff"],
            [b"/a"],
            [],
            [b"/b"],
        ]

    def test_values_are_octets_of_any_length(self, etcd):
        for number, value in enumerate((b"", bytes(range(256)), b"x" * 1_000_000)):
            etcd.create(b"/k%d" % number, value, 5)
            assert etcd.read([(b"/k%d" % number, b"")], 5)[0][0][1] == value

    def test_an_answer_may_be_longer_than_any_usual_limit(self, etcd):
        for number in range(12):
            etcd.create(b"/k%02d" % number, b"y" * 1_000_000, 10)
        assert sum(len(value) for _, value, _ in etcd.read([ANY], 20)[0]) == 12_000_000

    def test_a_request_that_etcd_refuses_is_an_error_with_its_status_and_text(self, etcd):
        error = failure(lambda: etcd.create(b"/k", b"x" * 1_800_000, 5))
        assert error.status == INVALID_ARGUMENT
        assert "too large" in str(error)
        assert etcd.read([ANY], 5) == [[]]

    # --- connecting --------------------------------------------------------------------------------------------------

    def test_nobody_who_listens_is_told_soon_and_why(self, connect):
        def told() -> None:
            error = failure(lambda: connect(NOBODY))
            assert (error.status, error.harmless) == (UNAVAILABLE, True)
            assert "onnection refused" in str(error)

        at_best(2, told)

    def test_all_who_refuse_are_named(self, connect):
        first, second = str(failure(lambda: connect(f"{NOBODY},http://127.0.0.1:2"))).split("; ")
        assert first.startswith("http://127.0.0.1:1: ")
        assert second.startswith("http://127.0.0.1:2: ")

    def test_c16_a_dead_endpoint_costs_no_two_seconds(self, server, connect):
        with BlackHole() as hole:
            for dead in (NOBODY, hole.url, f"{hole.url},{NOBODY}", f"{hole.url},{hole.url},{hole.url}"):

                def use(dead: str = dead) -> None:
                    etcd = connect(f"{dead},{server.url}")
                    assert str(etcd.endpoint) == server.url
                    assert etcd.read([(b"/k", b"")], 5) == [[]]

                at_best(2, use)

    def test_the_first_of_two_that_live_is_taken(self, server, connect):
        with TcpProxy(server.port) as proxy:
            assert str(connect(f"{server.url},{proxy.url}").endpoint) == server.url
            assert str(connect(f"{proxy.url},{server.url}").endpoint) == proxy.url

    def test_a_black_hole_takes_as_long_as_it_may_and_no_longer(self, connect):
        with BlackHole() as hole:
            began = time.monotonic()
            error = failure(lambda: connect(hole.url, seconds=1.0))
            assert (error.status, error.harmless) == (DEADLINE_EXCEEDED, True)
            assert 0.9 < time.monotonic() - began < 20

    def test_a_server_that_takes_connections_and_says_nothing_is_not_taken(self, server, connect):
        with TcpProxy(server.port) as proxy:
            proxy.replies_held.set()
            assert str(connect(f"{proxy.url},{server.url}").endpoint) == server.url
            assert failure(lambda: connect(proxy.url, seconds=0.5)).status == DEADLINE_EXCEEDED

    def test_a_name_that_does_not_exist_is_named(self, connect):
        error = failure(lambda: connect("http://tortie-test.invalid:2379", seconds=5.0))
        assert error.status in (UNAVAILABLE, DEADLINE_EXCEEDED)
        assert error.harmless

    def test_the_local_name_works(self, server, connect):
        assert connect(server.url.replace("127.0.0.1", "localhost")).read([ANY], 5) is not None

    # --- connections that break --------------------------------------------------------------------------------------

    def test_a_stalled_answer_takes_as_long_as_it_may_and_no_longer(self, server, connect):
        with TcpProxy(server.port) as proxy:
            etcd = connect(proxy.url)
            proxy.stalled.set()
            began = time.monotonic()
            error = failure(lambda: etcd.read([ANY], 1.0))
            assert (error.status, error.harmless) == (DEADLINE_EXCEEDED, False)
            assert 0.9 < time.monotonic() - began < 20

    def test_a_write_whose_answer_is_lost_is_not_harmless(self, server, connect):
        server.clear()
        with TcpProxy(server.port) as proxy:
            etcd = connect(proxy.url)
            proxy.replies_held.set()
            cutter = threading.Thread(target=lambda: (until(server.texts), proxy.cut()))
            cutter.start()
            error = failure(lambda: etcd.create(b"/k", b"v", 60))
            cutter.join()
            assert (error.status, error.harmless) == (UNAVAILABLE, False)
            assert server.texts() == {"/k": "v"}

    def test_a_server_that_is_killed_is_unavailable(self, connect):
        with Etcd() as etcd:
            transport = connect(etcd.url)
            etcd.kill()
            assert failure(lambda: transport.read([ANY], 5)).status == UNAVAILABLE

    def test_closing_twice_is_safe(self, server, connect):
        etcd = connect(server.url)
        etcd.close()
        etcd.close()

    # --- certificates ------------------------------------------------------------------------------------------------

    @pytest.fixture(scope="class")
    @classmethod
    def mine(cls, authority, secure):
        return EtcdTls(*(path.read_bytes() for path in (authority.ca, secure.cert, secure.key)))

    @pytest.fixture(scope="class")
    @classmethod
    def foreign(cls, tmp_path_factory):
        other = Authority(tmp_path_factory.mktemp("other"), "another authority")
        cert, key = other.issue("client")
        return EtcdTls(*(path.read_bytes() for path in (other.ca, cert, key)))

    def test_both_sides_show_certificates(self, secure, connect, mine):
        etcd = connect(secure.url, mine)
        assert etcd.create(b"/tls", b"v", 5).done

    @pytest.mark.parametrize("newest", [False, True])
    @pytest.mark.parametrize("spoken", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_tls_1_3_alone_can_be_wanted(self, authority, newest, spoken):
        """In a process of its own, as a library may take that choice once. The server only shakes hands."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("handshaker", "IP:127.0.0.1"))
        context.minimum_version = context.maximum_version = spoken
        context.set_alpn_protocols(["h2"])
        agreed = []

        def serve():
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
                agreed.append(wrapped.version())

        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = threading.Thread(target=serve, daemon=True)
            serving.start()
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            code = ASK.format(root=str(ROOT), ca=str(authority.ca), newest=newest, url=url, loading=self.loading)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
            serving.join(10)
        refused = newest and spoken == ssl.TLSVersion.TLSv1_2
        assert agreed == ([] if refused else [spoken.name.replace("v1_", "v1.")])
        assert done.stdout.startswith("EtcdUntrusted") is refused, done

    def test_c16_a_wrong_authority_is_a_certificate_problem(self, secure, connect, mine, foreign):
        def told() -> None:
            for ca in (foreign.ca, b""):
                error = failure(lambda ca=ca: connect(secure.url, mine.replace(ca=ca)))
                assert isinstance(error, EtcdUntrusted)
                assert "certificate problem" in str(error)

        at_best(2, told)

    def test_c16_a_certificate_for_another_host_is_a_certificate_problem(self, authority, connect, mine):
        with Etcd(tls=authority, hosts="DNS:elsewhere.example") as etcd:
            error = failure(lambda: connect(etcd.url, mine))
            assert isinstance(error, EtcdUntrusted)
            assert "not for this host name" in str(error)

    def test_a_client_certificate_that_the_server_refuses_is_a_certificate_problem(
        self, secure, connect, mine, foreign
    ):
        for refused in (foreign.replace(ca=mine.ca), EtcdTls(mine.ca)):
            error = failure(lambda refused=refused: connect(secure.url, refused))
            assert isinstance(error, EtcdUntrusted)
            assert "certificate problem" in str(error)

    def test_certificate_and_key_that_do_not_belong_together_are_a_certificate_problem(
        self, secure, connect, mine, foreign
    ):
        error = failure(lambda: connect(secure.url, mine.replace(key=foreign.key)))
        assert isinstance(error, EtcdUntrusted)
        assert "certificate problem" in str(error)

    def test_https_where_http_is_spoken_ends_soon(self, server, connect):
        def told() -> None:
            assert failure(lambda: connect(server.url.replace("http:", "https:"))).status == UNAVAILABLE

        at_best(2, told)

    def test_http_where_https_is_spoken_ends_soon(self, secure, connect):
        def told() -> None:
            assert failure(lambda: connect(secure.url.replace("https:", "http:"))).status == UNAVAILABLE

        at_best(2, told)

    # --- users -------------------------------------------------------------------------------------------------------

    @pytest.fixture(scope="class")
    @classmethod
    def guarded(cls):
        with Etcd() as etcd:
            etcd.require_users(root="r00t", calico="planted-secret")
            etcd.ask("auth/user/add", {"name": "nobody", "password": "n0body"})
            yield etcd

    def test_a_token_opens_what_is_closed_otherwise_over_http_too(self, guarded, connect):
        etcd = connect(guarded.url)
        assert failure(lambda: etcd.read([ANY], 5)).status in (INVALID_ARGUMENT, UNAUTHENTICATED)
        etcd.token = etcd.authenticate("calico", "planted-secret", 5)
        assert etcd.read([ANY], 5) == [[]]

    def test_a_wrong_password_is_refused_and_not_repeated(self, guarded, connect):
        error = failure(lambda: connect(guarded.url).authenticate("calico", "planted-mistake", 5))
        assert error.status == INVALID_ARGUMENT
        assert "planted" not in str(error)

    def test_a_token_that_does_not_exist_is_unauthenticated(self, guarded, connect):
        etcd = connect(guarded.url)
        etcd.token = "abcdefgh.1"  # noqa: S105 - of nobody
        assert failure(lambda: etcd.read([ANY], 5)).status == UNAUTHENTICATED

    def test_a_user_without_a_role_is_denied(self, guarded, connect):
        etcd = connect(guarded.url)
        etcd.token = etcd.authenticate("nobody", "n0body", 5)
        assert failure(lambda: etcd.read([ANY], 5)).status == PERMISSION_DENIED

    def test_an_etcd_without_users_says_so(self, server, connect):
        etcd = connect(server.url)
        assert failure(lambda: etcd.authenticate("calico", "x", 5)).status == FAILED_PRECONDITION
