"""What a run of `make bench` leaves: a table on stdout, and below build/bench results.json and a page with charts."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page import page
from process import Sample
from results import Results


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
        "failed": [{**case._asdict(), "subject": who, "calls": n} for (case, who), n in results.failed.items()],
        "growth": [one._asdict() for one in results.growth],
        "bridge": {name: _median(taken) for name, taken in bridge.items()},
        "goals": [one._asdict() for one in results.verdicts()],
    }
    (folder / "results.json").write_text(json.dumps(whole, indent=1) + "\n")
    for name, text in page(whole).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    print(f"\n{folder}: results.json, and benchmarks.md with charts")


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
    for (case, subject), count in results.failed.items():
        yield f"{f'{case.verb} {case.store}':<22}{subject:<12}{count:6} failed"
    if results.bursts:
        figures = f"{'seconds':>9}{'per second':>12}{'in use':>8}{'failed':>8}"
        yield f"\n{'burst':<22}{'':<12}{'at once':>8}{'calls':>8}{figures}"
    for one in results.bursts:
        name = f"{one.verb} {one.store}"
        figures = f"{one.seconds:9.2f}{one.calls / one.seconds:12.1f}{one.busy:8.0%}{one.failed or '':>8}"
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
