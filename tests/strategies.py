"""Hypothesis strategies: one per domain type, valid by construction, so that no test has to filter.

Names are those of the types in lower case. Everything drawn here is in canonical form: what the datastore would give
back after writing it.
"""

from __future__ import annotations

import json

from hypothesis import strategies as st

from domain.cluster import ClusterInformation, Node
from domain.ipam.address import BITS, V4, V6, Address, Cidr
from domain.ipam.block import Affinity, Attribute, Block, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation, Pool
from domain.json_text import dumps
from domain.moment import go_string, rfc3339
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Port, Profile, Rule, WorkloadEndpoint
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
    WorkloadEndpointKey,
)

# --- texts -----------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
handles_ids = st.builds("{}.{}".format, names, st.from_regex(r"[0-9a-fA-F]{1,16}", fullmatch=True))
macs = st.lists(st.integers(0, 255), min_size=6, max_size=6).map(lambda octets: ":".join(f"{o:02x}" for o in octets))
instants = st.integers(0, 2_000_000_000 * 10**9)  # nanoseconds
times = instants.map(rfc3339)
uids = st.uuids(version=4).map(str)
labels = st.dictionaries(st.one_of(names, texts), texts, max_size=4)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# Members of a record that no version known to us writes.
unknown_members = st.dictionaries(names.map(lambda name: f"x-{name}"), json_values.map(dumps), max_size=2).map(
    lambda members: tuple(members.items())
)
json_objects = st.dictionaries(texts, json_values, max_size=3).map(dumps)

# --- addresses -------------------------------------------------------------------------------------------------------

versions = st.sampled_from([V4, V6])


def _numbers(version: int) -> st.SearchStrategy[int]:
    """IPv6 numbers outside of ::ffff:0:0/96, which is IPv4."""
    if version == V4:
        return st.integers(0, 2**32 - 1)
    return st.integers(2**48, 2**128 - 1)


@st.composite
def addresses(draw, version: int | None = None) -> Address:
    version = version or draw(versions)
    return Address(version, draw(_numbers(version)))


@st.composite
def cidrs(draw, version: int | None = None, min_length: int = 0) -> Cidr:
    """Canonical: no host bits. IPv6 ones are inside 2000::/3, so that none is an IPv4-mapped prefix."""
    version = version or draw(versions)
    length = draw(st.integers(max(min_length, 3 if version == V6 else 0), BITS[version]))
    number = draw(_numbers(version))
    if version == V6:
        number = number & (2**125 - 1) | 1 << 125
    return Cidr(version, number, length).network


host_cidrs = addresses().map(lambda address: address.host_cidr)
owners = st.builds(Owner, st.sampled_from(["host", "virtual"]), names)

# --- IPAM records ----------------------------------------------------------------------------------------------------


@st.composite
def attributes(draw, released: bool | None = None) -> Attribute:
    """An owner, or (`released`) an address in cooldown."""
    if draw(st.booleans()) if released is None else released:
        return Attribute(None, {}, None, draw(times), draw(unknown_members))
    secondary = draw(labels) | {"timestamp": go_string(draw(instants))}
    alternate = draw(st.none() | st.dictionaries(names, texts, min_size=1, max_size=2))
    return Attribute(draw(handles_ids), secondary, alternate, None, draw(unknown_members))


@st.composite
def blocks(draw, max_size: int = 64, cidr: Cidr | None = None) -> Block:
    """Consistent: every ordinal is either free once or holds an existing attribute, every attribute is referenced."""
    if cidr is None:
        version = draw(versions)
        shortest = BITS[version] - max_size.bit_length() + 1
        cidr = draw(cidrs(version=version, min_length=max(shortest, 20 if version == V4 else 116)))
    order = draw(st.permutations(range(cidr.size)))
    used = order[: draw(st.integers(0, cidr.size))]
    owners_drawn = draw(st.lists(attributes(), min_size=1, max_size=6)) if used else []
    chosen = [draw(st.integers(0, len(owners_drawn) - 1)) for _ in used]
    kept = sorted(set(chosen))
    renumbered = {old: new for new, old in enumerate(kept)}
    allocations: list[int | None] = [None] * cidr.size
    for ordinal, attribute in zip(used, chosen):
        allocations[ordinal] = renumbered[attribute]
    sequence = draw(st.integers(0, 2**63))
    affinity = draw(st.none() | owners.map(str))
    return Block(
        cidr=cidr,
        affinity=affinity,
        claimed_at=draw(st.none() | times),
        allocations=tuple(allocations),
        unallocated=tuple(order[len(used) :]),
        attributes=tuple(owners_drawn[old] for old in kept),
        sequence=sequence,
        sequences={ordinal: draw(st.integers(0, sequence)) for ordinal in sorted(used)},
        deleted=draw(st.booleans()),
        unknown=draw(unknown_members),
    )


affinities = st.builds(
    Affinity, st.sampled_from(["", "pending", "confirmed", "pendingDeletion"]), st.booleans(), unknown_members
)
handles = st.builds(Handle, st.dictionaries(cidrs(), st.integers(1, 2**31), max_size=4), st.booleans(), unknown_members)
_settings = {
    "strict_affinity": st.booleans(),
    "auto_allocate_blocks": st.booleans(),
    "max_blocks_per_host": st.integers(0, 1_000_000),
    "kubevirt_persistence": st.none() | st.sampled_from(["Enabled", "Disabled"]),
    "cooldown_seconds": st.integers(0, 1200),
}
allocation_configs = st.builds(AllocationConfig, **_settings, unknown=unknown_members)

# --- v3 resources ----------------------------------------------------------------------------------------------------


