"""Tokens from a real API server, asked for as a pod does, with the one right that it takes; on either transport."""

from __future__ import annotations

import base64
import json

import pytest

from adapters.kubernetes.api import Forbidden
from adapters.linux.clock import SystemClock
from contracts.token_issuer import ACCOUNT, TokenIssuerContract
from domain.cni.netconf import NetConf
from domain.install.token import VALIDITY, token_expiry
from domain.moment import SECOND
from entrypoints.wiring.kubernetes import ApiServers
from integration.plugin.kubernetes_store import Served
from ports.errors import Unauthorized

NAMESPACE, PLUGIN = ACCOUNT
ASKER = "token-issuer-test"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
RIGHT = {
    "apiGroups": [""],
    "resources": ["serviceaccounts/token"],
    "resourceNames": [PLUGIN, "nobody"],
    "verbs": ["create"],
}


@pytest.fixture(scope="module")
def asker(served: Served):
    """The token of an account that may have the plugins' tokens."""
    client = served.server.client
    served.server.cluster.add_account(NAMESPACE, ASKER)
    client.create(f"{RBAC}/roles", {"metadata": {"name": ASKER}, "rules": [RIGHT]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ASKER}
    subjects = [{"kind": "ServiceAccount", "name": ASKER, "namespace": NAMESPACE}]
    client.create(f"{RBAC}/rolebindings", {"metadata": {"name": ASKER}, "roleRef": role, "subjects": subjects})
    yield served.server.cluster.token(NAMESPACE, ASKER)
    for plural in ("rolebindings", "roles"):
        client.delete(f"{RBAC}/{plural}/{ASKER}")
    client.delete(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ASKER}")


@pytest.fixture
def mounted(tmp_path, served, asker):
    """What Kubernetes mounts into a pod of that account."""
    (tmp_path / "token").write_text(asker)
    (tmp_path / "ca.crt").write_bytes(served.server.ca)
    (tmp_path / "namespace").write_text(NAMESPACE)
    return tmp_path


@pytest.fixture(params=["lean", "library"])
def issuer(request, served, mounted):
    environment = {
        "KUBERNETES_SERVICE_HOST": served.host,
        "KUBERNETES_SERVICE_PORT": str(served.port),
    }
    servers = ApiServers(
        NetConf(), environment, lambda _: "", SystemClock(), library=lambda: request.param == "library"
    )
    return servers.token_issuer(str(mounted))


def claims(token: str) -> dict:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def soon():
    return SystemClock().deadline(30)


class TestKubernetes(TokenIssuerContract):
    def test_the_token_is_of_the_account_that_was_named(self, issuer):
        """TOK-014"""
        issued = issuer.request_token(*ACCOUNT, VALIDITY, soon())
        assert claims(issued.text)["sub"] == f"system:serviceaccount:{NAMESPACE}:{PLUGIN}"

    def test_its_life_is_as_it_says_itself(self, issuer):
        issued = issuer.request_token(*ACCOUNT, 3600, soon())
        assert abs(token_expiry(issued.text) - issued.expires) <= 2 * SECOND

    def test_the_server_believes_it(self, issuer, served):
        issued = issuer.request_token(*ACCOUNT, VALIDITY, soon())
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": issued.text}}
        answer = served.server.client.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert answer["status"]["authenticated"]

    def test_the_server_and_its_authority_are_the_pods(self, issuer, served):
        assert issuer.cluster().server == f"https://{served.host}:{served.port}"
        assert issuer.cluster().ca == served.server.ca

    def test_another_accounts_tokens_are_refused(self, issuer):
        with pytest.raises(Forbidden, match=r"serviceaccounts/token"):
            issuer.request_token(NAMESPACE, ASKER, VALIDITY, soon())

    def test_credentials_that_are_not_believed_are_named(self, issuer, mounted):
        (mounted / "token").write_text("e30.e30.c2ln")
        with pytest.raises(Unauthorized, match=f"token file {mounted}/token"):
            issuer.request_token(*ACCOUNT, VALIDITY, soon())

    def test_a_token_that_was_replaced_meanwhile_is_read_anew(self, issuer, mounted, asker):
        (mounted / "token").write_text("e30.e30.c2ln")
        with pytest.raises(Unauthorized):
            issuer.request_token(*ACCOUNT, VALIDITY, soon())
        (mounted / "token").write_text(asker)
        assert issuer.request_token(*ACCOUNT, VALIDITY, soon()).text
