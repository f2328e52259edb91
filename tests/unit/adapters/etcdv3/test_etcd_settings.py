"""Settings for etcd: what the original's variables mean, and what is wrong with them said at once (C16)."""

from __future__ import annotations

import os

import pytest

from adapters.etcdv3.settings import EtcdSettings, read_settings
from adapters.etcdv3.transport import EtcdTls
from ports.errors import BadConfiguration, Refused

CERT = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMIIB\n-----END EC PRIVATE KEY-----\n"


def read(inline=None, **settings):
    settings = {"ETCD_ENDPOINTS": "https://a:1"} | settings
    return read_settings(lambda name: str(settings.get(name, "")), inline or {})


@pytest.fixture
def files(tmp_path):
    texts = {"ETCD_CA_CERT_FILE": CERT, "ETCD_CERT_FILE": CERT + "# client\n", "ETCD_KEY_FILE": KEY}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_endpoints_and_a_discovery_domain_exclude_each_other():
    """DATASTORE C.1, with the original's words."""
    with pytest.raises(Refused) as caught:
        read(ETCD_DISCOVERY_SRV="example")
    assert str(caught.value) == (
        'multiple discovery or bootstrap options specified, use either "etcdEndpoints" or "etcdDiscoverySrv"'
    )


@pytest.mark.parametrize("empty", ["", " ", ","])
def test_without_either_there_is_no_etcd(empty):
    with pytest.raises(Refused) as caught:
        read(ETCD_ENDPOINTS=empty)
    assert str(caught.value) == "no etcd endpoints specified"
    assert "ETCD_ENDPOINTS" in caught.value.details


def test_a_discovery_domain_alone_will_do():
    settings = read(ETCD_ENDPOINTS="", ETCD_DISCOVERY_SRV="example")
    assert (settings.endpoints, settings.discovery) == ((), "example")
    assert str(settings) == "the etcd of SRV domain example"


@pytest.mark.parametrize(
    ("user", "password", "expected"), [("u", "p", ("u", "p")), ("u", "", ("", "")), ("", "p", ("", ""))]
)
def test_user_and_password_count_together(user, password, expected):
    settings = read(ETCD_USERNAME=user, ETCD_PASSWORD=password)
    assert (settings.user, settings.password) == expected


def test_settings_never_show_their_secrets(files):
    settings = read(ETCD_USERNAME="u", ETCD_PASSWORD="planted-secret", **files)  # noqa: S106 - planted
    for shown in (str(settings), repr(settings), repr(settings.tls)):
        assert "planted-secret" not in shown
        assert "PRIVATE" not in shown


def test_files_are_read(files):
    tls = read(**files).tls
    assert tls == EtcdTls(CERT.encode(), (CERT + "# client\n").encode(), KEY.encode())


def test_c16_empty_settings_that_an_installer_left_are_absent():
    assert read(ETCD_CA_CERT_FILE="", ETCD_CERT_FILE=" ", ETCD_KEY_FILE="").tls == EtcdTls()


@pytest.mark.parametrize("name", ["ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"])
def test_c16_a_missing_file_is_named(files, name):
    with pytest.raises(BadConfiguration) as caught:
        read(**files | {name: "/nope"})
    assert str(caught.value) == f"{name.lower()} /nope: No such file or directory"


@pytest.mark.parametrize("name", ["ETCD_CA_CERT_FILE", "ETCD_CERT_FILE", "ETCD_KEY_FILE"])
@pytest.mark.parametrize("content", ["", "\n", "not PEM", KEY[:20]])
def test_a_file_of_another_kind_is_named(files, name, content):
    files[name].write_text(content)
    with pytest.raises(BadConfiguration) as caught:
        read(**files)
    assert str(files[name]) in str(caught.value)


@pytest.mark.parametrize("content", ["", "not PEM"])
def test_without_tls_it_does_not_matter_what_an_authoritys_file_holds(files, content):
    """The original looks into it only where it is used; one that is missing it refuses."""
    files["ETCD_CA_CERT_FILE"].write_text(content)
    settings = {name: str(path) for name, path in files.items()} | {"ETCD_ENDPOINTS": "http://a:1"}
    told = []
    tls = read_settings(lambda name: settings.get(name, ""), {}, told.append).tls
    assert (tls.ca, bool(tls.cert)) == (b"", True)
    (warning,) = told
    assert warning.startswith(f"etcd_ca_cert_file {files['ETCD_CA_CERT_FILE']}: no certificate in PEM format in it")
    with pytest.raises(BadConfiguration, match="No such file"):
        read(**files | {"ETCD_CA_CERT_FILE": "/nope", "ETCD_ENDPOINTS": "http://a:1"})


def test_a_folder_and_a_file_that_may_not_be_read_are_named(files, tmp_path):
    with pytest.raises(BadConfiguration, match=rf"etcd_ca_cert_file {tmp_path}: Is a directory"):
        read(**files | {"ETCD_CA_CERT_FILE": tmp_path})
    if os.geteuid() != 0:
        files["ETCD_KEY_FILE"].chmod(0)
        with pytest.raises(BadConfiguration, match="Permission denied"):
            read(**files)


def test_certificate_and_key_change_places(files):
    swapped = {"ETCD_CERT_FILE": files["ETCD_KEY_FILE"], "ETCD_KEY_FILE": files["ETCD_CERT_FILE"]}
    with pytest.raises(BadConfiguration, match="no certificate in PEM format in it"):
        read(**files | swapped)


@pytest.mark.parametrize(
    ("given", "absent"), [("ETCD_CERT_FILE", "ETCD_KEY_FILE"), ("ETCD_KEY_FILE", "ETCD_CERT_FILE")]
)
def test_a_certificate_needs_its_key(files, given, absent):
    with pytest.raises(BadConfiguration, match=f"{given.lower()} is set but {absent.lower()} is not"):
        read(**files | {absent: ""})


def test_certificates_may_stand_in_a_configuration_file_itself():
    inline = {"etcdCACert": CERT, "etcdCert": CERT, "etcdKey": KEY}
    assert read(inline).tls == EtcdTls(CERT.encode(), CERT.encode(), KEY.encode())
    with pytest.raises(BadConfiguration, match="etcdCert is set but etcdKey is not"):
        read(inline | {"etcdKey": ""})
    with pytest.raises(BadConfiguration, match="etcdKey: no private key in PEM format"):
        read(inline | {"etcdKey": CERT})


def test_inline_certificates_and_files_do_not_mix(files):
    with pytest.raises(BadConfiguration, match="cannot mix inline certificate-key and certificate / key files"):
        read({"etcdCACert": CERT}, **files)


@pytest.mark.parametrize(("version", "only_newest"), [("", False), ("1.2", False), ("1.3", True)])
def test_the_oldest_version_of_tls_can_be_set(version, only_newest):
    assert read(TLS_MIN_VERSION=version).tls.only_newest is only_newest


def test_an_unknown_version_of_tls_is_refused():
    with pytest.raises(BadConfiguration, match=r"TLS_MIN_VERSION '1.1' is neither 1.2 nor 1.3"):
        read(TLS_MIN_VERSION="1.1")


def test_settings_are_a_value():
    assert read() == EtcdSettings(read().endpoints)
