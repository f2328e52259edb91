"""Both transports to a kube-apiserver keep their contract."""

from __future__ import annotations

from adapters.kubernetes.transport import Request
from contracts_kubernetes_transport import KubernetesTransportContract


class TestLean(KubernetesTransportContract):
    library = False

    def test_reads_that_are_asked_for_together_are_sent_together(self, stub, connect):
        connect(stub.url).send([Request("GET", f"/{number}") for number in range(5)], 5)
        assert [asked.behind for asked in stub.asked] == [True, True, True, True, False]

    def test_what_writes_is_sent_alone(self, stub, connect):
        connect(stub.url).send([Request(method, "/a", body=b"{}") for method in ("DELETE", "PUT", "GET")], 5)
        assert [asked.behind for asked in stub.asked] == [False, False, False]


class TestLibrary(KubernetesTransportContract):
    library = True
