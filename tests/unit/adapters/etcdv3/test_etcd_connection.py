"""What is tried again, for how long, with which endpoint and token, and what an error says: over a played transport."""

from __future__ import annotations

import pytest

from adapters.etcdv3.connection import PATIENCE, Connection
from adapters.etcdv3.settings import EtcdSettings, parse_endpoints
from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    ONE_KEY,
    PERMISSION_DENIED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    EtcdTransportError,
    EtcdUntrusted,
    Question,
)
from adapters.memory.clock import MemoryClock
from ports.clock import Deadline
from ports.errors import Expired, Refused, Unauthorized, Unavailable

A, B = parse_endpoints("http://a:1,http://b:2")
LATER = Deadline(60.0)
RESOURCE_EXHAUSTED = 8


class Played:
    """A transport and what opens it: `plays` are the outcomes of requests in turn, an error or an answer."""

    def __init__(self, clock, *plays, refusals=(), sign_ins=()):
        self.clock = clock
        self.plays, self.refusals, self.sign_ins = list(plays), list(refusals), list(sign_ins)
        self.opened, self.questions, self.seconds, self.tokens = [], [], [], []
        self.closed = 0
        self.endpoint = A
        self.token = ""
        self.heard = None

    def open(self, endpoints, tls, seconds, question):
        self.opened.append(endpoints)
        self.questions.append(question)
        if self.refusals:
            raise self.refusals.pop(0)
        self.endpoint = endpoints[0]
        return self

    def authenticate(self, user, password, seconds):
        outcome = self.sign_ins.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def request(self, transport, seconds):
        self.seconds.append(seconds)
        self.tokens.append(self.token)
        outcome = self.plays.pop(0)
        if isinstance(outcome, tuple):
            outcome, passed = outcome
            self.clock.advance(passed)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def close(self):
        self.closed += 1


@pytest.fixture
def clock():
    return MemoryClock()


def undiscovered(_domain, _clock, _deadline):
    raise AssertionError("endpoints are given, so nothing is to be discovered")


def connection(played, settings=None, discover=undiscovered):
    return Connection(settings or EtcdSettings((A,)), played.clock, played.open, discover)


def unavailable(text="gone", *, harmless=False):
    return EtcdTransportError(UNAVAILABLE, text, harmless=harmless)


# --- trying again ---------------------------------------------------------------------------------------------------


def test_nothing_is_connected_before_the_first_request(clock):
    played = Played(clock, "answer", "another")
    etcd = connection(played)
    assert played.opened == []
    assert etcd.ask(played.request, LATER) == "answer"
    assert etcd.ask(played.request, LATER) == "another"
    assert played.opened == [(A,)]
    assert played.seconds == [60.0, 60.0]


def test_connecting_is_tried_until_somebody_listens(clock):
    """A server that restarts is not seen."""
    played = Played(clock, "answer", refusals=[unavailable("refused", harmless=True)] * 5)
    assert connection(played).ask(played.request, LATER) == "answer"
    assert len(played.opened) == 6


def test_nobody_who_listens_is_named_when_patience_ends(clock):
    played = Played(clock, refusals=[unavailable("Connection refused", harmless=True)] * 1000)
    with pytest.raises(Unavailable, match=r"^etcd http://a:1: Connection refused$") as caught:
        connection(played).ask(played.request, LATER)
    assert not isinstance(caught.value, Expired)
    assert clock.monotonic() == pytest.approx(PATIENCE, abs=0.5)


def test_where_nobody_has_ever_answered_the_next_request_gives_up_soon(clock):
    """It comes from the undoing of a call that has done nothing yet."""
    played = Played(clock, refusals=[unavailable("Connection refused", harmless=True)] * 1000)
    etcd = connection(played)
    for expected in (PATIENCE, PATIENCE + 1.0):
        with pytest.raises(Unavailable):
            etcd.ask(played.request, LATER)
        assert clock.monotonic() == pytest.approx(expected, abs=0.5)


def test_where_somebody_has_answered_before_every_request_waits_as_long(clock):
    refusal = unavailable("Connection refused", harmless=True)
    played = Played(clock, "answer")
    etcd = connection(played)
    etcd.ask(played.request, LATER)
    played.refusals = [refusal] * 1000
    etcd.close()
    for expected in (PATIENCE, 2 * PATIENCE):
        with pytest.raises(Unavailable):
            etcd.ask(played.request, LATER)
        assert clock.monotonic() == pytest.approx(expected, abs=0.5)


def test_a_deadline_before_that_is_an_expiry_that_says_whom_it_waited_for(clock):
    played = Played(clock, refusals=[unavailable("Connection refused", harmless=True)] * 1000)
    with pytest.raises(Expired, match=r"waiting for etcd http://a:1: Connection refused$"):
        connection(played).ask(played.request, Deadline(2.0))
    assert clock.monotonic() == pytest.approx(2.0, abs=0.3)


