"""The table of what leads to a datastore fits those who read it."""

from __future__ import annotations

import pytest

from domain.cni.datastores import ANY, KUBERNETES, SETTINGS, inherited, kind_that_needs, said_at
from domain.cni.netconf import KubernetesSettings, NetConf


@pytest.mark.parametrize("column", [1, 2, 3], ids=["place", "variable", "member"])
def test_a_setting_stands_in_one_row(column):
    said = [row[column] for row in SETTINGS if row[column]]
    assert len(said) == len(set(said))


def test_each_place_is_one_of_the_configuration():
    assert not any(said_at(NetConf(), place) for _, place, *_ in SETTINGS if place)


def test_what_the_configuration_says_is_inherited_and_nothing_else():
    netconf = NetConf(datastore_type="etcdv3", sqlite_path="/d", qps=7, kubernetes=KubernetesSettings("/k"))
    assert inherited(netconf) == {"DATASTORE_TYPE": "etcdv3", "K8S_CLIENT_QPS": "7", "KUBECONFIG": "/k"}


@pytest.mark.parametrize(("place", "kind"), [(("policy", "k8s_api_root"), KUBERNETES), (("datastore_type",), ANY)])
def test_for_whom_a_setting_matters(place, kind):
    assert kind_that_needs(place) == kind


def test_what_is_no_setting_matters_to_none_in_particular():
    assert kind_that_needs(("mtu",)) == ANY
