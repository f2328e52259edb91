"""A member of etcd, or what answers in its place, that lies: every lie at every request of an ADD, a CHECK and a DEL.

Invariant: a call ends, within its deadline and a bounded number of requests, with success or one foreseen error that
names the member; what belongs to others stays; and once the member is honest again, DEL leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.messages import DELETE, PUT, RANGE, Done, read_token
from adapters.etcdv3.scrutiny import believed, deletion_result, page_result, read_result, write_result, writings_result
from adapters.etcdv3.transport import INTERNAL, EtcdTransportError, Page, WriteOutcome, Writing
from adapters.wire.protobuf import octets
from domain.cni.errors import CniError
from domain.ipam.block import HOST, Owner
from domain.ipam.errors import IpamError
from entrypoints.skel import describe
from ports.clock import Deadline
from ports.datastore import Blocks, IPPools
from ports.errors import PortError, Unavailable
from services.fake_etcd import SETTINGS, FakeEtcd
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import Sweep, collect_ipam
from usecases.ipam.work import Work
from worlds.one_node import NODE, OneNode, netns

SOON = Deadline(1000.0)
MOST_REQUESTS = 400


def revision(value):
    def lie(_request, response):
        response.header.revision = value

    return lie


def another_cluster(_request, response):
    response.header.cluster_id += 1


def the_contrary(_request, response):
    response.succeeded = not response.succeeded


def nothing(_request, response):
    response.Clear()


def no_responses(_request, response):
    del response.responses[:]


def twice(_request, response):
    response.responses.extend(list(response.responses))


def other_operations(_request, response):
    for one in response.responses:
        one.Clear()
        one.response_put.SetInParent()


def rows_of(response):
    return [row for one in response.responses for row in one.response_range.kvs]


def other_keys(_request, response):
    for row in rows_of(response):
        row.key = b"/calico/ipam/v2/assignment/ipv4/block/10.9.9.0-26"


def more_rows(_request, response):
    for one in response.responses:
        if one.HasField("response_range"):
            one.response_range.kvs.add(key=b"/calico/zzz", value=b"{}", mod_revision=1)


def the_same_rows(_request, response):
    for one in response.responses:
        one.response_range.kvs.extend(list(one.response_range.kvs)) if one.response_range.kvs else None


def not_all(_request, response):
    for one in response.responses:
        if one.HasField("response_range"):
            one.response_range.more = True


def rows_at(value):
    def lie(_request, response):
        for row in rows_of(response):
            row.mod_revision = value

    return lie


def a_conflict(request, response):
    """Well-formed: somebody else is always faster."""
    if request.compare:
        key = request.compare[0].key
        response.succeeded = False
        del response.responses[:]
        response.responses.add().response_range.kvs.add(key=key, value=b"{}", mod_revision=response.header.revision)


def it_is_gone(request, response):
    """Well-formed: what is to be replaced is never there."""
    if request.compare and request.compare[0].mod_revision:
        response.succeeded = False
        del response.responses[:]
        response.responses.add().response_range.SetInParent()


LIES = {
    "revision 0": revision(0),
    "revision 1": revision(1),
    "a negative revision": revision(-5),
    "a huge revision": revision(1 << 62),
    "another cluster": another_cluster,
    "the contrary": the_contrary,
    "nothing": nothing,
    "no responses": no_responses,
    "responses twice": twice,
    "other operations": other_operations,
    "other keys": other_keys,
    "more rows": more_rows,
    "the same rows": the_same_rows,
    "more without end": not_all,
    "rows at revision 0": rows_at(0),
    "rows of the future": rows_at(1 << 62),
    "a conflict": a_conflict,
    "it is gone": it_is_gone,
}


class Kept(EtcdDatastore):
    before = after = staticmethod(lambda _verb, _key: None)  # which OneNode sets


class Hostile(OneNode):
    """`lie` is told from the request of that number on, or once. Each answer takes a while then."""

    def __init__(self) -> None:
        self.etcd = FakeEtcd()
        self._datastore: Kept | None = None
        super().__init__(pools=("10.244.0.0/16",))
        self.add_block("10.244.255.0/26", Owner(HOST, "node2"), ("net1.others", 2))

    @property
    def datastore(self) -> Kept:
        if self._datastore is None:
            self._datastore = Kept(SETTINGS, self.clock, self.etcd.open)
        return self._datastore

    @datastore.setter
    def datastore(self, _given: object) -> None:
        """OneNode's own is not used."""

    def fresh_work(self) -> Work:
        """Of another process."""
        self._datastore = None
        return Work(self.datastore, self.clock, self.log, self.clock.deadline(60))

    def lied_to(self, lie, first: int, verb: str, *, once: bool = False) -> Exception | None:
        return self.lied_in(lie, first, lambda: getattr(self, verb)("c1"), once=once)

    def lied_in(self, lie, first: int, call: Callable[[], object], *, once: bool) -> Exception | None:
        begun = self.etcd.asked

        def lying(request, response):
            number = self.etcd.asked - begun
            assert number < MOST_REQUESTS, "no end"
            if number == first or (number > first and not once):
                self.clock.sleep(0.2)
                lie(request, response)

        self._datastore = None  # a call of its own
        began = self.clock.monotonic()
        self.etcd.lie = lying
        try:
            call()
        except (PortError, CniError, IpamError) as error:
            return error
        finally:
            self._datastore, self.etcd.lie = None, lambda _request, _response: None
            assert self.clock.monotonic() - began <= 75  # the call's minute, and the undoing's own ten seconds
        return None

    def others(self) -> dict[bytes, bytes]:
        """All but what is of this node's blocks, of the container, and of the network, whose profile stays."""
        return {
            key: value
            for key, (value, _) in self.etcd.rows.items()
            if b"c1" not in key
            and b"/profiles/" not in key
            and NODE.encode() not in key
            and f"host:{NODE}".encode() not in value
        }