def test_the_reason_survives_a_last_try_that_was_too_short(clock):
    short = EtcdTransportError(DEADLINE_EXCEEDED, "no answer", harmless=True)
    played = Played(clock, refusals=[unavailable("Connection refused", harmless=True), *[short] * 1000])
    with pytest.raises(Unavailable, match="Connection refused"):
        connection(played).ask(played.request, LATER)


def test_a_certificate_problem_is_told_at_once(clock):
    """C16."""
    played = Played(clock, refusals=[EtcdUntrusted("certificate problem: …")])
    with pytest.raises(Unavailable, match=r"^etcd http://a:1: certificate problem"):
        connection(played).ask(played.request, LATER)
    assert clock.monotonic() == 0


def test_a_read_is_repeated_on_a_new_connection(clock):
    played = Played(clock, unavailable(), "answer")
    assert connection(played).ask(played.request, LATER, repeatable=True) == "answer"
    assert (len(played.opened), played.closed) == (2, 1)


def test_a_read_is_given_up_when_patience_ends(clock):
    played = Played(clock, *[(unavailable("etcdserver: request timed out"), 7.0)] * 5)
    with pytest.raises(Unavailable, match=r"^etcd http://a:1: etcdserver: request timed out$"):
        connection(played).ask(played.request, LATER, repeatable=True)
    assert len(played.seconds) == 2


def test_a_write_whose_answer_is_lost_is_not_repeated(clock):
    """Nobody knows whether it has happened."""
    played = Played(clock, unavailable("Socket closed"), "answer")
    with pytest.raises(Unavailable, match=r"^etcd http://a:1: Socket closed$"):
        connection(played).ask(played.request, LATER)
    assert len(played.seconds) == 1
    assert played.closed == 1


def test_a_write_that_was_not_sent_is_repeated(clock):
    played = Played(clock, unavailable(harmless=True), "answer")
    assert connection(played).ask(played.request, LATER) == "answer"


def test_the_next_request_goes_to_another_endpoint_first(clock):
    played = Played(clock, unavailable(), "answer")
    connection(played, EtcdSettings((A, B))).ask(played.request, LATER, repeatable=True)
    assert played.opened == [(A, B), (B, A)]


def test_a_read_asks_another_endpoint_before_the_deadline_is_over(clock):
    silent = EtcdTransportError(DEADLINE_EXCEEDED, "no answer")
    played = Played(clock, (silent, 5.0), "answer")
    etcd = connection(played, EtcdSettings((A, B)))
    assert etcd.ask(played.request, LATER, repeatable=True) == "answer"
    assert played.seconds[0] == 5.0


def test_the_only_endpoint_gets_all_the_time_there_is(clock):
    silent = EtcdTransportError(DEADLINE_EXCEEDED, "no answer")
    played = Played(clock, (silent, 60.0))
    with pytest.raises(Expired, match=r"waiting for etcd http://a:1$"):
        connection(played).ask(played.request, LATER, repeatable=True)
    assert played.seconds == [60.0]


def test_a_signal_in_the_middle_of_a_request_drops_the_connection(clock):
    played = Played(clock, KeyboardInterrupt(), "answer")
    etcd = connection(played)
    with pytest.raises(KeyboardInterrupt):
        etcd.ask(played.request, LATER)
    assert played.closed == 1
    assert etcd.ask(played.request, LATER) == "answer"
    assert len(played.opened) == 2


def test_closing_twice_closes_once(clock):
    played = Played(clock, "answer")
    etcd = connection(played)
    etcd.close()
    etcd.ask(played.request, LATER)
    etcd.close()
    etcd.close()
    assert played.closed == 1


def test_endpoints_are_discovered_once(clock):
    asked = []

    def discover(domain, _clock, _deadline):
        asked.append(domain)
        return (B,)

    played = Played(clock, "one", "two", refusals=[unavailable(harmless=True)])
    etcd = connection(played, EtcdSettings((), "example"), discover)
    etcd.ask(played.request, LATER)
    etcd.ask(played.request, LATER)
    assert asked == ["example"]
    assert played.opened[-1] == (B,)


# --- signing in -----------------------------------------------------------------------------------------------------

WITH_USER = EtcdSettings((A,), user="u", password="p")  # noqa: S106 - of nobody
STALE = EtcdTransportError(UNAUTHENTICATED, "etcdserver: invalid auth token")
OLD = EtcdTransportError(INVALID_ARGUMENT, "etcdserver: revision of auth store is old")


def test_a_user_signs_in_once(clock):
    played = Played(clock, "one", "two", sign_ins=["t1"])
    etcd = connection(played, WITH_USER)
    etcd.ask(played.request, LATER)
    etcd.ask(played.request, LATER)
    assert played.tokens == ["t1", "t1"]


