"""Files that others name: whatever a name leads to, reading it neither waits nor takes memory without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.etcdv3.discovery import name_servers
from adapters.etcdv3.settings import read_settings
from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.settings import read_datastore_settings
from adapters.regular_file import LARGEST, read_bounded, read_regular
from adapters.wire.tls import TlsSettings, make_context
from ports.errors import BadConfiguration, Unavailable


@pytest.fixture(params=["device", "pipe", "folder", "large"])
def trap(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A path that must not be read, and why."""
    path = tmp_path / request.param
    if request.param == "device":
        return "/dev/zero", "not a regular file"
    if request.param == "pipe":
        os.mkfifo(path)
        return str(path), "not a regular file"
    if request.param == "folder":
        path.mkdir()
        return str(path), "Is a directory"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    return str(path), "larger than 4 MiB"


def test_what_is_no_bounded_regular_file_is_refused_without_being_read(trap: tuple[str, str]) -> None:
    path, why = trap
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match=why):
        read_regular(path)
    assert os.listdir("/proc/self/fd") == before


def test_links_to_regular_files_are_followed(tmp_path: Path) -> None:
    """Kubernetes mounts secrets that way."""
    (tmp_path / "..data").symlink_to(tmp_path)
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "token").symlink_to("..data/real")
    assert read_regular(str(tmp_path / "token")) == b"x"


def test_the_largest_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * LARGEST)
    assert len(read_regular(str(tmp_path / "f"))) == LARGEST


def test_a_file_whose_size_the_kernel_does_not_tell_is_read_all_the_same() -> None:
    assert os.stat("/proc/self/status").st_size == 0
    assert read_regular("/proc/self/status").startswith(b"Name:")
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular("/proc/self/status", 10)


def test_an_open_pipe_is_read_up_to_the_limit() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * 100)
    os.close(writing)
    try:
        with pytest.raises(OSError, match="larger than"):
            read_bounded(reading, 99)
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a\0b", "such a path cannot exist"),
        ("", "No such file or directory"),
        ("/no/such", "No such file or directory"),
    ],
)
def test_a_path_to_nothing_is_an_os_error_like_any_other(path: str, why: str) -> None:
    with pytest.raises(OSError, match=why):
        read_regular(path)


# --- every setting that names a file -------------------------------------------------------------------------------


CERT = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("name", ["ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"])
def test_etcds_settings_name_the_file_that_is_none(name: str, trap: tuple[str, str], tmp_path: Path) -> None:
    path, why = trap
    settings = {"ETCD_ENDPOINTS": "https://a:1", name: path}
    with pytest.raises(BadConfiguration) as caught:
        read_settings(lambda wanted: settings.get(wanted, ""), {})
    assert str(caught.value) == f"{name.lower()} {path}: {why}"


def test_the_resolvers_configuration_of_etcds_discovery_too(trap: tuple[str, str]) -> None:
    path, why = trap
    with pytest.raises(Unavailable, match=f"^{path}: {why}$"):
        name_servers(path)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("KUBECONFIG", "kubeconfig"),
        ("K8S_CA_FILE", "certificate-authority"),
        ("K8S_CERT_FILE", "client-certificate"),
        ("K8S_KEY_FILE", "client-key"),
    ],
)
def test_kubernetes_settings_name_the_file_that_is_none(name: str, shown: str, trap: tuple[str, str]) -> None:
    path, why = trap
    settings = {"K8S_API_ENDPOINT": "https://a:1", name: path}
    outside = Outside({}, lambda: 0, lambda seconds: None, lambda program, seconds: (1, b""))
    with pytest.raises(BadConfiguration) as caught:
        read_datastore_settings(lambda wanted: settings.get(wanted, ""), outside, "")
    assert str(caught.value) == f"{shown} {path}: {why}"


@pytest.mark.parametrize("member", ["certificate-authority", "client-certificate", "client-key", "tokenFile"])
def test_so_does_a_kubeconfig_that_names_others(member: str, trap: tuple[str, str], tmp_path: Path) -> None:
    path, why = trap
    config = tmp_path / "config"
    of_cluster, of_user = (
        (f", {member}: {path}", "") if member == "certificate-authority" else ("", f"{member}: {path}")
    )
    config.write_text(
        f"clusters: [{{name: c, cluster: {{server: 'https://a:1'{of_cluster}}}}}]\n"
        f"users: [{{name: u, user: {{{of_user}}}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    outside = Outside({}, lambda: 0, lambda seconds: None, lambda program, seconds: (1, b""))
    with pytest.raises(BadConfiguration, match=f"{path}: {why}$"):
        read_datastore_settings(lambda wanted: str(config) if wanted == "KUBECONFIG" else "", outside, "")


def test_authorities_of_the_environment_that_are_no_file_are_passed_over(
    trap: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", trap[0])
    assert make_context(TlsSettings())