CALLS = {"add": (), "check": ("c1",), "delete": ("c1",)}


def requests_of(verb: str) -> int:
    node = Hostile()
    for container in CALLS[verb]:
        node.add(container)
    before = node.etcd.asked
    getattr(node, verb)("c1")
    return node.etcd.asked - before


COUNTS = {verb: requests_of(verb) for verb in CALLS}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("once", [False, True], ids=["for ever", "once"])
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_leaves_anything_or_touches_anybody(lie, once, verb):
    node = Hostile()
    for first in range(1, COUNTS[verb] + 1):
        for container in CALLS[verb]:
            if not node.endpoints():
                node.add(container)
        before = node.others()
        error = node.lied_to(LIES[lie], first, verb, once=once)
        if isinstance(error, Unavailable):
            assert "etcd http://etcd.test:2379" in str(error)
        assert error is None or describe(error, verb, node.log).code in (11, 999)
        node.delete("c1")
        assert node.others() == before, first
        left = node.leftovers()
        assert set(left.pop("addresses").values()) == {"net1.others"}
        assert left == {}, first


@pytest.mark.parametrize("lie", LIES)
def test_a_del_ends_on_the_host_whatever_the_member_says(lie):
    node = Hostile()
    node.add("c1")
    node.lied_to(LIES[lie], 1, "delete")
    assert node.dataplane.network.namespaces[netns("c1")].keys() == {"lo"}


@pytest.mark.parametrize("command", ["check", "gc", "show"])
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_makes_an_operator_release_what_is_in_use(lie, command):
    node = Hostile()
    node.add("c1")
    node.add_node("elsewhere")
    node.add_node("node2")
    looks = {
        "check": lambda: check_ipam(node.fresh_work()),
        "gc": lambda: collect_ipam(node.fresh_work(), Sweep(grace=0, leaked=True)),
        "show": lambda: node.fresh_work().datastore.fetch(IPPools(), Blocks(), deadline=node.clock.deadline(60)),
    }
    begun = node.etcd.asked
    looks[command]()
    before, honest = dict(node.etcd.rows), node.etcd.asked - begun
    for first in range(1, honest + 1):
        for once in (False, True):
            error = node.lied_in(LIES[lie], first, looks[command], once=once)
            assert error is None or isinstance(error, Unavailable), error
            assert node.etcd.rows == before, (first, once)


# --- single answers --------------------------------------------------------------------------------------------------


