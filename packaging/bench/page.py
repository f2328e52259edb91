#!/usr/bin/env python3
"""The page about a run of `make bench`: docs/benchmarks.md and its charts, from results.json.

    page.py build/bench/results.json docs      writes docs/benchmarks.md and docs/pictures/bench-*.svg

Invariant: every figure on it is of that one run, which the page names with its machine and load; nothing is kept of an
earlier one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from charts import bursts_chart, calls_chart, growth_chart, named

_HEAD = """# Benchmarks

One run of `make bench`, which has written this page: what a call of a plugin costs as a whole process, beside a
floor{peer}. [Performance](performance.md) says what is measured and how, what the floor is, and where the time
goes. Candidates take turns, so compare inside this page only.

{machine}

| candidate | is |
|---|---|
{candidates}

"""
_ALONE = """Medians in ms, on a logarithmic scale; of wall time a line leads to the 90th percentile. Processor time
is the call's own; that of servers is not in it, and a busy machine stretches it little.

![Wall time](pictures/bench-wall.svg)

![Processor time](pictures/bench-processor.svg)
"""
_GROWN = """ADD and DEL in ms, with so many more records of one kind: blocks of other nodes, other nodes, handles,
and own pods.

![In larger clusters](pictures/bench-growth.svg)
"""
_CANDIDATES = {
    "interpreter": "a Python that does nothing but start",
    "floor": "what the same call asks of the kernel, by a static C program and `ip -batch`",
    "executable": "ours, as one static executable (`make dist`)",
    "bundle": "ours on the machine's Python (`make build`), lean transports",
    "library": "the same, library transports",
    "peer": "another implementation",
}


def page(whole: dict[str, Any]) -> dict[str, str]:
    """Texts by file name, for a folder of documents."""
    files: dict[str, str] = {}
    parts = [_head(whole)]
    calls, bursts, growth = whole["calls"], whole["bursts"], whole["growth"]
    if calls:
        files["pictures/bench-wall.svg"] = calls_chart(calls, "wall_ms", "Wall time of a call, ms")
        files["pictures/bench-processor.svg"] = calls_chart(calls, "processor_ms", "Processor time of a call, ms")
        parts += ["## Each call alone\n", _ALONE, _table(_CALLS, _calls(calls))]
    if bursts:
        files["pictures/bench-bursts.svg"] = bursts_chart(bursts)
        parts += ["## Bursts\n", "![ADDs a second](pictures/bench-bursts.svg)\n", _table(_BURSTS, _bursts(bursts))]
    if growth:
        files["pictures/bench-growth.svg"] = growth_chart(growth)
        parts += ["## Grown clusters\n", _GROWN, _table(_GROWTH, _growth(growth))]
    if whole["bridge"]:
        rows = [f"| {name} | {value:.1f} |" for name, value in whole["bridge"].items()]
        parts += ["## The bridge plugin\n", _table("| call | wall, ms |\n|---|---:|", rows)]
    parts += ["## The goals\n"]
    parts += ["On an idle machine; this one was busy, so those about wall time are to be tried again.\n"] * _busy(
        whole["machine"]
    )
    parts += [_table("| goal | measured | |\n|---|---:|---|", _goals(whole["goals"]))]
    files["benchmarks.md"] = "\n".join(parts).rstrip() + "\n"
    return files


def _busy(about: dict[str, Any]) -> bool:
    """Whether something else wanted the processors when the run began."""
    return bool(about["load_before"][0] > about["cores"] / 2)


def _head(whole: dict[str, Any]) -> str:
    about, subjects = whole["machine"], {row["subject"] for row in whole["calls"]}
    loads = [", ".join(f"{one:.1f}" for one in about[name]) for name in ("load_before", "load_after")]
    told = (
        f"{about['date']}; {about['cores']} cores ({about['processor']}), "
        f"Linux {about['kernel'].partition('-')[0]}, {about['machine']};\n"
        f"{about.get('rounds', 0)} rounds; load before {loads[0]}, after {loads[1]}."
    )
    told += (
        " **The machine had other work**, which stretches wall time at will: look at processor time."
        if _busy(about)
        else ""
    )
    candidates = "\n".join(f"| {name} | {text} |" for name, text in _CANDIDATES.items() if name in subjects)
    peer = ", beside another implementation" if "peer" in subjects else ""
    return _HEAD.format(peer=peer, machine=told, candidates=candidates).rstrip() + "\n"


_CALLS = """| call | candidate | calls | wall | p90 | processor | memory, MiB | wall ÷ floor |
|---|---|---:|---:|---:|---:|---:|---:|"""
_BURSTS = """| burst | candidate | at once | calls | seconds | a second | processors in use | failed |
|---|---|---:|---:|---:|---:|---:|---:|"""
_GROWTH = """| more | datastore | count | ADD | DEL | the floor's both |
|---|---|---:|---:|---:|---:|"""


def _table(head: str, rows: Any) -> str:
    return "\n".join([head, *rows]) + "\n"


def _calls(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        figures = " | ".join(f"{row[name]:.1f}" for name in ("wall_ms", "wall_ms_p90", "processor_ms", "peak_mib"))
        floor = f"{row['times_floor']:.1f}" if "times_floor" in row else ""
        yield f"| {named(row['verb'], row['store'])} | {row['subject']} | {row['calls']} | {figures} | {floor} |"


def _bursts(rows: list[dict[str, Any]]) -> Iterator[str]:
    for one in rows:
        call = named(one["verb"], one["store"])
        figures = (
            f"{one['seconds']:.2f} | {one['calls'] / one['seconds']:.1f} | {one['busy']:.0%} | {one['failed'] or ''}"
        )
        yield f"| {call} | {one['subject']} | {one['at_once']} | {one['calls']} | {figures} |"


def _growth(rows: list[dict[str, Any]]) -> Iterator[str]:
    for one in rows:
        store = named("", one["store"]).removeprefix(", ")
        floor = one["floor_add"] + one["floor_delete"]
        yield f"| {one['what']} | {store} | {one['more']:,} | {one['add']:.1f} | {one['delete']:.1f} | {floor:.1f} |"


def _goals(rows: list[dict[str, Any]]) -> Iterator[str]:
    words = {True: "met", False: "**not met**", None: "not measured"}
    yield from (f"| {one['goal']} | {one['measured']} | {words[one['met']]} |" for one in rows)


def write(results: Path, folder: Path) -> None:
    for name, text in page(json.loads(results.read_text())).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
