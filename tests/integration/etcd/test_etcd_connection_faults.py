"""What goes wrong between a real etcd and us, and what is lost by it: nothing that was answered (P04, C16)."""

from __future__ import annotations

import threading
import time

import pytest

from adapters.etcdv3.discovery import discover
from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from patience import at_best, until
from ports.datastore import HandleKey, Handles
from ports.errors import AlreadyExists, BadConfiguration, Conflict, Expired, Refused, Unauthorized, Unavailable
from services.dns import NameServer
from services.etcd import Etcd
from services.tcp_proxy import BlackHole, TcpProxy

KEY = HandleKey("net1.c1")
BLOCK = Cidr.parse("10.0.0.0/26")
STORED = "/calico/ipam/v2/handle/net1.c1"
NOBODY = "http://127.0.0.1:1"


def after(seconds, action):
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


# --- settings -------------------------------------------------------------------------------------------------------


def test_etcd_is_the_choice_where_endpoints_are_given(clean, opened, clock):
    store = opened(ETCD_ENDPOINTS=clean.url)
    store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
    assert clean.texts() == {STORED: '{"block":{"10.0.0.0/26":1},"deleted":false}'}


def test_a_prefixed_variable_wins_even_when_it_is_empty(clean, opened, clock):
    """DATASTORE A."""
    store = opened(
        ETCD_ENDPOINTS=NOBODY, CALICO_ETCD_ENDPOINTS=clean.url, ETCD_CA_CERT_FILE="/nope", CALICO_ETCD_CA_CERT_FILE=""
    )
    assert store.list(Handles(), clock.deadline(30)) == ()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "no etcd endpoints specified"),
        ({"ETCD_ENDPOINTS": NOBODY, "ETCD_DISCOVERY_SRV": "example"}, "multiple discovery or bootstrap options"),
    ],
)
def test_settings_that_lead_nowhere_are_refused_as_the_original_does(opened, more, expected):
    with pytest.raises(Refused, match=expected):
        opened(DATASTORE_TYPE="etcdv3", **more)


def test_c16_a_missing_file_is_told_before_anything_is_connected(opened):
    with pytest.raises(BadConfiguration, match="etcd_ca_cert_file /nope: No such file or directory"):
        opened(ETCD_ENDPOINTS=NOBODY, ETCD_CA_CERT_FILE="/nope", ETCD_KEY_FILE="")


# --- endpoints ------------------------------------------------------------------------------------------------------


def test_c16_with_one_endpoint_dead_the_live_one_serves_within_two_seconds(clean, opened, clock):
    with BlackHole() as hole:
        for dead in (NOBODY, hole.url):
            for endpoints in (f"{dead},{clean.url}", f"{clean.url},{dead}"):

                def use(endpoints: str = endpoints) -> None:
                    assert opened(ETCD_ENDPOINTS=endpoints).list(Handles(), clock.deadline(30)) == ()

                at_best(2, use)


def test_p04_a_black_hole_ends_at_the_deadline_and_is_named(opened, clock):
    with BlackHole() as hole:
        began = time.monotonic()
        with pytest.raises(Expired, match=f"waiting for etcd {hole.url}"):
            opened(ETCD_ENDPOINTS=hole.url).list(Handles(), clock.deadline(2))
        assert 1.9 < time.monotonic() - began < 20


def test_p04_a_stall_in_the_middle_ends_at_the_deadline_and_is_named(clean, opened, clock):
    with TcpProxy(clean.port) as proxy:
        store = opened(ETCD_ENDPOINTS=proxy.url)
        store.list(Handles(), clock.deadline(30))
        proxy.stalled.set()
        began = time.monotonic()
        with pytest.raises(Expired, match=f"waiting for etcd {proxy.url}"):
            store.list(Handles(), clock.deadline(2))
        with pytest.raises(Expired, match=f"waiting for etcd {proxy.url}"):
            store.create(KEY, Handle({}), clock.deadline(1))
        assert time.monotonic() - began < 25
        proxy.stalled.clear()
        assert store.list(Handles(), clock.deadline(30)) is not None


