"""Both transports to a kube-apiserver keep their contract, on servers that misbehave and on a real one."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.kubernetes.credentials.server import parse_proxy
from adapters.kubernetes.transport.seam import ApiTransportError, HttpRequest
from contracts.kubernetes_certificates import CertificatesContract, mutual
from contracts.kubernetes_real_server import RealServerContract
from contracts.kubernetes_transport import GET, KubernetesTransportContract, echoed, failure
from services.apiserver import ApiServer
from services.etcd import Authority
from services.http_stub import HttpStub
from services.socks_proxy import SocksProxy

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def server():
    with ApiServer(address="::1") as server:
        yield server


class TestLean(KubernetesTransportContract):
    library = False

    def test_reads_that_are_asked_for_together_are_sent_together(self, stub, connect):
        connect(stub.url).send([HttpRequest("GET", f"/{number}") for number in range(5)], 5)
        assert [asked.behind for asked in stub.asked] == [True, True, True, True, False]

    def test_a_server_that_closes_after_each_answer_without_a_word_is_asked_for_the_rest_again(self, stub, connect):
        """Though all was sent in one go."""
        answers = connect(stub.url).send([HttpRequest("GET", f"/closes-silently/{number}") for number in range(3)], 5)
        assert [answer.status for answer in answers] == [200] * 3
        assert [asked.target[-1] for asked in stub.asked] == ["0", "1", "2"]

    def test_no_answer_at_all_is_an_error_however_many_came_before(self, stub, connect):
        with pytest.raises(ApiTransportError):
            connect(stub.url).send([HttpRequest("GET", "/a"), HttpRequest("GET", "/resets")], 5)

    def test_what_writes_is_sent_alone(self, stub, connect):
        connect(stub.url).send([HttpRequest(method, "/a", body=b"{}") for method in ("DELETE", "PUT", "GET")], 5)
        assert [asked.behind for asked in stub.asked] == [False, False, False]


# A whole cold call: kubeconfig in YAML with a client certificate in it, TLS, several requests.
COLD_CALL = """
import sys
before = set(sys.modules)
sys.path.insert(0, {root!r})
import time
from adapters.kubernetes.transport.open_transport import open_transport
from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.settings import read_datastore_settings
from adapters.kubernetes.credentials.server import parse_proxy
from adapters.kubernetes.transport.seam import HttpRequest, ApiTransportError
outside = Outside({{}}, time.time_ns, time.sleep, lambda program, seconds: (1, b""))
settings = read_datastore_settings(lambda name: {config!r} if name == "KUBECONFIG" else "", outside)
transport = open_transport(settings, lambda: settings, outside, library=False)
statuses = [answer.status for answer in transport.send([HttpRequest("GET", "/a"), HttpRequest("GET", "/chunked")], 10)]
transport.close()
print(statuses, *sorted(set(sys.modules) - before))
"""
LOADED = {
    *("__future__", "_json", "os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"),
    *("errno", "select", "binascii", "_socket", "_ssl"),
    *("adapters", "adapters.regular_file", "adapters.wire", "domain", "domain.ipam", "ports"),
    *(f"adapters.kubernetes{name}" for name in ("", ".credentials", ".transport")),
    *(f"adapters.kubernetes.credentials.{name}" for name in ("outside", "settings", "kubeconfig", "fields", "server")),
    "adapters.kubernetes.credentials.yaml_subset",
    *(f"adapters.kubernetes.transport.{name}" for name in ("open_transport", "seam", "renewing", "lean", "connecting")),
    "adapters.kubernetes.transport.http11",
    *(f"adapters.wire.{name}" for name in ("faults", "sockets", "waiting", "tls")),
    *("domain.value", "domain.json_text", "domain.moment", "domain.ipam.address"),
    *("ports.errors", "ports.cluster"),
}


def test_a_cold_call_of_the_lean_transport_loads_what_is_listed_and_nothing_else(tmp_path):
    authority = Authority(tmp_path / "pki")
    cert, key = (base64.b64encode(path.read_bytes()).decode() for path in authority.issue("client"))
    with HttpStub(mutual(authority, ssl.TLSVersion.TLSv1_3)) as stub:
        cluster = {"server": stub.url, "certificate-authority": str(authority.ca)}
        document = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"client-certificate-data": cert, "client-key-data": key}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(yaml.safe_dump(document))
        code = COLD_CALL.format(root=str(ROOT), config=str(tmp_path / "config"))
        command = [sys._base_executable, "-ISB", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert stub.peer_certificates == ["client"], done.stderr
    statuses, _, loaded = done.stdout.partition("] ")
    assert statuses == "[200, 200"
    assert set(loaded.split()) - LOADED == set()


class TestLibrary(KubernetesTransportContract):
    library = True


class TestLeanOnCertificates(CertificatesContract):
    library = False

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
    @pytest.mark.parametrize("user", ["", "me:p@ss"])
    def test_a_socks_proxy_passes_on_whatever_comes(self, connect, served, ca, host, user):
        with HttpStub(served) as stub, SocksProxy(stub.port, user=user) as proxy:
            known = parse_proxy(proxy.url.replace("//", "//me:p%40ss@") if user else proxy.url)
            connect(f"https://{host}:7777", tls=ca, proxy=known).send([GET, GET], 5)
            assert proxy.places == [f"{host.strip('[]')}:7777"]
            assert stub.connections == 1

    def test_a_socks_proxy_reads_no_request(self, stub, connect):
        with SocksProxy(stub.port) as proxy:
            (answer,) = connect("http://localhost:7777", proxy=parse_proxy(proxy.url)).send([GET], 5)
            assert echoed(answer)["target"] == "/api/v1/namespaces/default/pods/a"

    def test_a_socks_proxy_that_refuses_is_told_without_a_password(self, connect, served, ca):
        def told(url: str, **options: Any) -> str:
            with HttpStub(served) as stub, SocksProxy(stub.port, **options) as proxy:
                known = parse_proxy(proxy.url.replace("//", f"//{url}"))
                error = failure(lambda: connect("https://localhost:7777", tls=ca, proxy=known).send([GET], 5))
            assert error.harmless
            assert "planted" not in str(error)
            return str(error)

        assert "wants credentials" in told("", user="me:pass")
        assert "does not accept the credentials" in told("me:planted@", user="me:pass")
        assert "connection refused" in told("", reply=5)
        assert "reply 99" in told("", reply=99)

    def test_what_speaks_no_socks_is_no_proxy(self, stub, connect, ca):
        known = parse_proxy(stub.url.replace("http://", "socks5://"))
        error = failure(lambda: connect("https://localhost:7777", tls=ca, proxy=known).send([GET], 5))
        assert error.harmless


class TestLibraryOnCertificates(CertificatesContract):
    library = True


class TestLeanOnARealServer(RealServerContract):
    library = False


class TestLibraryOnARealServer(RealServerContract):
    library = True
