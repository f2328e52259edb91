"""What a run of `make bench` leaves: a table on stdout, and below build/bench results.json and charts."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from process import Sample
from results import Growth, Results

_COLOURS = {"floor": "#999999", "executable": "#1b7837", "bundle": "#5aae61", "library": "#c2a5cf", "peer": "#762a83"}
_BAR, _LEFT, _WIDTH = 16, 230, 480


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "processor": model,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "load_before": list(os.getloadavg()),
    }


def write(results: Results, bridge: dict[str, list[Sample]], about: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for line in _lines(results, bridge, about):
        print(line)
    whole = {
        "machine": about,
        "calls": results.rows(),
        "bursts": [one._asdict() for one in results.bursts],
        "growth": [one._asdict() for one in results.growth],
        "bridge": {name: _median(taken) for name, taken in bridge.items()},
        "goals": [one._asdict() for one in results.verdicts()],
    }
    (folder / "results.json").write_text(json.dumps(whole, indent=1) + "\n")
    (folder / "calls.svg").write_text(_calls_chart(results))
    if results.growth:
        (folder / "growth.svg").write_text(_growth_chart(results.growth))
    print(f"\n{folder}: results.json and charts")


def _median(taken: list[Sample]) -> float:
    return statistics.median(one.wall for one in taken)


def _lines(results: Results, bridge: dict[str, list[Sample]], about: dict[str, Any]) -> Iterator[str]:
    loads = [" ".join(f"{one:.1f}" for one in about[name]) for name in ("load_before", "load_after")]
    yield f"\n{about['date']}, {about['cores']} cores ({about['processor']}), load before {loads[0]}, after {loads[1]}"
    yield "Wall and processor time: medians in ms. Memory: the most of any call, in MiB.\n"
    yield f"{'call':<22}{'':<12}{'calls':>6}{'wall':>8}{'p90':>8}{'proc.':>8}{'memory':>8}{'× floor':>9}{'× exec.':>9}"
    for row in results.rows():
        times = [f"{row[name]:.1f}" if name in row else "" for name in ("times_floor", "times_executable")]
        figures = "".join(f"{row[name]:8.1f}" for name in ("wall_ms", "wall_ms_p90", "processor_ms", "peak_mib"))
        call = f"{row['verb']} {row['store']}"
        yield f"{call:<22}{row['subject']:<12}{row['calls']:6}{figures}{times[0]:>9}{times[1]:>9}"
    if results.bursts:
        yield f"\n{'burst':<22}{'':<12}{'at once':>8}{'calls':>8}{'seconds':>9}{'per second':>12}{'failed':>8}"
    for one in results.bursts:
        name = f"{one.verb} {one.store}"
        figures = f"{one.seconds:9.2f}{one.calls / one.seconds:12.1f}{one.failed or '':>8}"
        yield f"{name:<22}{one.subject:<12}{one.at_once:8}{one.calls:8}{figures}"
    if results.growth:
        yield f"\n{'growth':<26}{'count':>6}{'ADD':>8}{'DEL':>8}{'floor of both':>15}"
    for point in results.growth:
        name = f"{point.what}, {point.store}"
        yield f"{name:<26}{point.more:6}{point.add:8.1f}{point.delete:8.1f}{point.floor_add + point.floor_delete:15.1f}"
    for name, taken in bridge.items():
        yield f"{name:<34}{len(taken):6}{_median(taken):8.1f} ms"
    yield "\nGoals:"
    yield from (f"  {verdict}" for verdict in results.verdicts())


def _calls_chart(results: Results) -> str:
    """A bar for each candidate, in groups of one call."""
    widest = max([1.0, *(_median(taken) for subjects in results.samples.values() for taken in subjects.values())])
    parts, y = [], 24
    for case, subjects in results.samples.items():
        parts.append(_label(4, y + 12, f"{case.verb} {case.store}".strip(), bold=True))
        for subject, taken in subjects.items():
            middle = _median(taken)
            colour = _COLOURS.get(subject, "#4393c3")
            length = _WIDTH * middle / widest
            parts.append(f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR - 3}" fill="{colour}"/>')
            parts.append(_label(_LEFT - 6, y + 11, subject, end=True))
            parts.append(_label(_LEFT + length + 5, y + 11, f"{middle:.1f} ms"))
            y += _BAR
        y += 10
    return _svg(_LEFT + _WIDTH + 80, y, [_label(4, 14, "Wall time of a call as a whole process, medians"), *parts])


def _growth_chart(growth: list[Growth]) -> str:
    """A line for each kind of record and datastore: milliseconds of ADD and DEL together."""
    curves: dict[str, list[Growth]] = {}
    for one in growth:
        curves.setdefault(f"{one.what}, {one.store}", []).append(one)
    most, largest = max(one.more for one in growth) or 1, max(one.both for one in growth)
    height, parts = 300, []
    for number, (name, points) in enumerate(curves.items()):
        colour = f"hsl({number * 360 // len(curves)},60%,40%)"
        places = [(40 + _WIDTH * one.more / most, 30 + height * (1 - one.both / largest)) for one in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<rect x="{_WIDTH + 90}" y="{32 + number * 18}" width="12" height="3" fill="{colour}"/>')
        parts.append(_label(_WIDTH + 108, 38 + number * 18, name))
    parts.append(f'<path d="M40 30V{30 + height}H{40 + _WIDTH}" fill="none" stroke="black"/>')
    marks = [(40, "0"), (40 + _WIDTH, str(most))]
    parts += [_label(x, 46 + height, text, end=True) for x, text in marks]
    parts += [_label(36, 34, f"{largest:.0f}", end=True), _label(36, 30 + height, "0", end=True)]
    return _svg(_WIDTH + 260, height + 60, [_label(4, 14, "ADD and DEL together, ms, in larger clusters"), *parts])


def _label(x: float, y: float, text: str, *, bold: bool = False, end: bool = False) -> str:
    style = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escape(text)}</text>'


def _svg(width: float, height: float, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
    style = ' font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head + style, *parts, "</svg>"]) + "\n"