def test_reads_go_to_the_other_endpoint_when_one_stalls(clean, opened, clock):
    with TcpProxy(clean.port) as proxy:
        store = opened(ETCD_ENDPOINTS=f"{proxy.url},{clean.url}")
        store.list(Handles(), clock.deadline(30))
        proxy.stalled.set()
        began = time.monotonic()
        assert store.list(Handles(), clock.deadline(60)) == ()
        assert time.monotonic() - began < 40


# --- answers that are lost ------------------------------------------------------------------------------------------


def test_a_write_that_is_committed_while_its_answer_is_lost_is_unavailable_and_there(clean, opened, clock):
    with TcpProxy(clean.port) as proxy:
        store = opened(ETCD_ENDPOINTS=proxy.url)
        store.get(KEY, clock.deadline(30))
        proxy.replies_held.set()
        cut = threading.Thread(target=lambda: (until(clean.texts), proxy.cut(), proxy.replies_held.clear()))
        cut.start()
        with pytest.raises(Unavailable, match=f"etcd {proxy.url}: ") as caught:
            store.create(KEY, Handle({BLOCK: 1}), clock.deadline(60))
        cut.join()
        assert not isinstance(caught.value, Expired)
        found = store.get(KEY, clock.deadline(30))
        assert found.record == Handle({BLOCK: 1})
        with pytest.raises(AlreadyExists):
            store.create(KEY, Handle({}), clock.deadline(30))


def test_a_read_whose_answer_is_lost_is_asked_again(clean, opened, clock):
    clean.put(STORED, '{"block":{},"deleted":false}')
    with TcpProxy(clean.port) as proxy:
        store = opened(ETCD_ENDPOINTS=proxy.url)
        store.get(KEY, clock.deadline(30))
        before = proxy.accepted
        proxy.stalled.set()
        cut = after(0.3, lambda: (proxy.cut(), proxy.stalled.clear()))
        assert store.get(KEY, clock.deadline(60)).record == Handle({})
        cut.join()
        assert proxy.accepted > before


# --- servers that go away -------------------------------------------------------------------------------------------


def test_a_restart_is_not_seen_by_reads_nor_by_writes_that_begin_meanwhile(opened, clock):
    with Etcd() as etcd:
        store = opened(ETCD_ENDPOINTS=etcd.url)
        created = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
        etcd.kill()
        restart = after(1.0, etcd.start)
        assert store.get(KEY, clock.deadline(20)) == created
        restart.join()
        etcd.kill()
        with pytest.raises(Unavailable):  # the connection broke under it, or is found broken: either is told
            store.update(KEY, Handle({BLOCK: 2}), created.revision, clock.deadline(1))
        etcd.start()
        updated = store.update(KEY, Handle({BLOCK: 3}), created.revision, clock.deadline(20))
        assert store.get(KEY, clock.deadline(30)) == updated


def test_a_member_paused_for_a_while_is_waited_for(opened, clock):
    with Etcd() as etcd:
        store = opened(ETCD_ENDPOINTS=etcd.url)
        store.list(Handles(), clock.deadline(30))
        etcd.pause()
        resume = after(2.0, etcd.resume)
        created = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
        resume.join()
        assert store.get(KEY, clock.deadline(30)) == created


def test_a_paused_member_that_was_not_connected_yet_is_waited_for_too(opened, clock):
    with Etcd() as etcd:
        etcd.pause()
        resume = after(2.0, etcd.resume)
        assert opened(ETCD_ENDPOINTS=etcd.url).list(Handles(), clock.deadline(30)) == ()
        resume.join()


