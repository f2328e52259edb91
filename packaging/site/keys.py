#!/usr/bin/env python3
"""`make keys`: a row for each key in docs/configuration.md, and for each annotation in docs/annotations.md.

What a key is called, which type it has and what counts without it is its parser's to say; what it is for is in words
that somebody has written. So rows are kept, what the parser knows is written into them anew, rows of what is gone are
taken out, and what is new gets a row with a reminder to write about it. A house test wants both documents up to date,
and no reminder in them.

Invariant: a type is what the parser's own reader takes; nothing here knows any key by name.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tables import cells

from domain.bridge import conf as bridge
from domain.bridge import host_local
from domain.cni import netconf
from domain.cni.errors import CniError
from domain.cni.json_fields import WrongType
from domain.workload import annotations as pods
from domain.workload import qos

ROOT = Path(__file__).resolve().parents[2]
REMINDER = "TO BE WRITTEN"
_ANNOTATION = re.compile(r"([a-z0-9-]+\.)+[a-z]+/[\w.-]+")
_SAMPLES: tuple[tuple[str, Any], ...] = (
    ("string", "10.0.0.0/8"),
    ("string", "10.0.0.1"),
    ("boolean", True),
    ("integer", -1),
    ("integer from 0 on", 1),
    ("list of strings", ["10.0.0.1"]),
    ("list of objects", [{}]),
    ("list of objects", [{"dst": "10.0.0.0/8"}]),
    ("list of lists of objects", [[{"subnet": "10.0.0.0/8"}]]),
    ("object", {}),
)


class Key(NamedTuple):
    """`path` is as one writes it, with dots; `default` "" where there is none but in words."""

    path: str
    type: str
    default: str


def _nested(read: Callable[..., Any]) -> Mapping[str, Any]:
    """The table of an object's members, which its reader keeps."""
    kept = inspect.getclosurevars(read).nonlocals
    if "fields" in kept:
        return dict(kept["fields"])
    return _nested(kept["read_one"]) if "read_one" in kept else {}


def _takes(read: Callable[..., Any], sample: object) -> bool:
    try:
        read(sample, "")
    except (WrongType, CniError, ValueError):
        return False
    return True


def _type(read: Callable[..., Any]) -> str:
    if read.__name__ == "_raw":
        return "object"
    taken = [name for name, sample in _SAMPLES if _takes(read, sample)]
    if "integer" in taken:
        taken.remove("integer from 0 on")
    return " or ".join(dict.fromkeys(taken))


def _walk(fields: Mapping[str, Any], path: str = "", at: tuple[str, ...] = ()) -> Iterator[tuple[Key, tuple[str, ...]]]:
    for name, (target, read) in fields.items():
        whole = f"{path}{name}"
        yield Key(whole, _type(read), ""), (*at, target)
        yield from _walk(_nested(read), f"{whole}.", (*at, target))


def _found(value: Any, at: tuple[str, ...]) -> object:
    """What a configuration that says nothing has there. A part that is spread over the whole is looked for in that."""
    for name in at:
        value = getattr(value, name, value)
    return value if isinstance(value, (str, int)) else ""


def _spelt(value: object) -> str:
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    return f"`{value}`" if value else ""


def _with_defaults(fields: Mapping[str, Any], value: Any, other: Any = None) -> Iterator[Key]:
    for key, at in _walk(fields):
        first, second = (_spelt(_found(one, at)) if one is not None else "" for one in (value, other))
        differs = other is not None and first != second
        yield key._replace(default=f"{first}, as `bridge` {second or '–'}" if differs else first)


def of_each_plugin() -> dict[str, list[Key]]:
    """By the document's headings."""
    own, drop_in = (bridge.read_bridge_conf({}, own_name=own_name) for own_name in (True, False))
    place = {"directory": host_local.DEFAULT_DIRECTORY}
    return {
        "calico and calico-ipam": list(_with_defaults(netconf._NETCONF, netconf.NetConf())),
        "my-custom-cni and bridge": list(_with_defaults(bridge._CONF, own, drop_in)),
        "The built-in host-local": [
            key._replace(default=_spelt(place.get(at[-1], ""))) for key, at in _walk(host_local._NET)
        ],
    }


