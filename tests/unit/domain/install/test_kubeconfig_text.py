"""The plugins' kubeconfig, by each of its writers, to the octet."""

from __future__ import annotations

import base64

import pytest
import yaml

from domain.install.kubeconfig import (
    BadKubeconfigValue,
    KubeconfigCluster,
    installed_kubeconfig,
    renewed_kubeconfig,
    service_url,
)

CA = b"my-ca-data"
CLUSTER = KubeconfigCluster("https://10.96.0.1:443", CA)
INSTALLED = """\
# Kubeconfig file for Calico CNI plugin.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://10.96.0.1:443
    certificate-authority-data: bXktY2EtZGF0YQ==
users:
- name: calico
  user:
    token: my-token
contexts:
- name: calico-context
  context:
    cluster: local
    user: calico
current-context: calico-context
"""
BOTH = pytest.mark.parametrize("write", [installed_kubeconfig, renewed_kubeconfig])


def test_the_installers_text():
    """INST-023"""
    assert installed_kubeconfig(CLUSTER, "my-token") == INSTALLED


def test_the_refreshers_text_has_another_comment_a_quoted_authority_and_no_line_end():
    expected = (
        INSTALLED.replace("plugin.\n", "plugin. Installed by calico/node.\n")
        .replace("bXktY2EtZGF0YQ==", '"bXktY2EtZGF0YQ=="')
        .removesuffix("\n")
    )
    assert renewed_kubeconfig(CLUSTER, "my-token") == expected


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:6443"),
        ("2001:db8::1", "https://[2001:db8::1]:6443"),
        ("[2001:db8::1]", "https://[2001:db8::1]:6443"),
        ("api.example", "https://api.example:6443"),
    ],
)
def test_addresses_of_six_get_brackets(host, url):
    """INST-023 INST-024"""
    assert service_url(host, "6443") == url
    assert service_url(host, "6443", "http") == url.replace("https", "http")


@BOTH
def test_without_verification_no_authority_stands_in_it(write):
    """INST-025"""
    text = write(CLUSTER.replace(insecure=True), "my-token")
    assert "\n    insecure-skip-tls-verify: true\n" in text
    assert "certificate-authority" not in text


@BOTH
@pytest.mark.parametrize("server", ["https://[2001:db8::1]:6443", "http://127.0.0.1:8080", "https://k/prefix"])
def test_a_yaml_reader_finds_what_was_put_in(write, server):
    found = yaml.safe_load(write(KubeconfigCluster(server, bytes(range(256))), " aA0-_.b\n"))
    (cluster,), (user,), (context,) = found["clusters"], found["users"], found["contexts"]
    assert cluster["cluster"]["server"] == server
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == bytes(range(256))
    assert user["user"] == {"token": "aA0-_.b"}
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert found["current-context"] == context["name"]


@BOTH
def test_without_an_authority_the_systems_count(write):
    found = yaml.safe_load(write(KubeconfigCluster("https://k"), "t"))
    assert not found["clusters"][0]["cluster"]["certificate-authority-data"]


@BOTH
@pytest.mark.parametrize("token", ["", " \n", "a\nusers: []", "a b", "a #b", "é", "'a", "{a", "a:", "\x7f"])
def test_a_token_that_would_leave_its_line_is_refused_and_not_shown(write, token):
    with pytest.raises(BadKubeconfigValue) as refused:
        write(CLUSTER, token)
    assert "token" in str(refused.value)
    assert not token.strip() or token.strip() not in str(refused.value).replace("service account's token", "")


@BOTH
@pytest.mark.parametrize("server", ["", "0", "https://k\n", "https://k k", "https://k#k", "- k", "https:"])
def test_a_url_that_would_leave_its_line_is_refused(write, server):
    with pytest.raises(BadKubeconfigValue, match="URL"):
        write(KubeconfigCluster(server), "t")