def refused(read) -> str:
    with pytest.raises(EtcdTransportError) as caught:
        believed(read)
    assert (caught.value.status, caught.value.harmless) == (INTERNAL, False)
    return str(caught.value).removeprefix("the server's answer is not a message of etcd's: ")


K, L = (b"/k", b"v", 7), (b"/l", b"v", 8)
ONE, PREFIX = (b"/k", b""), (b"/", b"0")
FUTURE = "a revision that no store has"


def read(rows, *, wanted=PREFIX, revision=9, succeeded=True, operations=(RANGE,), more=False):
    return read_result(Done(succeeded, revision, (rows,), 0, operations, more), [wanted])


@pytest.mark.parametrize(
    ("rows", "wanted"), [([], ONE), ([K], ONE), ([K, L], PREFIX), ([K, L], (b"/k", b"\0")), ([], PREFIX)]
)
def test_a_list_that_can_be_true_is_passed_on(rows, wanted):
    assert read(rows, wanted=wanted) == [rows]


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([K], {"succeeded": False}, "not one list for each range"),
        ([K], {"operations": (PUT,)}, "not one list for each range"),
        ([K], {"operations": (RANGE, RANGE)}, "not one list for each range"),
        ([K], {"more": True}, "a part of a list where the whole was asked for"),
        ([L], {"wanted": ONE}, "a key that was not asked for"),
        ([K, K], {"wanted": ONE}, "keys that are not in their order"),
        ([L, K], {}, "keys that are not in their order"),
        ([(b"0", b"", 1)], {}, "a key that was not asked for"),
        ([(b".", b"", 1)], {"wanted": (b"/", b"\0")}, "a key that was not asked for"),
        ([(b"/k", b"", 0)], {}, FUTURE),
        ([(b"/k", b"", 10)], {}, FUTURE),
        ([], {"revision": 0}, FUTURE),
    ],
)
def test_a_list_that_cannot_be_true_is_not(rows, options, told):
    assert refused(lambda: read(rows, **options)) == told


def page(rows, *, most=2, at=0, more=False, succeeded=True):
    return page_result(Done(succeeded, 9, (rows,), 0, (RANGE,), more), PREFIX, most, at)


def test_a_page_says_of_which_instant_it_is():
    assert page([K, L], more=True) == Page([K, L], True, 9)
    assert page([K], at=8) == Page([K], False, 8)
    assert page([]) == Page([], False, 9)


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([K, L], {"most": 1}, "not as many rows as were asked for"),
        ([], {"more": True}, "not as many rows as were asked for"),
        ([L, K], {}, "keys that are not in their order"),
        ([K], {"succeeded": False}, "not one list for each range"),
    ],
)
def test_a_page_that_cannot_be_true_is_not(rows, options, told):
    assert refused(lambda: page(rows, **options)) == told


@pytest.mark.parametrize(
    ("done", "expected", "outcome"),
    [
        (Done(True, 9, (), 0, (PUT,)), 7, WriteOutcome(True, 9)),
        (Done(False, 9, ([K],), 0, (RANGE,)), 6, WriteOutcome(False, 7)),
        (Done(False, 9, ([K],), 0, (RANGE,)), 0, WriteOutcome(False, 7)),
        (Done(False, 9, ([],), 0, (RANGE,)), 7, WriteOutcome(False, 0)),
        (Done(False, 9, ([],), 0, (RANGE,)), -1, WriteOutcome(False, 0)),
    ],
)
def test_a_write_that_can_be_true_is_passed_on(done, expected, outcome):
    assert write_result(done, b"/k", expected) == outcome


@pytest.mark.parametrize(
    ("done", "expected", "operation", "told"),
    [
        (Done(True, 0, (), 0, (PUT,)), 0, PUT, FUTURE),
        (Done(True, 7, (), 0, (PUT,)), 7, PUT, FUTURE),
        (Done(True, 9, (), 0, ()), 7, PUT, "it says that a write has happened, and shows none"),
        (Done(True, 9, (), 1, (DELETE,)), 7, PUT, "it says that a write has happened, and shows none"),
        (Done(True, 9, (), 0, (DELETE,)), 7, DELETE, "it says that a write has happened, and shows none"),
        (Done(False, 9, (), 0, (PUT,)), 7, PUT, "not what is there instead"),
        (Done(False, 9, ([K],), 0, (RANGE,), True), 6, PUT, "not what is there instead"),
        (Done(False, 9, ([L],), 0, (RANGE,)), 6, PUT, "a key that was not asked for"),
        (Done(False, 9, ([K],), 0, (RANGE,)), 7, PUT, "it refuses a write whose condition holds"),
        (Done(False, 9, ([],), 0, (RANGE,)), 0, PUT, "it refuses a write whose condition holds"),
    ],
)
def test_a_write_that_cannot_be_true_is_not(done, expected, operation, told):
    assert refused(lambda: write_result(done, b"/k", expected, operation)) == told


