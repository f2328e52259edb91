"""The network configuration that is installed: placeholders, and what is accepted."""

from __future__ import annotations

import pytest

from domain.install.errors import CannotInstall
from domain.install.settings import InstallSettings, read_settings
from domain.install.template import BUILT_IN, Template
from domain.json_text import parse

FINAL = """\
{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "info",
      "log_file_path": "/var/log/calico/cni/cni.log",
      "datastore_type": "kubernetes",
      "nodename": "my-node",
      "mtu": 1500,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"},
      "require_mtu_file": false,
      "calico_api_group": "crd.projectcalico.org/v1"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}"""
SETTINGS = read_settings({"KUBERNETES_NODE_NAME": "my-node"}, "host")


def settings(**environ: str) -> InstallSettings:
    return read_settings(environ, "host")


def rendered(text: str, token: str = "", tls: tuple[str, ...] = (), **environ: str) -> str:
    return Template(text).render(settings(**environ), token, tls).text


def test_inst_002_the_built_in_one_is_the_originals_to_the_octet() -> None:
    assert Template().render(SETTINGS, "", ()).text == FINAL
    assert Template().unknown(read_settings({}, "n")) == ()


def test_every_placeholder_has_its_value() -> None:
    environ = {
        "LOG_LEVEL": "a",
        "LOG_FILE_PATH": "b",
        "LOG_FILE_MAX_SIZE": "c",
        "LOG_FILE_MAX_AGE": "d",
        "LOG_FILE_MAX_COUNT": "e",
        "DATASTORE_TYPE": "f",
        "KUBERNETES_NODE_NAME": "g",
        "CNI_MTU": "h",
        "KUBERNETES_SERVICE_HOST": "i",
        "KUBERNETES_SERVICE_PORT": "j",
        "CALICO_API_GROUP": "k",
        "ETCD_ENDPOINTS": "l",
        "ETCD_DISCOVERY_SRV": "m",
        "REQUIRE_MTU_FILE": "n",
        "LOG_FORMAT": "o",
        "METRICS_DIR": "p",
    }
    names = (
        *environ,
        "KUBECONFIG_FILEPATH",
        "SERVICEACCOUNT_TOKEN",
        "ETCD_CERT_FILE",
        "ETCD_CA_CERT_FILE",
        "ETCD_KEY_FILE",
    )
    text = rendered(
        '{"a": "' + " ".join([f"__{name}__" for name in names]) + '"}',
        "secret",
        ("etcd-cert", "etcd-ca", "etcd-key"),
        CNI_NET_DIR="/net",
        **environ,
    )
    assert parse(text) == {
        "a": "a b c d e f g h i j k l m n o p /net/calico-kubeconfig secret"
        " /net/calico-tls/etcd-cert /net/calico-tls/etcd-ca /net/calico-tls/etcd-key"
    }


def test_a_file_that_is_not_installed_has_no_path() -> None:
    assert rendered('{"a": "__ETCD_CERT_FILE__", "b": "__ETCD_KEY_FILE__"}', "", ("etcd-key",)) == (
        '{"a": "", "b": "/etc/cni/net.d/calico-tls/etcd-key"}'
    )


def test_a_value_may_bring_a_later_placeholder_in_and_no_earlier_one() -> None:
    assert rendered('{"a": "__LOG_LEVEL__"}', LOG_LEVEL="__CNI_MTU__") == '{"a": "1500"}'
    assert rendered('{"a": "__CNI_MTU__"}', CNI_MTU="__LOG_LEVEL__") == '{"a": "__LOG_LEVEL__"}'


def test_an_unknown_placeholder_stays_and_is_named_once() -> None:
    template = Template('{"a": "__NOBODY__ __CNI_MTU__ __NOBODY__ __X_1__ ____ __low__"}')
    assert template.unknown(read_settings({}, "n")) == ("__NOBODY__", "__X_1__")
    assert "__NOBODY__" in template.render(SETTINGS, "", ()).text


@pytest.mark.parametrize("text", ["{}", ' {"a": 1}\n'])
def test_any_object_is_accepted_as_it_is(text: str) -> None:
    assert rendered(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"missing quote}', "unexpected end of JSON input"),
        ("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ('"text"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ("null", "json: cannot unmarshal null into Go value of type map[string]interface {}"),
        ("", "unexpected end of JSON input"),
    ],
)
def test_inst_010_what_is_no_object_is_refused_with_its_origin(text: str, why: str) -> None:
    with pytest.raises(CannotInstall) as refused:
        Template(text, "CNI_NETWORK_CONFIG").render(SETTINGS, "", ())
    assert str(refused.value) == f"CNI config is not valid JSON: {why}; it was made from CNI_NETWORK_CONFIG"


@pytest.mark.parametrize("kind", ["", "etcdv3", "kubernetes", "sqlite"])
def test_each_datastore_that_the_plugin_knows_is_installed(kind: str) -> None:
    text = f'{{"plugins": [{{"type": "calico", "datastore_type": "{kind}"}}, {{"type": "x", "datastore_type": "y"}}]}}'
    assert rendered(text) == text


def test_a_datastore_that_no_call_could_use_is_refused_at_once() -> None:
    with pytest.raises(CannotInstall) as refused:
        rendered('{"plugins": [{"type": "calico", "datastore_type": "kubernets"}]}')
    assert str(refused.value).startswith(
        "DATASTORE_TYPE: no such datastore: kubernets; say kubernetes, etcdv3 or sqlite"
    )


def test_a_refusal_does_not_show_the_token() -> None:
    with pytest.raises(CannotInstall) as refused:
        rendered('{"a": "__SERVICEACCOUNT_TOKEN__"}', 'planted"token')
    assert "planted" not in str(refused.value)
    assert "token" not in str(refused.value)


def probes(text: str) -> list[object]:
    def place_of(path: str) -> str:
        return path.replace("/etc/cni/net.d/", "/stage/")

    return [parse(probe) for probe in Template(text).render(SETTINGS, "", ()).probes(place_of)]


def test_each_plugin_of_ours_is_probed_as_a_runtime_would_call_it() -> None:
    (probe,) = probes(BUILT_IN)
    assert isinstance(probe, dict)
    assert (probe["name"], probe["cniVersion"], probe["type"]) == ("k8s-pod-network", "1.0.0", "calico")
    assert probe["kubernetes"] == {"kubeconfig": "/stage/calico-kubeconfig"}
    assert probes('{"type": "calico", "a": ["/etc/cni/net.d/x", 1]}') == [{"type": "calico", "a": ["/stage/x", 1]}]


@pytest.mark.parametrize("text", ["{}", '{"plugins": [{"type": "bridge"}, 7]}', '{"plugins": {}, "type": "bridge"}'])
def test_other_plugins_are_not_probed(text: str) -> None:
    assert probes(text) == []
