"""Limits on a pod's traffic, from its annotations to the endpoint's `qosControls`.

A limit that cannot be read or kept never stops a pod: it is brought within bounds or dropped, and a warning says so.

Invariant: every number in the result lies within its bounds, and no limit is there without the one that it refines. A
quantity (`10M`, `1.5Gi`, `2e3`) is exact, rounded up to a whole number; no text makes it take long or hold much memory.
"""

from __future__ import annotations

from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.json_text import Json

_CALICO = "qos.projectcalico.org/"
_DIRECTIONS = ("ingress", "egress")
# In the order of the record. Bits and bits a second, but minimum bursts in bytes; packets and packets a second.
_BOUNDS = {
    "Bandwidth": (1000, 10**15),
    "Burst": (1000, 34359738360),
    "Peakrate": (1010, 1010 * 10**12),
    "Minburst": (1000, 10**8),
    "PacketRate": (1, 10000),
    "PacketBurst": (1, 10000),
    "MaxConnections": (1, 2**32 - 1),
}
_DEFAULTS = (("Bandwidth", "Burst", 4 << 30), ("PacketRate", "PacketBurst", 5))
_REFINED = (("Burst", "Bandwidth"), ("Peakrate", "Bandwidth"), ("Minburst", "Peakrate"), ("PacketBurst", "PacketRate"))
_DSCP_NAMES = frozenset(
    ["DF", "EF", *[f"AF{klass}{drop}" for klass in range(1, 5) for drop in range(1, 4)], *[f"CS{n}" for n in range(7)]]
)
_DSCP_END = 64
_DIGITS = "0123456789"
_LONGEST = 64  # of a number; nobody means more, and the arithmetic is exact
_SUFFIXES = {"n": (-9, 0), "u": (-6, 0), "m": (-3, 0), "": (0, 0)}
_SUFFIXES |= {letter: (3 * power, 0) for power, letter in enumerate("kMGTPE", 1)}
_SUFFIXES |= {letter + "i": (0, 10 * power) for power, letter in enumerate("KMGTPE", 1)}


def qos_controls(annotations: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The JSON text of `qosControls` ("" without any limit), and a warning for each annotation not followed."""
    warnings: list[str] = []
    limits = {direction: _limits(annotations, direction, warnings) for direction in _DIRECTIONS}
    record: dict[str, Json] = {
        direction + kind: limits[direction][kind]
        for kind in _BOUNDS
        for direction in _DIRECTIONS
        if limits[direction][kind]
    }
    dscp = _dscp(annotations.get(_CALICO + "dscp", ""), warnings)
    if dscp is not None:
        record["dscp"] = dscp
    return dumps(record) if record else "", tuple(warnings)


def _limits(annotations: Mapping[str, str], direction: str, warnings: list[str]) -> dict[str, int]:
    """All kinds of limits in one direction, 0 for none."""
    limits = {kind: _limit(annotations, direction, kind, warnings) for kind in _BOUNDS}
    if 0 < limits["Peakrate"] <= limits["Bandwidth"]:
        warnings.append(f"{_CALICO}{direction}Peakrate is dropped: it is not above the bandwidth")
        limits["Peakrate"] = 0
    for kind, refined in _REFINED:
        if limits[kind] and not limits[refined]:
            warnings.append(f"{_CALICO}{direction}{kind} is dropped: there is no {direction}{refined}")
            limits[kind] = 0
    for kind, dependent, default in _DEFAULTS:
        if limits[kind]:
            limits[dependent] = limits[dependent] or default
    return limits


def _limit(annotations: Mapping[str, str], direction: str, kind: str, warnings: list[str]) -> int:
    """The limit by the first of its annotations that can be read: ours, then Kubernetes' own for a bandwidth."""
    keys = [_CALICO + direction + kind]
    if kind == "Bandwidth":
        keys.append(f"kubernetes.io/{direction}-bandwidth")
    for key in keys:
        raw = annotations.get(key, "")
        try:
            asked = parse_quantity(raw) if raw else None
        except ValueError as error:
            warnings.append(f"{key} is not followed: {error}")
            continue
        if asked is not None:
            return _bounded(key, asked, _BOUNDS[kind], warnings)
    return 0


def _bounded(key: str, asked: int, bounds: tuple[int, int], warnings: list[str]) -> int:
    low, high = bounds
    given = min(max(asked, low), high)
    if given != asked:
        warnings.append(f"{key} is set to {given}: it must lie between {low} and {high}")
    return given


def _dscp(raw: str, warnings: list[str]) -> int | str | None:
    """The mark for outgoing packets: a number as such, a standard name in capitals."""
    if raw.upper() in _DSCP_NAMES:
        return raw.upper()
    if raw.isascii() and raw.isdigit() and len(raw) <= 2 and int(raw) < _DSCP_END:
        return int(raw)
    if raw:
        warnings.append(f"{_CALICO}dscp is not followed: {raw} is neither 0 to 63 nor a standard name")
    return None


class BadQuantity(ValueError):
    """A text that Kubernetes takes for no quantity."""


def parse_quantity(text: str) -> int:
    """The whole number at or above a quantity. BadQuantity for what is none, and for absurdly long ones."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    number = unsigned[: len(unsigned) - len(unsigned.lstrip(_DIGITS + "."))]
    whole, _, fraction = number.partition(".")
    scale = _scale(unsigned[len(number) :])
    if scale is None or "." in fraction or not 0 < len(whole + fraction) <= _LONGEST:
        raise BadQuantity(f"no Kubernetes quantity: {text}")
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