SEVERAL = (Writing(b"/k", b"w", 7), Writing(b"/l", None, 8), Writing(b"/m", b"x", 0))
THEIRS = (PUT, DELETE, PUT)
THREE = (RANGE, RANGE, RANGE)


def test_a_write_of_several_that_can_be_true_is_passed_on():
    done = writings_result(Done(True, 9, (), 1, THEIRS), SEVERAL)
    assert done == (WriteOutcome(True, 9),) * 3
    refusal = writings_result(Done(False, 9, ([K], [], []), 0, THREE), SEVERAL)
    assert refusal == (WriteOutcome(False, 7), WriteOutcome(False, 0), WriteOutcome(False, 0))


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (Done(True, 0, (), 1, THEIRS), FUTURE),
        (Done(False, 0, ([K], [], []), 0, THREE), FUTURE),
        (Done(True, 9, (), 1, (PUT, DELETE)), "it says that writes have happened, and shows others"),
        (Done(True, 9, (), 1, (PUT, PUT, PUT)), "it says that writes have happened, and shows others"),
        (Done(True, 9, (), 0, THEIRS), "it says that a write has happened, and shows none"),
        (Done(True, 8, (), 1, THEIRS), "it says that a write has happened, and shows none"),
        (Done(False, 9, ([K], []), 0, (RANGE, RANGE)), "not what is there instead"),
        (Done(False, 9, ([K], [], []), 0, THREE, True), "not what is there instead"),
        (Done(False, 9, ([K], [K], []), 0, THREE), "a key that was not asked for"),
        (Done(False, 9, ([K], [L], []), 0, THREE), "it refuses a write whose conditions hold"),
    ],
)
def test_a_write_of_several_that_cannot_be_true_is_not(done, told):
    assert refused(lambda: writings_result(done, SEVERAL)) == told


def test_the_deletion_of_one_key_is_at_most_one():
    assert deletion_result(Done(True, 9, (), 1, (DELETE,))) == WriteOutcome(True, 9)
    assert deletion_result(Done(True, 9, (), 0, (DELETE,))) == WriteOutcome(False, 0)
    for done in (
        Done(True, 9, (), 2, (DELETE,)),
        Done(False, 9, (), 1, (DELETE,)),
        Done(True, 9, (), 1, (PUT,)),
        Done(True, 0, (), 1, (DELETE,)),
    ):
        assert refused(lambda done=done: deletion_result(done)) == "not the end of one key"


def test_a_token_has_a_length_that_can_be_sent():
    assert read_token(octets(2, b"t" * (1 << 16))) == "t" * (1 << 16)
    assert refused(lambda: read_token(octets(2, b"t" * (1 + (1 << 16))))) == "a token that is too long"


def told(etcd: FakeEtcd, node: OneNode, lie) -> str:
    """What is said of the second answer."""
    store = EtcdDatastore(SETTINGS, node.clock, etcd.open)
    store.list(IPPools(), SOON)
    etcd.lie = lie
    with pytest.raises(Unavailable) as caught:
        store.list(IPPools(), SOON)
    return str(caught.value)


def test_an_answer_of_another_cluster_is_named():
    why = "it belongs to cluster ca11c1, not to ca11c0 as what was asked before: "
    why += "the endpoints must be those of one cluster"
    assert told(FakeEtcd(), OneNode(), another_cluster) == f"etcd http://etcd.test:2379: {why}"


def test_a_store_that_has_gone_back_is_named():
    why = "its revision is 99, after 100: is this member cut off, or was it restored from a backup?"
    assert told(FakeEtcd(), OneNode(), revision(99)) == f"etcd http://etcd.test:2379: {why}"
