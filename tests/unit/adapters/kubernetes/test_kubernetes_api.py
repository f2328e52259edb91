"""One server as we use it: what is tried again, what is told, what is not asked twice."""

from __future__ import annotations

import contextlib
import json

import pytest

from adapters.kubernetes.answers import NoReply, Reply, read_answer
from adapters.kubernetes.api import FEW_PAUSES, PAUSES, Api, Forbidden
from adapters.kubernetes.cluster import KubernetesCluster
from adapters.kubernetes.transport.seam import ApiTransportError, ApiUntrusted, HttpAnswer, HttpRequest, Oversized
from adapters.memory.clock import MemoryClock
from ports.clock import Deadline
from ports.cluster import NoSuchObject
from ports.errors import BadConfiguration, Expired, Unauthorized, Unavailable
from services.fake_apiserver import FakeApiserver, Recorded, lost

SOON = Deadline(1000.0)
SERVER = "Kubernetes API server https://api.test:6443"
HANDLES = "/apis/crd.projectcalico.org/v1/ipamhandles"
READ = HttpRequest("GET", f"{HANDLES}/h")
POD = HttpRequest("GET", "/api/v1/namespaces/gold/pods/web-0")
POST = HttpRequest("POST", HANDLES, body=b'{"metadata":{"name":"h"}}')
DELETE = HttpRequest("DELETE", f"{HANDLES}/h")


def put(version: str, text: str = "b") -> HttpRequest:
    body = {"metadata": {"name": "h", "resourceVersion": version}, "spec": {"handleID": text}}
    return HttpRequest("PUT", f"{HANDLES}/h", body=json.dumps(body).encode())


@pytest.fixture
def server():
    return FakeApiserver("v1")


@pytest.fixture
def clock():
    return MemoryClock()


@pytest.fixture
def transport(server):
    return server.transport()


@pytest.fixture
def recorded(transport):
    return Recorded(transport)


@pytest.fixture
def api(recorded, clock):
    return Api(recorded, clock)


def fail_first(times: int, fault):
    """Instead of the first requests something else happens: an answer, or an error."""
    left = [times]

    def instead(_request):
        if left[0] == 0:
            return None
        left[0] -= 1
        if isinstance(fault, BaseException):
            raise fault
        return fault

    return instead


def lose_first(times: int):
    """The first requests are carried out, and their answers lost."""
    left = [times]

    def lose(_request, _answer):
        if left[0]:
            left[0] -= 1
            raise lost()

    return lose


PASSING = [500, 502, 503, 504, 429]


class TestReading:
    @pytest.mark.parametrize("status", PASSING)
    def test_a_passing_failure_is_outlasted(self, server, api, clock, status):
        server.create(HANDLES, {"metadata": {"name": "h"}})
        server.before = fail_first(3, server.failure(status, "one moment"))
        (reply,) = api.read([READ], SOON)
        assert reply.object["metadata"]["name"] == "h"
        assert clock.slept == [0.1, 0.2, 0.4]

    @pytest.mark.parametrize("status", PASSING)
    def test_a_lasting_failure_is_told_with_the_servers_words(self, server, api, recorded, status):
        server.before = lambda request: server.failure(status, "etcdserver: leader changed")
        with pytest.raises(Unavailable, match=f"^{SERVER}: etcdserver: leader changed$"):
            api.read([READ], SOON)
        assert len(recorded.log) == len(PAUSES) + 1

    def test_a_failure_of_a_proxy_shows_its_status_and_not_its_page(self, server, api):
        server.before = lambda request: HttpAnswer(502, b"<html>token=secret</html>", {})
        with pytest.raises(Unavailable, match=f"^{SERVER}: the server answered 502$"):
            api.read([READ], SOON)

    def test_only_what_has_no_answer_is_asked_again(self, server, api, recorded):
        busy = fail_first(1, server.failure(503, "no"))
        server.before = lambda request: busy(request) if request == READ else None
        api.read([POD, READ, HttpRequest("GET", HANDLES)], SOON)
        assert recorded.rounds == [3, 1]

    def test_equal_requests_are_sent_once(self, server, api, recorded):
        server.create(HANDLES, {"metadata": {"name": "h"}})
        first, second = api.read([READ, READ], SOON)
        assert first == second
        assert recorded.rounds == [1]

    @pytest.mark.parametrize("harmless", [True, False])
    def test_a_lost_answer_or_a_restart_of_the_server_is_outlasted(self, server, api, clock, harmless):
        server.before = fail_first(2, lost(harmless=harmless))
        assert api.read([READ], SOON)[0].status == 404
        assert clock.slept == [0.1, 0.2]

    def test_a_server_that_is_away_is_named(self, server, api):
        server.before = fail_first(99, lost("connection refused", harmless=True))
        with pytest.raises(Unavailable, match=r"^https://api\.test:6443: connection refused$"):
            api.read([READ], SOON)

    def test_a_server_that_never_answered_is_waited_for_only_once(self, server, api, clock):
        """What follows is an undo or a report, and DEL must answer within ten seconds (K02)."""
        server.before = fail_first(99, lost("connection refused", harmless=True))
        with pytest.raises(Unavailable):
            api.read([READ], SOON)
        assert clock.slept == list(PAUSES)
        assert sum(PAUSES) < 8
        with pytest.raises(Unavailable):
            api.read([READ], SOON)
        assert clock.slept[len(PAUSES) :] == list(FEW_PAUSES)

    def test_a_certificate_that_is_not_trusted_is_told_at_once(self, server, api, clock):
        server.before = fail_first(99, ApiUntrusted("https://api.test:6443: certificate signed by unknown authority"))
        with pytest.raises(Unavailable, match="unknown authority"):
            api.read([READ], SOON)
        assert clock.slept == []

    def test_a_read_that_goes_nowhere_is_sent_again_before_the_deadline(self, server, api, clock, transport):
        """The first of several addresses of a server may be dead."""

        def stall(_request):
            clock.advance(transport.seconds[-1])
            if len(transport.seconds) == 1:
                raise lost("no answer", timed_out=True)

        server.before = stall
        assert api.read([READ], SOON)[0].status == 404
        assert transport.seconds[0] == 15.0


