"""Names, paths and labels of custom resources are exactly those by which the rest of Calico finds them."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.records.custom_metadata import converted_uid
from adapters.records.custom_names import (
    affinity_labels,
    affinity_selector,
    block_name,
    collection_path,
    hostname_label,
    object_name,
    object_path,
)
from adapters.records.custom_resources import V1, V3
from adapters.records.members import BadRecord
from domain.ipam.address import Cidr
from domain.ipam.block import Owner
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    HandleKey,
    Handles,
    IPAMConfigurationKey,
    IPAMConfigurations,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    IPReservations,
    NodeKey,
    ProfileKey,
    WorkloadEndpointKey,
)
from strategies import cidrs, texts, uids

BLOCK = Cidr.parse("172.16.178.160/29")


@pytest.mark.parametrize(
    ("cidr", "name"),
    [
        ("172.16.178.160/29", "172-16-178-160-29"),
        ("fd00:10:244::40/122", "fd00-10-244--40-122"),
        ("fd00:10:244::/122", "fd00-10-244---122"),
        ("172.16.178.165/29", "172-16-178-160-29"),
    ],
)
def test_a_block_is_named_after_its_canonical_cidr(cidr, name):
    """DATASTORE D.5."""
    assert block_name(Cidr.parse(cidr)) == name


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (AffinityKey(Owner("host", "node1"), BLOCK), "node1-172-16-178-160-29"),
        (AffinityKey(Owner("virtual", "load-balancer"), BLOCK), "load-balancer-172-16-178-160-29"),
        (AffinityKey(Owner("host", "Node1"), BLOCK), "node1-172-16-178-160-29"),
        (HandleKey("k8s-pod-network.9F1C"), "k8s-pod-network.9f1c"),
        (AllocationConfigKey(), "default"),
        (IPAMConfigurationKey("default"), "default"),
        (IPPoolKey("p4"), "p4"),
    ],
)
def test_names_of_the_other_kinds(key, name):
    """DATASTORE D.5."""
    assert object_name(key) == name


def test_a_long_host_name_is_cut_and_told_apart_by_a_hash():
    """DATASTORE D.5: 240 × h."""
    key = AffinityKey(Owner("host", "h" * 240), Cidr.parse("192.168.166.128/26"))
    assert object_name(key) == "h" * 221 + "-192-168-166-128-26-c5325039a5a"
    assert len(object_name(key)) == 252


@pytest.mark.parametrize(("length", "cut"), [(234, False), (235, True)])
def test_a_name_is_cut_from_253_characters_on(length, cut):
    name = object_name(AffinityKey(Owner("host", "h" * length), Cidr.parse("172.16.178.160/29")))
    assert len(name) == 252
    assert name.startswith("h" * length) != cut


@pytest.mark.parametrize(
    ("host", "label"),
    [
        ("node-a", "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA"),
        ("node1", "7DS2CCNJGGLTHBDQLLFO6SX24SY2YDDEG3W2VN556FA2W4DLLV5A"),
    ],
)
def test_the_host_label_of_the_recordings(host, label):
    """DATASTORE D.5."""
    assert hostname_label(host) == label


@given(texts)
def test_the_host_label_is_base32_of_sha3(host):
    assert hostname_label(host) == base64.b32encode(hashlib.sha3_256(host.encode()).digest()).decode().rstrip("=")


def test_naming_loads_neither_hashlib_nor_base64():
    """They would cost more than the whole request for the object's path."""
    code = (
        "import sys; from adapters.records.custom_names import object_path, hostname_label, V1;"
        "from ports.datastore import AffinityKey; from domain.ipam.block import Owner;"
        "from domain.ipam.address import Cidr; hostname_label('n');"
        "object_path(AffinityKey(Owner('host', 'h' * 250), Cidr.parse('10.0.0.0/26')), V1);"
        "print(*sorted({'hashlib', 'base64', 're', 'json', '_hashlib'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"


@pytest.mark.parametrize(
    ("key", "v1", "v3"),
    [
        (BlockKey(BLOCK), "ipamblocks/172-16-178-160-29", "ipamblocks/172-16-178-160-29"),
        (AffinityKey(Owner("host", "n"), BLOCK), "blockaffinities/n-172-16-178-160-29", None),
        (HandleKey("net.Ab"), "ipamhandles/net.ab", None),
        (HandleKey("net_x y\u00e9"), "ipamhandles/net_x%20y%C3%A9", None),
        (AllocationConfigKey(), "ipamconfigs/default", "ipamconfigurations/default"),
        (IPAMConfigurationKey("default"), "ipamconfigs/default", "ipamconfigurations/default"),
        (IPPoolKey("p4"), "ippools/p4", None),
        (IPReservationKey("r"), "ipreservations/r", None),
        (ClusterInformationKey("default"), "clusterinformations/default", None),
    ],
)
def test_the_path_of_an_object_in_both_groups(key, v1, v3):
    """DATASTORE D.1."""
    assert object_path(key, V1) == f"/apis/crd.projectcalico.org/v1/{v1}"
    assert object_path(key, V3) == f"/apis/projectcalico.org/v3/{v3 or v1}"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../ippools", "a%2fb", "a\udc80"])
def test_a_name_that_would_lead_elsewhere_has_no_path(name):
    """A handle whose ID is empty must never become the path of the whole collection."""
    with pytest.raises(BadRecord, match="cannot be the name of an object"):
        object_path(HandleKey(name), V1)


@pytest.mark.parametrize(
    ("need", "plural"),
    [
        (Blocks(), "ipamblocks"),
        (Affinities(Owner("host", "n")), "blockaffinities"),
        (Handles(), "ipamhandles"),
        (IPPools(), "ippools"),
        (IPReservations(), "ipreservations"),
        (IPPools, "ippools"),
        (BlockKey, "ipamblocks"),
        (HandleKey("a"), "ipamhandles"),
    ],
)
def test_the_path_of_a_collection(need, plural):
    assert collection_path(need, V1) == f"/apis/crd.projectcalico.org/v1/{plural}"


def test_the_settings_have_another_plural_in_each_group():
    """DATASTORE D.1."""
    assert collection_path(IPAMConfigurations(), V1).endswith("/ipamconfigs")
    assert collection_path(IPAMConfigurations(), V3).endswith("/ipamconfigurations")


@pytest.mark.parametrize("key", [NodeKey("n"), ProfileKey("p"), WorkloadEndpointKey("d", "w")])
def test_what_kubernetes_has_itself_is_no_custom_resource(key):
    with pytest.raises(LookupError):
        object_path(key, V1)


def test_affinities_are_selected_by_owner_and_version():
    """DATASTORE D.3."""
    everything = "projectcalico.org/affinity-type=host"
    host = f"{everything},projectcalico.org/hostname-hash={hostname_label('n')}"
    assert affinity_selector(Affinities(Owner("host", ""))) == everything
    assert affinity_selector(Affinities(Owner("host", "n"))) == host
    assert affinity_selector(Affinities(Owner("host", "n"), 4)) == f"{host},projectcalico.org/ip-version=4"


@given(cidrs(), st.sampled_from(["host", "virtual"]), st.text("abc.-", min_size=1))
def test_an_affinity_has_the_labels_that_select_it(cidr, kind, host):
    labels = affinity_labels(AffinityKey(Owner(kind, host), cidr))
    wanted = affinity_selector(Affinities(Owner(kind, host), cidr.version)).split(",")
    assert sorted(wanted) == sorted(f"{name}={text}" for name, text in labels.items())


def test_the_uid_of_a_resource_is_another_than_its_objects():
    """DATASTORE D.4."""
    assert converted_uid("3f2a9c10-7b4e-4d21-9a6f-0011223344ff") == "fc543908-de72-4d84-9af6-008844cc22ff"


@given(uids)
def test_converting_a_uid_twice_changes_nothing(uid):
    assert converted_uid(converted_uid(uid)) == uid


@pytest.mark.parametrize(
    "uid", ["", "x", "3f2a9c10", "3f2a9c107b4e4d219a6f0011223344ff", "zf2a9c10-7b4e-4d21-9a6f-0011223344ff"]
)
def test_what_is_no_uuid_stays_as_it_is(uid):
    assert converted_uid(uid) == uid