def test_a_member_that_has_lost_its_cluster_is_not_used_and_is_told(clock, opened, server):
    """Of two members one is killed: the other takes connections and can do nothing."""
    with Etcd.pair() as (one, other):
        store = opened(ETCD_ENDPOINTS=f"{one.url},{other.url}")
        store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
        other.kill()
        began = time.monotonic()
        with pytest.raises(Unavailable, match="etcd http"):
            opened(ETCD_ENDPOINTS=one.url).list(Handles(), clock.deadline(4))
        assert time.monotonic() - began < 30
        with pytest.raises(Unavailable, match="etcd http"):
            store.create(HandleKey("net1.c2"), Handle({}), clock.deadline(4))

        def use() -> None:
            assert opened(ETCD_ENDPOINTS=f"{one.url},{server.url}").list(Handles(), clock.deadline(30)) is not None

        at_best(3, use)  # less than it takes to be told by a read
        other.start()
        assert store.get(KEY, clock.deadline(20)).record == Handle({BLOCK: 1})


# --- what etcd itself does ------------------------------------------------------------------------------------------


def test_compaction_takes_nothing_away(clean, opened, clock):
    store = opened(ETCD_ENDPOINTS=clean.url)
    held = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
    for count in range(2, 6):
        held = store.update(KEY, Handle({BLOCK: count}), held.revision, clock.deadline(30))
    clean.ask("kv/compaction", {"revision": int(held.revision), "physical": True})
    assert store.get(KEY, clock.deadline(30)) == held
    stale = str(int(held.revision) - 2)
    with pytest.raises(Conflict):
        store.update(KEY, Handle({}), stale, clock.deadline(30))
    store.update(KEY, Handle({BLOCK: 9}), held.revision, clock.deadline(30))


def test_a_full_database_is_told_and_loses_nothing(opened, clock):
    """The NOSPACE alarm. Some versions of etcd refuse transactions that only read, too."""
    with Etcd("--quota-backend-bytes", "300000") as etcd:
        store = opened(ETCD_ENDPOINTS=etcd.url)
        written = []
        with pytest.raises(Unavailable, match=f"etcd {etcd.url}: .*space"):
            written.extend(
                store.create(HandleKey("h" * 5000 + str(number)), Handle({BLOCK: 1}), clock.deadline(30))
                for number in range(1000)
            )
        assert 0 < len(written) < 1000
        stored, answered = set(etcd.texts()), {f"/calico/ipam/v2/handle/{one.key.handle}" for one in written}
        assert answered <= stored
        assert len(stored - answered) <= 1  # a write that passes the quota is carried out and refused
        kept = written.pop()
        for key in stored - {f"/calico/ipam/v2/handle/{kept.key.handle}"}:
            etcd.drop(key)
        revision = int(etcd.ask("kv/range", {"key": "eA=="})["header"]["revision"])
        etcd.ask("kv/compaction", {"revision": revision, "physical": True})
        etcd.ask("maintenance/defragment", {})
        for alarm in etcd.ask("maintenance/alarm", {"action": "GET"})["alarms"]:
            etcd.ask("maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        assert store.list(Handles(), clock.deadline(30)) == (kept,)
        store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))


# --- users ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded():
    with Etcd("--auth-token-ttl", "1") as etcd:
        etcd.require_users(root="r00t", calico="planted-secret")
        yield etcd


def test_a_user_with_a_password_reads_and_writes(guarded, opened, clock):
    store = opened(ETCD_ENDPOINTS=guarded.url, ETCD_USERNAME="calico", ETCD_PASSWORD="planted-secret")  # noqa: S106 - planted
    created = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
    store.delete(KEY, created.revision, clock.deadline(30))


def test_a_token_that_expires_between_two_requests_is_not_seen(guarded, opened, clock):
    store = opened(ETCD_ENDPOINTS=guarded.url, ETCD_USERNAME="calico", ETCD_PASSWORD="planted-secret")  # noqa: S106 - planted
    created = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
    time.sleep(3)
    updated = store.update(KEY, Handle({BLOCK: 2}), created.revision, clock.deadline(30))
    time.sleep(3)
    assert store.get(KEY, clock.deadline(30)) == updated
    store.delete(KEY, updated.revision, clock.deadline(30))


