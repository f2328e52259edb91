"""What operators' programs read of what calls have left: the metrics file, and lines of the log."""

from __future__ import annotations

import json

from domain.moment import parse_rfc3339
from domain.trace.log_lines import Calls, is_about, read_log_line
from domain.trace.subject import read_subject
from entrypoints.call_metrics import CALLS, EMPTY, FinishedCall, Senseless, checked, left_call, with_call
from fuzz.target import Target, attempt, octets_of, require, text_of

_CALL = FinishedCall(("calico", "ADD", "success", "etcdv3"), 12_345)
_OTHER = FinishedCall(("calico-ipam", "DEL", "try-again-later", "sqlite"), 61_000_000)
_SUBJECTS = [read_subject(text, "default") for text in ("10.0.0.5", "fd00::5", "shop/web-0", "3f9c0d1e77aa")]


def _metrics(octets: bytes) -> None:
    """What is taken for ours grows by a call, and is taken for ours again; the call's own lines are in it once."""
    text = text_of(octets)
    grown, after = attempt(lambda: with_call(checked(text), _CALL), Senseless)
    if grown:
        line = f'{CALLS}{{plugin="calico",verb="ADD",outcome="success",datastore="etcdv3"}} '
        require(str(after).count(line) == 1, "not one line for the series", after)
        again, _ = attempt(lambda: with_call(checked(str(after)), _CALL), Senseless)
        require(again, "what was written is not read", after)
    named = left_call(text)
    require(named is None or len(named.labels) == len(_CALL.labels), "another number of labels", text)


def _line(octets: bytes) -> None:
    text = text_of(octets)
    line = read_log_line(text, lambda local: parse_rfc3339(local.replace(" ", "T") + "Z"))
    if line is not None:
        require(Calls([line]).have(line), "a line is not of its own call", line)
        for subject in _SUBJECTS:
            require(isinstance(is_about(line, subject), bool), "neither about it nor not", line)


_RECORD = {
    "time": "2026-11-29T12:00:00.250Z",
    "level": "info",
    "call": "5f0c",
    "plugin": "ipam",
    "container": "3f9c0d1e77aa",
    "pod": "shop/web-0",
    "message": "CNI ADD succeeded.",
    "ips": ["10.0.0.5/26"],
    "seconds": 0.021,
}
_FILE = with_call(with_call(EMPTY, _CALL), _OTHER)

TARGETS = (
    Target(
        "metrics_file",
        _metrics,
        octets_of(_FILE, EMPTY, _FILE[:-1], ".tortie_cni.pending,7,calico,ADD,success,etcdv3,12345"),
        form="text",
    ),
    Target(
        "log_line",
        _line,
        octets_of(
            '2026-11-29 12:00:00.250 [INFO][4711] ipam/skel.py 42: CNI ADD: web-0 10.0.0.5. container="3f9c0d1e77aa"',
            json.dumps(_RECORD),
        ),
        form="text",
        most=2048,
    ),
)
