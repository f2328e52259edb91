"""Makes a datastore ready for its first container: says that it may be used, and records the node and its pools.

An operator runs this once, by hand or from a start-up script, so running it again changes nothing and says so; and
whatever cannot be right is refused before the first write.

Invariant: nothing that exists is ever changed. Two of these at once end in one set of records.
"""

from __future__ import annotations

from domain.cluster import ClusterInformation, Node
from domain.ipam.address import Cidr
from domain.ipam.pool_rules import check_pool, check_pool_among, check_pool_change, derived_name
from domain.ipam.pools import DEFAULT_BLOCK_SIZE, TUNNEL, WORKLOAD, Pool
from domain.resource import Metadata
from domain.value import Value
from domain.workload.endpoint_rules import require_subdomain
from ports.datastore import ClusterInformationKey, IPPoolKey, IPPools, NodeKey
from ports.errors import AlreadyExists, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from ports.clock import Deadline
    from ports.datastore import Datastore, Key

    R = TypeVar("R")

DEFAULT = "default"


class Wish(Value):
    """`guid` is 32 hex digits, used if the cluster has none; `block_sizes` maps an IP version to a prefix length."""

    node: str
    guid: str
    pools: tuple[str, ...]
    block_sizes: Mapping[int, int]


class Initialised(Value):
    """One record: what it is, whether this call made it, and what the operator may want to know about it."""

    kind: str
    name: str
    made: bool
    note: str = ""


def initialise_cluster(datastore: Datastore, wish: Wish, deadline: Deadline) -> tuple[Initialised, ...]:
    """What exists afterwards. BadPool, InvalidField or Refused, with nothing written, for a bad wish.

    A further node of a cluster wishes for no pools.
    """
    require_subdomain("node", wish.node)
    _pools(wish, ())  # what is wrong by itself is refused before a datastore is made for it
    existing = tuple([pool.record for pool in datastore.list(IPPools(), deadline)])
    if not existing and not wish.pools:
        raise Refused("there is no IP pool yet; name the range of the first one (--pool CIDR)")
    pools = _pools(wish, existing)
    node = Initialised("Node", wish.node, _ensure_node(datastore, wish.node, deadline))
    fresh = ClusterInformation(Metadata(DEFAULT), cluster_guid=wish.guid, datastore_ready=True)
    information, made = _ensure(datastore, ClusterInformationKey(DEFAULT), fresh, deadline)
    outcomes = [Initialised("ClusterInformation", DEFAULT, made, _readiness(information)), node]
    for wanted in pools:
        pool, made = _ensure(datastore, IPPoolKey(wanted.metadata.name), wanted, deadline)
        check_pool_change(pool, wanted)  # a rival may have given the name to another range
        note = f"{pool.cidr_text}, blocks of /{pool.block_length}"
        outcomes.append(Initialised("IPPool", pool.metadata.name, made, note))
    return tuple(outcomes)


def _ensure_node(datastore: Datastore, name: str, deadline: Deadline) -> bool:
    """Whether it was made. Where an orchestrator makes the nodes, only one of its own will do."""
    try:
        return _ensure(datastore, NodeKey(name), Node(Metadata(name)), deadline)[1]
    except Refused as error:
        raise Refused(
            f'there is no node "{name}" in this cluster; give the name of one that is (--node): {error}'
        ) from error


def _pools(wish: Wish, existing: tuple[Pool, ...]) -> list[Pool]:
    """The pools wished for: existing ones of the same range as they are, new ones with a free name, all checked."""
    pools: list[Pool] = []
    for text in wish.pools:
        known = [*existing, *pools]
        wanted = _new_pool(text, wish.block_sizes, {pool.metadata.name for pool in known})
        check_pool(wanted)
        same = next((pool for pool in known if pool.cidr == wanted.cidr), None)
        if same is None:
            check_pool_among(wanted, known)
        elif wanted.cidr is not None and wanted.cidr.version in wish.block_sizes:
            check_pool_change(same, wanted.replace(metadata=same.metadata))
        if same not in pools:
            pools.append(same or wanted)
    return pools


def _new_pool(text: str, block_sizes: Mapping[int, int], taken: set[str]) -> Pool:
    """A pool as calico-node makes its first ones, but without tunnels: one node has nobody to tunnel to."""
    try:
        cidr = Cidr.parse(text)
    except ValueError:
        return Pool(Metadata(text), text)  # `check_pool` says what is wrong with it
    usual = f"default-ipv{cidr.version}-ippool"
    return Pool(
        Metadata(derived_name(cidr) if usual in taken else usual),
        text,
        block_size=block_sizes.get(cidr.version, DEFAULT_BLOCK_SIZE[cidr.version]),
        node_selector="all()",
        allowed_uses=(WORKLOAD, TUNNEL),
        assignment_mode="Automatic",
        ipip_mode="Never",
        vxlan_mode="Never",
        nat_outgoing=cidr.version == 4,
    )


def _ensure(datastore: Datastore, key: Key[R], record: R, deadline: Deadline) -> tuple[R, bool]:
    """The record under the key, and whether it is the one given."""
    found = datastore.get(key, deadline)
    if found is not None:
        return found.record, False
    try:
        return datastore.create(key, record, deadline).record, True
    except AlreadyExists:
        found = datastore.get(key, deadline)
        if found is None:
            raise
        return found.record, False


def _readiness(information: ClusterInformation) -> str:
    if information.datastore_ready is True:
        return "datastore ready"
    return "datastoreReady is not true, so plugins refuse to work until you apply it"
