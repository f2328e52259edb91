"""`tortie doctor` from its command line to what it prints, on a host below a folder and an embedded datastore."""

from __future__ import annotations

import json

import pytest

from adapters.linux.clock import SystemClock
from adapters.sqlite.datastore import SqliteDatastore
from entrypoints.tortie import main as operator
from usecases.initialise_cluster import Wish, initialise_cluster

SECTION = {
    "type": "calico",
    "nodename": "node-a",
    "datastore_type": "sqlite",
    "sqlite_path": "/db/datastore.db",
    "ipam": {"type": "calico-ipam"},
}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "host"
    for folder in ("etc/cni/net.d", "opt/cni/bin", "db"):
        (root / folder).mkdir(parents=True)
    clock = SystemClock()
    store = SqliteDatastore(str(root / "db/datastore.db"), clock, create=True)
    initialise_cluster(store, Wish("node-a", "0" * 32, ("10.0.0.0/16",), {}), clock.deadline(60))
    store.close()
    return root


@pytest.fixture
def doctor(root, capsys):
    def run(*arguments, **environment):
        code = operator.main(("doctor", "--root", str(root), *arguments), environment)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def checks(out):
    return {one["check"]: one for one in json.loads(out)["checks"]}


def configure(root, **members):
    text = json.dumps({"name": "n", "plugins": [{**SECTION, **members}]})
    (root / "etc/cni/net.d/10-calico.conflist").write_text(text)


def test_the_plugins_own_datastore_is_opened_below_the_root(root, doctor):
    """What the environment says of a datastore is not what plugins go by."""
    configure(root)
    _, out, err = doctor("-o", "json", ETCD_ENDPOINTS="http://127.0.0.1:1", CALICO_DATASTORE_TYPE="etcdv3")
    found = checks(out)
    assert err == ""
    assert [found[check]["state"] for check in ("datastore", "node-record", "pools")] == ["ok"] * 3
    assert found["plugins"]["state"] == "error"


def test_lines_have_state_check_and_what_to_do(root, doctor):
    code, out, err = doctor()
    assert (code, err) == (1, "")
    first, *_, summary = out.splitlines()
    assert first.startswith("error    configuration          /etc/cni/net.d has no network configuration → ")
    assert summary.endswith((" errors.", " error."))


@pytest.mark.parametrize("how", ["path", "config"])
def test_a_datastore_of_the_command_line(how, root, tmp_path, doctor):
    database = root / "db/datastore.db"
    config = tmp_path / "calicoctl.cfg"
    config.write_text("kind: CalicoAPIConfig\napiVersion: projectcalico.org/v3\nspec: {datastoreType: sqlite}\n")
    if how == "path":
        _, out, _ = doctor("-o", "json", "--datastore-path", str(database))
    else:
        _, out, _ = doctor("-o", "json", "--config", str(config), TORTIE_SQLITE_PATH=str(database))
    assert checks(out)["datastore"]["seen"].startswith("the one of the command line answers")


def test_a_kubeconfig_is_read_without_being_connected_to(root, doctor):
    configure(root, kubernetes={"kubeconfig": "/etc/kubeconfig"})
    user = '{"username": "u", "password": "p"}'
    text = (
        '{"kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:1"}}], "users": '
        f'[{{"name": "u", "user": {user}}}], "contexts": [{{"name": "x", "context": {{"cluster": "c", "user": "u"}}}}],'
        ' "current-context": "x"}'
    )
    (root / "etc/kubeconfig").write_text(text)
    (root / "etc/kubeconfig").chmod(0o600)
    found = checks(doctor("-o", "json")[1])
    assert (found["kubeconfig"]["state"], found["token"]["state"]) == ("ok", "ok")
    assert "a user and password" in found["token"]["seen"]
    for other, way in (
        ('{"tokenFile": "/t"}', "the token file /t"),
        ('{"client-certificate": "/c", "client-key": "/k"}', "a client certificate"),
        (
            '{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "p", "interactiveMode": "Never"}}',
            "an exec plugin",
        ),
        ("{}", "no credentials"),
    ):
        (root / "etc/kubeconfig").write_text(text.replace(user, other))
        assert way in checks(doctor("-o", "json")[1])["token"]["seen"]


def test_a_folder_may_be_named_as_the_host_has_it_or_as_it_is_mounted(root, doctor):
    (root / "etc/cni/net.d").rename(root / "nets")
    (root / "nets/10-calico.conf").write_text(json.dumps({"name": "n", **SECTION}))
    for folder in ("/nets", "/nets/", str(root / "nets")):
        found = checks(doctor("-o", "json", "--net-dir", folder)[1])
        assert found["configuration"]["seen"] == "/nets/10-calico.conf: network n of calico"


@pytest.mark.parametrize("form", [(), ("-o", "json"), ("-o", "yaml")])
@pytest.mark.parametrize("spoil", ["", "}"])
def test_no_secret_is_shown(root, doctor, form, spoil):
    """In a sound file or a damaged one."""
    planted = "s3cr3t-t0k3n"
    configure(root, policy={"k8s_auth_token": planted}, kubernetes={"kubeconfig": "/etc/kubeconfig"})
    path = root / "etc/cni/net.d/10-calico.conflist"
    path.write_text(path.read_text() + spoil)
    (root / "etc/kubeconfig").write_text(f"users: [{{name: u, user: {{token: {planted}}}}}]{spoil}")
    _, out, err = doctor(*form)
    assert planted not in out + err


def test_warnings_count_if_that_is_wanted(root, doctor):
    """Whatever else this machine is short of."""
    for arguments in ((), ("--strict",)):
        code, out, _ = doctor("-o", "json", *arguments)
        document = json.loads(out)
        bad = document["errors"] + (document["warnings"] if arguments else 0)
        assert code == (1 if bad else 0)


@pytest.mark.parametrize("arguments", [("--root", "host"), ("--net-dir", "x"), ("--bin-dir", "y/z")])
def test_paths_are_absolute(arguments, capsys):
    assert operator.main(("doctor", *arguments), {}) == 2
    err = capsys.readouterr().err
    assert "`tortie help doctor` shows what there is." in err
    assert f"{arguments[1]}: give an absolute path" in err