@pytest.mark.parametrize("stale", [STALE, OLD])
@pytest.mark.parametrize("repeatable", [False, True])
def test_an_expired_token_is_replaced_and_the_request_made_again(clock, stale, repeatable):
    """Writes too: a request with a stale token has done nothing."""
    played = Played(clock, stale, "answer", sign_ins=["t1", "t2"])
    assert connection(played, WITH_USER).ask(played.request, LATER, repeatable=repeatable) == "answer"
    assert played.tokens == ["t1", "t2"]


def test_a_token_is_replaced_once_only(clock):
    played = Played(clock, STALE, STALE, sign_ins=["t1", "t2"])
    with pytest.raises(Unauthorized, match=r"connection is unauthorized: etcd http://a:1: etcdserver: invalid auth"):
        connection(played, WITH_USER).ask(played.request, LATER)


def test_a_token_outlives_its_connection(clock):
    played = Played(clock, unavailable(), "answer", sign_ins=["t1"])
    connection(played, WITH_USER).ask(played.request, LATER, repeatable=True)
    assert played.tokens == ["t1", "t1"]


def test_a_password_for_an_etcd_that_wants_none_is_no_error(clock):
    disabled = EtcdTransportError(FAILED_PRECONDITION, "etcdserver: authentication is not enabled")
    played = Played(clock, "answer", sign_ins=[disabled])
    assert connection(played, WITH_USER).ask(played.request, LATER) == "answer"


def test_signing_in_that_finds_nobody_is_repeated_even_for_a_write(clock):
    played = Played(clock, "answer", sign_ins=[unavailable(), "t1"])
    assert connection(played, WITH_USER).ask(played.request, LATER) == "answer"


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password", Unauthorized),
        (INVALID_ARGUMENT, "etcdserver: user name is empty", Unauthorized),
        (PERMISSION_DENIED, "etcdserver: permission denied", Unauthorized),
        (UNAUTHENTICATED, "etcdserver: invalid auth token", Unauthorized),
        (INVALID_ARGUMENT, "etcdserver: request is too large", Refused),
        (RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Unavailable),
        (2, "something new", Unavailable),
    ],
)
def test_errors_say_who_has_to_act_and_name_the_endpoint(clock, status, text, expected):
    played = Played(clock, EtcdTransportError(status, text))
    with pytest.raises(expected) as caught:
        connection(played).ask(played.request, LATER)
    assert type(caught.value) is expected
    assert f"etcd http://a:1: {text}" in str(caught.value)


# --- what connecting asks -------------------------------------------------------------------------------------------

KEYS = ((b"/a", b""), (b"/b", b"/c"))


def test_connecting_asks_what_a_read_wants_and_one_key_otherwise(clock):
    played = Played(clock, "rows", "written")
    etcd = connection(played)
    etcd.ask(played.request, LATER, repeatable=True, reads=KEYS)
    etcd.close()
    etcd.ask(played.request, LATER)
    assert played.questions == [Question(KEYS), ONE_KEY]


def test_where_a_token_is_needed_connecting_asks_for_it_and_later_uses_it(clock):
    played = Played(clock, "rows", "more", sign_ins=["token"])
    etcd = connection(played, EtcdSettings((A,), user="u", password="p"))  # noqa: S106 - of nobody
    etcd.ask(played.request, LATER, repeatable=True, reads=KEYS)
    etcd.close()
    etcd.ask(played.request, LATER, repeatable=True, reads=KEYS)
    assert played.questions == [Question(KEYS, user="u", password="p"), Question(KEYS, "token")]  # noqa: S106 - made up


# --- an operator who waits ------------------------------------------------------------------------------------------


def hasty(played) -> Connection:
    return Connection(EtcdSettings((A, B)), played.clock, played.open, undiscovered, hasty=True)


def test_an_operator_is_told_at_once_that_nobody_listens(clock):
    played = Played(clock, refusals=[unavailable("connection refused", harmless=True)])
    with pytest.raises(Unavailable, match="connection refused"):
        hasty(played).ask(played.request, LATER)
    assert (len(played.opened), clock.slept) == (1, [])


def test_an_operator_waits_for_who_does_not_answer_and_who_has_answered_before(clock):
    silent = EtcdTransportError(DEADLINE_EXCEEDED, "no answer", harmless=True)
    gone, back = unavailable(), unavailable("connection refused", harmless=True)
    played = Played(clock, gone, "answer", refusals=[silent])
    connection = hasty(played)
    played.request = _refusing_after(played, back)
    assert connection.ask(played.request, LATER, repeatable=True) == "answer"
    assert len(played.opened) == 4


def _refusing_after(played, refusal):
    """Its first request fails, and then connecting does, once."""
    ask = played.request

    def request(transport, seconds):
        if len(played.opened) == 2:
            played.refusals.append(refusal)
        return ask(transport, seconds)

    return request
