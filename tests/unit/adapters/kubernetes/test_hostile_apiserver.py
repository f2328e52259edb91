"""A server, or whatever answers in its place, that lies: every lie at every request of a pod's ADD, CHECK and DEL.

Invariant: a call ends, within its deadline and a bounded number of requests, with success or one foreseen error that
names the server; what belongs to others stays; and once the server is honest again, DEL leaves nothing.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from copy import deepcopy

import pytest

from adapters.kubernetes.answers import Reply, read_answer
from adapters.kubernetes.api import Api
from adapters.kubernetes.objects import MOST_PAGES, all_of, read_objects
from adapters.kubernetes.paths import stranger
from adapters.kubernetes.transport.seam import HttpAnswer, HttpRequest
from adapters.memory.clock import MemoryClock
from contracts.kubernetes_pods import PODS
from domain.cni.errors import CniError
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Handle, Owner
from domain.ipam.errors import IpamError
from entrypoints.skel import describe
from ports.clock import Deadline
from ports.datastore import Blocks, HandleKey, IPPools
from ports.errors import Expired, PortError, Unavailable
from services.fake_apiserver import FakeApiserver
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import Sweep, collect_ipam
from usecases.ipam.work import Work
from worlds.kubernetes_node import KubernetesNode
from worlds.one_node import NODE, netns

SOON = Deadline(1000.0)
SERVER = "https://api.test:6443"
HANDLES = "/apis/crd.projectcalico.org/v1/ipamhandles"
MOST_REQUESTS = 400


def said(document) -> HttpAnswer:
    return HttpAnswer(200, json.dumps(document).encode(), {"content-type": "application/json"})


def changed(*path, to=None, drop=False):
    """A lie about one member of what the server says, in each item of a listing."""

    def lie(_request, answer):
        document = json.loads(answer.body) if answer.status < 300 else {}
        for one in [document, *(document.get("items") or ())]:
            inner = one
            for name in path[:-1]:
                inner = inner.get(name) if isinstance(inner, dict) else None
            if isinstance(inner, dict):
                inner.pop(path[-1], None)
                if not drop:
                    inner[path[-1]] = to
        return said(document) if answer.status < 300 else answer

    return lie


def always(answer):
    return lambda _request, _honest: answer


def endless(request, answer):
    """Each page of a listing says that there is one more."""
    document = json.loads(answer.body)
    if "items" in document:
        seen = dict(request.query).get("continue", "100/1000000")
        document["metadata"]["continue"] = f"100/{int(seen.partition('/')[2]) + 1}"
    return said(document) if answer.status < 300 else answer


def annotated(_request, answer):
    """A legal oddity: more annotations than any server takes today."""
    document = json.loads(answer.body)
    if answer.status < 300 and "items" not in document and "metadata" in document:
        document["metadata"].setdefault("annotations", {})["huge"] = "x" * (1 << 20)
    return said(document) if answer.status < 300 else answer


GZIP = {"content-encoding": "gzip"}
STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
LIES = {
    "HTML": always(HttpAnswer(200, b"<html>sign in</html>", {"content-type": "text/html"})),
    "nothing": always(HttpAnswer(200, b"", {})),
    "no object": always(said([1])),
    "cut off": lambda _request, answer: HttpAnswer(answer.status, answer.body[:-2], {}),
    "too deep": always(HttpAnswer(200, b"[" * 100_000, {})),
    "an empty object": always(said({})),
    "a success": always(said(STATUS | {"status": "Success"})),
    "another kind": changed("kind", to="Secret"),
    "another version": changed("apiVersion", to="v2"),
    "another name": changed("metadata", "name", to="somebody-elses"),
    "no name": changed("metadata", "name", drop=True),
    "no metadata": changed("metadata", drop=True),
    "no version": changed("metadata", "resourceVersion", drop=True),
    "a number for a version": changed("metadata", "resourceVersion", to=7),
    "items that are null": changed("items", to=None),
    "items that are numbers": changed("items", to=[7]),
    "a token that is a number": changed("metadata", "continue", to=7),
    "pages without end": endless,
    "compressed": lambda _request, answer: HttpAnswer(answer.status, gzip.compress(answer.body), GZIP),
    "a conflict": always(FakeApiserver.failure(409, "the object has been modified", reason="Conflict")),
    "it exists": always(FakeApiserver.failure(409, "it is there already", reason="AlreadyExists")),
    "gone": always(FakeApiserver.failure(410, "too old", reason="Expired")),
    "invalid": always(FakeApiserver.failure(422, "x" * (1 << 20), reason="Invalid")),
    "1 MiB of annotations": annotated,
    "not ready": changed("spec", "datastoreReady", to=False),
}  # fmt: skip
TELLING = ("HTML", "an empty object", "another name", "no version", "a conflict", "it exists", "pages without end")


class Hostile(KubernetesNode):
    """`lie` is told from the request of that number on, or once. Each answer takes a while then."""

    def __init__(self, group: str) -> None:
        self.lie, self.first, self.once = None, 0, False
        self.asked = 0
        super().__init__(group)
        self.add_block("10.244.255.0/26", Owner(HOST, "node2"), ("others", 2))
        self.datastore.create(HandleKey("others"), Handle({Cidr.parse("10.244.255.0/26"): 2}), SOON)
        honest = self.recorded._transport.send

        def send(requests, seconds):
            return [self._distorted(request, answer) for request, answer in zip(requests, honest(requests, seconds))]

        self.recorded._transport.send = send

    def _distorted(self, request: HttpRequest, answer: HttpAnswer) -> HttpAnswer:
        self.asked += 1
        if self.lie is None or self.asked < self.first or (self.once and self.asked > self.first):
            return answer
        assert self.asked < MOST_REQUESTS, "no end"
        self.clock.sleep(0.2)
        return self.lie(request, answer)

    def lied_to(self, lie, first: int, verb: str, pod: int) -> Exception | None:
        return self.lied_in(lie, first, lambda: self.pod_call(verb, pod))

    def lied_in(self, lie, first: int, call: Callable[[], object]) -> Exception | None:
        self.lie, self.first, self.asked = lie, first, 0
        began = self.clock.monotonic()
        try:
            call()
        except (PortError, CniError, IpamError) as error:
            return error
        finally:
            self.lie = None
            assert self.clock.monotonic() - began <= 75  # the call's minute, and the undoing's own ten seconds
        return None

    def network(self, *pods: int) -> None:
        """These have addresses, if they have none yet."""
        for pod in pods:
            if f"k8s-pod-network.c{pod}" not in self.counts():
                self.pod_call("ADD", pod)

    def others(self, *pods: int) -> dict[str, object]:
        """All but what is of these pods, of this node's blocks and its affinities."""
        ours = {f"web-{pod}" for pod in pods} | {f"k8s-pod-network.c{pod}" for pod in pods}
        blocks = {stored.key.cidr for stored in self.datastore.list(Blocks(), SOON) if self.is_ours(stored.record)}
        names = ours | {str(cidr).replace(".", "-").replace("/", "-") for cidr in blocks}
        return {
            f"{plural}/{name}": deepcopy(value)
            for (_, plural, _, name), value in self.server.objects.items()
            if name not in names and not name.startswith(f"{NODE}-")
        }

    @staticmethod
    def is_ours(block) -> bool:
        return block.affinity == f"host:{NODE}"


