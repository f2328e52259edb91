"""The log lines of a call."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from domain.cni.netconf import NetConf
from domain.ipam.address import Address
from entrypoints.logs import CallLog
from ports.errors import Unavailable

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[(?P<level>[A-Z]+)\]\[(?P<pid>\d+)\] "
    r"(?P<place>\S+ \d+): (?P<rest>.*)\n"
)


def said(log: CallLog, capfd: pytest.CaptureFixture[str]) -> list[str]:
    log.debug("d")
    log.info("i")
    log.warning("w")
    log.error("e")
    return re.findall(r"\[(\w+)\]\[\d+\]", capfd.readouterr().err)


def test_a_line_has_time_level_process_place_message_and_sorted_fields(capfd: pytest.CaptureFixture[str]) -> None:
    CallLog("cni-plugin").info(
        "Assigned",
        text='a "b"\n',
        nothing=None,
        flag=True,
        off=False,
        number=5,
        error=Unavailable("no\nway"),
        address=Address.parse("10.0.0.1"),
    )
    out, line = capfd.readouterr()
    assert out == ""
    found = LINE.fullmatch(line)
    assert found
    assert found["level"] == "INFO"
    assert int(found["pid"]) == os.getpid()
    assert re.fullmatch(r"cni-plugin/test_logs.py \d+", found["place"])
    assert found["rest"] == (
        r'Assigned address=10.0.0.1 error=no\nway flag=true nothing=<nil> number=5 off=false text="a \"b\"\n"'
    )


def test_a_message_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    CallLog("x").error("a\r\nb \udcff\x1b[2J", error=ValueError("\x9b\u202e\t"))
    assert r"a\r\nb \xff\x1b[2J error=\u009b\u202e\t" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("", ["INFO", "WARNING", "ERROR"]),
        ("DEBUG", ["DEBUG", "INFO", "WARNING", "ERROR"]),
        ("info", ["INFO", "WARNING", "ERROR"]),
        ("Warning", ["WARNING", "ERROR"]),
        ("warn", ["WARNING", "ERROR"]),
        ("error", ["ERROR"]),
        ("bogus", ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_levels(level: str, shown: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """G19: warn and warning count too. C17: an unknown level is INFO."""
    log = CallLog("x")
    log.configure(NetConf(log_level=level))
    assert said(log, capfd) == shown


def test_before_configuration_info_and_above_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert said(CallLog("x"), capfd) == ["INFO", "WARNING", "ERROR"]


def test_a_file_gets_the_same_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a" / "b" / "cni.log"
    umask = os.umask(0o077)
    try:
        log = CallLog("x")
        log.configure(NetConf(log_file_path=str(path)))
        log.info("hello")
    finally:
        os.umask(umask)
    assert path.read_text() == capfd.readouterr().err
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "path",
    [
        *("/dev/full", "/proc/nowhere/cni.log", "/dev/null/cni.log", "/"),
        *("/tmp/\0/cni.log", "\0", "/tmp/a\0.log", "/tmp/\ud800.log", "/proc" + "/x" * 5000),
    ],
)
def test_trouble_with_the_file_is_nobodys_trouble(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    """C17."""
    log = CallLog("x")
    log.configure(NetConf(log_file_path=path))
    log.info("hello")
    out, shown = capfd.readouterr()
    assert out == ""
    assert "hello" in shown


def test_a_link_in_the_files_place_is_named_and_not_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of either kind: the file behind it may be another program's."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "soft.log").symlink_to(victim)
    (tmp_path / "hard.log").hardlink_to(victim)
    for name, reason in (("soft.log", "it is a symbolic link, which is not followed"), ("hard.log", "it has 2 names")):
        log = CallLog("x")
        log.configure(NetConf(log_file_path=str(tmp_path / name)))
        log.info("hello")
        shown = capfd.readouterr().err
        assert f'Cannot write the log file error="{reason}' in shown
        assert "Errno" not in shown
        assert "hello" in shown
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(("mode", "warned"), [(0o640, False), (0o644, False), (0o660, True), (0o666, True)])
def test_a_file_that_others_may_write_is_told_and_keeps_its_mode(
    tmp_path: Path, mode: int, warned: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cni.log"
    path.touch()
    path.chmod(mode)
    log = CallLog("x")
    log.configure(NetConf(log_file_path=str(path)))
    assert (f"others may write it (mode {mode:04o})" in capfd.readouterr().err) is warned
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nobody_listening_on_stderr_is_nobodys_trouble() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    CallLog("x", writer).error("hello")
    os.close(writer)
