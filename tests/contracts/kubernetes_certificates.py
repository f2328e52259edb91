"""What every transport to a kube-apiserver promises about certificates, and about proxies on the way.

Derive a class named `Test…` and give it `library`, which chooses the transport.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from adapters.kubernetes.credentials.server import parse_server
from adapters.kubernetes.credentials.settings import ApiTls
from adapters.kubernetes.transport.seam import ApiUntrusted, HttpRequest
from contracts.kubernetes_transport import GET, Opening, echoed, failure, took
from services.etcd import Authority
from services.http_proxy import HttpProxy
from services.http_stub import HttpStub


class CertificatesContract(Opening):
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
        return ApiTls(authority.ca.read_bytes())

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
                answers = transport.send([GET, HttpRequest("GET", "/chunked"), HttpRequest("GET", "/big/1000000")], 10)
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
        assert isinstance(error, ApiUntrusted)
        assert "no agreement on a version" in str(error)

    def test_a_wrong_authority_is_refused(self, connect, served, other):
        with HttpStub(served) as stub:
            for tls in (ApiTls(other.ca.read_bytes()), ApiTls()):
                error = took(0, 2, lambda tls=tls: connect(stub.url, tls=tls).send([GET], 10))
                assert isinstance(error, ApiUntrusted)
                assert "certificate problem: the server's certificate is not signed by the given authority" in str(
                    error
                )
            assert stub.asked == []

    @pytest.mark.parametrize("hosts", ["IP:127.0.0.2", "DNS:127.0.0.1", "DNS:localhost", ""])
    def test_a_certificate_for_another_host_is_refused(self, connect, authority, ca, hosts):
        """A name in the certificate that looks like the address is not the address, nor does its common name count."""
        with HttpStub(context(authority.issue("127.0.0.1", hosts))) as stub:
            error = failure(lambda: connect(stub.url, tls=ca).send([GET], 5))
            assert isinstance(error, ApiUntrusted)
            assert "certificate problem: the server's certificate is not for this host name" in str(error)
            assert stub.asked == []

    def test_a_common_name_is_not_a_host_name(self, connect, authority, ca):
        with HttpStub(context(authority.issue("localhost"))) as stub:
            error = failure(lambda: connect(stub.url_for("localhost"), tls=ca).send([GET], 5))
            assert isinstance(error, ApiUntrusted)
            assert "certificate problem: the server's certificate is not for this host name" in str(error)

    @pytest.mark.parametrize(("start", "days", "said"), [(-10, 5, "has expired"), (5, 10, "is not valid yet")])
    def test_a_certificate_out_of_its_time_is_refused(self, connect, tmp_path, start, days, said):
        pair = dated(tmp_path, start, days)
        with HttpStub(context(pair)) as stub:
            error = failure(lambda: connect(stub.url, tls=ApiTls(pair[0].read_bytes())).send([GET], 5))
            assert isinstance(error, ApiUntrusted)
            assert f"certificate problem: the server's certificate {said}" in str(error)

    def test_a_servers_own_certificate_may_be_the_authority(self, connect, authority):
        """As the original takes it."""
        cert, key = authority.issue("lone", "IP:127.0.0.1")
        with HttpStub(context((cert, key))) as stub:
            connect(stub.url, tls=ApiTls(cert.read_bytes())).send([GET], 5)

    @pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # tests make errors of warnings that are off
    def test_verification_can_be_switched_off(self, connect, authority):
        with HttpStub(context(authority.issue("elsewhere", "DNS:elsewhere.example"))) as stub:
            connect(stub.url, tls=ApiTls(insecure=True)).send([GET], 5)

    def test_the_name_that_the_certificate_is_for_can_be_given(self, connect, authority, ca):
        with HttpStub(context(authority.issue("elsewhere", "DNS:elsewhere.example"))) as stub:
            connect(stub.url, tls=ca.replace(server_name="elsewhere.example")).send([GET], 5)
            error = failure(lambda: connect(stub.url, tls=ca.replace(server_name="else.example")).send([GET], 5))
            assert isinstance(error, ApiUntrusted)

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
                assert isinstance(error, ApiUntrusted) or (not refused.cert and version == ssl.TLSVersion.TLSv1_2)
            assert stub.asked == []

    def test_certificate_and_key_that_do_not_belong_together_are_named(self, connect, served, mine, other):
        _, key = (path.read_bytes() for path in other.issue("client"))
        with HttpStub(served) as stub:
            error = failure(lambda: connect(stub.url, tls=mine.replace(key=key)).send([GET], 5))
            assert isinstance(error, ApiUntrusted)
            assert "cannot be used together" in str(error)

    def test_material_that_is_no_certificate_is_named_and_nobody_asked_for_a_passphrase(
        self, connect, served, ca, mine
    ):
        bad = b"-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"
        locked = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nbm9uc2Vuc2U=\n-----END ENCRYPTED PRIVATE KEY-----\n"
        with HttpStub(served) as stub:
            for tls in (ApiTls(bad), mine.replace(cert=bad), mine.replace(key=locked)):
                error = failure(lambda tls=tls: connect(stub.url, tls=tls).send([GET], 5))
                assert isinstance(error, ApiUntrusted)
                assert "cannot be used together" in str(error)

    def test_a_private_key_is_on_no_disk_and_in_no_descriptor_afterwards(self, connect, authority, mine):
        with HttpStub(mutual(authority, ssl.TLSVersion.TLSv1_3)) as stub:
            transport = connect(stub.url, tls=mine)
            transport.send([GET], 5)
            assert not [link for link in descriptors() if "memfd" in link or link.endswith(".pem")]

    def test_https_where_http_is_spoken_and_the_reverse_end_soon(self, stub, connect, served, ca):
        error = took(0, 2, lambda: connect(stub.url.replace("http:", "https:"), tls=ca).send([GET], 10))
        assert isinstance(error, ApiUntrusted)
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
            error = took(0, 2, lambda: transport.send([HttpRequest("PUT", f"/{way}", body=b"{}")], 1.0))
            assert not error.harmless
            assert error.timed_out is (way == "stalls")
            assert not isinstance(error, ApiUntrusted)
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
            assert isinstance(error, ApiUntrusted)
            assert "not for this host name" in str(error)
            assert stub.asked == []

    def test_a_proxy_that_refuses_or_is_not_there_is_harmless(self, connect, served, ca):
        with HttpStub(served) as stub, HttpProxy(stub.port) as proxy:
            proxy.refusal = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
            for url in (proxy.url, "http://127.0.0.1:1"):
                transport = connect("https://localhost:7777", tls=ca, proxy=parse_server(url))
                assert took(0, 2, lambda transport=transport: transport.send([GET], 5)).harmless


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
