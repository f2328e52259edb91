"""`tortie ipam show --watch`, and what is seen while a command lasts."""

from __future__ import annotations

import io
import os
import re
import time
from contextlib import redirect_stderr

import pytest

from adapters.memory.clock import MemoryClock
from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle, new_block
from entrypoints.logs import CallLog
from entrypoints.tortie.answer import Screen
from entrypoints.tortie.command_line import parsed
from entrypoints.tortie.progress import Progress
from entrypoints.tortie.session import Session
from entrypoints.tortie.watch import fitted
from entrypoints.wiring.container import Container
from ports.datastore import BlockKey, HandleKey
from ports.errors import Unavailable
from ports.runtime import unheard
from worlds.tortie_command import Tortie

CIDR = Cidr.parse("10.244.0.0/26")


class Impatient(MemoryClock):
    """Ctrl-C is pressed after some looks; what happens between two looks happens in `between`."""

    def __init__(self, looks):
        super().__init__()
        self.looks, self.between = looks, []

    def sleep(self, seconds):
        super().sleep(seconds)
        if len(self.slept) >= self.looks:
            raise KeyboardInterrupt
        for happens in self.between:
            happens()


@pytest.fixture
def tortie(capsys):
    tortie = Tortie(capsys)
    tortie.clock = Impatient(3)
    tortie.done("init", "--pool", "10.244.0.0/16", "--node", "n1")
    return tortie


def take(tortie):
    tortie.store(BlockKey(CIDR), new_block(CIDR, "host:n1", None, 1).take((0,), Attribute("h", {"node": "n1"})))
    tortie.store(HandleKey("h"), Handle({CIDR: 1}))
    tortie.clock.between.clear()


def test_a_pipe_gets_a_picture_when_it_differs(tortie):
    tortie.clock.between.append(lambda: take(tortie))
    code, out, err = tortie("ipam", "show", "--watch")
    assert (code, err) == (130, "")
    first, second = out.split("\n\nGROUPING")
    assert "0 (0%)" in first
    assert "1 (<1%)" in second
    assert "\x1b" not in out
    assert tortie.clock.slept == [2.0] * 3


def test_a_datastore_that_goes_away_is_told_and_asked_again(tortie):
    def away(_verb, _key):
        tortie.datastore.before = lambda _verb, _key: None
        raise Unavailable("no route to etcd")

    def leave():
        tortie.datastore.before = away
        tortie.clock.between.clear()

    tortie.clock.between.append(leave)
    code, out, _ = tortie("ipam", "show", "--watch=0.5")
    assert code == 130
    assert [part.split()[0] for part in out.split("\n\n") if part.split()[0] != "#"] == ["GROUPING", "no", "GROUPING"]
    assert tortie.clock.slept[-1] == 0.5


def test_one_that_was_never_there_is_an_error(tortie):
    def away(_verb, _key):
        raise Unavailable("no route to etcd")

    tortie.datastore.before = away
    assert tortie.failed("ipam", "show", "--watch") == "no route to etcd"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--watch", "-o", "json"], "--watch is for people"),
        (["--watch=0"], "'0' is not a number of seconds from 0.2 to 3600"),
        (["--watch=x"], "'x' is not a number of seconds"),
        (["--watch=nan"], "'nan' is not a number of seconds"),
    ],
)
def test_a_watch_that_means_nothing(tortie, arguments, why):
    assert why in tortie.misunderstood("ipam", "show", *arguments)


class Terminal(io.StringIO):
    """Applies what is written as a terminal does that has room for everything: only what the watch needs."""

    def isatty(self):
        return True

    def rows(self):
        rows, at = [], 0
        for part in re.split(r"(\n|\x1b\[\d*[FJK]|\x1b\[[0-9;]*m)", self.getvalue()):
            if part == "\n":
                at += 1
            elif part.endswith("F") and part.startswith("\x1b"):
                at -= int(part[2:-1])
            elif part == "\x1b[J":
                del rows[at:]
            elif part and not part.startswith("\x1b"):
                rows += [""] * (at + 1 - len(rows))
                rows[at] = part
        return rows


