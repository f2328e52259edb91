"""Tokens asked of an API server: which answers are believed, and where the pod's own token takes their place."""

from __future__ import annotations

import base64
import json

import pytest

from adapters.kubernetes.api import Api, Forbidden
from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.own_account import read_own_account
from adapters.kubernetes.credentials.server import parse_server
from adapters.kubernetes.credentials.settings import ApiTls, Settings
from adapters.kubernetes.token_issuer import KubernetesTokenIssuer
from adapters.memory.clock import MemoryClock
from adapters.memory.token_issuer import MemoryTokenIssuer
from contracts.token_issuer import ACCOUNT, SOON, TokenIssuerContract
from domain.install.kubeconfig import KubeconfigCluster
from domain.install.token import VALIDITY
from domain.moment import SECOND
from ports.errors import BadConfiguration, Missing, Unavailable
from services.fake_apiserver import FakeApiserver, Recorded

CA = b"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
PATH = "/api/v1/namespaces/kube-system/serviceaccounts/calico-cni-plugin/token"


class TestMemory(TokenIssuerContract):
    @pytest.fixture
    def issuer(self):
        return MemoryTokenIssuer(MemoryClock())


class TokenServer(FakeApiserver):
    """It gives a token to each account that there is; `granted`: what it makes of the seconds asked for."""

    def __init__(self) -> None:
        super().__init__("v1")
        self.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "calico-cni-plugin"}})
        self.granted = lambda seconds: seconds
        self.resources = ["pods", "serviceaccounts", "serviceaccounts/token"]
        self.given = 0
        self.before = self._token

    def _token(self, request):
        if request.path == "/api/v1":
            listed = [{"name": name} for name in self.resources]
            return self._said(200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": listed})
        if not request.path.endswith("/token"):
            return None
        account = request.path.removesuffix("/token")
        if "serviceaccounts/token" not in self.resources or not self.find(account):
            return self.failure(404, f'serviceaccounts "{account.rpartition("/")[2]}" not found', reason="NotFound")
        asked = json.loads(request.body)
        assert asked["spec"]["audiences"] == []
        self.given += 1
        spec = {"expirationSeconds": self.granted(asked["spec"]["expirationSeconds"])}
        return self._said(201, {**asked, "spec": spec, "status": {"token": f"given.{self.given}.signed"}})


@pytest.fixture
def server():
    return TokenServer()


@pytest.fixture
def clock():
    return MemoryClock()


@pytest.fixture
def recorded(server):
    return Recorded(server.transport())


@pytest.fixture
def settings():
    return Settings(parse_server("https://10.96.0.1"), ApiTls(CA))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "namespace").write_text("kube-system")
    return tmp_path


@pytest.fixture
def issuer(recorded, settings, folder, clock):
    return KubernetesTokenIssuer(lambda: settings, lambda _: Api(recorded, clock), str(folder), clock.now)


def pods_own(expires: int) -> str:
    return ".".join(base64.urlsafe_b64encode(part).decode() for part in (b"{}", b'{"exp": %d}' % expires, b"s"))


class TestFakeServer(TokenIssuerContract):
    def test_one_request_is_all(self, issuer, recorded):
        issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert recorded.log == [f"POST {PATH}"]

    def test_the_servers_word_on_a_tokens_life_counts(self, issuer, server, clock):
        server.granted = lambda seconds: seconds // 24
        issued = issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert issued.good_for == 3600
        assert issued.expires // SECOND == clock.now() // SECOND + 3600

    @pytest.mark.parametrize("said", [None, "long", -5, VALIDITY * 9])
    def test_what_makes_no_sense_is_not_believed(self, issuer, server, said):
        server.granted = lambda seconds: said
        assert issuer.request_token(*ACCOUNT, VALIDITY, SOON).good_for == VALIDITY

    @pytest.mark.parametrize("status", [{}, {"token": ""}, {"token": 5}, "none"])
    def test_an_answer_without_a_token_is_no_answer(self, issuer, server, status):
        server.before = lambda request: server._said(201, {"kind": "TokenRequest", "status": status})
        with pytest.raises(Unavailable, match="has none"):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)

    def test_an_answer_of_another_kind_is_none(self, issuer, server):
        server.before = lambda request: server._said(201, {"kind": "Pod", "status": {"token": "t"}})
        with pytest.raises(Unavailable, match="instead of TokenRequest"):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)

    def test_who_may_not_is_told_so(self, issuer, server):
        server.before = lambda request: server.failure(403, "you cannot create serviceaccounts/token")
        with pytest.raises(Forbidden, match="cannot create serviceaccounts/token"):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)

    def test_what_the_server_refuses_is_told_in_its_words(self, issuer, server):
        server.before = lambda request: server.failure(422, "may not specify a duration less than 10 minutes")
        with pytest.raises(Exception, match="less than 10 minutes"):
            issuer.request_token(*ACCOUNT, 1, SOON)

    def test_a_missing_account_says_what_to_do(self, issuer):
        with pytest.raises(Missing, match="CALICO_CNI_SERVICE_ACCOUNT"):
            issuer.request_token("kube-system", "nobody", VALIDITY, SOON)


