"""Which datastore `tortie` works on: calicoctl's configuration file, the environment, the command line."""

from __future__ import annotations

import pytest

from entrypoints.tortie import main as operator
from entrypoints.tortie.client_config import client_config
from entrypoints.tortie.manifest_files import BadFile
from entrypoints.wiring.container import Container

ABSENT = "/nonexistent/calicoctl.cfg"
HEAD = "apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nmetadata:\n"


@pytest.fixture
def config(tmp_path):
    """Writes a file with this spec; its path."""

    def write(spec, head=HEAD):
        path = tmp_path / "calicoctl.cfg"
        path.write_text(f"{head}spec:\n  {spec}\n" if spec is not None else head)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("environment", "type"),
    [
        ({}, "sqlite"),
        ({"PATH": "/bin"}, "sqlite"),
        ({"DATASTORE_TYPE": "etcdv3"}, "etcdv3"),
        ({"CALICO_DATASTORE_TYPE": "etcdv3"}, None),
        ({"ETCD_ENDPOINTS": "http://a:1"}, None),
        ({"CALICO_ETCD_ENDPOINTS": "http://a:1"}, None),
    ],
)
def test_without_a_file_the_environment_says_or_the_embedded_datastore_is_meant(environment, type):
    chosen = client_config(environment, default=ABSENT)
    assert chosen.environment.get("DATASTORE_TYPE") == type
    assert chosen.inline == {}


def test_a_file_settles_it_alone(config):
    """As with calicoctl, no variable about the datastore counts beside it."""
    path = config("etcdEndpoints: http://file:1\n  etcdUsername: u\n  etcdPassword: 1234")
    before = {
        "CALICO_ETCD_ENDPOINTS": "http://env:1",
        "ETCD_KEY_FILE": "/k",
        "DATASTORE_TYPE": "sqlite",
        "NODENAME": "n",
    }
    assert client_config(before, path).environment == {
        "ETCD_ENDPOINTS": "http://file:1",
        "ETCD_USERNAME": "u",
        "ETCD_PASSWORD": "1234",
        "NODENAME": "n",
    }


def test_the_usual_file_is_read_where_it_is(config):
    assert client_config({}, default=config("etcdEndpoints: http://a:1")).environment["ETCD_ENDPOINTS"] == "http://a:1"


def test_certificates_may_stand_in_the_file(config):
    chosen = client_config({}, config("etcdEndpoints: https://a:1\n  etcdCACert: |\n    line 1\n    line 2"))
    assert chosen.inline == {"etcdCACert": "line 1\nline 2\n"}


def test_empty_members_and_an_empty_spec_say_nothing(config):
    assert client_config({}, config("etcdEndpoints: http://a:1\n  etcdKeyFile:\n  etcdCertFile: ''")).environment == {
        "ETCD_ENDPOINTS": "http://a:1"
    }
    assert client_config({}, config(None)).environment == {}


@pytest.mark.parametrize(
    ("spec", "head", "fault"),
    [
        ("etcdEndpoint: x", HEAD, "unknown member etcdEndpoint"),
        ("etcdEndpoints: [a]", HEAD, "spec.etcdEndpoints must be a text"),
        ("x: y", HEAD.replace("CalicoAPIConfig", "Node"), "kind CalicoAPIConfig of apiVersion"),
        ("x: y", HEAD.replace("org/v3", "org/v1"), "kind CalicoAPIConfig of apiVersion"),
        ("- a", HEAD, "spec must have members"),
        (None, HEAD + "extra: 1\n", "unknown member extra"),
        (None, HEAD + "5: 1\n~: 2\nextra: 1\n", "unknown member 5"),
        (None, "- a\n", "one document with kind CalicoAPIConfig"),
        (None, "", "one document with kind CalicoAPIConfig"),
        (None, HEAD + "---\n" + HEAD, "one document with kind CalicoAPIConfig"),
        ("etcdPassword: [planted-secret", HEAD, "neither YAML nor JSON"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_no_secret_of_it_shown(config, spec, head, fault):
    path = config(spec, head)
    with pytest.raises(BadFile) as caught:
        client_config({}, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert fault in str(caught.value)
    assert "planted" not in str(caught.value)


def test_a_file_that_was_named_and_is_not_there_is_an_error():
    with pytest.raises(BadFile, match="No such file or directory"):
        client_config({}, ABSENT)


def run(*arguments, environment=None):
    container = Container()
    return operator.run(arguments, environment or {}, container), container


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_option_may_stand_before_and_after_the_command(config, capsys, place):
    path = config("datastoreType: etcdv3")
    option, command = ("--config", path), ("get", "nodes")
    code, _ = run(*(option + command if place == "before" else command + option))
    assert code == 1
    assert capsys.readouterr().err.startswith("Error: no etcd endpoints specified; set ")


def test_a_path_on_the_command_line_wins_over_the_environment(tmp_path, capsys):
    code, _ = run(
        "--datastore-path", str(tmp_path / "d.db"), "get", "nodes", environment={"ETCD_ENDPOINTS": "http://a:1"}
    )
    assert code == 1
    assert "d.db: no such file" in capsys.readouterr().err


def test_two_datastores_on_one_command_line_are_not_understood(config, capsys):
    code, _ = run("--config", config("datastoreType: etcdv3"), "--datastore-path", "/d.db", "get", "nodes")
    assert code == 2
    assert "give one of them" in capsys.readouterr().err


def test_the_version_needs_no_datastore(capsys):
    assert run("version", "--config", ABSENT)[0] == 0


def test_inline_certificates_reach_the_datastore(config, capsys):
    path = config("etcdEndpoints: https://a:1\n  etcdCACert: planted-secret")
    code, container = run("get", "nodes", "-c", path)
    assert code == 1
    assert container.inline() == {"etcdCACert": "planted-secret"}
    assert capsys.readouterr().err == "Error: etcdCACert: no certificate in PEM format in it\n"
