"""The operator command on etcd: by its environment, and by calicoctl's configuration file."""

from __future__ import annotations

import json

import pytest

from entrypoints.tortie import main as operator
from services.etcd import Authority, Etcd

POOL = "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: p}\nspec: {cidr: 10.9.0.0/16, blockSize: 28}\n"
HEAD = "apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nmetadata:\nspec:\n"


@pytest.fixture
def tortie(capsys):
    def run(*arguments, **environment):
        code = operator.main(arguments, environment)
        captured = capsys.readouterr()
        assert (code, captured.err) == (0, ""), captured
        return captured.out

    return run


def check_story(tortie, etcd, tmp_path, *options, **environment):
    """Make a cluster, add a pool, look at it, delete it."""
    assert "made " in tortie("init", "--pool", "10.8.0.0/16", "--node", "node-a", *options, **environment)
    (tmp_path / "pool.yaml").write_text(POOL)
    tortie("apply", "-f", str(tmp_path / "pool.yaml"), *options, **environment)
    stored = json.loads(etcd.texts()["/calico/resources/v3/projectcalico.org/ippools/p"])
    assert stored["spec"]["blockSize"] == 28
    shown = json.loads(tortie("get", "ippool", "p", "-o", "json", *options, **environment))
    assert shown["metadata"]["uid"] == stored["metadata"]["uid"]
    tortie("delete", "ippool", "p", *options, **environment)
    assert "/calico/resources/v3/projectcalico.org/ippools/p" not in etcd.texts()


def test_by_the_environment(tortie, clean, tmp_path):
    check_story(tortie, clean, tmp_path, ETCD_ENDPOINTS=clean.url)


def test_by_a_configuration_file_with_users_and_certificates_in_it(tortie, tmp_path):
    authority = Authority(tmp_path / "authority")
    with Etcd(tls=authority) as etcd:
        inline = "".join(
            f"  {member}: |\n" + "".join(f"    {line}\n" for line in path.read_text().splitlines())
            for member, path in (("etcdCACert", authority.ca), ("etcdCert", etcd.cert), ("etcdKey", etcd.key))
        )
        config = tmp_path / "calicoctl.cfg"
        config.write_text(f"{HEAD}  datastoreType: etcdv3\n  etcdEndpoints: {etcd.url}\n{inline}")
        check_story(tortie, etcd, tmp_path, "--config", str(config))


def test_by_a_configuration_file_with_a_password(tortie, tmp_path):
    with Etcd() as etcd:
        etcd.require_users(root="r00t", operator="p")
        config = tmp_path / "calicoctl.cfg"
        config.write_text(f"{HEAD}  etcdEndpoints: {etcd.url}\n  etcdUsername: operator\n  etcdPassword: p\n")
        check_story(tortie, etcd, tmp_path, "--config", str(config))
