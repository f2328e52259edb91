"""What a pool must be before it is written, and what its missing members mean.

A pool that allocation cannot use, or would use in a way nobody meant, is refused while a person is looking. Whether
it overlaps another pool is for the caller, who can list them.

Invariant: `complete` changes no member that was given, but for the spelling of the CIDR.
"""

from __future__ import annotations

from domain.ipam.address import BITS, V6, Cidr
from domain.ipam.pools import DEFAULT_BLOCK_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.pools import Pool

NEVER = "Never"
_MODES = {
    "ipipMode": ("", NEVER, "Always", "CrossSubnet"),
    "vxlanMode": ("", NEVER, "Always", "CrossSubnet"),
    "assignmentMode": ("", "Automatic", "Manual"),
}
_USES = ("Workload", "Tunnel", "LoadBalancer", "HostSecondaryInterface")
_BLOCK_SIZES = {4: (20, 32), 6: (116, 128)}
_LINK_LOCAL = (Cidr.parse("169.254.0.0/16"), Cidr.parse("fe80::/10"))


class InvalidField(ValueError):
    """Text: `error with field <field> = '<value>' (<reason>)`."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"error with field {field} = '{value}' ({reason})")
        self.field = field


def complete(pool: Pool) -> Pool:
    """The pool with the defaults that the original writes out, and a canonical CIDR. ValueError from `check`."""
    check(pool)
    cidr = pool.cidr
    assert cidr is not None, "check() has refused it otherwise"  # noqa: S101 - tells mypy, and can never fail
    return pool.replace(
        cidr_text=str(cidr),
        block_size=pool.block_size or DEFAULT_BLOCK_SIZE[cidr.version],
        node_selector=pool.node_selector or "all()",
        allowed_uses=pool.uses,
        assignment_mode=pool.assignment_mode or "Automatic",
        ipip_mode=pool.ipip_mode or NEVER,
        vxlan_mode=pool.vxlan_mode or NEVER,
    )


def check(pool: Pool) -> None:
    """InvalidField for a pool that must not be written."""
    cidr = pool.cidr
    if cidr is None:
        raise InvalidField("IPPool.spec.cidr", pool.cidr_text, "must be an IP range such as 10.244.0.0/16")
    for range_ in _LINK_LOCAL:
        if cidr.overlaps(range_):
            raise InvalidField("IPPool.spec.cidr", cidr, f"overlaps with the link-local range {range_}")
    _check_block_size(pool, cidr)
    _check_modes(pool, cidr)
    for use in pool.allowed_uses:
        if use not in _USES:
            raise InvalidField("IPPool.spec.allowedUses", use, f"must be one of {', '.join(_USES)}")


def _check_block_size(pool: Pool, cidr: Cidr) -> None:
    shortest, longest = _BLOCK_SIZES[cidr.version]
    size = pool.block_size or DEFAULT_BLOCK_SIZE[cidr.version]
    if not shortest <= size <= longest:
        reason = f"must be {shortest} to {longest} for IPv{cidr.version}"
        raise InvalidField("IPPool.spec.blockSize", size, reason)
    if cidr.length > size and not pool.disabled:
        reason = f"the pool is smaller than one block of /{size}; choose a wider range or a blockSize up to"
        raise InvalidField("IPPool.spec.cidr", cidr, f"{reason} {BITS[cidr.version]}")


def _check_modes(pool: Pool, cidr: Cidr) -> None:
    given = {"ipipMode": pool.ipip_mode, "vxlanMode": pool.vxlan_mode, "assignmentMode": pool.assignment_mode}
    for name, value in given.items():
        if value not in _MODES[name]:
            raise InvalidField(f"IPPool.spec.{name}", value, f"must be one of {', '.join(_MODES[name][1:])}")
    encapsulates = pool.ipip_mode not in ("", NEVER)
    if encapsulates and cidr.version == V6:
        raise InvalidField("IPPool.spec.ipipMode", pool.ipip_mode, "IP-in-IP exists for IPv4 only")
    if encapsulates and pool.vxlan_mode not in ("", NEVER):
        raise InvalidField("IPPool.spec.ipipMode", pool.ipip_mode, "excludes a vxlanMode other than Never")
