"""What every transport promises on a real kube-apiserver.

Derive a class named `Test…`, give it `library`, which chooses the transport, and a fixture `server`.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.kubernetes.credentials.settings import Settings, read_datastore_settings
from adapters.kubernetes.transport.open_transport import open_transport
from adapters.kubernetes.transport.seam import STRATEGIC_MERGE_PATCH, ApiTransport, ApiUntrusted, HttpRequest
from contracts.kubernetes_transport import GET, OUTSIDE, failure
from services.etcd import Authority
from services.http_proxy import HttpProxy


class RealServerContract:
    """`server` is an ApiServer on IPv6, with RBAC."""

    library: bool

    @pytest.fixture
    def connect(self) -> Iterator[Callable[..., ApiTransport]]:
        """By a kubeconfig."""
        opened = []

        def connect(path: Path) -> ApiTransport:
            def read() -> Settings:
                return read_datastore_settings(lambda name: str(path) if name == "KUBECONFIG" else "", OUTSIDE)

            opened.append(open_transport(read(), read, OUTSIDE, library=self.library))
            return opened[-1]

        yield connect
        for one in opened:
            one.close()

    @pytest.fixture
    def admin(self, server, connect, tmp_path) -> ApiTransport:
        server.cluster.clear()
        return connect(server.kubeconfig(tmp_path / "admin"))

    def test_every_verb_and_what_the_server_says_to_it(self, server, admin):
        path = "/api/v1/namespaces/default/configmaps"

        def ask(method: str, name: str = "", body: object = None, kind: str = "application/json") -> tuple[int, dict]:
            octets = b"" if body is None else json.dumps(body).encode()
            (answer,) = admin.send([HttpRequest(method, f"{path}/{name}".rstrip("/"), (), octets, kind)], 10)
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
                [
                    HttpRequest("GET", path),
                    HttpRequest("GET", path, (("labelSelector", "odd in (1)"), ("limit", "500"))),
                ],
                20,
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
        answers = admin.send([HttpRequest("GET", f"/api/v1/namespaces/{name}") for name in names], 20)
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
        quiet = (
            pytest.warns(Warning, match="Unverified")
            if form == "insecure" and self.library
            else contextlib.nullcontext()
        )
        with quiet:
            (answer,) = transport.send(
                [HttpRequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)], 10
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
        request = HttpRequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)
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
            assert isinstance(error, ApiUntrusted)
        right = server.kubeconfig(tmp_path / "right", tls_server_name="kubernetes.default.svc")
        assert connect(right).send([GET], 10)[0].status == 404

    def test_through_a_proxy(self, server, connect, tmp_path):
        with HttpProxy(server.port, to=server.address) as proxy:
            transport = connect(server.kubeconfig(tmp_path / "config", proxy_url=proxy.url))
            assert [answer.status for answer in transport.send([GET, GET], 10)] == [404, 404]
            assert [asked.target for asked in proxy.asked] == [f"[::1]:{server.port}"]


REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
