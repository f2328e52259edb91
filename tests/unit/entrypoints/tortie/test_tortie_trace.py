"""`tortie trace`, from its command line over memory and a log file to what is read."""

from __future__ import annotations

import json

import pytest

from adapters.memory.clock import MemoryClock
from domain.moment import parse_rfc3339
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container
from worlds.one_node import NODE, OneNode

LONG = "c1"
POD = "shop/web-0"


def record(second, call, message, **more):
    when = f"2026-11-29T12:00:{second:02d}.250Z"
    return (
        json.dumps({"time": when, "level": "info", "call": call, "plugin": "ipam", "message": message, **more}) + "\n"
    )


class Tortie(OneNode):
    def __init__(self, capsys, folder):
        super().__init__()
        self.capsys, self.folder = capsys, folder
        self.environment = {"COLUMNS": "100", "DATASTORE_TYPE": "sqlite"}
        (folder / "net.d").mkdir()
        self.log_file = folder / "cni.log"
        conf = {"cniVersion": "1.0.0", "name": "net1", "type": "calico", "nodename": NODE}
        (folder / "net.d/1.conf").write_text(json.dumps({**conf, "log_file_path": str(self.log_file)}))

    def run(self, *arguments):
        container = Container()
        container.datastore.override(self.datastore)
        container.clock.override(self.clock)
        container.log.override(self.log)
        words = ("trace", *arguments, "--net-dir", str(self.folder / "net.d"))
        code = operator.run(words, self.environment, container)
        return code, *self.capsys.readouterr()


@pytest.fixture
def tortie(capsys, tmp_path):
    return Tortie(capsys, tmp_path)


def past(tortie):
    """A pod that is gone."""
    tortie.log_file.write_text(
        record(0, "5f0c", "CNI ADD succeeded.", container="3f9c0d1e77aa3f9c", pod=POD, ips=["10.9.9.9/32"])
        + record(1, "6a1b", "CNI ADD succeeded.", container="other", pod="shop/web-1")
        + record(2, "7c2d", "Could not \x1b[2J", container="3f9c0d1e77aa3f9c", pod=POD, level="warning")
    )


@pytest.mark.parametrize("subject", [("web-0", "-n", "shop"), (POD,), ("10.9.9.9",), ("3f9c0d1e",)])
def test_a_pod_that_is_gone_is_told_from_the_log(tortie, subject):
    past(tortie)
    code, out, err = tortie.run(*subject)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "2026-11-29 12:00:00.250Z  log       [5f0c] ipam 3f9c0d1e77aa: CNI ADD succeeded. ips=10.9.9.9/32",
        r"2026-11-29 12:00:02.250Z  log       [7c2d] WARNING ipam 3f9c0d1e77aa: Could not \x1b[2J",
    ]


def test_no_further_back_than_is_asked_for(tortie):
    past(tortie)
    tortie.clock = MemoryClock(parse_rfc3339("2026-11-29T12:10:00Z"))
    code, out, err = tortie.run(POD, "--since", "9m59s")
    assert (code, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()] == ["12:00:02.250Z"]
    assert len(tortie.run(POD, "--since", "1h")[1].splitlines()) == 2
    for text in ("0", "-1h", "soon"):
        assert "is not a time such as 30m or 48h" in tortie.run(POD, f"--since={text}")[2]


@pytest.mark.parametrize("columns", ["20", "40", "59", "60", "80", "200"])
def test_no_line_is_wider_than_the_screen(tortie, columns):
    """Of a terminal of 20 columns a time takes more."""
    tortie.add("c1")
    tortie.environment["COLUMNS"] = columns
    name = "c" * 64
    tortie.log_file.write_text(record(0, "5f0c", "Something about a long name", container=name, pod=POD, long=name))
    code, out, _ = tortie.run(POD)
    assert code == 0
    assert max(map(len, out.splitlines())) <= max(int(columns), 40)
    assert name in out.replace("\n", "").replace(" ", "")


def test_a_workload_that_is_there_has_its_records(tortie):
    tortie.add("c1")
    address = str(tortie.endpoints()[0].ip_networks[0].address)
    code, out, err = tortie.run(address, "-o", "json")
    found = json.loads(out)
    assert (code, found["subject"], found["containers"]) == (0, address, ["c1"])
    assert {event["source"] for event in found["events"]} == {"address", "block", "device", "endpoint", "handle"}
    assert found["notes"] == [f"There is no log at {tortie.log_file}; name it with --log-file"]
    assert err == f"Note: {found['notes'][0]}\n"
    assert [event["source"] for event in found["events"] if event["time"] is None] == ["handle", "device"]
    code, out, _ = tortie.run(address, "-o", "custom-columns=SOURCE,TEXT")
    assert out.splitlines()[0].split() == ["SOURCE", "TEXT"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ("nobody",),
            1,
            "the log know nobody; of a container give its whole id, or 8 characters of it. There",
        ),
        (("nobody-at-all",), 1, "Error: neither records nor the log know nobody-at-all. There is no log at"),
        (("/",), 2, "name a pod, a container or an address"),
        (("x", "--root", "host"), 2, "--root host: give an absolute path"),
        ((), 2, "required: POD|CONTAINER|ADDRESS"),
    ],
)
def test_what_nobody_knows_or_understands_is_one_error(tortie, words, code, told):
    found, out, err = tortie.run(*words)
    assert (found, out) == (code, "")
    assert told in err


def test_another_file_may_be_named(tortie):
    past(tortie)
    elsewhere = tortie.folder / "elsewhere.log"
    tortie.log_file.rename(elsewhere)
    code, out, err = tortie.run(POD, "--log-file", str(elsewhere))
    assert (code, err, len(out.splitlines())) == (0, "", 2)
