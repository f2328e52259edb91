"""Configurations and CNI_ARGS with one thing spoilt: what somebody may make of them between a container's ADD and DEL.

Shared by the plugins' tests that a DEL minds only what it needs. A *path* says where a member is in a JSON document:
the keys, and the positions in lists, that lead to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from hypothesis import strategies as st

from domain.value import Value

Path = tuple[str | int, ...]

# Of every JSON type, and absurd ones of the right type.
VALUES: tuple[Any, ...] = (
    *(None, True, False),
    *(0, -1, 9999, 2**40, 2**63, -(2**70), 1.5),
    *("", "x", "%d", "\0", "../..", "a b", "x" * 300, "\u20ac"),
    *([], [None], [[]], [{}], ["x"], [1]),
    *({}, {"": None}, {"type": 5}, {"x": {"y": []}}),
)


class Spoilt(Value):
    """`text` is the document with the member at `path` replaced by `value`, or removed."""

    path: Path
    value: Any
    text: str


def paths(document: Any, before: Path = ()) -> Iterator[Path]:
    """Every member of a document, the outer ones first."""
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in members:
        yield (*before, key)
        if isinstance(value, (dict, list)):
            yield from paths(value, (*before, key))


def with_member(document: Any, path: Path, value: Any) -> Any:
    """A copy in which this member is `value`; objects on the way to it are made where there are none."""
    key, *rest = path
    copy: Any = document.copy()
    inner = copy.get(key, {}) if isinstance(copy, dict) else copy[key]
    copy[key] = with_member(inner, tuple(rest), value) if rest else value
    return copy


def without_member(document: Any, path: Path) -> Any:
    key, *rest = path
    copy: Any = document.copy()
    if rest:
        copy[key] = without_member(copy[key], tuple(rest))
    else:
        del copy[key]
    return copy


def may_be_spoilt(path: Path, needed: Collection[Path]) -> bool:
    """Neither needed itself, nor part of what is needed, nor the way to it."""
    return not any(path[: len(one)] == one[: len(path)] for one in needed)


@st.composite
def spoilt_documents(
    draw: st.DrawFn, document: dict[str, Any], needed: Collection[Path], more: Collection[Path] = ()
) -> Spoilt:
    """The document with one member spoilt that is not `needed`. `more` are members that it does not have, but could."""
    there = [path for path in paths(document) if may_be_spoilt(path, needed)]
    path = draw(st.sampled_from([*there, *[path for path in more if may_be_spoilt(path, needed)]]))
    value = draw(st.sampled_from(VALUES))
    if path in there and draw(st.integers(0, 9)) == 0:
        return Spoilt(path, "(removed)", json.dumps(without_member(document, path)))
    return Spoilt(path, value, json.dumps(with_member(document, path, value)))


PAIRS: tuple[str, ...] = (
    *("", "=", "A", "A=b=c", "FOO=bar", "IP=", "IP=zz", "IP=10.0.0.1/24", "MAC=zz", "GATEWAY=x"),
    *("IgnoreUnknown=", "IgnoreUnknown=maybe", "IgnoreUnknown=0", "K8S_POD_INFRA_CONTAINER_ID=\u20ac"),
)


@st.composite
def spoilt_args(draw: st.DrawFn, args: str, needed: Collection[str]) -> str:
    """CNI_ARGS with one pair more, or another one in place of a pair whose key is not `needed`."""
    pairs: list[str] = args.split(";") if args else []
    kept = [pair for pair in pairs if pair.partition("=")[0] in needed]
    others = [pair for pair in pairs if pair not in kept]
    if others and draw(st.sampled_from((False, True))):
        others.remove(draw(st.sampled_from(others)))
    mixed = [*kept, *others]
    mixed.insert(draw(st.integers(0, len(mixed))), draw(st.sampled_from(PAIRS)))
    return ";".join(mixed)
