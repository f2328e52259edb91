"""The log as JSON, for programs: one id per call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from descriptors import signals_restored, stdin
from domain.cni.netconf import NetConf
from domain.ipam.address import Address
from entrypoints import calico
from entrypoints.call_record import json_line, said
from entrypoints.logs import CallLog
from ports.errors import Refused, Unavailable
from worlds.no_ports import opener_without_ports

ASKED = {
    "CNI_CONTAINERID": "c1",
    "CNI_NETNS": "/var/run/netns/c1",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin",
    "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0",
}


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def a_log(**settings: Any) -> CallLog:
    log = CallLog("cni-plugin")
    log.configure(NetConf(log_format="json", **settings))
    return log


def test_a_record_has_what_a_line_has(capfd: pytest.CaptureFixture[str]) -> None:
    log = a_log()
    log.concerns(container="c1", command="ADD")
    log.warning("Assigned", text="a\n", nothing=None, flag=True, number=5, error=Unavailable("no"), ip=Address(4, 1))
    log.error("again")
    first, second = records(capfd.readouterr().err)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert re.fullmatch(r"test_call_record.py:\d+", first.pop("source"))
    assert re.fullmatch("[0-9a-f]{16}", first["call"])
    assert first.pop("call") == second["call"]
    assert first.pop("pid") == second["pid"]
    assert first == {
        "level": "warning",
        "plugin": "cni-plugin",
        "command": "ADD",
        "container": "c1",
        "message": "Assigned",
        "text": "a\n",
        "nothing": None,
        "flag": True,
        "number": 5,
        "error": "no",
        "ip": "0.0.0.1",
    }


def test_each_call_has_an_id_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        a_log().info("x")
    one, other = records(capfd.readouterr().err)
    assert one["call"] != other["call"]


def test_a_field_does_not_hide_what_every_record_has() -> None:
    line = json_line({"container": "c1", "level": "info"}, "m", {"container": "c1", "level": "debug", "message": "n"})
    assert json.loads(line) == {
        "container": "c1",
        "level": "info",
        "message": "m",
        "level_": "debug",
        "message_": "n",
    }


@given(st.text(), st.text())
def test_a_record_is_one_line_that_moves_no_cursor(message: str, field: str) -> None:
    line = json_line({}, message, {"field": [field]}).decode()
    assert line[:-1].isprintable()
    record = json.loads(line)
    if not any("\ud800" <= character <= "\udfff" for character in message + field):
        assert record == {"message": message, "field": [field]}


def test_an_unknown_format_is_text_and_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    log = CallLog("x")
    log.configure(NetConf(log_format="xml"))
    log.info("hello")
    warning, hello = capfd.readouterr().err.splitlines()
    assert 'No such log_format; it is text: write text or json log_format="xml"' in warning
    assert "[INFO]" in hello


def run_calico(verb: str, capfd: pytest.CaptureFixture[str], error: Exception, **conf: Any) -> tuple[int, str]:
    document = {"cniVersion": "1.0.0", "name": "net1", "type": "calico", "nodename": "n1", **conf}
    with signals_restored(), stdin(json.dumps(document)):
        code = calico.main((), {**ASKED, "CNI_COMMAND": verb}, opener_without_ports(error))
    return code, capfd.readouterr().err


def test_each_call_leaves_a_record_of_its_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cni.log"
    asked = {"log_format": "json", "log_file_path": str(file)}
    code, shown = run_calico("CHECK", capfd, Refused("no"), **asked)
    assert code == 0
    (record,) = records(shown)
    assert record["message"] == "CNI CHECK succeeded."
    assert (record["container"], record["ifname"], record["pod"]) == ("c1", "eth0", "default/web-0")
    assert 0 <= record["seconds"] < 60
    code, shown = run_calico("ADD", capfd, Refused("no", 42), **asked)
    assert code == 1
    (record,) = records(shown)
    assert record["message"] == "Final result of CNI ADD was an error."
    assert (record["code"], record["error"], record["pod"]) == (42, "no", "default/web-0")
    assert len(records(file.read_text())) == 2


def test_as_text_only_whoever_debugs_reads_of_a_success(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_calico("CHECK", capfd, Refused("no")) == (0, "")
    _, shown = run_calico("CHECK", capfd, Refused("no"), log_level="debug")
    assert "[DEBUG]" in shown
    assert 'CNI CHECK succeeded. command="CHECK" container="c1" ifname="eth0" pod="default/web-0" seconds=0.' in shown


RESULT = {
    "interfaces": [{"name": "cali1"}, {"name": "eth0", "sandbox": "/x"}, 5],
    "ips": [{"address": "10.0.0.1/32"}, {"address": "fd00::1/128"}, {}, "x"],
}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (json.dumps(RESULT), {"devices": ["cali1"], "ips": ["10.0.0.1/32", "fd00::1/128"]}),
        ('{"ip4": {"ip": "10.0.0.1/32"}, "ip6": null}', {"ips": ["10.0.0.1/32"]}),
        *[(text, {}) for text in ("", "OK\n", "[]", "{}", '{"ips": 5, "interfaces": 7}')],
    ],
)
def test_what_an_answer_says(answer: str, found: dict[str, list[str]]) -> None:
    assert said(answer) == found
