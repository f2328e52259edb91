"""`tortie uninstall --stay`, as the container of a DaemonSet: it ends when it is asked to, and not before."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container


class Asked(SystemClock):
    """While somebody waits, a signal comes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waited: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        os.kill(os.getpid(), self.number)


def uninstall(folder: Path, clock: Asked, *more: str) -> int:
    container = Container()
    container.clock.override(clock)
    return operator.run(["uninstall", "--root", str(folder), *more], {}, container)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_on_a_node_that_is_done_it_stays_until_a_signal(tmp_path, capfd, number, code):
    clock = Asked(number)
    assert uninstall(tmp_path, clock, "--stay") == code
    assert len(clock.waited) == 1
    said = capfd.readouterr()
    assert "there is no installation to take back" in said.out
    assert said.err == ""


def test_by_hand_that_is_an_error(tmp_path, capfd):
    clock = Asked(signal.SIGTERM)
    assert uninstall(tmp_path, clock) == 1
    assert clock.waited == []
    assert "there is no installation to take back" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("install", "--root"),
        ("install", "--bin-dir"),
        ("install", "--net-dir"),
        ("install", "--from"),
        ("install", "--plugins"),
        ("uninstall", "--root"),
        ("uninstall", "--bin-dir"),
        ("refresh-token", "--root"),
        ("refresh-token", "--net-dir"),
    ],
)
def test_an_empty_folder_is_not_this_host(capfd, command, option):
    """`--root "$NODE"` of a script in which NODE is not set."""
    assert operator.run([command, option, ""], {}, Container()) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert f"error: argument {option}: it is empty" in said.err


def test_a_working_directory_that_is_gone_is_named(tmp_path, capfd, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert operator.run(["uninstall", "--root", "node"], {}, Container()) == 2
    assert "argument --root: the working directory: No such file or directory; give an absolute path" in (
        capfd.readouterr().err
    )