class TestDeadlines:
    def test_a_stall_ends_with_the_deadline_and_names_the_server(self, server, api, clock, transport):
        """P04."""

        def stall(_request):
            clock.advance(transport.seconds[-1])
            raise lost("no answer", timed_out=True)

        server.before = stall
        with pytest.raises(Expired, match=f"^deadline exceeded while waiting for {SERVER}$"):
            api.read([READ], Deadline(20.0))
        assert clock.monotonic() == pytest.approx(20.0, abs=0.2)
        with pytest.raises(Expired):
            api.write(POST, Deadline(clock.monotonic() + 4.0))
        assert transport.seconds[-1] == pytest.approx(4.0)

    def test_nothing_is_sent_past_the_deadline(self, api, clock, recorded):
        clock.advance(5)
        with pytest.raises(Expired):
            api.read([READ], Deadline(5.0))
        with pytest.raises(Expired):
            api.write(POST, Deadline(5.0))
        assert recorded.log == []

    def test_a_pause_never_passes_the_deadline(self, server, api, clock):
        server.before = lambda request: server.failure(503, "down")
        with pytest.raises(Unavailable, match="down"):
            api.read([READ], Deadline(0.5))
        assert clock.slept == [0.1, 0.2]

    def test_as_long_as_the_server_asks_is_waited(self, server, api, clock):
        server.before = fail_first(2, server.failure(429, "slow down", {"retry-after": "7"}))
        assert api.read([READ], SOON)[0].status == 404
        assert clock.slept == [7.0, 7.0]

    def test_longer_than_the_deadline_is_not_waited(self, server, api, clock):
        server.before = lambda request: server.failure(429, "slow down", {"retry-after": "30"})
        with pytest.raises(Unavailable, match="slow down"):
            api.read([READ], Deadline(20.0))
        assert clock.slept == []

    @pytest.mark.parametrize("text", ["", "soon", "-1", "Sun, 29 Nov 2026 13:06:12 GMT", "9" * 30])
    def test_what_is_no_number_of_seconds_is_no_wish(self, server, api, clock, text):
        server.before = fail_first(1, server.failure(429, "slow down", {"retry-after": text}))
        api.read([READ], SOON)
        assert clock.slept == [0.1]


