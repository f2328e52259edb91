"""Stored records of each kind in each datastore's form, Kubernetes' own objects, and what operators write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

from adapters.records.codec import decode, encode, key_text, parse_key
from adapters.records.custom_resources import V1, V3, decode_object, encode_object, is_deleted, object_path, object_uid
from adapters.records.kubernetes_nodes import decode_kubernetes_node, pod_cidrs
from adapters.records.kubernetes_objects import (
    decode_namespace,
    decode_pod,
    decode_virtual_machine_object,
    endpoint_patch,
)
from adapters.records.kubernetes_profiles import namespace_profile, service_account_profile
from adapters.records.manifests import BadManifest, from_manifest, revision_of, to_manifest
from adapters.records.members import BadRecord
from adapters.records.salvage import salvaged, salvaged_text
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Attribute, Block, Owner
from domain.ipam.errors import IpamError
from domain.ipam.pool_rules import BadPool, check_pool
from domain.ipam.pools import deselects, enabled_pools, reserved_cidrs
from domain.json_text import JsonError, parse
from domain.workload.annotations import (
    ALLOWED_SOURCE_PREFIXES,
    AWS_POD_IPS,
    FLOATING_IPS,
    IPV4_POOLS,
    BadAnnotation,
    allowed_source_prefixes,
    fixed_addresses,
    floating_nats,
    hardware_address,
    parse_ip_list,
    pool_wishes,
)
from domain.workload.kubevirt import has_newer_sandbox, instance_reference, is_ending, virtual_machine
from domain.workload.pod import OwnerReference
from domain.workload.pod_endpoint import is_networked, pod_endpoint, without_wishes
from domain.workload.qos import qos_controls
from entrypoints.tortie.client_config import client_config
from entrypoints.tortie.manifest_files import BadFile, read_manifests, shown_as
from fuzz.target import Allowed, Target, attempt, octets_of, require, selected, text_of
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPAMConfigurationKey,
    IPPoolKey,
    IPReservationKey,
    NodeKey,
    ProfileKey,
    Stored,
    WorkloadEndpointKey,
)

GOLDEN = Path(__file__).parents[1] / "golden"
_BLOCK = Cidr.parse("10.0.0.0/29")
_ADDRESSES = Cidr.parse("10.0.0.1/32"), Cidr.parse("fd00::1/128")
_NOW = 1_800_000_000 * 10**9
KEYS = (
    BlockKey(_BLOCK),
    AffinityKey(Owner(HOST, "node1"), _BLOCK),
    HandleKey("net1.c1"),
    AllocationConfigKey(),
    IPAMConfigurationKey("default"),
    ClusterInformationKey("default"),
    NodeKey("node1"),
    IPPoolKey("pool1"),
    IPReservationKey("r1"),
    ProfileKey("kns.default"),
    WorkloadEndpointKey("default", "node1-cni-c1-eth0"),
)

# --- in etcd and SQLite ----------------------------------------------------------------------------------------------


def _split(octets: bytes, choices: int) -> tuple[int, str]:
    """What the first octet chooses, and the text behind it."""
    return (octets[0] if octets else 0) % choices, text_of(octets[1:])


def _stored(octets: bytes) -> None:
    chosen, text = _split(octets, len(KEYS))
    key = KEYS[chosen]
    with Allowed(BadRecord):
        record = decode(key, text)
        again = encode(key, record)
        require(decode(key, again) == record, "a record does not read back", key, text, again)
        require(encode(key, decode(key, again)) == again, "a record changes as it is written", key, text)
        _use(key, record)


def _require_sound(block: Block) -> None:
    """Nothing is given out twice; that some address may never be is for `tortie ipam check` to say."""
    free, size = block.free(()), block.cidr.size
    require(len(block.allocations) == size, "not one entry for each address", block)
    require(len(set(free)) == len(free) and set(free) <= set(range(size)), "free twice or outside", block)
    require(all(block.holder(ordinal) is None for ordinal in free), "in use and free", block)


def _use(key: Any, record: Any) -> None:
    """What a call does first with a record that could be read."""
    if isinstance(key, BlockKey):
        _require_sound(record)
        free = record.free(())
        for changed in (
            record.collect(_NOW, 60),
            record.release([at for at in range(record.cidr.size) if record.holder(at) is not None], _NOW, 60),
            record.take(free[:2], Attribute("h", {"node": "n"})),
        ):
            _require_sound(changed)
    elif isinstance(key, IPPoolKey):
        enabled_pools([record], 4)
        with Allowed(ValueError, IpamError):
            deselects(record, {"a": "b"})
        with Allowed(BadPool, ValueError):
            check_pool(record)
    elif isinstance(key, IPReservationKey):
        reserved_cidrs([record], 4)


def _salvage(octets: bytes) -> None:
    """Of damaged blocks in either form: what comes out is sound and a block like any other."""
    chosen, text = _split(octets, 2)
    if chosen:
        read, value = attempt(lambda: parse(text), JsonError)
        block = salvaged(KEYS[0], value, "affinityClaimTime") if read else None
    else:
        block = salvaged_text(KEYS[0], text)
        require(block is not None, "nothing of a block's text", text)
    if block is not None:
        _require_sound(block)
        require(block.is_consistent(), "not all addresses", block)
        require(decode(KEYS[0], encode(KEYS[0], block)) == block, "what was salvaged does not read back", text, block)


def _key(octets: bytes) -> None:
    text = text_of(octets)
    key = parse_key(text)
    if key is not None:
        with Allowed(BadRecord):
            require(key_text(key) == text, "a key does not read back", text, key)


# --- in a Kubernetes datastore ---------------------------------------------------------------------------------------

_CUSTOM = tuple(key for key in KEYS if not isinstance(key, NodeKey | ProfileKey | WorkloadEndpointKey))


def _custom(octets: bytes) -> None:
    """The first octet chooses the group, and which key is asked for, if any."""
    chosen, text = _split(octets, 2 * (len(_CUSTOM) + 1))
    group = (V1, V3)[chosen % 2]
    key = None if chosen < 2 else _CUSTOM[chosen // 2 - 1]
    with Allowed(BadRecord):
        found = decode_object(text, group, key)
        value = parse(text)
        is_deleted(value)
        with Allowed(BadRecord):
            object_path(found.key, group)
        again = encode_object(found.key, found.record, group, found.revision or "1", object_uid(value))
        read_again = decode_object(again, group, key)
        if object_uid(value):  # it is the server's: one that is no text is not written back
            require(read_again.record == found.record, "an object does not read back", text, again)
        _use(found.key, found.record)


def _pod(text: str) -> None:
    pod = decode_pod(text)
    is_networked(pod)
    has_newer_sandbox(pod, "c")
    _, reference = attempt(lambda: instance_reference(pod), ValueError)
    for one in (pod, without_wishes(pod)):
        with Allowed(ValueError):
            endpoint = pod_endpoint(one)
            endpoint_patch(endpoint)
            if isinstance(reference, OwnerReference):
                instance = decode_virtual_machine_object({"metadata": {"name": "vm", "namespace": "n", "uid": "u"}})
                with Allowed(ValueError):
                    virtual_machine(pod, instance, None)


def _machine(text: str) -> None:
    machine = decode_virtual_machine_object(text)
    is_ending(machine, machine)


_KUBERNETES = (
    _pod,
    decode_namespace,
    _machine,
    decode_kubernetes_node,
    pod_cidrs,
    namespace_profile,
    service_account_profile,
)


def _kubernetes(octets: bytes) -> None:
    chosen, text = _split(octets, len(_KUBERNETES))
    with Allowed(BadRecord):
        _KUBERNETES[chosen](text)


# --- annotations -----------------------------------------------------------------------------------------------------


def _annotations(octets: bytes) -> None:
    """A JSON object of texts by the annotations' names; what is no text is not there."""
    read, found = attempt(lambda: parse(text_of(octets)), JsonError)
    given = {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
    if not read:
        return
    with Allowed(BadAnnotation):
        fixed_addresses(given, "calico-ipam", no_ipam_allowed=True)
    with Allowed(BadAnnotation):
        pool_wishes(given, {})
    hardware_address(given)
    qos_controls(given)
    with Allowed(BadAnnotation):
        allowed_source_prefixes(given.get(ALLOWED_SOURCE_PREFIXES, ""))
    with Allowed(BadAnnotation):
        floating_nats(given.get(FLOATING_IPS, ""), _ADDRESSES)
    with Allowed(BadAnnotation):
        parse_ip_list(IPV4_POOLS, given.get(IPV4_POOLS, ""))


# --- what operators write --------------------------------------------------------------------------------------------


def with_file(octets: bytes, read: Any) -> None:
    """Of a file in memory, by its path."""
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, octets)
        read(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _manifest(octets: bytes) -> None:
    with Allowed(BadFile):
        with_file(octets, _read_manifests)


def _read_manifests(path: str) -> None:
    for manifest in read_manifests(path)[:20]:
        with Allowed(BadManifest):
            key, record = from_manifest(manifest)
            revision_of(manifest)
            shown = to_manifest(Stored(key, record, "5"))
            again = from_manifest(json.loads(json.dumps(shown)))
            require(again == (key, record), "a manifest does not read back", manifest, shown)
            for form in ("yaml", "json"):
                text = shown_as(shown, form)
                usual = json.loads(text) if form == "json" else yaml.safe_load(text)
                require(usual == json.loads(json.dumps(shown)), "the library reads another manifest", text)


def _ctl_config(octets: bytes) -> None:
    with Allowed(BadFile):
        with_file(octets, lambda path: client_config({}, path))


# --- seeds -----------------------------------------------------------------------------------------------------------


def _recorded() -> dict[type, list[str]]:
    """Up to three texts of each kind that the original wrote, short ones first."""
    found: dict[type, list[str]] = {}
    for row in json.loads((GOLDEN / "records/values.json").read_text()):
        key = parse_key(row["key"])
        if key is not None and row["value"] not in found.setdefault(type(key), []):
            found[type(key)].append(row["value"])
    return {kind: sorted(texts, key=len)[:: max(1, len(texts) // 2)][:3] for kind, texts in found.items()}


_MEMBERS: dict[type, dict[str, Any]] = {
    BlockKey: {
        "cidr": "10.0.0.0/29",
        "affinity": "host:node1",
        "affinity_claim_time": "2026-11-29T13:06:12Z",
        "allocations": [0, 1, None, None, None, None, None, None],
        "unallocated": [2, 3, 4, 5, 6, 7],
        "attributes": [
            {"handle_id": "h", "secondary": {"node": "n"}, "alternateOwnerAttrs": {"a": "b"}},
            {"handle_id": "g", "secondary": None, "releasedAt": "2026-11-29T13:06:12Z"},
        ],
        "sequenceNumber": 5,
        "sequenceNumberForAllocation": {"0": 3},
        "deleted": False,
    },
    AffinityKey: {"state": "confirmed", "deleted": "false"},
    HandleKey: {"blocks": {"10.0.0.0/29": 2}, "deleted": False, "id": "net1.c1"},
    AllocationConfigKey: {"strictAffinity": False, "autoAllocateBlocks": True, "maxBlocksPerHost": 5},
}
_SPECS: dict[type, dict[str, Any]] = {
    IPAMConfigurationKey: {"strictAffinity": True, "autoAllocateBlocks": True, "maxBlocksPerHost": 2},
    ClusterInformationKey: {"calicoVersion": "v3", "clusterGUID": "g", "datastoreReady": True, "clusterType": "k8s"},
    NodeKey: {"bgp": {"ipv4Address": "10.0.0.1/24", "asNumber": 64512}, "orchRefs": [{"nodeName": "n"}]},
    IPPoolKey: {
        "cidr": "10.0.0.0/16",
        "blockSize": 26,
        "ipipMode": "Always",
        "vxlanMode": "Never",
        "natOutgoing": True,
        "disabled": False,
        "nodeSelector": "all()",
        "allowedUses": ["Workload"],
        "assignmentMode": "Automatic",
        "namespaceSelector": "a == 'b'",
        "disableBGPExport": False,
    },
    IPReservationKey: {"reservedCIDRs": ["10.0.0.1", "10.0.0.8/30", "fd00::/120"]},
    ProfileKey: {"ingress": [{"action": "Allow", "source": {"nets": []}}], "egress": [], "labelsToApply": {"a": "b"}},
    WorkloadEndpointKey: {
        "orchestrator": "cni",
        "node": "node1",
        "containerID": "c1",
        "endpoint": "eth0",
        "pod": "p",
        "ipNetworks": ["10.0.0.1/32"],
        "profiles": ["kns.default"],
        "interfaceName": "cali1",
        "mac": "aa",
        "ipNATs": [{"internalIP": "10.0.0.1", "externalIP": "1.1.1.1"}],
        "ports": [{"name": "a", "port": 1}],
        "allowSpoofedSourcePrefixes": ["1.0.0.0/8"],
        "qosControls": {"ingressBandwidth": 1},
    },
}
_KINDS = {
    BlockKey: ("IPAMBlock", "10-0-0-0-29"),
    AffinityKey: ("BlockAffinity", "node1-10-0-0-0-29"),
    HandleKey: ("IPAMHandle", "net1.c1"),
    AllocationConfigKey: ("IPAMConfig", "default"),
    IPAMConfigurationKey: ("IPAMConfiguration", "default"),
    ClusterInformationKey: ("ClusterInformation", "default"),
    IPPoolKey: ("IPPool", "pool1"),
    IPReservationKey: ("IPReservation", "r1"),
    NodeKey: ("Node", "node1"),
    ProfileKey: ("Profile", "kns.default"),
    WorkloadEndpointKey: ("WorkloadEndpoint", "node1-cni-c1-eth0"),
}
_UID, _TIME = "3f2a9c10-7b4e-4d21-9a6f-0011223344ff", "2026-11-29T13:06:12Z"


def _resource(kind: type, group: str, **spec: Any) -> dict[str, Any]:
    name = _KINDS[kind][1]
    metadata: dict[str, Any] = {"name": name, "uid": _UID, "creationTimestamp": _TIME, "labels": {"a": "b"}}
    if kind is WorkloadEndpointKey:
        metadata["namespace"] = "default"
    if group == V1:
        metadata["annotations"] = {"projectcalico.org/metadata": json.dumps({"creationTimestamp": _TIME})}
    return {
        "kind": _KINDS[kind][0],
        "apiVersion": group,
        "metadata": {**metadata, "resourceVersion": "7"},
        "spec": spec,
    }


def _stored_seeds() -> list[tuple[bytes, ...]]:
    found = _recorded()
    return [
        octets_of(
            *found.get(type(key), ()),
            json.dumps(_MEMBERS.get(type(key)) or _resource(type(key), V3, **_SPECS[type(key)])),
        )
        for key in KEYS
    ]


_SPEC_OF_BLOCK = {
    name.replace("affinity_claim_time", "affinityClaimTime"): one for name, one in _MEMBERS[BlockKey].items()
}
_CUSTOM_SPECS: dict[type, dict[str, Any]] = {
    **_SPECS,
    BlockKey: {**_SPEC_OF_BLOCK, "strictAffinity": False},
    AffinityKey: {"state": "confirmed", "node": "node1", "type": "host", "cidr": "10.0.0.0/29", "deleted": "false"},
    HandleKey: {"handleID": "net1.c1", "block": {"10.0.0.0/29": 2}, "deleted": False},
    AllocationConfigKey: {**_MEMBERS[AllocationConfigKey], "kubeVirtVMAddressPersistence": "Enabled"},
}


def _custom_seeds() -> list[tuple[bytes, ...]]:
    named = [
        octets_of(json.dumps(_resource(type(key), group, **_CUSTOM_SPECS[type(key)])))
        for key in _CUSTOM
        for group in (V1, V3)
    ]
    return [(), (), *named]


_ANNOTATIONS = {
    "cni.projectcalico.org/ipAddrs": '["10.0.0.1", "fd00::1"]',
    "cni.projectcalico.org/ipv4pools": '["10.0.0.0/8", "pool1"]',
    "cni.projectcalico.org/ipv6pools": "[]",
    "cni.projectcalico.org/ipFamilies": '["IPv4"]',
    "cni.projectcalico.org/hwAddr": "1c:0c:0a:c0:ff:ee",
    "cni.projectcalico.org/floatingIPs": '["1.1.1.1"]',
    "cni.projectcalico.org/allowedSourcePrefixes": '["8.8.8.0/24"]',
    "cni.projectcalico.org/podIP": "10.0.0.1/32",
    "cni.projectcalico.org/podIPs": "10.0.0.1/32,fd00::1/128",
    "cni.projectcalico.org/containerID": "c1",
    AWS_POD_IPS: "10.0.0.9",
    "qos.projectcalico.org/ingressBandwidth": "10M",
    "qos.projectcalico.org/ingressBurst": "1Gi",
    "qos.projectcalico.org/dscp": "AF11",
    "kubernetes.io/egress-bandwidth": "1k",
}
_POD = {
    "kind": "Pod",
    "metadata": {
        "name": "virt-launcher-x",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "4",
        "generateName": "w-",
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "labels": {"a": "b"},
        "annotations": _ANNOTATIONS,
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": "vm",
                "uid": "v",
                "controller": True,
            }
        ],
    },
    "spec": {
        "nodeName": "node1",
        "serviceAccountName": "sa",
        "hostNetwork": False,
        "containers": [
            {"ports": [{"containerPort": 80, "name": "w", "protocol": "TCP", "hostPort": 8, "hostIP": "::"}]}
        ],
        "initContainers": [{"ports": [{"containerPort": 1}]}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
}
_NODE = {
    "metadata": {
        "name": "node1",
        "annotations": {
            "projectcalico.org/IPv4Address": "10.0.0.1/24",
            "projectcalico.org/ASNumber": "1.10",
            "projectcalico.org/labels": '{"a":"b"}',
            "projectcalico.org/annotations": "null",
            "projectcalico.org/Interfaces": '[{"name": "eth0"}]',
        },
    },
    "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
}
_NAMED = {"metadata": {"name": "n", "namespace": "d", "uid": _UID, "labels": {"a": "b"}, "deletionTimestamp": _TIME}}


def _kubernetes_seeds() -> list[tuple[bytes, ...]]:
    pod, node, named = (octets_of(json.dumps(one)) for one in (_POD, _NODE, _NAMED))
    return [pod, named, named, node, node, named, named]


def _block_specs() -> tuple[bytes, ...]:
    return octets_of(json.dumps(_CUSTOM_SPECS[BlockKey]))


_YAML = """apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: pool1, labels: &l {a: "b"}}
spec:
  cidr: 10.0.0.0/16
  blockSize: 26
  natOutgoing: true
  nodeSelector: all()
  allowedUses: [Workload]
---
apiVersion: projectcalico.org/v3
kind: ProfileList
items:
- apiVersion: projectcalico.org/v3
  kind: Profile
  metadata: {name: p, annotations: *l, creationTimestamp: 2026-11-29T13:06:12Z}
  spec:
    ingress: [{action: Allow}]
"""
_CTL = """apiVersion: projectcalico.org/v3
kind: CalicoAPIConfig
spec:
  datastoreType: etcdv3
  etcdEndpoints: https://a:2379
  etcdKey: |
    x
  k8sClientQPS: 5
"""

TARGETS = (
    Target("stored_etcd", _stored, tuple(selected(_stored_seeds())), form="json", skips=1),
    Target("salvage", _salvage, tuple(selected([_stored_seeds()[0], _block_specs()])), form="json", skips=1),
    Target("stored_custom", _custom, tuple(selected(_custom_seeds())), form="json", skips=1),
    Target("stored_kubernetes", _kubernetes, tuple(selected(_kubernetes_seeds())), form="json", skips=1),
    Target(
        "stored_key",
        _key,
        octets_of(*[key_text(key) for key in KEYS], "/calico/ipam/v2/host/n/ipv6/block/fd00---64"),
        most=256,
    ),
    Target("annotations", _annotations, octets_of(json.dumps(_ANNOTATIONS)), form="json"),
    Target(
        "manifests",
        _manifest,
        octets_of(
            _YAML, *[json.dumps(_resource(kind, V3, **spec)) for kind, spec in _SPECS.items()], "a: 0o7\nb: .5e3"
        ),
        form="text",
    ),
    Target("calicoctl_config", _ctl_config, octets_of(_CTL), form="text", most=1024),
)
