"""IP addresses and CIDRs as numbers, with the one spelling the datastore uses for each.

Block keys, handles and the order of allocation all hang on two spellings being equal exactly when the addresses are,
so text is read and written here only: IPv4 dotted, IPv6 compressed lower-case (RFC 5952). Reading follows Go's
`net.ParseIP` and `net.ParseCIDR`: no leading zeros, no zones, an IPv4-mapped IPv6 address is IPv4.

Invariant: `Address.parse(str(a)) == a` and `Cidr.parse(str(c)) == c`.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

V4, V6 = 4, 6
BITS = {V4: 32, V6: 128}
_MAPPED = 0xFFFF << 32
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")


def _read_v4(text: str) -> int | None:
    parts = text.split(".")
    if len(parts) != 4:
        return None
    number = 0
    for part in parts:
        if not part or len(part) > 3 or not _DIGITS.issuperset(part) or (part[0] == "0" and part != "0"):
            return None
        if int(part) > 255:
            return None
        number = number << 8 | int(part)
    return number


def _read_groups(text: str) -> list[int] | None:
    """The 16-bit groups of one side of `::`; a dotted tail counts as two."""
    groups: list[int] = []
    parts = text.split(":") if text else []
    for at, part in enumerate(parts):
        if "." in part and at == len(parts) - 1:
            tail = _read_v4(part)
            if tail is None:
                return None
            groups += [tail >> 16, tail & 0xFFFF]
        elif not part or len(part) > 4 or not _HEX.issuperset(part):
            return None
        else:
            groups.append(int(part, 16))
    return groups


def _read_v6(text: str) -> int | None:
    left_text, gap, right_text = text.partition("::")
    left, right = _read_groups(left_text), _read_groups(right_text)
    if left is None or right is None or (gap and "." in left_text):
        return None
    missing = 8 - len(left) - len(right)
    if (missing < 1) if gap else (missing != 0):
        return None
    number = 0
    for group in [*left, *[0] * missing, *right]:
        number = number << 16 | group
    return number


def _write_v6(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -16, -16)]
    best_start, best_length, start = -1, 1, -1  # the first longest run of two or more zero groups becomes `::`
    for at, group in enumerate(groups):
        if group:
            start = -1
            continue
        if start < 0:
            start = at
        if at - start + 1 > best_length:
            best_start, best_length = start, at - start + 1
    if best_start < 0:
        return ":".join(f"{group:x}" for group in groups)
    left = ":".join(f"{group:x}" for group in groups[:best_start])
    right = ":".join(f"{group:x}" for group in groups[best_start + best_length :])
    return f"{left}::{right}"


class BadAddressText(ValueError):
    """A text that is no address, or no CIDR. `str()` is Go's text."""


class Address(Value):
    """One IP address. `version` is 4 or 6, `number` the address as an unsigned integer."""

    version: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """BadAddressText `invalid IP address: <text>` for anything Go's `net.ParseIP` refuses."""
        number = _read_v4(text)
        if number is not None:
            return cls(V4, number)
        number = _read_v6(text)
        if number is None:
            raise BadAddressText(f"invalid IP address: {text}")
        if number >> 32 == _MAPPED >> 32:
            return cls(V4, number & 0xFFFFFFFF)
        return cls(V6, number)

    def __str__(self) -> str:
        if self.version == V6:
            return _write_v6(self.number)
        return ".".join(str(self.number >> shift & 0xFF) for shift in (24, 16, 8, 0))

    @property
    def host_cidr(self) -> Cidr:
        """The address alone: /32 or /128."""
        return Cidr(self.version, self.number, BITS[self.version])


class Cidr(Value):
    """An address with a prefix length. `number` may carry host bits; `network` clears them."""

    version: int
    number: int
    length: int

    @classmethod
    def parse(cls, text: str) -> Cidr:
        """Host bits are kept. BadAddressText `invalid CIDR address: <text>` for what Go's `net.ParseCIDR` refuses."""
        head, slash, tail = text.partition("/")
        try:
            address = Address.parse(head)
        except ValueError:
            raise BadAddressText(f"invalid CIDR address: {text}") from None
        mapped = address.version == V4 and ":" in head
        limit = BITS[V6] if mapped else BITS[address.version]
        if not slash or not tail or len(tail) > 3 or not _DIGITS.issuperset(tail) or int(tail) > limit:
            raise BadAddressText(f"invalid CIDR address: {text}")
        if mapped and int(tail) < 96:
            raise BadAddressText(f"invalid CIDR address: {text}")
        return cls(address.version, address.number, int(tail) - 96 if mapped else int(tail))

    @classmethod
    def parse_lenient(cls, text: str) -> Cidr:
        """Like `parse`, but a bare address counts as /32 or /128."""
        return cls.parse(text) if "/" in text else Address.parse(text).host_cidr

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    @property
    def address(self) -> Address:
        return Address(self.version, self.number)

    @property
    def size(self) -> int:
        """How many addresses the prefix covers."""
        return 1 << (BITS[self.version] - self.length)

    @property
    def network(self) -> Cidr:
        """The same prefix with host bits cleared: the form that keys and records use."""
        return Cidr(self.version, self.number // self.size * self.size, self.length)

    @property
    def first(self) -> int:
        return self.number // self.size * self.size

    @property
    def end(self) -> int:
        """One past the last address, as a number."""
        return self.first + self.size

    def __contains__(self, item: Address | Cidr) -> bool:
        """Whether an address, or the whole of another prefix, lies inside."""
        if item.version != self.version:
            return False
        if isinstance(item, Cidr):
            return self.first <= item.first and item.end <= self.end
        return self.first <= item.number < self.end

    def overlaps(self, other: Cidr) -> bool:
        return self.version == other.version and self.first < other.end and other.first < self.end

    def at(self, ordinal: int) -> Address:
        """The address that many places after the first one."""
        return Address(self.version, self.first + ordinal)


def covers(reserved: Iterable[Cidr], cidr: Cidr) -> bool:
    """Whether the prefixes together cover all of `cidr`."""
    inside = sorted((kept.first, kept.end) for kept in reserved if kept.overlaps(cidr))
    reached = cidr.first
    for first, end in inside:
        if first > reached:
            return False
        reached = max(reached, end)
    return reached >= cidr.end