CALLS = {
    "ADD": ("ADD", 3, ()),  # which claims a block
    "CHECK": ("CHECK", 1, (1, 2)),
    "DEL": ("DEL", 1, (1,)),  # which empties the block
}


def requests_of(verb: str, pod: int, networked: tuple[int, ...]) -> int:
    node = Hostile("v1")
    node.network(*networked)
    node.recorded.requests.clear()
    node.pod_call(verb, pod)
    return len(node.recorded.requests)


COUNTS = {name: requests_of(*call) for name, call in CALLS.items()}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("lie", "group"), [(lie, "v1") for lie in LIES] + [(lie, "v3") for lie in TELLING])
def test_no_lie_leaves_anything_or_touches_anybody(lie, group, name):
    verb, pod, networked = CALLS[name]
    node = Hostile(group)
    for first in range(1, 2 if LIES[lie] is annotated else COUNTS[name] + 1):
        for once in (False, True) if lie in TELLING and group == "v1" else (False,):
            node.once = once
            node.network(*networked)
            before = node.others(pod)
            error = node.lied_to(LIES[lie], first, verb, pod)
            assert len(str(error)) < 5000
            node.pod_call("DEL", pod)
            assert node.others(pod) == before, first
            kept = {f"k8s-pod-network.c{one}" for one in networked if one != pod} | {"others"}
            assert set(node.counts()) == set(node.holders().values()) == kept, first


