"""What a record is called in texts for people: kind and name as operators know them from `tortie get` and kubectl.

    ipamblock 10-0-0-0-26        ipamhandle k8s-pod-network.4f1d        workloadendpoint default/n1-k8s-web-eth0

Invariant: no name of a class of ours is in it.
"""

from __future__ import annotations

from domain.ipam.block import HOST
from ports.datastore import AffinityKey, AllocationConfigKey, BlockKey, HandleKey, Key, WorkloadEndpointKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr


def record_title(key: object) -> str:
    """What is no key is called by its own text."""
    if isinstance(key, BlockKey):
        return f"ipamblock {_dashed(key.cidr)}"
    if isinstance(key, AffinityKey):
        kind = "" if key.owner.kind == HOST else f" ({key.owner.kind})"
        return f"blockaffinity {key.owner.name}-{_dashed(key.cidr)}{kind}"
    if isinstance(key, HandleKey):
        return f"ipamhandle {key.handle}"
    if isinstance(key, AllocationConfigKey):
        return "ipamconfig default"
    if not isinstance(key, Key):
        return str(key)
    kind = getattr(key, "kind", "") or type(key).__name__.removesuffix("Key")
    name: str = key.name  # type: ignore[attr-defined]  # every other key has one
    return (
        f"{kind.lower()} {key.namespace}/{name}" if isinstance(key, WorkloadEndpointKey) else f"{kind.lower()} {name}"
    )


def _dashed(cidr: Cidr) -> str:
    return str(cidr.network).replace(".", "-").replace(":", "-").replace("/", "-")
