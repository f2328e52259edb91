"""Lines of the log, in both forms, and which calls they belong to."""

from __future__ import annotations

import json

import pytest

from domain.moment import SECOND, parse_rfc3339
from domain.trace.log_lines import LONGEST, NEAR, Calls, LogLine, Span, is_about, read_log_line
from domain.trace.subject import read_subject

NOON = "2026-11-29 12:00:00.250"
WHEN = parse_rfc3339("2026-11-29T12:00:00.250Z")
LONG = "3f9c0d1e77aa3f9c0d1e77aa"


def instant(local):
    return parse_rfc3339(local.replace(" ", "T") + "Z")


def read(line):
    return read_log_line(line, instant)


def test_a_text_line():
    line = read(f'{NOON} [WARNING][4711] cni-plugin/skel.py 42: CNI ADD: a ] b code=11 container="c1" error=x')
    text = 'CNI ADD: a ] b code=11 container="c1" error=x'
    assert line == LogLine(WHEN, "warning", "[4711]", "cni-plugin", text, "c1")
    assert not line.is_json


def test_a_line_of_the_original():
    line = read(f'{NOON} [INFO][7] cni-plugin/k8s.go 386: Added Mac ContainerID="c1"')
    assert (line.plugin, line.text, line.container) == ("cni-plugin", 'Added Mac ContainerID="c1"', "")


RECORD = {
    "time": "2026-11-29T12:00:00.250Z",
    "level": "info",
    "call": "5f0c",
    "plugin": "ipam",
    "command": "ADD",
    "container": "c1",
    "ifname": "eth0",
    "pod": "d/web-0",
    "source": "skel.py:1",
    "pid": 7,
    "message": "Done.",
}


def test_a_json_line():
    line = read(json.dumps({**RECORD, "ips": ["10.0.0.1/32", 5], "error": "no way", "code": 11, "word": "x"}))
    text = 'Done. ips=10.0.0.1/32,5 error="no way" code=11 word=x'
    assert line == LogLine(WHEN, "info", "5f0c", "ipam", text, "c1", "d/web-0")
    assert line.is_json
    bare = read(json.dumps({name: RECORD[name] for name in ("time", "call", "message")}))
    assert bare == LogLine(WHEN, "", "5f0c", "", "Done.")


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            "hello",
            "{",
            "[]",
            f"{NOON} INFO",
            f"{NOON} [INFO] x",
            f"{NOON} [INFO][7] x",
            f"{NOON} [INFO][x] a/b: c",
        ),
        *(
            f"{NOON} [INFO][7 a/b: c",
            "2026-13-29 12:00:00.250 [INFO][7] a/b 1: c",
            '{"time": 5, "call": "", "message": ""}',
        ),
        *('{"time": "x", "call": "", "message": ""}', '{"time": "2026-11-29T12:00:00Z", "call": "a"}'),
    ],
)
def test_what_is_no_line_of_a_call_is_none(line):
    assert read(line) is None


def test_what_a_record_says_of_its_call_counts_more_than_words():
    line = LogLine(WHEN, "info", "5f0c", "ipam", 'gone: pods "web-0"', LONG, "other/web-0")
    assert is_about(line, read_subject(LONG[:12], "d"))
    assert not is_about(line, read_subject("web-0", "d"))
    assert is_about(line, read_subject("web-0", "other"))
    assert is_about(line.replace(pod=""), read_subject("web-0", "d"))
    assert not is_about(line.replace(pod="", text=""), read_subject("web-0", "d"))


def test_a_process_number_is_one_call_for_a_while():
    def text(second, process="[7]"):
        return LogLine(WHEN + second * SECOND, "info", process, "ipam", "")

    calls = Calls([text(0), text(1000)])
    assert calls.spans() == (
        Span(WHEN - NEAR, WHEN + NEAR, ("[7]",)),
        Span(WHEN + 1000 * SECOND - NEAR, WHEN + 1000 * SECOND + NEAR, ("[7]",)),
    )
    assert calls.have(text(119))
    assert calls.have(text(1100))
    assert not calls.have(text(500))
    assert not calls.have(text(0, "[8]"))
    assert Calls([text(0, "5f0c")]).have(text(100_000, "5f0c"))


def test_calls_that_share_a_time_are_searched_for_together():
    def line(second, call):
        return LogLine(WHEN + second * SECOND, "info", call, "ipam", "")

    calls = Calls([line(9000, "c"), line(0, "a"), line(60, "b"), line(70, "a")])
    assert calls.spans() == (
        Span(WHEN - LONGEST, WHEN + 70 * SECOND + LONGEST, ("a", "b")),
        Span(WHEN + 9000 * SECOND - LONGEST, WHEN + 9000 * SECOND + LONGEST, ("c",)),
    )
