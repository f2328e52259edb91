"""What is connected to, and as whom: kubeconfigs in their forms, the environment, a pod's own account, overrides."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.settings import ApiTls, read_datastore_settings, read_pod_settings
from domain.cni.netconf import KubernetesSettings, NetConf, PolicySettings
from domain.moment import parse_rfc3339
from ports.cluster import NOT_CONFIGURED
from ports.errors import BadConfiguration

CERT = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
OTHER = CERT.replace(b"AAAA", b"BBBB")
KEY = b"-----BEGIN EC PRIVATE KEY-----\nCCCC\n-----END EC PRIVATE KEY-----\n"
PLANTED = "planted-secret"
NOW = parse_rfc3339("2026-11-29T12:00:00Z")


def encoded(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def outside(**environment: str) -> Outside:
    return Outside(environment, lambda: NOW, lambda seconds: None, lambda program, seconds: (1, b""))


def read(environment: dict[str, str], inline: str = "", **around: str):
    def setting(name: str) -> str:
        return environment.get(name, "")

    return read_datastore_settings(setting, outside(**around), inline)


def refusal(action) -> str:
    """The text of a BadConfiguration, in which no secret is."""
    with pytest.raises(BadConfiguration) as caught:
        action()
    assert PLANTED not in f"{caught.value!r} {caught.value.__cause__!r}"
    return str(caught.value)


class Kubeconfig:
    """A file that a test builds up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cluster: dict[str, object] = {"server": "https://10.0.0.1:6443"}
        self.user: dict[str, object] = {"token": PLANTED}
        self.context: dict[str, object] = {"cluster": "c", "user": "u"}
        self.more: dict[str, object] = {"current-context": "x"}

    @property
    def document(self) -> dict[str, object]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": self.cluster}],
            "users": [{"name": "u", "user": self.user}],
            "contexts": [{"name": "x", "context": self.context}],
            "preferences": {},
            **self.more,
        }

    def write(self) -> str:
        self.path.write_text(yaml.safe_dump(self.document))
        return str(self.path)

    def read(self, **environment: str):
        return read({"KUBECONFIG": self.write(), **environment})

    def refusal(self, **environment: str) -> str:
        return refusal(lambda: self.read(**environment))


@pytest.fixture
def config(tmp_path: Path) -> Kubeconfig:
    return Kubeconfig(tmp_path / "config")


def authorization(settings) -> str:
    return dict(settings.headers).get("Authorization", "")


# --- forms of a kubeconfig -------------------------------------------------------------------------------------------


def test_a_token(config):
    settings = config.read()
    assert str(settings.server) == "https://10.0.0.1:6443"
    assert authorization(settings) == f"Bearer {PLANTED}"
    assert settings.credentials == f"kubeconfig {config.path}, user 'u'"
    assert (settings.qps, settings.burst) == (5.0, 100)


def test_json_is_yaml_too(config):
    config.path.write_text(json.dumps(config.document, indent=2))
    assert read({"KUBECONFIG": str(config.path)}) == config.read()


def test_the_secret_is_in_no_text_that_is_shown(config, tmp_path):
    (tmp_path / "key").write_bytes(KEY.replace(b"CCCC", PLANTED.encode()))
    config.user |= {"client-certificate-data": encoded(CERT), "client-key": "key"}
    settings = config.read()
    for shown in (str(settings), repr(settings), repr(settings.tls), settings.credentials, str(settings.server)):
        assert PLANTED not in shown


def test_a_token_file_beside_the_kubeconfig_comes_before_a_token(config, tmp_path):
    (tmp_path / "token").write_text("fresh\n")
    config.user["tokenFile"] = "token"
    settings = config.read()
    assert authorization(settings) == "Bearer fresh"
    assert settings.credentials == f"kubeconfig {config.path}, user 'u', token file {tmp_path}/token"


def test_a_token_counts_when_the_token_file_cannot_be_read(config, tmp_path):
    config.user["tokenFile"] = "absent"
    assert authorization(config.read()) == f"Bearer {PLANTED}"
    del config.user["token"]
    assert f"token file {tmp_path}/absent: No such file or directory" in config.refusal()
    (tmp_path / "absent").write_text(" \n")
    assert f"token file {tmp_path}/absent: the file is empty" in config.refusal()


@pytest.mark.parametrize("bad", ["pl\nanted", "pl anted", "plänted", "a\0b"])
def test_a_token_that_no_header_can_hold_is_refused(config, bad):
    config.user["token"] = f"{PLANTED}{bad}"
    assert config.refusal().endswith("the token has characters that no token has")


