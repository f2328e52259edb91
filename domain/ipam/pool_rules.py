"""What an IPPool must look like to be stored, alone and beside the others.

A bad pool is found out late and far away, by an allocation that goes wrong; so it is refused where it is made.

Invariant: the enabled pools that pass have canonical ranges that share no address and hold at least one block each.
"""

from __future__ import annotations

from domain.ipam.address import V6, Cidr
from domain.ipam.pools import AUTOMATIC, BLOCK_SIZES, LOAD_BALANCER, TUNNEL, WORKLOAD
from domain.workload.selector import SelectorError, parse_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.ipam.pools import Pool

_MODES = ("", "Never", "Always", "CrossSubnet")
_ASSIGNMENT_MODES = ("", "Automatic", "Manual")
_USES = (WORKLOAD, TUNNEL, LOAD_BALANCER, "HostSecondaryInterface")
_NEVER_A_PODS = (
    ("link-local", Cidr.parse("169.254.0.0/16"), "never routed"),
    ("link-local", Cidr.parse("fe80::/10"), "never routed"),
    ("loopback", Cidr.parse("127.0.0.0/8"), "each host's own"),
    ("loopback", Cidr.parse("::1/128"), "each host's own"),
    ("multicast", Cidr.parse("224.0.0.0/4"), "nobody's own"),
    ("multicast", Cidr.parse("ff00::/8"), "nobody's own"),
)


class BadPool(ValueError):
    """`fault` says what is wrong with a pool or range, and what would be right. Text: `IPPool <name>: <fault>`."""

    def __init__(self, fault: str, name: str = "") -> None:
        super().__init__(f"IPPool {name}: {fault}" if name else fault)
        self.fault = fault


def complete_pool(pool: Pool) -> Pool:
    """The pool as it is stored: the range without host bits, and the defaults that the original writes out.

    BadPool as `check_pool`.
    """
    cidr = pool.cidr
    pool = pool if cidr is None else pool.replace(cidr_text=str(cidr))
    check_pool(pool)
    return pool.replace(
        block_size=pool.block_length,
        node_selector=pool.node_selector or "all()",
        allowed_uses=pool.uses,
        assignment_mode=pool.assignment_mode or AUTOMATIC,
        ipip_mode=pool.ipip_mode or "Never",
        vxlan_mode=pool.vxlan_mode or "Never",
    )


def check_pool(pool: Pool) -> None:
    """BadPool for the first rule that the pool breaks by itself."""
    name = pool.metadata.name
    cidr = _range(pool)
    low, high = BLOCK_SIZES[cidr.version]
    if not low <= pool.block_length <= high:
        raise BadPool(
            f"block size {pool.block_length} is not possible for IPv{cidr.version}; "
            f"choose a prefix length from {low} to {high}",
            name,
        )
    if cidr.length > pool.block_length and not pool.disabled:
        raise BadPool(
            f"{cidr} is smaller than one block of /{pool.block_length}; "
            "choose a larger range or a larger block size number",
            name,
        )
    _check_modes(pool, cidr)
    for selector in (pool.node_selector, pool.namespace_selector):
        try:
            parse_selector(selector)
        except SelectorError as error:
            raise BadPool(f"selector {selector!r} cannot be used: {error}", name) from None


def _range(pool: Pool) -> Cidr:
    name = pool.metadata.name
    try:
        written = Cidr.parse(pool.cidr_text)
    except ValueError:
        raise BadPool(
            f"{pool.cidr_text!r} is not a CIDR; write it like 10.244.0.0/16 or fd00:10:244::/48",
            name,
        ) from None
    if written != written.network:
        raise BadPool(f"{pool.cidr_text} has bits set beyond its prefix; write {written.network}", name)
    for what, reserved, why in _NEVER_A_PODS:
        if written.overlaps(reserved):
            lies = "lies in" if written in reserved else "contains"
            raise BadPool(f"{written} {lies} the {what} range {reserved}, which is {why}; choose another", name)
    return written


def _check_modes(pool: Pool, cidr: Cidr) -> None:
    name = pool.metadata.name
    choices = (
        ("ipipMode", pool.ipip_mode, _MODES),
        ("vxlanMode", pool.vxlan_mode, _MODES),
        ("assignmentMode", pool.assignment_mode, _ASSIGNMENT_MODES),
        *[("allowedUses", use, _USES) for use in pool.allowed_uses],
    )
    for field, value, allowed in choices:
        if value not in allowed:
            raise BadPool(f"{field} is {value!r}; choose one of {', '.join(filter(None, allowed))}", name)
    off = ("", "Never")
    if pool.ipip_mode not in off and cidr.version == V6:
        raise BadPool(f"ipipMode {pool.ipip_mode} is not possible for IPv6; set it to Never", name)
    if pool.ipip_mode not in off and pool.vxlan_mode not in off:
        raise BadPool("ipipMode and vxlanMode exclude each other; set one of them to Never", name)


def check_pool_among(pool: Pool, others: Iterable[Pool]) -> None:
    """BadPool if its range shares addresses with one of the others."""
    other = overlapping(pool, others)
    if other is not None:
        raise BadPool(
            f"{pool.cidr} overlaps {other.cidr} of IPPool {other.metadata.name}; choose a range of its own",
            pool.metadata.name,
        )


def overlapping(pool: Pool, others: Iterable[Pool]) -> Pool | None:
    """The first of the others with which it shares addresses. BadPool if its own range cannot be."""
    cidr = _range(pool)
    return next((other for other in others if other.cidr is not None and cidr.overlaps(other.cidr)), None)


def check_pool_change(stored: Pool, wanted: Pool) -> None:
    """BadPool if a change touches what blocks already depend on."""
    name = stored.metadata.name
    if wanted.cidr != stored.cidr:
        raise BadPool(
            f"its range is {stored.cidr_text} and cannot become {wanted.cidr_text}; make another pool",
            name,
        )
    if wanted.block_length != stored.block_length:
        raise BadPool(
            f"its block size is {stored.block_length} and cannot become {wanted.block_length}; make another pool",
            name,
        )


def block_sizes_by_version(sizes: Iterable[int]) -> dict[int, int]:
    """Which IP version each block size is for: the two ranges of possible sizes do not meet. BadPool for others."""
    chosen: dict[int, int] = {}
    for size in sizes:
        fitting = [version for version, (low, high) in BLOCK_SIZES.items() if low <= size <= high]
        if not fitting:
            raise BadPool(f"block size {size} is not possible; choose 20 to 32 for IPv4 or 116 to 128 for IPv6")
        if chosen.setdefault(fitting[0], size) != size:
            raise BadPool(f"block size is given twice for IPv{fitting[0]}: {chosen[fitting[0]]} and {size}")
    return chosen


def check_block_sizes_used(sizes: Mapping[int, int], ranges: Iterable[str]) -> None:
    """BadPool if a block size (by IP version) fits none of the ranges. What is no range is refused elsewhere."""
    versions: set[int] = set()
    for text in ranges:
        try:
            versions.add(Cidr.parse(text).version)
        except ValueError:
            return
    for version, size in sizes.items():
        if version not in versions:
            raise BadPool(f"block size {size} is for IPv{version}, and there is no pool of that version; leave it out")


def derived_name(cidr: Cidr) -> str:
    """`ippool-10-244-0-0-16`: a name for a pool that nobody named."""
    return "ippool-" + str(cidr).replace(".", "-").replace(":", "-").replace("/", "-")