class TestCredentials:
    def test_credentials_that_were_replaced_are_read_again(self, server, api, transport, recorded):
        """C14 (a): one re-read, one retry."""
        transport.fresh = True
        server.before = fail_first(1, server.failure(401, "Unauthorized"))
        assert api.read([READ], SOON)[0].status == 404
        assert (transport.renewals, len(recorded.log)) == (1, 2)

    def test_a_write_is_sent_again_with_new_credentials(self, server, api, transport):
        transport.fresh = True
        server.before = fail_first(1, server.failure(401, "Unauthorized"))
        assert api.write(POST, SOON).ok

    def test_unchanged_credentials_are_not_tried_again(self, server, api, transport, recorded, clock):
        """C14 (b): fast."""
        recorded.credentials = "kubeconfig /k, expired at 2026-11-29T13:06:12Z"
        server.before = fail_first(99, server.failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized) as told:
            api.read([READ], SOON)
        assert str(told.value) == (
            f"connection is unauthorized: {SERVER}: Unauthorized (kubeconfig /k, expired at 2026-11-29T13:06:12Z)"
        )
        assert (transport.renewals, len(recorded.log), clock.slept) == (1, 1, [])

    def test_new_credentials_that_are_wrong_as_well_are_told(self, server, api, transport, recorded):
        transport.fresh = True
        server.before = fail_first(99, server.failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized):
            api.read([READ, POD], SOON)
        assert (transport.renewals, len(recorded.log)) == (1, 4)

    def test_credentials_that_cannot_be_read_any_more_are_told(self, server, recorded, clock):
        class Broken(Recorded):
            def renew(self):
                raise BadConfiguration("kubeconfig /k: No such file or directory")

        server.before = fail_first(99, server.failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized, match=r"Unauthorized .*: kubeconfig /k: No such file"):
            Api(Broken(recorded), clock).read([READ], SOON)

    def test_what_is_forbidden_is_told_at_once_in_the_servers_words(self, server, api, transport, recorded):
        transport.fresh = True
        text = 'pods "web-0" is forbidden: User "x" cannot get resource "pods"'
        server.before = fail_first(99, server.failure(403, text))
        with pytest.raises(Forbidden, match=f"^connection is unauthorized: {SERVER}: {text}$"):
            api.read([POD], SOON)
        assert (transport.renewals, len(recorded.log)) == (0, 1)

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_server_that_was_just_away_may_not_know_us_yet(self, server, api, status):
        """After a start roles and accounts come last."""
        faults = iter([lost(harmless=True), *[server.failure(status, "who are you?")] * 3])

        def starting(_request):
            fault = next(faults, None)
            if isinstance(fault, BaseException):
                raise fault
            return fault

        server.before = starting
        assert api.read([READ], SOON)[0].status == 404

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_server_that_was_away_and_never_knows_us_is_something_to_try_again(self, server, api, clock, status):
        faults = iter([lost(harmless=True)])

        def started(_request):
            for fault in faults:
                raise fault
            return server.failure(status, "who are you?")

        server.before = started
        with pytest.raises(Unavailable, match=r"who are you\?"):
            api.read([READ], SOON)
        assert clock.slept == list(PAUSES)

    def test_credentials_that_were_replaced_while_the_server_was_away_are_read_again(self, server, api, transport):
        transport.fresh = True
        faults = iter([lost(harmless=True), server.failure(401, "Unauthorized")])

        def started(_request):
            fault = next(faults, None)
            if isinstance(fault, BaseException):
                raise fault
            return fault

        server.before = started
        assert api.read([READ], SOON)[0].status == 404
        assert transport.renewals == 1


class TestWriting:
    @pytest.mark.parametrize("status", PASSING)
    def test_a_write_that_a_passing_failure_prevented_is_sent_again(self, server, api, status):
        server.before = fail_first(2, server.failure(status, "one moment"))
        assert api.write(POST, SOON).status == 201
        assert server.find(f"{HANDLES}/h")

    @pytest.mark.parametrize("verb", ["create", "replace", "delete"])
    def test_whether_a_write_whose_answer_was_lost_has_happened_is_unknown(self, server, api, verb):
        """The second try is refused because the first has happened, or because somebody else was faster: who knows."""
        if verb != "create":
            made = server.create(HANDLES, {"metadata": {"name": "h"}})
        server.after = lose_first(1)
        request = {"create": lambda: POST, "replace": lambda: put(made["metadata"]["resourceVersion"])}
        with pytest.raises(Unavailable, match="connection reset"):
            api.write(request.get(verb, lambda: DELETE)(), SOON)

    def test_a_write_whose_request_was_lost_happens_on_the_second_try(self, server, api):
        server.before = fail_first(1, lost())
        assert api.write(POST, SOON).status == 201

    def test_a_refusal_after_harmless_faults_is_certain(self, server, api):
        server.create(HANDLES, {"metadata": {"name": "h"}})
        server.before = fail_first(2, server.failure(429, "slow down"))
        assert api.write(POST, SOON).status == 409

    def test_a_refusal_is_an_answer(self, server, api, recorded):
        made = server.create(HANDLES, {"metadata": {"name": "h"}})
        assert api.write(put(made["metadata"]["resourceVersion"]), SOON).ok
        reply = api.write(put(made["metadata"]["resourceVersion"]), SOON)
        assert (reply.status, reply.reason) == (409, "Conflict")
        assert len(recorded.log) == 2