def test_c14_a_token_says_until_when_it_is_good(config):
    def token(expires: object) -> str:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": expires, "ä~?": "?>~"}).encode()).decode().rstrip("=")
        return f"e30.{claims}.c2ln"

    config.user["token"] = token(NOW // 10**9 - 1)
    assert config.read().credentials.endswith("user 'u', expired at 2026-11-29T11:59:59Z")
    config.user["token"] = token(NOW // 10**9 + 60)
    assert config.read().credentials.endswith("user 'u', valid until 2026-11-29T12:01:00Z")
    for odd in (token("x"), token(-1), token(10**30), "a.!.c", "a.e30.c", "a.W10.c"):
        config.user["token"] = odd
        assert config.read().credentials.endswith("user 'u'")


def test_certificates_inside(config):
    config.cluster["certificate-authority-data"] = encoded(OTHER)
    config.user = {"client-certificate-data": encoded(CERT), "client-key-data": encoded(KEY)}
    settings = config.read()
    assert settings.tls == ApiTls(OTHER, CERT, KEY)
    assert settings.headers == ()


def test_certificates_in_files_beside_the_kubeconfig(config, tmp_path):
    for name, content in (("ca", OTHER), ("cert", CERT), ("key", KEY)):
        (tmp_path / name).write_bytes(content)
    config.cluster["certificate-authority"] = "ca"
    config.user = {"client-certificate": str(tmp_path / "cert"), "client-key": "./key"}
    assert config.read().tls == ApiTls(OTHER, CERT, KEY)


def test_data_come_before_a_file(config):
    config.cluster |= {"certificate-authority-data": encoded(OTHER), "certificate-authority": "absent"}
    assert config.read().tls.ca == OTHER


@pytest.mark.parametrize(
    ("where", "name"),
    [("cluster", "certificate-authority"), ("user", "client-certificate"), ("user", "client-key")],
)
def test_a_certificate_file_that_cannot_be_used_is_named(config, tmp_path, where, name):
    config.user |= {"client-certificate-data": encoded(CERT), "client-key-data": encoded(KEY)}
    getattr(config, where).pop(f"{name}-data", None)
    getattr(config, where)[name] = "file"
    assert config.refusal() == f"{name} {tmp_path}/file: No such file or directory"
    (tmp_path / "file").write_text("nonsense")
    assert config.refusal().startswith(f"{name} {tmp_path}/file: no ")
    (tmp_path / "file").write_text("")
    assert f"{tmp_path}/file: the file is empty" in config.refusal() or "without a client" in config.refusal()


def test_a_certificate_needs_its_key(config):
    config.user = {"client-certificate-data": encoded(CERT)}
    assert "there is a client certificate without a client key" in config.refusal()
    config.user = {"client-key-data": encoded(KEY)}
    assert "there is a client key without a client certificate" in config.refusal()


@pytest.mark.parametrize("bad", ["!!!!", "QUJ", "ä", "-----BEGIN CERTIFICATE-----"])
def test_data_that_are_not_base64_are_named(config, bad):
    config.cluster["certificate-authority-data"] = bad
    assert config.refusal() == f"kubeconfig {config.path}: certificate-authority-data is not base64"


def test_data_that_are_no_certificate_are_named(config):
    config.cluster["certificate-authority-data"] = encoded(b"nonsense")
    assert "certificate-authority-data: no certificate in PEM format in it" in config.refusal()


def test_basic_authentication(config):
    config.user = {"username": "me", "password": "p:ä"}
    assert authorization(config.read()) == f"Basic {encoded('me:p:ä'.encode())}"


def test_a_user_in_the_servers_url_is_not_shown(config):
    config.user = {}
    config.cluster["server"] = f"https://me:{PLANTED}@10.0.0.1"
    settings = config.read()
    assert authorization(settings) == f"Basic {encoded(f'me:{PLANTED}'.encode())}"
    assert str(settings.server) == "https://10.0.0.1"
    assert PLANTED not in repr(settings)


def test_nobody_in_particular(config):
    config.user = {}
    assert config.read().headers == ()


def test_impersonation(config):
    config.user |= {"as": "a", "as-uid": "1", "as-groups": ["g", "h"], "as-user-extra": {"scopes": ["x", "y"]}}
    assert config.read().headers[1:] == (
        ("Impersonate-User", "a"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
    )


def test_verification_switched_off_and_another_name(config):
    config.cluster |= {"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"}
    assert config.read().tls == ApiTls(server_name="kubernetes", insecure=True)
    config.cluster["certificate-authority-data"] = encoded(CERT)
    assert "specifying a root certificates file with the insecure flag is not allowed" in config.refusal()


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("https://[fd00::1]:6443/k8s/clusters/c-1/", "https://[fd00::1]:6443/k8s/clusters/c-1"),
        ("http://a:80", "http://a"),
        ("HTTPS://a:443/ä b?x=1#y", "https://a/%C3%A4%20b"),
        ("10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("https://[fe80::1%25eth0]", "https://[fe80::1%eth0]"),
    ],
)
def test_servers(config, url, meant):
    config.cluster["server"] = url
    assert str(config.read().server) == meant


def test_a_server_without_a_scheme_speaks_tls_when_certificates_are_there(config):
    config.cluster = {"server": "a:1", "insecure-skip-tls-verify": True}
    assert str(config.read().server) == "https://a:1"


@pytest.mark.parametrize(
    "url", ["ftp://a", "https://", "https://a:b", "https://a:0", "https://[::1", "https://[a]", "a b"]
)
def test_a_server_that_is_none_is_refused(config, url):
    config.cluster["server"] = url
    assert "the server's URL cannot be used: " in config.refusal()


def test_http_has_no_certificates(config):
    config.cluster = {"server": "http://a", "certificate-authority-data": encoded(CERT)}
    assert config.read().tls == ApiTls()


# --- contexts and several files --------------------------------------------------------------------------------------


def test_the_current_context_can_be_chosen(config):
    config.more["contexts"] = [
        {"name": "x", "context": {"cluster": "none", "user": "none"}},
        {"name": "y", "context": {"cluster": "c", "user": "u"}},
    ]
    assert "there is no cluster 'none', which the context names" in config.refusal()
    assert authorization(config.read(K8S_CURRENT_CONTEXT="y"))
    assert "there is no context 'z'" in config.refusal(K8S_CURRENT_CONTEXT="z")


def test_a_context_may_leave_out_what_is_given_otherwise(config):
    config.more = {}
    assert "which has no current-context: no server is named" in config.refusal()
    assert config.read(K8S_API_ENDPOINT="https://b").headers == ()


def test_the_first_file_that_has_a_name_wins_and_paths_stay_with_their_file(tmp_path):
    for folder, token in (("one", "first"), ("two", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "token").write_text(token)
    one, two = Kubeconfig(tmp_path / "one" / "config"), Kubeconfig(tmp_path / "two" / "config")
    one.more = {"clusters": None, "users": [], "current-context": ""}
    two.user = {"tokenFile": "token"}
    two.cluster = {"server": "https://two"}
    paths = f"{one.write()}::{tmp_path}/absent:{two.write()}"
    settings = read({"KUBECONFIG": paths})
    assert (str(settings.server), authorization(settings)) == ("https://two", "Bearer second")
    one.more = {"users": [{"name": "u", "user": {"tokenFile": "token"}}], "clusters": []}
    one.write()
    assert authorization(read({"KUBECONFIG": paths})) == "Bearer first"


def test_a_kubeconfig_that_is_missing_is_named_at_once(tmp_path):
    path = tmp_path / "absent"
    assert refusal(lambda: read({"KUBECONFIG": str(path)})) == f"kubeconfig {path}: No such file or directory"
    said = refusal(lambda: read({"KUBECONFIG": f"{path}:{path}2"}))
    assert said == f"kubeconfig {path}, {path}2: none of these files exists"
    assert refusal(lambda: read({"KUBECONFIG": str(tmp_path)})) == f"kubeconfig {tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "(0 bytes): it is empty"),
        (b"\0\0\0\0", "(4 bytes): it is not a map"),
        (b"\xff\xfe", "(2 bytes): it is not UTF-8"),
        (b"a: [b", "(5 bytes): line 1: the YAML is broken here"),
        (b"- a\n", "(4 bytes): it is not a map"),
        (b"kind: Pod\n", "(10 bytes): kind is not Config but Pod"),
        (b"users: a\n", "(9 bytes): users is not a list of maps"),
        (b"users: [a]\n", "(11 bytes): users is not a list of maps"),
        (b"users: [{name: [a]}]\n", "(21 bytes): name is not a text"),
        (b"users: [{name: a, user: b}]\n", "(28 bytes): user is not a map"),
        (b"users: [{name: a}, {name: a}]\n", "(30 bytes): two users are called 'a'"),
    ],
)
def test_c15_a_file_that_makes_no_sense_is_named_with_its_size(tmp_path, content, said):
    path = tmp_path / "config"
    path.write_bytes(content)
    assert refusal(lambda: read({"KUBECONFIG": str(path)})) == f"kubeconfig {path} {said}"


def test_c15_a_file_that_is_being_written_is_read_again_after_a_moment(config):
    whole = config.write()
    content = config.path.read_bytes()
    config.path.write_bytes(content[:100])
    waits: list[float] = []

    def finish(seconds: float) -> None:
        waits.append(seconds)
        config.path.write_bytes(content)

    around = Outside({}, lambda: NOW, finish, lambda program, seconds: (1, b""))
    settings = read_datastore_settings(lambda name: whole if name == "KUBECONFIG" else "", around)
    assert authorization(settings)
    assert waits == [0.1]


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"token": ["a"]}, "token is not a text"),
        ({"token": True}, "token is not a text"),
        ({"as-groups": "a"}, "as-groups is not a list of texts"),
        ({"as-groups": [{}]}, "as-groups is not a text"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider 'gcp' of user 'u' is not supported"),
        ({"exec": []}, "exec is not a map"),
    ],
)
def test_members_of_a_wrong_type_are_named(config, user, said):
    config.user = user
    assert said in config.refusal()