@st.composite
def metadata(draw, namespaced: bool = False, name: str | None = None) -> Metadata:
    """Of a resource that was written once: uid and creation time are there."""
    return Metadata(
        name=draw(names) if name is None else name,
        namespace=draw(names) if namespaced else "",
        generate_name=draw(st.just("") | names),
        uid=draw(uids),
        created=draw(times),
        labels=draw(labels),
        annotations=draw(labels),
        unknown=draw(unknown_members),
    )


_kept = {"unknown": unknown_members, "spec_unknown": unknown_members}
ipam_configurations = st.builds(IPAMConfiguration, metadata=metadata(), **_settings, **_kept)
cluster_informations = st.builds(
    ClusterInformation,
    metadata=metadata(),
    cluster_guid=st.just("") | st.uuids().map(lambda one: one.hex),
    cluster_type=texts,
    calico_version=texts,
    datastore_ready=st.none() | st.booleans(),
    **_kept,
)
nodes = st.builds(Node, metadata=metadata(), spec=json_objects, status=json_objects, unknown=unknown_members)
reservations = st.builds(
    IPReservation, metadata=metadata(), cidrs=st.lists(cidrs().map(str), max_size=3).map(tuple), **_kept
)


@st.composite
def pools(draw, cidr: Cidr | None = None) -> Pool:
    """A range that holds at least one block of its size."""
    if cidr is None:
        version = draw(versions)
        cidr = draw(cidrs(version=version).filter(lambda one: one.length <= BITS[one.version] - 4))
    longest = BITS[cidr.version]
    block_size = draw(st.integers(max(cidr.length, longest - 12), longest))
    return Pool(
        metadata=draw(metadata()),
        cidr_text=str(cidr),
        block_size=draw(st.sampled_from([0, block_size])),
        disabled=draw(st.booleans()),
        node_selector=draw(st.sampled_from(["", "all()", "has(zone)", "zone == 'a' && !has(x)"])),
        namespace_selector=draw(st.sampled_from(["", "all()"])),
        allowed_uses=draw(st.sampled_from([(), ("Workload",), ("Workload", "Tunnel"), ("LoadBalancer",)])),
        assignment_mode=draw(st.sampled_from(["", "Automatic", "Manual"])),
        ipip_mode=draw(st.sampled_from(["", "Never", "Always", "CrossSubnet"])),
        vxlan_mode=draw(st.sampled_from(["", "Never"])),
        nat_outgoing=draw(st.booleans()),
        disable_bgp_export=draw(st.booleans()),
        conditions=draw(st.sampled_from([(), (("Allocatable", "True"),), (("Allocatable", "False"),)])),
        unknown=draw(unknown_members),
        spec_unknown=draw(unknown_members),
    )


rules = st.builds(Rule, st.sampled_from(["Allow", "Deny", "Log", "Pass"]), texts, unknown_members)
profiles = st.builds(
    Profile,
    metadata=metadata(),
    ingress=st.lists(rules, max_size=2).map(tuple),
    egress=st.lists(rules, max_size=2).map(tuple),
    labels_to_apply=labels,
    **_kept,
)
endpoint_ports = st.builds(
    Port,
    texts,
    st.sampled_from(["", "TCP", "UDP", "SCTP", "6"]),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.just("") | addresses().map(str),
)
nats = st.builds(Nat, addresses().map(str), addresses().map(str))


@st.composite
def endpoints(draw, node: str | None = None) -> WorkloadEndpoint:
    """Any spec; the name is not computed from it."""
    text = st.just("") | names
    return WorkloadEndpoint(
        metadata=draw(metadata(namespaced=True)),
        orchestrator=draw(st.sampled_from(["cni", "k8s", ""])),
        workload=draw(text),
        node=node or draw(text),
        container_id=draw(text),
        pod=draw(text),
        endpoint=draw(text),
        service_account=draw(text),
        ip_networks=tuple(draw(st.lists(host_cidrs, max_size=3))),
        ip_nats=tuple(draw(st.lists(nats, max_size=2))),
        ipv4_gateway=draw(st.just("") | addresses(version=V4).map(str)),
        ipv6_gateway=draw(st.just("") | addresses(version=V6).map(str)),
        profiles=tuple(draw(st.lists(names, max_size=3))),
        interface_name=draw(text),
        mac=draw(st.just("") | macs),
        ports=tuple(draw(st.lists(endpoint_ports, max_size=2))),
        allowed_source_prefixes=tuple(draw(st.lists(cidrs().map(str), max_size=2))),
        qos_controls=draw(st.just("") | json_objects),
        unknown=draw(unknown_members),
        spec_unknown=draw(unknown_members),
    )


# --- keys and what belongs under them --------------------------------------------------------------------------------


def _named(key_type, records):
    return records.map(lambda record: (key_type(record.metadata.name), record))


entries = st.one_of(
    blocks(max_size=16).map(lambda block: (BlockKey(block.cidr), block)),
    st.tuples(st.builds(AffinityKey, owners, cidrs()), affinities),
    st.tuples(st.builds(HandleKey, handles_ids), handles),
    st.tuples(st.just(AllocationConfigKey()), allocation_configs),
    _named(IPAMConfigurationKey, ipam_configurations),
    _named(ClusterInformationKey, cluster_informations),
    _named(NodeKey, nodes),
    _named(IPPoolKey, pools()),
    _named(IPReservationKey, reservations),
    _named(ProfileKey, profiles),
    endpoints().map(lambda one: (WorkloadEndpointKey(one.metadata.namespace, one.metadata.name), one)),
)
"""(key, record) of every kind."""


def as_json(text: str) -> object:
    """The same value as the standard library reads it: an oracle that shares no code with ours."""
    return json.loads(text)