def test_users_that_change_meanwhile_do_not_disturb(guarded, opened, clock):
    """Each change makes the tokens given out before it too old."""
    store = opened(ETCD_ENDPOINTS=guarded.url, ETCD_USERNAME="calico", ETCD_PASSWORD="planted-secret")  # noqa: S106 - planted
    created = store.create(KEY, Handle({BLOCK: 1}), clock.deadline(30))
    guarded.sign_in("root", "r00t")
    guarded.ask("auth/user/add", {"name": f"u{time.time_ns()}", "password": "p"})
    store.delete(KEY, created.revision, clock.deadline(30))


@pytest.mark.parametrize(
    "user", [{}, {"ETCD_USERNAME": "calico", "ETCD_PASSWORD": "planted-mistake"}, {"ETCD_USERNAME": "calico"}]
)
def test_who_is_not_let_in_is_told_so_and_no_password_with_it(guarded, opened, clock, user):
    with pytest.raises(Unauthorized, match=f"connection is unauthorized: etcd {guarded.url}: ") as caught:
        opened(ETCD_ENDPOINTS=guarded.url, **user).list(Handles(), clock.deadline(30))
    assert "planted" not in str(caught.value)


# --- SRV records ----------------------------------------------------------------------------------------------------

PLAIN, SECURE = "_etcd-client._tcp.example", "_etcd-client-ssl._tcp.example"


@pytest.mark.parametrize("truncating", [False, True])
def test_srv_records_name_the_endpoints(clock, tmp_path, truncating):
    records = {PLAIN: [(10, 5, 3, "c"), (1, 5, 1, "a.example."), (1, 9, 2, "b")]}
    with NameServer(records, truncating=truncating) as names:
        found = discover("example", clock, clock.deadline(30), names.resolv_conf(tmp_path))
    assert [str(endpoint) for endpoint in found] == ["http://b:2", "http://a.example:1", "http://c:3"]


def test_srv_records_with_tls_are_preferred(clock, tmp_path):
    with NameServer({PLAIN: [(0, 0, 1, "a")], SECURE: [(0, 0, 2, "b")]}) as names:
        found = discover("example.", clock, clock.deadline(30), names.resolv_conf(tmp_path))
    assert [str(endpoint) for endpoint in found] == ["https://b:2"]


def test_a_domain_without_records_is_named(clock, tmp_path):
    with (
        NameServer({}) as names,
        pytest.raises(Unavailable, match=r"SRV discovery: no records _etcd-client-ssl\._tcp\.x"),
    ):
        discover("x", clock, clock.deadline(30), names.resolv_conf(tmp_path))


def test_a_name_server_that_says_nothing_is_waited_for_until_the_deadline(clock, tmp_path):
    with NameServer({}, silent=True) as names:
        began = time.monotonic()
        with pytest.raises((Expired, Unavailable), match=r"_etcd-client-ssl\._tcp\.example"):
            discover("example", clock, clock.deadline(1), names.resolv_conf(tmp_path))
        assert time.monotonic() - began < 20


def test_the_next_name_server_is_asked_where_one_is_dead(clock, tmp_path):
    with NameServer({PLAIN: [(0, 0, 1, "a")]}) as names:
        path = names.resolv_conf(tmp_path)
        (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1#1\n" + (tmp_path / "resolv.conf").read_text())
        assert [str(one) for one in discover("example", clock, clock.deadline(30), path)] == ["http://a:1"]


def test_a_datastore_works_through_srv_records(clean, clock, tmp_path):
    from adapters.etcdv3.connection import Connection
    from adapters.etcdv3.load_etcd3 import load_etcd3
    from adapters.etcdv3.settings import EtcdSettings
    from adapters.etcdv3.transport import EtcdTls
    from adapters.linux.process.signals import Withheld

    with NameServer({PLAIN: [(0, 0, clean.port, "localhost")]}) as names:
        path = names.resolv_conf(tmp_path)
        etcd = Connection(
            EtcdSettings(discovery="example"),
            clock,
            load_etcd3(EtcdTls(), Withheld),
            lambda *asked: discover(*asked, path),
        )
        assert etcd.ask(lambda transport, seconds: transport.read([(b"/k", b"")], seconds), clock.deadline(30)) == [[]]
        etcd.close()