def test_a_flag_is_true_or_false(config):
    config.cluster["insecure-skip-tls-verify"] = "maybe"
    assert "insecure-skip-tls-verify is neither true nor false" in config.refusal()


def test_a_number_is_a_text_where_one_is_wanted(config):
    config.user = {"username": 5, "password": "x"}
    config.path.write_text(json.dumps(config.document))
    assert authorization(read({"KUBECONFIG": str(config.path)})) == f"Basic {encoded(b'5:x')}"


def test_an_inline_kubeconfig(config):
    settings = read({}, yaml.safe_dump(config.document))
    assert (authorization(settings), settings.credentials) == (f"Bearer {PLANTED}", "kubeconfig inline, user 'u'")
    assert refusal(lambda: read({}, "a: [")) == "kubeconfig inline (4 bytes): line 1: the YAML is broken here"


# --- the environment -------------------------------------------------------------------------------------------------


def test_overrides_lie_over_the_kubeconfig(config, tmp_path):
    for name, content in (("ca", OTHER), ("cert", CERT), ("key", KEY)):
        (tmp_path / name).write_bytes(content)
    config.cluster |= {"certificate-authority": "absent", "tls-server-name": "kubernetes"}
    settings = config.read(
        K8S_API_ENDPOINT=" https://b:1/x ",
        K8S_CA_FILE=str(tmp_path / "ca"),
        K8S_CERT_FILE=str(tmp_path / "cert"),
        K8S_KEY_FILE=str(tmp_path / "key"),
        K8SAPITOKEN="another",
        K8S_CLIENT_QPS="7.5",
        K8S_CLIENT_BURST="9",
    )
    assert str(settings.server) == "https://b:1/x"
    assert settings.tls == ApiTls(OTHER, CERT, KEY)
    assert authorization(settings) == "Bearer another"
    assert settings.credentials == "the token in CALICO_K8SAPITOKEN"
    assert (settings.qps, settings.burst) == (7.5, 9)