@pytest.mark.parametrize("lie", LIES)
def test_a_del_ends_on_the_host_whatever_the_server_says(lie):
    """The container's device is gone, and the runtime is told to come again only for what may still be held."""
    node = Hostile("v1")
    node.network(1)
    error = node.lied_to(LIES[lie], 1, "DEL", 1)
    assert node.dataplane.network.namespaces[netns("c1")].keys() == {"lo"}
    if node.counts().get("k8s-pod-network.c1") and lie != "not ready":
        assert describe(error, "DEL", node.log).code == 11


@pytest.fixture
def sound():
    """A cluster in which nothing is leaked, and two nodes besides ours."""
    node = Hostile("v1")
    node.network(1, 2)
    for name in ("node2", "elsewhere"):
        node.add_node(name)
    return node


def looks(node: Hostile) -> dict[str, Callable[[], object]]:
    """What an operator's commands do."""

    def work() -> Work:
        node.forget()
        return Work(node.datastore, node.clock, node.log, node.clock.deadline(60))

    return {
        "check": lambda: check_ipam(work()),
        "gc": lambda: collect_ipam(work(), Sweep(grace=0, leaked=True)),
        "show": lambda: work().datastore.fetch(IPPools(), Blocks(), deadline=node.clock.deadline(60)),
    }


@pytest.mark.parametrize("command", ["check", "gc", "show"])
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_makes_an_operator_release_what_is_in_use(sound, lie, command):
    look = looks(sound)[command]
    sound.asked = 0
    look()
    before, honest = deepcopy(sound.server.objects), sound.asked
    for first in range(1, 2 if LIES[lie] is annotated else honest + 1):
        for sound.once in (False, True):
            error = sound.lied_in(LIES[lie], first, look)
            assert error is None or isinstance(error, Unavailable | Expired) or lie in ("gone", "not ready")
            assert sound.server.objects == before, (first, sound.once)


# --- single answers --------------------------------------------------------------------------------------------------


POD = HttpRequest("GET", f"{PODS}/web-1")
POD_OBJECT = {"kind": "Pod", "apiVersion": "v1"}
METADATA = {"name": "web-1", "namespace": "gold", "resourceVersion": "7"}
LIST = {"kind": "IPAMHandleList", "apiVersion": "crd.projectcalico.org/v1", "metadata": {}, "items": []}