def of_pods() -> dict[str, str]:
    """Annotations that somebody may read on a pod or namespace, with the bounds of those that have some."""
    found = {name: "" for name in vars(pods).values() if isinstance(name, str) and _ANNOTATION.fullmatch(name)}
    for direction in qos._DIRECTIONS:
        for kind, (low, high) in qos._BOUNDS.items():
            found[f"{qos._CALICO}{direction}{kind}"] = f"a quantity from {low:,} to {high:,}"
        found[f"kubernetes.io/{direction}-bandwidth"] = found[f"{qos._CALICO}{direction}Bandwidth"]
    return {**found, f"{qos._CALICO}dscp": f"0 to {qos._DSCP_END - 1}, or {', '.join(sorted(qos._DSCP_NAMES))}"}


class Sheet(NamedTuple):
    """A document with a row for each thing.

    `facts` gives, by heading and thing, the cells after the first that are not written by hand; "" there leaves what
    somebody has written. Under the heading "" it is about the whole document.
    """

    document: str
    columns: tuple[str, ...]
    facts: Mapping[str, Mapping[str, tuple[str, ...]]]

    def written(self, text: str) -> str:
        """The document as it has to be."""
        lines: list[str] = []
        wanted = dict(self.facts.get("", {}))
        last, ours = 0, False  # the last row's line; whether this table is one of these
        for line in [*text.splitlines(), "## "]:
            there = cells(line) if line.startswith("|") else ()
            if line.startswith("## ") and ("" not in self.facts or line == "## "):
                lines[last + 1 : last + 1] = [self._row(name, wanted[name], ()) for name in wanted]
                wanted = dict(self.facts.get(line[3:], {}))
            if not there:
                ours = False
            elif there == self.columns:
                ours = True
            elif ours and there[0].startswith("`"):
                name = there[0].strip("`")
                if name not in wanted:
                    continue
                line = self._row(name, wanted.pop(name), there)  # noqa: PLW2901 - the same line, as it has to be
            lines.append(line)
            last = len(lines) - 1 if ours else last
        return "\n".join(lines[:-1]) + "\n"

    def _row(self, name: str, facts: tuple[str, ...], there: tuple[str, ...]) -> str:
        """Of a new thing the last cell reminds."""
        hand = there[1:] or ("–",) * (len(self.columns) - 2) + (REMINDER,)
        told = [fact or written for fact, written in zip(facts, hand, strict=True)]
        return f"| `{name}` | {' | '.join(told)} |"


def sheets() -> list[Sheet]:
    keys = {
        heading: {key.path: (key.type, key.default, "", "") for key in found}
        for heading, found in of_each_plugin().items()
    }
    wishes = {"": {name: (value, "", "") for name, value in of_pods().items()}}
    return [
        Sheet("docs/configuration.md", ("key", "type", "default", "since", "what it does"), keys),
        Sheet("docs/annotations.md", ("annotation", "value", "since", "what it does"), wishes),
    ]


def main() -> int:
    """With `--check` nothing is written; 1 if something would have to be, or somebody has to write words."""
    check, faults = sys.argv[1:] == ["--check"], []
    for sheet in sheets():
        path = ROOT / sheet.document
        there, wanted = path.read_text(), sheet.written(path.read_text())
        if check and there != wanted:
            faults.append(f"{sheet.document} is not as `make keys` writes it: run that, and write about what is new")
        elif not check:
            path.write_text(wanted)
        missing = [line.split("|")[1].strip() for line in wanted.splitlines() if REMINDER in line]
        if missing:
            faults.append(f"{sheet.document}: say what {', '.join(missing)} does, in place of {REMINDER}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