def test_a_token_replaces_every_other_way_to_say_who_we_are(config):
    config.user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never"}
    }
    assert config.read().exec
    settings = config.read(K8SAPITOKEN="another")
    assert (settings.exec, authorization(settings)) == (None, "Bearer another")


def test_verification_can_be_switched_off_by_the_environment(config):
    config.cluster["certificate-authority-data"] = encoded(CERT)
    for word in ("true", "1", "T"):
        assert config.read(K8S_INSECURE_SKIP_TLS_VERIFY=word).tls == ApiTls(insecure=True)
    assert config.read(K8S_INSECURE_SKIP_TLS_VERIFY="false").tls == ApiTls(CERT)
    assert "K8S_INSECURE_SKIP_TLS_VERIFY is 'yes', neither true nor false" in config.refusal(
        K8S_INSECURE_SKIP_TLS_VERIFY="yes"
    )


@pytest.mark.parametrize("name", ["K8S_CLIENT_QPS", "K8S_CLIENT_BURST"])
def test_limits_are_numbers_and_nought_is_the_default(config, name):
    assert (config.read(**{name: "0"}).qps, config.read(**{name: "0"}).burst) == (5.0, 100)
    for text in ("many", "inf", "-1e999", "nan", "1e10"):
        fault = f"failed to load config from env vars: {name} is {text!r}, no number of requests"
        assert fault == config.refusal(**{name: text})


@pytest.mark.parametrize("name", ["K8S_CA_FILE", "K8S_CERT_FILE", "K8S_KEY_FILE"])
def test_a_file_of_the_environment_that_is_missing_is_named(config, name, tmp_path):
    assert config.refusal(**{name: f"{tmp_path}/absent"}).endswith(f" {tmp_path}/absent: No such file or directory")


