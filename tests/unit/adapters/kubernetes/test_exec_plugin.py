"""A credential plugin: how it is called, what it may answer, and that nothing of it is shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from adapters.kubernetes.credentials.kubeconfig import load_kubeconfig
from adapters.kubernetes.credentials.outside import Outside, Program
from adapters.kubernetes.credentials.settings import Settings, read_datastore_settings, with_plugin
from domain.moment import parse_rfc3339
from ports.errors import BadConfiguration, PortError, Unavailable

PLANTED = "planted-secret"
V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
CA = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
NOW = parse_rfc3339("2026-11-29T12:00:00Z")


def answer(version: str = V1, **status: str) -> bytes:
    return json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status}).encode()


class Plugin:
    """A kubeconfig with a plugin, and what the plugin does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entry: dict[str, object] = {"apiVersion": V1, "command": "./get-token", "interactiveMode": "IfAvailable"}
        self.cluster: dict[str, object] = {"server": "https://a", "tls-server-name": "b"}
        self.status, self.printed = 0, answer(token=PLANTED)
        self.ran: list[Program] = []
        self.environment = {"PATH": str(folder / "bin"), "HOME": "/root"}

    def run(self, program: Program, seconds: float) -> tuple[int, bytes]:
        assert 0 < seconds <= 20
        self.ran.append(program)
        return self.status, self.printed

    def settings(self) -> Settings:
        path = self.folder / "config"
        document = {
            "clusters": [{"name": "c", "cluster": self.cluster}],
            "users": [{"name": "u", "user": {"exec": self.entry}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(document))
        outside = Outside(self.environment, lambda: NOW, lambda seconds: None, self.run)
        read = read_datastore_settings(lambda name: str(path) if name == "KUBECONFIG" else "", outside)
        assert not self.ran
        return with_plugin(read, outside)

    def failure(self, kind: type[PortError]) -> str:
        with pytest.raises(kind) as caught:
            self.settings()
        assert PLANTED not in f"{caught.value!r} {caught.value.__cause__!r}"
        return str(caught.value)


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


def test_its_token_is_used(plugin):
    settings = plugin.settings()
    assert settings.headers == (("Authorization", f"Bearer {PLANTED}"),)
    assert settings.credentials.endswith("config, user 'u', exec plugin '" + str(plugin.folder) + "/./get-token'")
    assert PLANTED not in repr(settings)


def test_it_is_called_with_its_arguments_and_environment(plugin):
    plugin.entry |= {"args": ["a", "--b=c"], "env": [{"name": "X", "value": "1"}, {"name": "HOME", "value": "/x"}]}
    plugin.settings()
    (program,) = plugin.ran
    assert program.path == f"{plugin.folder}/./get-token"
    assert program.arguments == ("a", "--b=c")
    assert (program.environment["X"], program.environment["HOME"]) == ("1", "/x")
    info = json.loads(program.environment["KUBERNETES_EXEC_INFO"])
    assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert "--b=c" not in repr(program)


def test_it_is_told_of_the_cluster_when_it_wants(plugin):
    plugin.entry["provideClusterInfo"] = True
    plugin.cluster |= {
        "certificate-authority-data": base64.b64encode(CA).decode(),
        "proxy-url": "http://p:1",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    plugin.settings()
    assert json.loads(plugin.ran[0].environment["KUBERNETES_EXEC_INFO"])["spec"]["cluster"] == {
        "server": "https://a",
        "tls-server-name": "b",
        "certificate-authority-data": base64.b64encode(CA).decode(),
        "proxy-url": "http://p:1",
        "config": {"audience": "x"},
    }
    del plugin.cluster["certificate-authority-data"], plugin.cluster["extensions"]
    plugin.cluster["insecure-skip-tls-verify"] = True
    plugin.ran.clear()
    plugin.settings()
    about = json.loads(plugin.ran[0].environment["KUBERNETES_EXEC_INFO"])["spec"]["cluster"]
    assert about["insecure-skip-tls-verify"] is True


def test_its_certificate_is_used(plugin):
    plugin.printed = answer(clientCertificateData="cert", clientKeyData="key")
    settings = plugin.settings()
    assert (settings.tls.cert, settings.tls.key, settings.headers) == (b"cert", b"key", ())


def test_it_says_until_when_its_answer_is_good(plugin):
    plugin.printed = answer(token=PLANTED, expirationTimestamp="2026-11-29T14:00:00+01:00")
    assert plugin.settings().credentials.endswith("', valid until 2026-11-29T13:00:00Z")


def test_it_is_looked_up_in_path(plugin):
    plugin.entry |= {"command": "get-token", "installHint": "Get it from its maker.\n"}
    said = plugin.failure(BadConfiguration)
    assert said == "credential plugin 'get-token' is not installed in any folder of PATH; Get it from its maker."
    folder = plugin.folder / "bin"
    folder.mkdir()
    (folder / "get-token").touch(0o644)
    plugin.failure(BadConfiguration)
    (folder / "get-token").chmod(0o755)
    plugin.settings()
    assert plugin.ran[0].path == f"{folder}/get-token"


def test_the_older_version_needs_no_mode(plugin):
    del plugin.entry["interactiveMode"]
    assert "exec.interactiveMode is none of Never, IfAvailable, Always" in plugin.failure(BadConfiguration)
    plugin.entry["apiVersion"] = BETA
    plugin.printed = answer(BETA, token="x")  # noqa: S106 - not a secret
    plugin.settings()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "exec.apiVersion is 'client.authentication"),
        ({"command": None}, "exec.command is missing"),
        ({"interactiveMode": "Always"}, "wants a terminal (interactiveMode Always), and there is none here"),
        ({"interactiveMode": "Sometimes"}, "exec.interactiveMode is none of Never, IfAvailable, Always"),
        ({"provideClusterInfo": "yes"}, "provideClusterInfo is neither true nor false"),
        ({"args": "a"}, "args is not a list of texts"),
        ({"env": ["a"]}, "env is not a list of maps"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_is(plugin, change, said):
    plugin.entry |= change
    with pytest.raises(BadConfiguration) as caught:
        plugin.settings()
    assert said in str(caught.value)
    assert str(plugin.folder / "config") in str(caught.value)
    assert not plugin.ran


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (b"", "its answer is not an ExecCredential"),
        (b"\xff", "its answer is not an ExecCredential"),
        (b"[]", "its answer is not an ExecCredential"),
        (b'{"kind":"planted-secret"}', "its answer is not an ExecCredential"),
        (answer(BETA, token=PLANTED), f"its answer is not of version {V1}, which is configured"),
        (answer(), "its answer has neither a token nor a certificate with its key"),
        (answer(clientKeyData=PLANTED), "its answer has a certificate or a key, not both"),
        (answer(token=f"{PLANTED} x"), "the token of the exec plugin: the token has characters that no token has"),
        (answer(token=PLANTED).replace(b'"token": "planted-secret"', b'"token": ["planted-secret"]'), "not a text"),
        (answer(token=PLANTED, expirationTimestamp="soon"), "soon"),
    ],
)
def test_an_answer_that_is_none_is_refused(plugin, printed, said):
    plugin.printed = printed
    assert said in plugin.failure(BadConfiguration)


@pytest.mark.parametrize(("status", "said"), [(2 << 8, "exit status 2"), (9, "signal 9")])
def test_a_plugin_that_has_no_credentials_now_may_have_some_later(plugin, status, said):
    plugin.status, plugin.printed = status, PLANTED.encode()
    assert plugin.failure(Unavailable).endswith(f"/get-token gave no credentials: it ended with {said}")


def test_a_plugin_that_cannot_be_started_is_named(plugin):
    def run(program: Program, seconds: float) -> tuple[int, bytes]:
        raise OSError(13, "Permission denied")

    plugin.run = run
    assert plugin.failure(BadConfiguration).endswith("/get-token: Permission denied")


def test_the_plugin_is_part_of_what_is_compared(plugin, tmp_path):
    """Two clients with the same plugin share a connection, for which it runs once."""
    plugin.settings()
    first, second = (load_kubeconfig([str(tmp_path / "config")], "", lambda seconds: None)[1] for _ in range(2))
    assert first.exec == second.exec