@pytest.mark.parametrize("width", [40, 100])
def test_on_a_terminal_each_look_is_written_over_the_one_before(tortie, monkeypatch, width):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    tortie.environment = {"TERM": "xterm", "COLUMNS": str(width), "LINES": "24"}
    tortie.clock.between.append(lambda: take(tortie))
    tortie("ipam", "show", "--watch", "--blocks")
    rows = terminal.rows()
    assert rows[0].endswith("UTC, every 2 s; Ctrl-C ends")
    assert sum("10.244.0.0/16" in row for row in rows) == 1
    assert sum("10.244.0.0/26" in row for row in rows) == 1
    assert max(map(len, rows)) <= width


def test_no_more_is_shown_than_the_terminal_has():
    lines = [f"\x1b[31m{'x' * 50}\x1b[0m", *"bcdefg"]
    assert fitted(lines, Screen(40, height=6)) == ["x" * 40, "b", "c", "d", "… 3 more lines"]
    assert fitted(lines, Screen(50, height=8)) == lines
    assert fitted(lines, Screen(10, height=1)) == ["… 7 more lines"[:10]]


# --- progress ---------------------------------------------------------------------------------------------------------


def seen(terminal, quiet, seconds=0.0, **environment):
    with Progress({"TERM": "xterm", "COLUMNS": "30", **environment}, terminal, quiet) as progress:
        progress.doing("looking at\x1b[2J all that there is in the cluster")
        until = time.monotonic() + 60
        while seconds and not terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    return terminal.getvalue()


def test_what_lasts_is_told_on_a_terminal_and_wiped_away():
    text = seen(Terminal(), 0.0, 1.0)
    assert re.match(r"\r\x1b\[K. \d+ s  looking at\\x1b\[2J all", text)
    assert text.endswith("\r\x1b[K")
    assert max(len(part) for part in text.split("\r\x1b[K")) == 29


def test_what_does_not_last_or_nobody_sees_is_not_told():
    assert seen(Terminal(), 60.0) == ""
    assert seen(io.StringIO(), 0.0) == ""
    assert seen(Terminal(), 0.0, TERM="dumb") == ""


def test_a_line_of_the_log_wipes_away_what_is_told():
    """And only on a terminal: in a file it would be rubbish."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as lines, open(writing, "wb") as log:
        for stderr, start in ((Terminal(), b"\r\x1b[K2"), (io.StringIO(), b"2")):
            container = Container()
            container.environment.override({"TERM": "xterm"})
            container.log.override(CallLog("tortie", log.fileno()))
            session = Session(container)
            with redirect_stderr(stderr), session.progress():
                session.log.warning("look")
            assert lines.read(1000).startswith(start)
            assert (session.doing is unheard) is not isinstance(stderr, Terminal)


def heard(tortie, *arguments):
    """What a command says that it is doing."""
    container, said = Container(), []
    container.environment.override({"DATASTORE_TYPE": "sqlite"})
    container.datastore.override(tortie.datastore)
    container.clock.override(tortie.clock)
    session, options = Session(container), parsed(arguments)
    session.doing = said.append
    options.command.run(options, session)
    return said


def test_whatever_may_last_says_what_it_is_doing(tortie, tmp_path):
    assert heard(tortie, "ipam", "show") == ["reading all that the datastore has"]
    assert heard(tortie, "get", "nodes") == ["reading all of kind Node"]
    tortie.done("datastore", "migrate", "lock")
    assert heard(tortie, "datastore", "migrate", "export")[-1] == "writing 4 records"
    path = tmp_path / "all.yaml"
    path.write_text(tortie.done("datastore", "migrate", "export"))
    tortie.done("delete", "node", "n1")
    assert heard(tortie, "datastore", "migrate", "import", "-f", str(path)) == [
        "compared 0 of 4 records with what is there",
        "written 0 of 1 records",
    ]
    path.write_text(tortie.done("get", "nodes", "-o", "yaml", "--export"))
    assert heard(tortie, "apply", "-f", str(path)) == ["applied 0 of 1 resources"]
    assert heard(tortie, "ipam", "split", "2", "--name", "default-ipv4-ippool", "--dry-run") == [
        "reading pools and blocks"
    ]


def test_a_watch_draws_alone(tortie):
    assert heard(tortie, "ipam", "show", "--watch") == []


def test_a_terminal_that_goes_away_ends_nothing():
    class Gone(Terminal):
        def write(self, text):
            raise OSError("gone")

    assert seen(Gone(), 0.0) == ""
