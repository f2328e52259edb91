"""Kubernetes quantities such as `10M`, `1.5Gi` or `2e3`: the way in which annotations state bandwidths and sizes.

Invariant: the result is exact, rounded up to a whole number; no text makes it take long or hold much memory.
"""

from __future__ import annotations

_DIGITS = "0123456789"
_LONGEST = 64  # of a number; nobody means more, and the arithmetic is exact
_SUFFIXES = {"n": (-9, 0), "u": (-6, 0), "m": (-3, 0), "": (0, 0)}
_SUFFIXES |= {letter: (3 * step, 0) for step, letter in enumerate("kMGTPE", 1)}
_SUFFIXES |= {letter + "i": (0, 10 * step) for step, letter in enumerate("KMGTPE", 1)}


def parse_quantity(text: str) -> int:
    """The whole number at or above a quantity. ValueError for what is none, and for absurdly long ones."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    number = unsigned[: len(unsigned) - len(unsigned.lstrip(_DIGITS + "."))]
    whole, _, fraction = number.partition(".")
    scale = _scale(unsigned[len(number) :])
    if scale is None or "." in fraction or not 0 < len(whole + fraction) <= _LONGEST:
        raise ValueError(f"no Kubernetes quantity: {text}")
    tens = scale[0] - len(fraction)
    count: int = int(whole + fraction) * 10 ** max(tens, 0) << scale[1]
    if text.startswith("-"):
        count = -count
    divisor: int = 10 ** max(-tens, 0)
    return -(-count // divisor)


def _scale(suffix: str) -> tuple[int, int] | None:
    """The powers of ten and of two that a suffix stands for; an exponent has at most three digits."""
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    power = suffix[1:]
    digits = power[1:] if power[:1] in {"+", "-"} else power
    if suffix[0] not in "eE" or not 0 < len(digits) <= 3 or digits.strip(_DIGITS):
        return None
    return int(power), 0