class TestAnswers:
    @pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"[]", b'"ok"', b"\xff\xfe", b"{", b"[" * 100_000])
    @pytest.mark.parametrize("status", [200, 404, 409])
    def test_an_answer_that_is_not_kubernetes_says_nothing_about_objects(self, server, api, status, body):
        """K03: a page of a proxy must not look like "there is no such object"."""
        server.before = lambda request: HttpAnswer(status, body, {})
        with pytest.raises(Unavailable, match=rf"^{SERVER}: the answer \({status}\) is not that of a Kubernetes"):
            api.read([READ], SOON)

    def test_json_of_somebody_else_is_no_refusal(self, server, api):
        server.before = lambda request: HttpAnswer(404, b'{"error":"no route"}', {})
        with pytest.raises(Unavailable, match="the server answered 404"):
            api.read([READ], SOON)

    def test_a_redirect_is_not_followed(self, server, api):
        server.before = lambda request: HttpAnswer(302, b"{}", {"location": "https://evil.test"})
        with pytest.raises(Unavailable, match="the server answered 302"):
            api.read([READ], SOON)

    def test_a_group_that_is_not_served_is_a_clear_answer(self):
        reply = read_answer(HttpAnswer(404, b"404 page not found\n", {}))
        assert isinstance(reply, Reply)
        assert (reply.status, reply.message) == (404, "the server could not find the requested resource")

    def test_what_a_refusal_says(self):
        status = {"kind": "Status", "reason": "Invalid", "details": {"causes": [{"reason": "r", "field": "f"}, 7]}}
        reply = read_answer(HttpAnswer(422, json.dumps(status).encode(), {}))
        assert (reply.reason, reply.causes, reply.message) == ("Invalid", [("r", "f")], "the server answered 422")
        for odd in ({"details": 7}, {"details": {"causes": 7}}, {"message": 7, "reason": 7}):
            assert read_answer(HttpAnswer(422, json.dumps({"kind": "Status"} | odd).encode(), {})).causes == []

    def test_a_busy_server_has_done_nothing(self):
        busy, failed = (read_answer(HttpAnswer(status, b"{}", {})) for status in (429, 500))
        assert isinstance(busy, NoReply)
        assert (busy.harmless, failed.harmless) == (True, False)


class TestRemembering:
    @pytest.fixture
    def gold(self, server):
        server.create("/api/v1/namespaces", {"metadata": {"name": "gold"}})
        server.create("/api/v1/namespaces/gold/pods", {"metadata": {"name": "web-0"}})
        return server

    def test_a_pod_and_a_namespace_are_asked_for_once_in_two_seconds(self, gold, api, recorded, clock):
        namespace = HttpRequest("GET", "/api/v1/namespaces/gold")
        for _ in range(3):
            api.read([POD, namespace], SOON)
        assert recorded.rounds == [2]
        clock.advance(2)
        api.read([POD], SOON)
        assert recorded.rounds == [2, 1]

    @pytest.mark.parametrize("status", [200, 409])
    def test_a_pod_is_forgotten_when_it_is_written_whatever_came_of_it(self, gold, api, recorded, status):
        api.read([POD], SOON)
        gold.before = lambda request: gold.failure(status, "no") if request.method == "PATCH" else None
        patch = HttpRequest("PATCH", f"{POD.path}/status", body=b"{}")
        with contextlib.suppress(Unavailable):
            api.write(patch, SOON)
        api.read([POD], SOON)
        assert [line.split()[0] for line in recorded.log] == ["GET", "PATCH", "GET"]

    def test_a_pod_is_asked_for_anew_when_somebody_has_to_know_how_it_is_now(self, gold, api, recorded):
        cluster = KubernetesCluster(api)
        before = cluster.pod("gold", "web-0", SOON)
        gold.delete(POD.path)
        assert cluster.pod("gold", "web-0", SOON) == before
        with pytest.raises(NoSuchObject):
            cluster.pod_now("gold", "web-0", SOON)
        assert recorded.rounds == [1, 1]

    def test_nothing_else_is_remembered(self, gold, api, recorded):
        lists = HttpRequest("GET", "/api/v1/namespaces/gold/pods", (("limit", "500"),))
        absent = HttpRequest("GET", "/api/v1/namespaces/gold/pods/none")
        account = HttpRequest("GET", "/api/v1/namespaces/gold/serviceaccounts/x")
        node = HttpRequest("GET", "/api/v1/nodes/node-a")
        for _ in range(2):
            api.read([READ, lists, absent, account, node], SOON)
        assert recorded.rounds == [5, 5]


