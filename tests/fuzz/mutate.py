"""Changes to an input that octets alone seldom hit upon: a JSON value of another type, a line twice, an odd text.

Invariant: the same octets, length and `random` give the same change.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, -(2**63) - 1, 10**40, 1.5, 1e308, -0.0),
    *("", " ", "\0", "\n", "é", "\ud800", "💥", "a" * 300, "true", "null", "0", "-1", "1.5", "%d", "%s", "../x", "a/b"),
    *("default", "0.0.0.0", "0.0.0.0/0", "::", "::/0", "10.0.0.1", "10.0.0.1/33", "fe80::1%eth0", "::ffff:10.0.0.1"),  # noqa: S104 - an address to read
    *("10.0.0.0/8", "2001:db8::/64", "2026-11-29T13:06:12Z", "aa:bb:cc:dd:ee:ff", "usePodCidr"),
    *([], {}, [None], [[]], [{}], {"": None}, [""], {"a": {}}),
)
ODD_TEXTS = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\r\n", b"\t", b"\\u0000", b"\\ud800", b"1e999", b"-0", b"NaN", b"9" * 30),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"',
        b"'",
        b"#",
        b"- ",
        b"? ",
        b"&a ",
        b"*a",
        b"!!",
        b"%",
        b"|",
        b">",
        b"---\n",
    ),
)


def mutate(octets: bytes, most: int, random: Random, form: str, skips: int = 0) -> bytes:
    """A changed copy, at most that long."""
    head, rest = octets[:skips], octets[skips:]
    if form == "json" and random.random() < 0.8:
        changed = _other_json(rest, random)
        if changed is not None and len(head) + len(changed) <= most:
            return head + changed
    if form == "text" and random.random() < 0.5:
        return head + _other_lines(rest, random)[: most - len(head)]
    return _other_octets(octets, random)[:most]


def _other_json(octets: bytes, random: Random) -> bytes | None:
    try:
        document = json.loads(octets)
    except (ValueError, RecursionError):
        return None
    holder = [document]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _change(holder, random)
    try:
        return json.dumps(holder[0] if holder else None, ensure_ascii=random.random() < 0.5).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def _place(holder: Any, random: Random) -> tuple[Any, Any]:
    """(collection, key) of something inside, deep or not; `holder` is not empty."""
    while True:
        key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
        value = holder[key]
        if not value or not isinstance(value, (dict, list)) or random.random() < 0.15:
            return holder, key
        holder = value


def _change(whole: list[Any], random: Random) -> None:
    if not whole:
        return
    holder, key = _place(whole, random)
    value, kind = holder[key], random.randrange(6)
    if kind == 0 and isinstance(holder, dict):
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[random.choice((key.upper(), key + "x", "", "name", "cidr", *map(str, ODD_VALUES[15:20])))] = value
    elif kind == 2 and isinstance(holder, list):
        holder.append(_copy(value))
    elif kind == 3:
        holder[key] = [_copy(value)] if random.random() < 0.5 else {"a": _copy(value)}
    else:
        holder[key] = _other_value(value, whole, random)


def _other_value(value: Any, whole: list[Any], random: Random) -> Any:
    """A little different, or of another place, or odd."""
    if random.random() < 0.3:
        other, place = _place(whole, random)
        return _copy(other[place])
    if isinstance(value, str) and random.random() < 0.5:
        return _other_octets(value.encode("utf-8", "replace"), random).decode("utf-8", "replace")
    if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.5:
        return value + random.choice((1, -1, 255, 2**16, -(2**32)))
    return _copy(random.choice(ODD_VALUES))


def _copy(value: Any) -> Any:
    """So that no collection gets into itself."""
    return json.loads(json.dumps(value)) if isinstance(value, (dict, list)) else value


def _other_lines(octets: bytes, random: Random) -> bytes:
    lines = octets.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0:
        lines.insert(at, lines[other])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at] = b" " * random.randrange(1, 5) + lines[at]
    elif kind == 3:
        lines[at] = lines[at].removeprefix(b"  ")
    else:
        lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def _other_octets(octets: bytes, random: Random) -> bytes:
    """One to four small changes."""
    changed = bytearray(octets)
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(changed) + 1)
        end = min(len(changed), at + random.choice((1, 1, 2, 4, 16)))
        kind = random.randrange(6)
        if kind == 0:
            changed[at:at] = random.choice(ODD_TEXTS)
        elif kind == 1:
            del changed[at:end]
        elif kind == 2:
            changed[at:end] = bytes(random.randrange(256) for _ in range(end - at))
        elif kind == 3:
            changed[at:at] = changed[at:end]
        elif kind == 4 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        else:
            start = random.randrange(len(octets) + 1)
            changed[at:at] = octets[start : start + random.randrange(1, 17)]
    return bytes(changed)
