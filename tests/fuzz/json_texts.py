"""JSON itself, beside the standard library's reader."""

from __future__ import annotations

import json
from typing import Any

from domain.json_text import JsonError, dumps, kind_of, parse, whole_characters
from fuzz.target import Target, attempt, octets_of, require, text_of


def _refuse(name: str) -> None:
    raise ValueError(name)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {whole_characters(key): _whole(one) for key, one in value.items()}
    return value


def _json(octets: bytes) -> None:
    text = text_of(octets)
    read, found = attempt(lambda: parse(text), JsonError)
    known, theirs = attempt(lambda: json.loads(text, parse_constant=_refuse), ValueError, RecursionError)
    require(read is known, "only one of us takes the text", text)
    if not read:
        return
    require(found == _whole(theirs), "we read different values", text)
    kind_of(found)
    for indent in (0, 4):
        written = dumps(found, indent)
        require(parse(written) == found, "a value does not read back", text, written)
        require(json.loads(written) == found, "the library reads another value back", text, written)


TARGETS = (
    Target(
        "json_text",
        _json,
        octets_of(
            *('{"a": [1, -2.5e+3, true, null, "\\u00e9\\ud83d\\ude00\\ud800"]}', " [] ", '"\\"', "1 2", "NaN", "[[[["),
            *('{"a":1,"a":2}', "-", "1.", "1e5", "0123", '"\t"', "\ufeff{}", "<&>\u2028", "[" * 200 + "]" * 200),
        ),
        form="json",
    ),
)