class TestGoingAlong:
    """What a later step asks goes out with an earlier question."""

    OTHER = HttpRequest("GET", f"{HANDLES}/other")

    def test_it_is_answered_by_the_same_round_trip_once(self, server, api, recorded):
        server.create(HANDLES, {"metadata": {"name": "other"}})
        api.expect([self.OTHER, self.OTHER])
        api.read([READ], SOON)
        assert api.read([self.OTHER], SOON)[0].object["metadata"]["name"] == "other"
        assert recorded.rounds == [2]
        api.read([self.OTHER], SOON)
        assert recorded.rounds == [2, 1]

    def test_that_there_is_no_such_object_is_an_answer_too(self, api, recorded):
        api.expect([self.OTHER])
        api.read([READ], SOON)
        assert api.read([self.OTHER], SOON)[0].status == 404
        assert recorded.rounds == [2]

    def test_it_is_no_answer_any_more_after_a_second(self, api, recorded, clock):
        api.expect([self.OTHER])
        api.read([READ], SOON)
        clock.advance(1)
        api.read([self.OTHER], SOON)
        assert recorded.rounds == [2, 1]

    @pytest.mark.parametrize("status", [403, 500])
    def test_what_goes_wrong_with_it_counts_when_it_is_asked_for(self, server, api, recorded, status):
        server.before = lambda request: server.failure(status, "not this") if request == self.OTHER else None
        api.expect([self.OTHER])
        assert api.read([READ], SOON)[0].status == 404
        assert recorded.rounds == [2]
        with pytest.raises((Unauthorized, Unavailable), match="not this"):
            api.read([self.OTHER], SOON)

    @pytest.mark.parametrize("fault", [lost(), Oversized("an answer of more than 256 MiB")])
    def test_a_question_that_gets_no_answer_with_it_is_asked_again_without(self, server, api, recorded, fault):
        server.before = lambda request: fail_first(1, fault)(request) if request == self.OTHER else None
        api.expect([self.OTHER])
        assert api.read([READ], SOON)[0].status == 404
        assert recorded.rounds == [2, 1]

    def test_it_waits_for_a_question_that_has_to_be_sent(self, server, api, recorded):
        server.create("/api/v1/namespaces/gold/pods", {"metadata": {"name": "web-0"}})
        api.read([POD], SOON)
        api.expect([self.OTHER, POD])
        api.read([POD], SOON)
        assert recorded.rounds == [1]
        api.read([READ], SOON)
        assert recorded.rounds == [1, 2]

    def test_it_is_forgotten_when_the_object_is_written(self, api, recorded):
        api.expect([READ])
        api.read([self.OTHER], SOON)
        api.write(DELETE, SOON)
        api.read([READ], SOON)
        assert recorded.rounds == [2, 1, 1]


def test_a_signal_passes_through(server, api):
    server.before = fail_first(1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        api.read([READ], SOON)


def test_the_cause_of_an_error_is_kept(server, api):
    server.before = fail_first(99, lost())
    with pytest.raises(Unavailable) as told:
        api.read([READ], SOON)
    assert isinstance(told.value.__cause__, ApiTransportError)


class TestHaste:
    """Of an operator who waits at a terminal."""

    def test_that_nobody_listens_is_told_at_once(self, server, recorded, clock):
        server.before = fail_first(9, lost("connection refused", harmless=True))
        with pytest.raises(Unavailable, match="connection refused"):
            Api(recorded, clock, hasty=True).read([READ], SOON)
        assert clock.slept == []

    def test_a_server_that_answers_is_waited_for(self, server, recorded, clock):
        hasty = Api(recorded, clock, hasty=True)
        server.before = fail_first(1, server.failure(503, "one moment"))
        assert hasty.read([READ], SOON)[0].status == 404
        server.before = fail_first(1, lost("connection refused", harmless=True))
        assert hasty.read([DELETE.replace(method="GET")], SOON)[0].status == 404
        assert clock.slept == [0.1, 0.1]


def test_what_is_too_large_is_not_fetched_again(server, api, recorded):
    server.before = fail_first(9, Oversized("https://api.test:6443: an answer of more than 256 MiB"))
    with pytest.raises(Unavailable, match="more than 256 MiB"):
        api.read([READ], SOON)
    assert len(recorded.log) == 1
