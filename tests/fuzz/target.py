"""What a fuzzer is told of a parser: a function from octets to nothing, inputs to begin with, and what may go wrong.

A target calls a parser as the product does and lets through only the errors that the parser promises. Whatever else
leaves it (another exception, a difference from a library that reads the same, a `Finding`) is a finding.

Invariant: a target depends on its octets alone and leaves nothing behind, so an input fails always or never.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

MOST_SECONDS = 2.0
"""Processor time that an input of a few kilobytes may take: thousands of times what it needs, so only loops do."""


class Finding(AssertionError):
    """A parser answered, but not as it has to."""


@dataclass(frozen=True)
class Target:
    """`form` says how inputs are changed beside their octets: as `json`, as lines of `text`, or not at all (`octets`).

    `skips` is how many octets before the JSON text choose what reads it. `most` is the longest input.
    """

    name: str
    read: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    form: str = "octets"
    skips: int = 0
    most: int = 4096

    def __call__(self, octets: bytes) -> None:
        began = time.process_time()
        self.read(octets)
        took = time.process_time() - began
        if took > MOST_SECONDS:
            raise Finding(f"{len(octets)} octets took {took:.1f} s")


def octets_of(*seeds: str | bytes) -> tuple[bytes, ...]:
    return tuple(seed if isinstance(seed, bytes) else seed.encode("utf-8", "surrogateescape") for seed in seeds)


def text_of(octets: bytes) -> str:
    """As what comes from files and standard input is decoded."""
    return octets.decode("utf-8", "replace")


def one_in(number: int, octets: bytes) -> bool:
    """Whether a costly comparison is made for this input."""
    return zlib.crc32(octets) % number == 0


def require(holds: object, what: str, *shown: object) -> None:
    if not holds:
        raise Finding(f"{what}: {', '.join(map(repr, shown))}")


class Allowed:
    """`with Allowed(CniError): …` passes over the errors that a parser promises; their text must be one."""

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        if kind is None or not issubclass(kind, self._kinds):
            return False
        require(isinstance(str(error), str), "an error without a text", error)
        return True


def attempt(read: Callable[[], object], *kinds: type[Exception]) -> tuple[bool, object]:
    """(True, what was read) or (False, the promised error)."""
    try:
        return True, read()
    except kinds as error:
        return False, error


def selected(readers: Sequence[tuple[bytes, ...]]) -> Iterable[bytes]:
    """Seeds for a target whose first octet chooses a reader."""
    for number, seeds in enumerate(readers):
        for seed in seeds:
            yield bytes([number]) + seed
