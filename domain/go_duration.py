"""Durations as Go spells them: `30m`, `1h15m30.5s`, `250ms`.

Invariant: a text is read as Go's own parser reads it, or refused where that one refuses it. Whole nanoseconds; what is
below one is dropped.
"""

from __future__ import annotations

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DIGITS = "0123456789"
_LARGEST = (1 << 63) - 1


def parse_go_duration(text: str) -> int:
    """Nanoseconds. ValueError `invalid duration "…"`."""
    refused = ValueError(f'invalid duration "{text}"')
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise refused
    total = 0
    while rest:
        number, rest = _leading(rest, f"{_DIGITS}.")
        unit, rest = _until(rest, f"{_DIGITS}.")
        whole, _, fraction = number.partition(".")
        if not (whole or fraction) or "." in fraction or unit not in _UNITS:
            raise refused
        scale = _UNITS[unit]
        total += int(whole or "0") * scale + int(fraction or "0") * scale // 10 ** len(fraction)
        if total > _LARGEST:
            raise refused
    return -total if text.startswith("-") else total


def _leading(text: str, characters: str) -> tuple[str, str]:
    """What the text begins with of these characters, and the rest."""
    rest = text.lstrip(characters)
    return text[: len(text) - len(rest)], rest


def _until(text: str, characters: str) -> tuple[str, str]:
    """What comes before the first of these characters, and the rest."""
    at = next((place for place, one in enumerate(text) if one in characters), len(text))
    return text[:at], text[at:]
