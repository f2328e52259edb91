"""A log record as one line of JSON, for programs that collect logs (the text form is in entrypoints/logs.py).

    {"time":"2026-11-29T13:06:12.345Z","level":"info","call":"5f0c6a2e91d3b784","plugin":"cni-plugin","command":"ADD",
     "container":"e0…","ifname":"eth0","pod":"default/web-0","source":"skel.py:42","pid":4711,
     "message":"CNI ADD succeeded.","devices":["cali…"],"ips":["10.0.0.1/26"],"seconds":0.021}

All records of one call have its `call`; `container` and the like are there as soon as they are known. A field of a
record's own that is called like one of these gets a `_` at its end.

Invariant: a record is one line of JSON whatever it holds, and nothing in it moves a terminal's cursor.
"""

from __future__ import annotations

import os

from domain.json_text import JsonError, dumps, parse, whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.json_text import Json

FORMATS = ("", "text", "json")


def call_id() -> str:
    """By chance, so that calls of all nodes can be told apart."""
    return os.urandom(8).hex()


def said(answer: str) -> dict[str, object]:
    """Addresses and the host's devices of a plugin's answer, as far as it has any; of every version of CNI."""
    try:
        result = parse(answer)
    except JsonError:
        return {}
    if not isinstance(result, dict):
        return {}
    older = [result.get(family) for family in ("ip4", "ip6")]
    ips = [*_texts(result.get("ips"), "address"), *_texts(older, "ip")]
    interfaces = result.get("interfaces")
    listed = interfaces if isinstance(interfaces, list) else []
    of_host = [one for one in listed if isinstance(one, dict) and not one.get("sandbox")]
    found: dict[str, object] = {"devices": _texts(of_host, "name"), "ips": ips}
    return {name: texts for name, texts in found.items() if texts}


def _texts(items: object, member: str) -> list[str]:
    listed = items if isinstance(items, list) else []
    return [str(item[member]) for item in listed if isinstance(item, dict) and item.get(member)]


def json_line(head: Mapping[str, Json], message: str, fields: Mapping[str, object]) -> bytes:
    """`head` is what every record has."""
    record: dict[str, Json] = {**head, "message": message}
    for key in sorted(fields):
        value = _plain(fields[key])
        if key not in record:
            record[key] = value
        elif record[key] != value:
            record[f"{key}_"] = value
    return (_visible(dumps(record)) + "\n").encode("utf-8", "replace")


def _plain(value: object) -> Json:
    """Errors and our own values as their text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _visible(text: str) -> str:
    """Outside of its strings the text is ASCII."""
    if text.isprintable():
        return text
    return "".join([character if character.isprintable() else _escaped(character) for character in text])


def _escaped(character: str) -> str:
    units = whole_characters(character).encode("utf-16-be")
    return "".join([f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)])
