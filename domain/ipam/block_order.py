"""In which order a node tries the blocks of a pool: a start drawn from its name, then upwards, wrapping round.

Nodes of one cluster thus start at different places and rarely want the same block. The draw repeats the original's
(FNV-1 of the name seeds Go's `math/rand`), so that a node keeps its order whichever implementation serves it.

Invariant: walking a pool visits each of its blocks at most once, all inside the pool, and skips what it is told to
skip without looking at it block by block.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Cidr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULUS = (1 << 31) - 1
_MULTIPLIER = 48271
_STATE, _TAP = 607, 273
_WORD = (1 << 64) - 1


def name_seed(name: str) -> int:
    """FNV-1 (not 1a), 32 bits, of the name's UTF-8 bytes."""
    seed = 2166136261
    for byte in name.encode():
        seed = seed * 16777619 & 0xFFFFFFFF ^ byte
    return seed


class _GoRandom:
    """Go's additive lagged generator: x(n) = x(n-607) + x(n-273) mod 2^64.

    Only the few state words that are asked for are computed: seeding is a power of the multiplier, not 1,800 steps.
    """

    def __init__(self, seed: int) -> None:
        from domain.ipam.go_random_table import COOKED  # 25 kB that only a claim of a new block needs

        self._cooked = COOKED
        self._seed = seed % _MODULUS or 89482311
        self._drawn: list[int] = []

    def _initial(self, position: int) -> int:
        def step(number: int) -> int:
            return self._seed * pow(_MULTIPLIER, number, _MODULUS) % _MODULUS

        first = 21 + 3 * position
        mixed = step(first) << 40 ^ step(first + 1) << 20 ^ step(first + 2)
        return (mixed ^ self._cooked[position]) & _WORD

    def _word(self, number: int) -> int:
        """x(number); negative numbers are the initial state."""
        if number >= 0:
            return self._drawn[number]
        return self._initial((_STATE - _TAP - 1 - (number + _STATE)) % _STATE)

    def uint32(self) -> int:
        number = len(self._drawn)
        word = self._word(number - _STATE) + self._word(number - _TAP) & _WORD
        self._drawn.append(word)
        return (word & _WORD >> 1) >> 31

    def below(self, limit: int) -> int:
        """What Go's `big.Int.Rand` draws: whole 64-bit words, the top one masked, repeated until below the limit."""
        words = (limit.bit_length() + 63) // 64
        mask = (1 << limit.bit_length()) - 1
        while True:
            number = 0
            for place in range(words):
                low = self.uint32()
                number |= (low | self.uint32() << 32) << (64 * place)
            number &= mask
            if number < limit:
                return number


def start_index(pool: Cidr, block_length: int, seed: int) -> int:
    """The place in the pool, counted in blocks, at which the walk starts."""
    return _GoRandom(seed).below(1 << (block_length - pool.length))


def walk(pool: Cidr, block_length: int, seed: int, skip: Skip) -> Iterator[Cidr]:
    """The pool's blocks in the node's order, without those that `skip` covers. None if it is smaller than a block."""
    if pool.length > block_length:
        return
    count = 1 << (block_length - pool.length)
    size = 1 << (BITS[pool.version] - block_length)
    start = start_index(pool, block_length, seed)
    for first, end in ((start, count), (0, start)):
        index = first
        while index < end:
            past = skip.past(pool.first + index * size, size)
            if past is None:
                yield Cidr(pool.version, pool.first + index * size, block_length)
                index += 1
            else:
                index = max(index + 1, (past - pool.first) // size)


class Skip:
    """Which block-sized places to leave out: whole reserved ranges, and blocks known by their first address."""

    def __init__(self, reserved: tuple[Cidr, ...] = (), taken: frozenset[int] = frozenset()) -> None:
        self._ranges = _merged(reserved)
        self._taken = taken

    def past(self, first: int, size: int) -> int | None:
        """None when the place may be used, else the first address from which to go on."""
        if first in self._taken:
            return first + size
        for low, high in self._ranges:
            if low <= first and first + size <= high:
                return high
        return None


def _merged(cidrs: tuple[Cidr, ...]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for low, high in sorted((cidr.first, cidr.end) for cidr in cidrs):
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(high, ranges[-1][1]))
        else:
            ranges.append((low, high))
    return tuple(ranges)
