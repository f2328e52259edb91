"""Any record ↔ the text that is stored under its key.

Invariant: `decode(key, encode(key, record)) == record`, and for text that the original wrote and whose members we all
know, `encode(key, decode(key, text)) == text`.
"""

from __future__ import annotations

from adapters.records.affinities import decode_affinity, encode_affinity
from adapters.records.bad_record import BadRecord
from adapters.records.blocks import decode_block, encode_block
from adapters.records.clusters import (
    decode_cluster_information,
    decode_node,
    encode_cluster_information,
    encode_node,
)
from adapters.records.configs import (
    decode_allocation_config,
    decode_ipam_configuration,
    encode_allocation_config,
    encode_ipam_configuration,
)
from adapters.records.endpoints import decode_endpoint, encode_endpoint
from adapters.records.handles import decode_handle, encode_handle
from adapters.records.pools import decode_pool, decode_reservation, encode_pool, encode_reservation
from adapters.records.profiles import decode_profile, encode_profile
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ports.datastore import Key

    R = TypeVar("R")

_CODECS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    BlockKey: (encode_block, decode_block),
    AffinityKey: (encode_affinity, decode_affinity),
    HandleKey: (encode_handle, decode_handle),
    AllocationConfigKey: (encode_allocation_config, decode_allocation_config),
    IPAMConfigurationKey: (encode_ipam_configuration, decode_ipam_configuration),
    ClusterInformationKey: (encode_cluster_information, decode_cluster_information),
    NodeKey: (encode_node, decode_node),
    IPPoolKey: (encode_pool, decode_pool),
    IPReservationKey: (encode_reservation, decode_reservation),
    ProfileKey: (encode_profile, decode_profile),
    WorkloadEndpointKey: (encode_endpoint, decode_endpoint),
}


def _check(key: Key[Any], record: Any) -> None:
    """A record says again some of what its key says; when the two differ, nobody may act on it."""
    if isinstance(key, BlockKey) and record.cidr != key.cidr:
        raise BadRecord(key, f"its cidr is {record.cidr}")
    name = getattr(key, "name", None)
    if name is not None and record.metadata.name != name:
        raise BadRecord(key, f"its name is {record.metadata.name!r}")
    if isinstance(key, WorkloadEndpointKey) and record.metadata.namespace != key.namespace:
        raise BadRecord(key, f"its namespace is {record.metadata.namespace!r}")


def encode(key: Key[R], record: R) -> str:
    """JSON text as the original writes it. BadRecord when the record belongs under another key."""
    _check(key, record)
    return _CODECS[type(key)][0](record)


def decode(key: Key[R], text: str) -> R:
    """The record. BadRecord, naming key and fault, when the text does not describe one that is safe to use."""
    try:
        record: R = _CODECS[type(key)][1](text)
    except ValueError as fault:
        raise BadRecord(key, str(fault)) from fault
    _check(key, record)
    return record
