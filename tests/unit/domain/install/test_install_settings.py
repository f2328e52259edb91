"""What an installer's environment says."""

from __future__ import annotations

import pytest

from domain.install.errors import CannotInstall
from domain.install.places import Places, below, plugins_to_copy
from domain.install.settings import read_settings


def test_without_variables_everything_is_the_originals_default() -> None:
    settings = read_settings({}, " Node-1.Example \n")
    assert settings.substituted == {
        "LOG_LEVEL": "info",
        "LOG_FILE_PATH": "/var/log/calico/cni/cni.log",
        "LOG_FILE_MAX_SIZE": "100",
        "LOG_FILE_MAX_AGE": "30",
        "LOG_FILE_MAX_COUNT": "10",
        "DATASTORE_TYPE": "kubernetes",
        "KUBERNETES_NODE_NAME": "node-1.example",
        "CNI_MTU": "1500",
        "KUBERNETES_SERVICE_HOST": "",
        "KUBERNETES_SERVICE_PORT": "",
        "CALICO_API_GROUP": "crd.projectcalico.org/v1",
        "ETCD_ENDPOINTS": "",
        "ETCD_DISCOVERY_SRV": "",
        "REQUIRE_MTU_FILE": "false",
        "LOG_FORMAT": "text",
        "METRICS_DIR": "",
    }
    assert (settings.host_net_dir, settings.conf_name, settings.old_conf_name) == (
        "/etc/cni/net.d",
        "10-calico.conflist",
        "10-calico.conflist",
    )
    assert (settings.conf_mode, settings.tls_assets_dir, settings.account) == (
        0o600,
        "/calico-secrets",
        "calico-cni-plugin",
    )
    assert (settings.update, settings.sleep, settings.skip_tls_verify, settings.wait_for_datastore) == (
        True,
        True,
        False,
        None,
    )


def test_a_variable_that_is_set_and_empty_is_empty() -> None:
    names = ("LOG_LEVEL", "KUBERNETES_NODE_NAME", "CNI_MTU", "CNI_NET_DIR", "TLS_ASSETS_DIR")
    settings = read_settings(dict.fromkeys(names, ""), "node")
    assert [settings.substituted[name] for name in names[:3]] == ["", "", ""]
    assert (settings.host_net_dir, settings.tls_assets_dir) == ("", "")


def test_some_empty_ones_are_the_default_all_the_same() -> None:
    names = ("KUBERNETES_SERVICE_PROTOCOL", "CALICO_CNI_SERVICE_ACCOUNT", "SKIP_CNI_BINARIES", "CNI_WAIT_FOR_DATASTORE")
    settings = read_settings(dict.fromkeys(names, ""), "node")
    assert (settings.service_protocol, settings.account) == ("https", "calico-cni-plugin")
    assert (settings.skipped, settings.wait_for_datastore) == ((), None)


@pytest.mark.parametrize("name", ["UPDATE_CNI_BINARIES", "SLEEP", "CNI_WAIT_FOR_DATASTORE"])
def test_words_for_bools_are_gos(name: str) -> None:
    field = {"UPDATE_CNI_BINARIES": "update", "SLEEP": "sleep"}.get(name, "wait_for_datastore")
    for word in ("1", "t", "T", "TRUE", "true", "True"):
        assert getattr(read_settings({name: word}, ""), field) is True
    for word in ("0", "f", "F", "FALSE", "false", "False"):
        assert getattr(read_settings({name: word}, ""), field) is False


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UPDATE_CNI_BINARIES", ""),
        ("SLEEP", ""),
        ("SLEEP", "yes"),
        ("SLEEP", "true "),
        ("CNI_WAIT_FOR_DATASTORE", "maybe"),
        ("CNI_CONF_NAME", ""),
        ("CNI_CONF_NAME", "../passwd"),
        ("CNI_CONF_NAME", ".."),
        ("CNI_OLD_CONF_NAME", "a/b"),
        ("CNI_OLD_CONF_NAME", "."),
        ("TEST_FILE_PERMISSION", ""),
        ("TEST_FILE_PERMISSION", "rw"),
        ("TEST_FILE_PERMISSION", "0o"),
        ("TEST_FILE_PERMISSION", "-600"),
        ("TEST_FILE_PERMISSION", "688"),
        ("TEST_FILE_PERMISSION", "10000"),
        ("CNI_DATASTORE_PROBE_TIMEOUT", "soon"),
        ("CNI_DATASTORE_PROBE_TIMEOUT", "-1s"),
        ("CNI_DATASTORE_PROBE_TIMEOUT", "25h"),
    ],
)
def test_a_mistake_names_the_variable_and_its_text(name: str, text: str) -> None:
    with pytest.raises(CannotInstall) as refused:
        read_settings({name: text}, "node")
    assert str(refused.value).startswith(f'{name}="{text}" is no ')


@pytest.mark.parametrize(
    ("text", "mode"), [("0644", 0o644), ("644", 0o644), ("0o640", 0o640), ("0", 0), ("7777", 0o7777)]
)
def test_a_mode_is_octal(text: str, mode: int) -> None:
    settings = read_settings({"TEST_FILE_PERMISSION": text}, "node")
    assert (settings.conf_mode, settings.conf_mode_text) == (mode, text)


@pytest.mark.parametrize(("text", "seconds"), [("", 10.0), ("0", 0.0), ("30", 30.0), ("1m30s", 90.0), ("250ms", 0.25)])
def test_the_time_for_the_datastore_is_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert read_settings({"CNI_DATASTORE_PROBE_TIMEOUT": text}, "node").probe_timeout == seconds


@pytest.mark.parametrize("variable", ["CNI_CONF_NAME", "CNI_OLD_CONF_NAME"])
@pytest.mark.parametrize("name", ["calico-kubeconfig", "calico-tls", ".record", ".tortie-replaced", ".tortie-1.tmp"])
def test_a_configuration_has_none_of_the_installers_own_names(variable: str, name: str) -> None:
    with pytest.raises(CannotInstall, match=f'{variable}="{name}" is the name of something else'):
        read_settings({variable: name}, "node")


def test_only_true_skips_the_verification_of_certificates() -> None:
    assert read_settings({"SKIP_TLS_VERIFY": "true"}, "").skip_tls_verify
    for text in ("", "1", "True", "false"):
        assert not read_settings({"SKIP_TLS_VERIFY": text}, "").skip_tls_verify


def test_what_is_staged_is_copied_but_for_ourselves_and_what_is_skipped() -> None:
    skipped = read_settings({"SKIP_CNI_BINARIES": "portmap, tuning,calico"}, "").skipped
    assert skipped == ("portmap", " tuning", "calico")
    listed = (".tortie", "bandwidth", "calico", "calico-ipam.exe", "calico-ipam", "install", "install.exe", "portmap")
    listed += ("tuning",)
    assert plugins_to_copy(listed, skipped) == ("bandwidth", "tuning")


def test_places_are_below_a_root() -> None:
    assert below("/host") == below("/host/") == Places()
    assert below("/").net_dir == "/etc/cni/net.d"
    assert below("/mnt").bin_dirs == ("/mnt/opt/cni/bin", "/mnt/secondary-bin-dir")
    assert (Places().kubeconfig, Places().tls_dir) == (
        "/host/etc/cni/net.d/calico-kubeconfig",
        "/host/etc/cni/net.d/calico-tls",
    )