class TestOldServer:
    """One that knows no requests for tokens."""

    @pytest.fixture
    def server(self):
        server = TokenServer()
        server.resources.remove("serviceaccounts/token")
        return server

    def test_the_pods_own_token_takes_the_place(self, issuer, folder, clock):
        expires = clock.now() // SECOND + 7200
        (folder / "token").write_text(pods_own(expires) + "\n")
        issued = issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert issued.text == pods_own(expires)
        assert issued.expires == expires * SECOND
        assert 7198 < issued.good_for < 7200

    def test_one_that_has_expired_is_good_for_nothing(self, issuer, folder):
        (folder / "token").write_text(pods_own(5))
        assert issuer.request_token(*ACCOUNT, VALIDITY, SOON).good_for == 0

    def test_one_that_does_not_say_until_when_is_refused_by_its_file(self, issuer, folder):
        (folder / "token").write_text("secret")
        with pytest.raises(BadConfiguration, match=f"{folder}/token: invalid token segment size: 1") as refused:
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert "secret" not in str(refused.value)

    def test_none_at_all_is_refused_by_its_file(self, issuer, folder):
        with pytest.raises(BadConfiguration, match=f"{folder}/token: No such file"):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)

    def test_a_server_that_does_not_list_what_it_knows_is_believed_to_know(self, issuer, server):
        ask = server.before
        server.before = lambda request: server.failure(404) if request.path == "/api/v1" else ask(request)
        with pytest.raises(Missing):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)

    def test_something_that_lists_anything_else_is_not_believed_to_be_old(self, issuer, server, folder):
        ask = server.before
        (folder / "token").write_text(pods_own(4102444800))
        groups = server._said(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        server.before = lambda request: groups if request.path == "/api/v1" else ask(request)
        with pytest.raises(Unavailable, match="APIGroupList instead of the list of resources in v1"):
            issuer.request_token(*ACCOUNT, VALIDITY, SOON)


class TestWhereWeAre:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://10.96.0.1", "https://10.96.0.1:443"),
            ("https://[fd00::1]:6443/prefix/", "https://[fd00::1]:6443/prefix"),
        ],
    )
    def test_the_url_has_its_port(self, recorded, folder, clock, url, shown):
        settings = Settings(parse_server(url), ApiTls(CA, insecure=True))
        issuer = KubernetesTokenIssuer(lambda: settings, lambda _: Api(recorded, clock), str(folder), clock.now)
        assert issuer.cluster() == KubeconfigCluster(shown, CA, insecure=True)

    def test_a_namespace_that_is_not_there_is_named_by_its_file(self, issuer, folder):
        (folder / "namespace").write_text("")
        with pytest.raises(BadConfiguration, match="namespace: the file is empty"):
            issuer.own_namespace()
        (folder / "namespace").unlink()
        with pytest.raises(BadConfiguration, match="namespace: No such file"):
            issuer.own_namespace()


class TestWhoWeAre:
    """KUBECONFIG, else the pod, else whoever is logged in."""

    @pytest.fixture
    def places(self, tmp_path):
        account, home = tmp_path / "account", tmp_path / "home"
        account.mkdir()
        (home / ".kube").mkdir(parents=True)
        return account, home

    def settings(self, places, **environment):
        account, home = places
        environment = {"HOME": str(home), **environment}
        return read_own_account(Outside(environment, lambda: 0, lambda _: None, None, str(account)))

    def write(self, path, server):
        cluster = {"name": "c", "cluster": {"server": server}}
        context = {"name": "x", "context": {"cluster": "c", "user": ""}}
        document = {"kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "x"}
        path.write_text(json.dumps(document))
        return str(path)

    def test_each_comes_after_the_other(self, places, tmp_path):
        account, home = places
        inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        (account / "token").write_text("t")
        (account / "ca.crt").write_bytes(CA)
        self.write(home / ".kube" / "config", "https://home:1")
        named = self.write(tmp_path / "named", "https://named:2")
        assert self.settings(places, KUBECONFIG=named, **inside).server.host == "named"
        assert self.settings(places, **inside).server.host == "10.96.0.1"
        assert self.settings(places, **inside).headers == (("Authorization", "Bearer t"),)
        assert self.settings(places).server.host == "home"

    def test_settings_of_the_plugins_count_for_nothing(self, places):
        self.write(places[1] / ".kube" / "config", "https://home:1")
        assert self.settings(places, K8S_API_ENDPOINT="https://other:3").server.host == "home"

    def test_without_any_it_says_what_to_do(self, places):
        for environment in ({}, {"HOME": ""}):
            with pytest.raises(BadConfiguration, match="name a kubeconfig with KUBECONFIG"):
                self.settings(places, **environment)
