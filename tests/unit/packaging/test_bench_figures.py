"""What `make bench` makes of its figures, without timing anything, and that its floor does what the plan says."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGING = str(Path(__file__).resolve().parents[3] / "packaging" / "bench")
BARE = (0.5, 0.4, 0.6)  # milliseconds, milliseconds, MiB


@pytest.fixture
def modules() -> Iterator[Any]:
    """`results`, with `process` and so on beside it; scripts of that folder import one another by name."""
    sys.path.insert(0, PACKAGING)
    try:
        import floor
        import growth
        import process
        import report
        import results

        yield {"results": results, "floor": floor, "growth": growth, "report": report, "process": process}
    finally:
        sys.path.remove(PACKAGING)


def goals(results: Any) -> dict[str, bool | None]:
    return {one.goal: one.met for one in results.verdicts()}


def noted(modules: Any, verb: str, store: str, **walls: list[float]) -> Any:
    results = modules["results"].Results()
    for subject, taken in walls.items():
        for wall in taken:
            results.note(modules["results"].Case(verb, store), subject, modules["results"].Sample(wall, 1.0, 14.0))
    return results


def test_a_goal_is_judged_by_medians(modules: Any) -> None:
    goal = "ADD on etcd with the executable at most 3 × the floor"
    for executable, met in (([15, 15, 1], True), ([16, 16, 1], False)):
        assert goals(noted(modules, "ADD", "etcd", floor=[5, 5, 900], executable=executable))[goal] is met


def test_what_was_not_measured_is_neither_met_nor_missed(modules: Any) -> None:
    verdicts = modules["results"].Results().verdicts()
    assert {one.met for one in verdicts} == {None}
    assert all(str(one).startswith("not measured") for one in verdicts)


def test_a_start_is_compared_with_a_bare_process(modules: Any) -> None:
    goal = "VERSION at most 3 ms longer than a bare static process"
    assert goals(noted(modules, "VERSION", "", floor=[0.5], executable=[3.5]))[goal] is True
    assert goals(noted(modules, "VERSION", "", floor=[0.5], executable=[3.6]))[goal] is False


def test_a_burst_is_compared_call_by_call(modules: Any) -> None:
    """The slow one may have fewer calls. What the processors leave is said beside it."""
    results = modules["results"].Results()
    burst = modules["results"].Burst
    results.bursts = [
        burst("etcd", "executable", "ADD", 25, 1, 4.0, busy=0.4),
        burst("etcd", "executable", "ADD", 100, 16, 8.0, busy=0.9),
    ]
    goal = "ADDs a second on etcd, 16 at a time, at least 2 × as many as one at a time"
    assert goals(results)[goal] is True
    results.bursts[1] = results.bursts[1]._replace(seconds=8.1)
    assert goals(results)[goal] is False
    assert [one.measured for one in results.verdicts() if one.goal == goal] == ["2.0 × of some 2.5"]


def test_processors_are_in_use_while_they_are_not_idle(modules: Any) -> None:
    """Neither is one that waits for a disk; guests' time stands twice in the line."""
    process = modules["process"]
    before = process.processors("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    after = process.processors("cpu  125 0 125 720 130 0 0 0 99 0\n")
    assert (before.idle, before.all) == (800, 1000)
    assert process.in_use(before, after) == 0.5
    assert process.in_use(before, before) == 0.0


def test_growth_is_between_the_first_and_the_last_point(modules: Any) -> None:
    results, point = modules["results"].Results(), modules["results"].Growth
    results.growth = [point("etcd", "blocks", more, add, 10, 5, 5) for more, add in ((0, 10), (1000, 90), (5000, 15))]
    assert goals(results)["ADD and DEL on etcd cost no more with 5000 blocks"] is True
    results.growth[-1] = results.growth[-1]._replace(add=15.1)
    assert goals(results)["ADD and DEL on etcd cost no more with 5000 blocks"] is False


def test_the_report_has_all_figures(modules: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = noted(modules, "ADD", "etcd", floor=[5, 5], executable=[15, 15])
    results.growth = [modules["results"].Growth("etcd", "blocks", more, 40, 20, 5, 5) for more in (0, 1000)]
    about = modules["report"].machine() | {"load_after": [0, 0, 0]}
    modules["report"].write(results, {}, about, tmp_path)
    whole = json.loads((tmp_path / "results.json").read_text())
    assert [(one["subject"], one["wall_ms"], one.get("times_floor")) for one in whole["calls"]] == [
        ("floor", 5, None),
        ("executable", 15, 3),
    ]
    assert "met           ADD on etcd" in capsys.readouterr().out
    for chart in ("wall", "processor", "growth"):
        assert (tmp_path / f"pictures/bench-{chart}.svg").read_text().startswith("<svg ")
    assert "| ADD, etcd | executable | 2 | 15.0 | 15.0 | 1.0 | 14.0 | 3.0 |" in (tmp_path / "benchmarks.md").read_text()


def test_the_floor_does_what_the_plan_says(modules: Any, tmp_path: Path) -> None:
    calls = modules["floor"].Floor("/floor", tmp_path).calls("/var/run/netns/n", 7)
    words = list(calls["ADD"].words)
    assert (tmp_path / "host7.batch").read_text().splitlines() == [
        "link add calif7 address ee:ee:ee:ee:ee:ee txqueuelen 0 type veth peer name eth0 netns n",
        "link set dev calif7 up",
        "route add 10.63.0.7/32 dev calif7 scope link",
    ]
    assert (tmp_path / "container7.batch").read_text().splitlines() == [
        "link set dev eth0 up",
        "route add 169.254.1.1/32 dev eth0 scope link",
        "route add 0.0.0.0/0 via 169.254.1.1 dev eth0 scope global",
        "address add 10.63.0.7/32 dev eth0",
    ]
    written = [(words[at + 1], words[at + 2]) for at, word in enumerate(words) if word == "write"]
    assert ("/proc/sys/net/ipv4/conf/calif7/proxy_arp", "1") in written
    assert written[-1] == ("/proc/sys/net/ipv4/ip_forward", "0")
    assert words.index("enter") < words.index(str(tmp_path / "container7.batch"))


@pytest.mark.parametrize("kind", ["blocks", "nodes", "pods", "handles"])
def test_grown_clusters_have_records_that_can_be_read(modules: Any, kind: str) -> None:
    from adapters.records.codec import decode, parse_key

    records = dict(modules["growth"].records(kind, 130))
    for key, text in records.items():
        parsed = parse_key(key)
        assert parsed is not None, key
        decode(parsed, text)
    assert len(records) == {"blocks": 390, "nodes": 130, "pods": 130 * 2 + 3 * 2, "handles": 130}[kind]


ANSWER = """{"ips": [{"address": "10.64.0.$1/32"}]}"""


def test_calls_of_a_peer_that_fail_in_a_burst_are_counted(modules: Any) -> None:
    """By its exit code, without an answer, with words beside it, with an address that another got."""
    scripts = {
        "good": f"echo '{ANSWER}' | sed s/\\$1/1/",
        "fails": "echo '{\"code\": 11}'; exit 1",
        "dies": "kill -9 $$",
        "silent": "exit 0",
        "talks": f"echo oops >&2; echo '{ANSWER}' | sed s/\\$1/2/",
        "no result": "echo '[]'",
        "same": f"echo '{ANSWER}' | sed s/\\$1/1/",
        "good, too": f"cat; echo '{ANSWER}' | sed s/\\$1/3/",
    }
    calls = [modules["process"].Call(["/bin/sh", "-c", text], {"PATH": "/bin"}) for text in scripts.values()]
    seconds, ended = modules["process"].burst(calls, 3)
    assert seconds > 0
    assert len(ended) == len(scripts)
    failed = modules["results"].failures("ADD", ended)
    assert sorted(one.status for one in failed) == [-9, 0, 0, 0, 0, 1]
    assert sorted(one.status for one in modules["results"].failures("DEL", ended)) == [-9, 1]


def test_failures_stand_in_the_table_and_miss_a_goal_if_they_are_ours(
    modules: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = "no call of ours fails in a burst, and no address is given twice"
    burst, results = modules["results"].Burst, modules["results"].Results()
    results.bursts.append(burst("etcd", "peer", "ADD", 100, 16, 2.0, failed=17))
    assert goals(results)[goal] is None
    modules["report"].write(results, {}, modules["report"].machine() | {"load_after": [0, 0, 0]}, tmp_path)
    assert any(line.split()[-4:] == ["2.00", "50.0", "0%", "17"] for line in capsys.readouterr().out.splitlines())
    results.bursts.append(burst("etcd", "executable", "ADD", 100, 16, 2.0))
    assert goals(results)[goal] is True
    results.bursts.append(burst("etcd", "executable", "DEL", 100, 16, 2.0, failed=1))
    assert goals(results)[goal] is False


def test_a_peer_that_fails_alone_is_counted_and_one_of_ours_ends_the_run(
    modules: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = importlib.import_module("bench")
    run = bench.Bench.__new__(bench.Bench)
    run.starter, run.results = modules["process"].Starter(tmp_path), modules["results"].Results()
    case = modules["results"].Case("ADD", "etcd")
    for text in ("exit 0", "echo panic; exit 2", "echo noise >&2; sleep 0.1", "kill -9 $$"):
        run.note(case, "peer", modules["process"].Call(["/bin/sh", "-c", text], {"PATH": "/bin"}))
    assert (len(run.results.samples[case]["peer"]), run.results.failed) == (2, {(case, "peer"): 2})
    about = modules["report"].machine() | {"rounds": 4, "load_after": [0.0, 0.0, 0.0]}
    modules["report"].write(run.results, {}, about, tmp_path / "out")
    told = capsys.readouterr().out
    assert "panic" in told
    assert "peer             2 failed" in told
    with pytest.raises(SystemExit, match="panic"):
        run.note(case, "bundle", modules["process"].Call(["/bin/sh", "-c", "echo panic; exit 2"], {}))
