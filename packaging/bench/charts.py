"""Charts of a run of `make bench`, as SVG: from the rows of results.json, so that an earlier run can be drawn anew.

Written here and not by a plotting library: four kinds of marks are all that is needed, and such a library is many times
the size of all else that `make bench` installs.

Invariant: a mark is where its figure says. Times are on a logarithmic scale, as candidates differ by a hundred times;
they are points and not bars, since a bar's length would say something on such a scale that is not so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

COLOURS = {
    "floor": "#8a8a8a",
    "interpreter": "#bdbdbd",
    "executable": "#1b7837",
    "bundle": "#5aae61",
    "library": "#9970ab",
    "peer": "#c0392b",
}
_OTHER = "#4393c3"
_ROW, _LEFT, _WIDTH = 17, 250, 500
_STORES = {"": "", "sqlite": "embedded", "etcd": "etcd", "kubernetes": "Kubernetes"}


def named(verb: str, store: str) -> str:
    return f"{verb}, {_STORES[store]}" if store else verb


def calls_chart(rows: Sequence[dict[str, Any]], figure: str, title: str) -> str:
    """A point for each candidate's median, in groups of one call; of wall time a line up to the 90th percentile."""
    values = [max(row[figure], 0.1) for row in rows]
    ends = [row["wall_ms_p90"] for row in rows] if figure == "wall_ms" else values
    low, high = min(values), max([*values, *ends])
    place = _logarithmic(low, high)
    parts: list[str] = []
    y, before = 34, ""
    for row, value, end in zip(rows, values, ends, strict=True):
        call = named(row["verb"], row["store"])
        if call != before:
            y += 10
            parts.append(_words(4, y + 12, call, bold=True))
            before = call
        colour = COLOURS.get(row["subject"], _OTHER)
        x, middle = place(value), y + 8
        parts.append(_words(_LEFT - 8, y + 12, row["subject"], end=True))
        parts.append(f'<path d="M{_LEFT} {middle}H{_LEFT + _WIDTH}" stroke="#eee"/>')
        if end > value:
            parts.append(f'<path d="M{x:.1f} {middle}H{place(end):.1f}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{middle}" r="4.5" fill="{colour}"/>')
        parts.append(_words(_LEFT + _WIDTH + 8, y + 12, f"{value:.1f}"))
        y += _ROW
    scale = [
        f'<path d="M{place(tick):.1f} 30V{y}" stroke="#ddd"/>' + _words(place(tick) - 4, 26, f"{tick:g}")
        for tick in _ticks(low, high)
    ]
    return _svg(_LEFT + _WIDTH + 60, y + 8, title, [*scale, *parts])


def bursts_chart(bursts: Sequence[dict[str, Any]]) -> str:
    """Bars: ADDs a second, one and several at a time."""
    rows = [one for one in bursts if one["verb"] == "ADD"]
    rates = [one["calls"] / one["seconds"] for one in rows]
    most, y, before = max(rates), 24, ""
    parts: list[str] = []
    for one, rate in zip(rows, rates, strict=True):
        call = named("ADD", one["store"]) if one["store"] else "the floor"
        if call != before:
            y += 10
            parts.append(_words(4, y + 12, call, bold=True))
            before = call
        length = _WIDTH * rate / most
        colour = COLOURS.get(one["subject"], _OTHER)
        parts.append(_words(_LEFT - 8, y + 12, f"{one['subject']}, {one['at_once']} at a time", end=True))
        parts.append(f'<rect x="{_LEFT}" y="{y + 2}" width="{length:.1f}" height="{_ROW - 4}" fill="{colour}"/>')
        failed = f" ({one['failed']} failed)" if one["failed"] else ""
        parts.append(_words(_LEFT + length + 6, y + 12, f"{rate:.1f}{failed}"))
        y += _ROW
    return _svg(_LEFT + _WIDTH + 110, y + 8, "ADDs a second", parts)


def growth_chart(growth: Sequence[dict[str, Any]]) -> str:
    """A line for each kind of record and datastore: milliseconds of ADD and DEL together."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for one in growth:
        name = f"{one['what']}, {_STORES[one['store']]}"
        curves.setdefault(name, []).append((one["more"], one["add"] + one["delete"]))
    most = max(more for points in curves.values() for more, _ in points) or 1
    largest = max(both for points in curves.values() for _, both in points)
    height, parts = 300, []
    for number, (name, points) in enumerate(curves.items()):
        colour = f"hsl({number * 360 // len(curves)},60%,40%)"
        places = [(50 + _WIDTH * more / most, 30 + height * (1 - both / largest)) for more, both in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(f'<rect x="{_WIDTH + 80}" y="{33 + number * 18}" width="12" height="3" fill="{colour}"/>')
        parts.append(_words(_WIDTH + 98, 39 + number * 18, name))
    parts.append(f'<path d="M50 30V{30 + height}H{50 + _WIDTH}" fill="none" stroke="black"/>')
    parts += [_words(54, 46 + height, "none"), _words(50 + _WIDTH, 46 + height, f"{most:,}", end=True)]
    parts += [_words(46, 36, f"{largest:.0f}", end=True), _words(46, 30 + height, "0", end=True)]
    return _svg(_WIDTH + 260, height + 60, "ADD and DEL together, ms, with so many more records", parts)


def _logarithmic(low: float, high: float) -> Any:
    """From a figure to where it is."""
    least, span = math.log(low), (math.log(high) - math.log(low)) or 1.0
    return lambda value: _LEFT + _WIDTH * (math.log(value) - least) / span


def _ticks(low: float, high: float) -> Iterator[float]:
    power = math.floor(math.log10(low))
    for tick in (digit * 10.0**one for one in range(power, power + 9) for digit in (1, 2, 5)):
        if low <= tick <= high:
            yield tick


def _words(x: float, y: float, text: str, *, bold: bool = False, end: bool = False) -> str:
    style = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escape(text)}</text>'


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" role="img">'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", ground, *parts, "</svg>"]) + "\n"