def test_the_home_directorys_kubeconfig_is_next(config, tmp_path):
    folder = tmp_path / "home" / ".kube"
    folder.mkdir(parents=True)
    config.path = folder / "config"
    config.write()
    home = {"HOME": str(tmp_path / "home")}
    assert authorization(read({}, **home)) == f"Bearer {PLANTED}"
    assert read({"K8S_API_ENDPOINT": "https://b"}, **home).headers == ()


def test_nothing_configured_is_said_in_the_originals_words(tmp_path):
    """Which name a variable that is of no use; so the one that is comes behind them, where nothing else stood."""
    in_a_pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    for environment in ({"HOME": str(tmp_path)}, in_a_pod):
        told = refusal(lambda environment=environment: read({}, **environment))
        assert told.startswith(f"{NOT_CONFIGURED}; name a kubeconfig")
        assert "KUBECONFIG" in told
    assert refusal(lambda: read_pod_settings(NetConf(), outside(HOME=str(tmp_path)))) == NOT_CONFIGURED


# --- the pods' client ------------------------------------------------------------------------------------------------


def test_the_pods_client_goes_by_the_network_configuration(config, tmp_path):
    for name, content in (("ca", OTHER), ("cert", CERT), ("key", KEY)):
        (tmp_path / name).write_bytes(content)
    policy = PolicySettings(
        k8s_api_root="https://policy:6443/prefix/api/v1/",
        k8s_auth_token=PLANTED,
        k8s_client_certificate=str(tmp_path / "cert"),
        k8s_client_key=str(tmp_path / "key"),
        k8s_certificate_authority=str(tmp_path / "ca"),
    )
    settings = read_pod_settings(NetConf(policy=policy), outside())
    assert str(settings.server) == "https://policy:6443/prefix"
    assert settings.tls == ApiTls(OTHER, CERT, KEY)
    assert authorization(settings) == f"Bearer {PLANTED}"
    assert settings.credentials == "policy.k8s_auth_token"
    kubernetes = KubernetesSettings(kubeconfig=config.write(), k8s_api_root="https://kubernetes:1/api/x")
    settings = read_pod_settings(NetConf(policy=policy, kubernetes=kubernetes, qps=3, burst=4), outside())
    assert str(settings.server) == "https://kubernetes:1/api/x"
    assert (settings.qps, settings.burst) == (3.0, 4)


def test_the_pods_client_takes_a_list_of_kubeconfigs_as_the_datastores_does(config, tmp_path):
    kubernetes = KubernetesSettings(kubeconfig=f"{tmp_path / 'missing'}:{config.write()}")
    assert read_pod_settings(NetConf(kubernetes=kubernetes), outside()).server == config.read().server


def test_the_pods_client_looks_at_no_kubeconfig_of_the_environment(config, tmp_path):
    around = outside(KUBECONFIG=config.write(), HOME=str(tmp_path))
    assert refusal(lambda: read_pod_settings(NetConf(), around)) == NOT_CONFIGURED


def test_two_clients_of_one_kubeconfig_can_share_a_connection(config):
    pods = read_pod_settings(NetConf(kubernetes=KubernetesSettings(kubeconfig=config.write()), qps=50), outside())
    assert config.read().same_connection(pods)
    config.user = {}
    assert not config.read().same_connection(pods)


# --- the account of a pod --------------------------------------------------------------------------------------------


def test_the_account_of_this_pod(tmp_path):
    assert outside().service_account == "/var/run/secrets/kubernetes.io/serviceaccount"
    for name, content in (("token", b"mine\n"), ("ca.crt", CERT)):
        (tmp_path / name).write_bytes(content)

    def read_account(host: str, **environment: str):
        around = outside(KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT="443")
        around = around.replace(service_account=str(tmp_path))
        return read_datastore_settings(lambda name: environment.get(name, ""), around)

    settings = read_account("fd00::1")
    assert str(settings.server) == "https://[fd00::1]"
    assert (settings.tls, authorization(settings)) == (ApiTls(CERT), "Bearer mine")
    assert settings.credentials == f"service account of this pod, token file {tmp_path}/token"
    settings = read_account("10.96.0.1", K8SAPITOKEN="another")
    assert (str(settings.server), authorization(settings)) == ("https://10.96.0.1", "Bearer another")
    (tmp_path / "ca.crt").unlink()
    said = refusal(lambda: read_account("10.96.0.1"))
    assert said == f"certificate-authority {tmp_path}/ca.crt: No such file or directory"