@pytest.mark.parametrize(
    ("request_", "document", "told"),
    [
        (POD, POD_OBJECT | {"metadata": METADATA}, ""),
        (POD, {"kind": "Node", "apiVersion": "v1", "metadata": METADATA}, "Node web-1 instead of Pod in v1"),
        (POD, POD_OBJECT | {"metadata": METADATA | {"name": "web-2"}}, "Pod web-2 instead of web-1"),
        (POD, POD_OBJECT | {"metadata": METADATA | {"name": "../x"}}, "Pod ../x instead of web-1"),
        (POD, POD_OBJECT | {"metadata": METADATA | {"namespace": "tin"}}, "Pod web-1 instead of web-1"),
        (POD, POD_OBJECT, "Pod without metadata.name"),
        (POD, STATUS, "Status instead of Pod in v1"),
        (HttpRequest("DELETE", f"{HANDLES}/h"), STATUS, ""),
        (HttpRequest("GET", f"{HANDLES}/h"), STATUS, "Status instead of IPAMHandle in crd.projectcalico.org/v1"),
        (HttpRequest("GET", "/apis"), {"groups": []}, ""),
        (HttpRequest("GET", "/apis"), STATUS, "Status instead of the list of API groups"),
        (all_of(HANDLES), LIST, ""),
        (all_of(HANDLES), LIST | {"items": None}, ""),
        (all_of(HANDLES), {"kind": "x" * 1000}, f"{'x' * 100} instead of IPAMHandleList in crd.projectcalico.org/v1"),
        (all_of(HANDLES), LIST | {"items": {}}, "IPAMHandleList without items"),
        (all_of(HANDLES), LIST | {"items": [7]}, "IPAMHandleList with an item that is no object"),
        (all_of(HANDLES), LIST | {"items": [{"metadata": {"name": "h"}}]},
         "IPAMHandleList with h without metadata.resourceVersion"),
        (all_of(HANDLES), LIST | {"metadata": {"continue": 7}}, "IPAMHandleList whose token is no text"),
    ],
)  # fmt: skip
def test_an_answer_is_about_what_was_asked_for(request_, document, told):
    assert stranger(request_, document) == told


def reading(server: FakeApiserver, request: HttpRequest) -> str:
    with pytest.raises(Unavailable) as caught:
        read_objects(Api(server.transport(), MemoryClock()), [request], SOON)
    return str(caught.value)


def test_the_server_at_fault_is_named():
    server = FakeApiserver("v1")
    server.before = lambda request: said({})
    told = f"Kubernetes API server {SERVER}: the server answers with an object without kind and name instead of "
    assert reading(server, all_of(HANDLES)) == f"{told}IPAMHandleList in crd.projectcalico.org/v1"


def test_an_answer_that_is_compressed_says_so():
    server = FakeApiserver("v1")
    server.before = lambda request: HttpAnswer(200, b"\x1f\x8b", {"content-encoding": "gzip"})
    assert "200, compressed though nobody asked for that" in reading(server, all_of(HANDLES))


def pages(server: FakeApiserver, name) -> None:
    """Each page has one item of that name and says that there is one more."""
    server.before = lambda request: said(
        LIST
        | {"metadata": {"continue": str(len(asked))}}
        | {"items": [{"metadata": {"name": name(asked.append(request) or len(asked)), "resourceVersion": "1"}}]}
    )
    asked: list[HttpRequest] = []


def test_pages_that_repeat_end_at_the_first():
    server = FakeApiserver("v1")
    pages(server, lambda number: f"h{number % 3}")
    told = f"Kubernetes API server {SERVER}: the server's listing of {HANDLES} repeats itself"
    assert reading(server, all_of(HANDLES)) == told


def test_pages_without_end_have_one():
    server = FakeApiserver("v1")
    pages(server, lambda number: f"h{number}")
    assert "has no end" in reading(server, all_of(HANDLES))


class LargePages:
    """An `Api` each of whose answers took a MiB."""

    where = SERVER

    def __init__(self) -> None:
        self.asked = 0

    def read(self, requests, _deadline):
        self.asked += 1
        items = [{"metadata": {"name": str(self.asked)}}]
        return [Reply(200, {"items": items, "metadata": {"continue": "more"}}, 1 << 20) for _ in requests]


@pytest.mark.parametrize(
    ("collection", "most"), [(HANDLES.replace("handles", "blocks"), 257), (HANDLES, MOST_PAGES + 1)]
)
def test_large_pages_count_for_more(collection, most):
    """What all of them take together is bounded, too; there is a handle for each pod."""
    api = LargePages()
    with pytest.raises(Unavailable, match="has no end"):
        read_objects(api, [all_of(collection)], SOON)
    assert api.asked == most


def test_no_more_of_a_servers_text_is_passed_on_than_anybody_reads():
    refused = read_answer(FakeApiserver.failure(422, "x" * (1 << 20)))
    broken = read_answer(FakeApiserver.failure(500, "x" * (1 << 20)))
    assert (len(refused.message), len(broken.text)) == (2000, 2000)
