"""The log in memory and in files: the contract, and what only files can be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from adapters.linux.log_history import LogFiles
from adapters.memory.log_history import MemoryLogHistory
from contracts.log_history import LogHistoryContract
from domain.moment import SECOND, parse_rfc3339
from entrypoints.log_file import Limits, LogFile


class TestMemory(LogHistoryContract):
    @pytest.fixture
    def history(self):
        return lambda *lines: MemoryLogHistory(lines)


class TestFiles(LogHistoryContract):
    @pytest.fixture
    def history(self, tmp_path):
        def make(*lines):
            (tmp_path / "cni.log").write_text("".join([f"{line}\n" for line in lines]))
            return LogFiles(str(tmp_path / "cni.log"))

        return make


@pytest.mark.parametrize("name", ["cni.log", "cni"])
def test_files_that_were_put_aside_come_first(tmp_path: Path, name: str) -> None:
    file = LogFile(str(tmp_path / name), Limits(25, 86_400, 100))
    for number in range(7):
        file.write(b"record %d\n" % number)
    (tmp_path / f"other-{name}").write_text("record x\n")
    assert len(list(tmp_path.iterdir())) == 5
    log = LogFiles(str(tmp_path / name))
    assert list(log.lines(["record"])) == [f"record {number}" for number in range(7)]
    assert log.first() == "record 0"
    assert log.gaps() == ()


def test_what_is_put_aside_while_it_is_read_is_read_once(tmp_path: Path) -> None:
    """By another process, which also takes the oldest file away."""
    path, aside = tmp_path / "cni.log", "cni-2026-11-29T13-06-1{}.345-size.log"
    for name, number in ((aside.format(1), 1), (aside.format(2), 2), (path.name, 3)):
        (tmp_path / name).write_text(f"record {number}\n")
    reading = LogFiles(str(path)).lines(["record"])
    assert next(reading) == "record 1"
    (tmp_path / aside.format(1)).unlink()
    path.rename(tmp_path / aside.format(3))
    path.write_text("record 4\n")
    assert list(reading) == ["record 2", "record 3"]


def test_what_is_put_aside_before_the_names_are_listed_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, names = tmp_path / "cni.log", os.listdir
    path.write_text("record 1\n")

    def put_aside(folder: str) -> list[str]:
        path.rename(tmp_path / "cni-2026-11-29T13-06-12.345-size.log")
        path.write_text("record 2\n")
        return names(folder)

    monkeypatch.setattr("adapters.linux.log_history.os.listdir", put_aside)
    assert list(LogFiles(str(path)).lines(["record"])) == ["record 1"]


def test_lines_of_any_length_are_found(tmp_path: Path) -> None:
    """Those that many are searched in at once end anywhere; of one that is too long pieces are given."""
    texts = [f"{number} {'x' * (number * 7919 % 70_000)} word" for number in range(100)]
    (tmp_path / "cni.log").write_text("\n".join(texts))
    log = LogFiles(str(tmp_path / "cni.log"))
    assert list(log.lines(["word"])) == texts
    assert list(log.lines([" word"], 0)) == texts, "lines without a time are looked at"
    (tmp_path / "cni.log").write_text(f"{'x' * (5 << 20)} word\nword")
    assert [len(line) <= 2 << 20 for line in log.lines(["word"])] == [True, True]


def test_a_file_that_is_older_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "cni.log"
    path.write_text("word\n")
    os.utime(path, (0, 0))
    log = LogFiles(str(path))
    assert list(log.lines(["word"], 86_400 * SECOND)) == []
    assert list(log.lines(["word"], 0)) == ["word"]


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    log = LogFiles(str(tmp_path / "cni.log"))
    assert log.gaps() == (f"There is no log at {tmp_path}/cni.log; name it with --log-file",)
    assert (log.first(), list(log.lines(["x"]))) == ("", [])
    os.mkfifo(tmp_path / "cni.log")
    (tmp_path / "cni-2026-11-29T13-06-12.345-size.log.zst").touch()
    (tmp_path / "cni-2026-11-29T13-06-12.346-size.log").symlink_to("cni-2026-11-29T13-06-12.346-size.log")
    (tmp_path / "cni-2026-11-29T13-06-12.347-size.log").write_text("x 1\n")
    assert [gap.removeprefix(f"{tmp_path}/") for gap in log.gaps()] == [
        "cni-2026-11-29T13-06-12.345-size.log.zst is compressed and was left out; `zstd -d` it",
        "cni-2026-11-29T13-06-12.346-size.log cannot be read: too many levels of symbolic links",
        "cni.log cannot be read: it is a named pipe",
    ]
    assert list(log.lines(["x"])) == ["x 1"]
    assert LogFiles("/dev/null/cni.log").gaps() == ("/dev/null/cni.log cannot be read: not a directory",)


def test_a_log_of_no_lines_has_no_first(tmp_path: Path) -> None:
    (tmp_path / "cni.log").touch()
    assert LogFiles(str(tmp_path / "cni.log")).first() == ""


def test_what_is_not_utf_8_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cni.log").write_bytes(b"c1 \xff\n")
    assert list(LogFiles(str(tmp_path / "cni.log")).lines(["c1"])) == ["c1 \ufffd"]


def test_local_time_is_this_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-3")
    time.tzset()
    try:
        when = LogFiles("/x").instant("2026-11-29 13:06:12.345")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert when == parse_rfc3339("2026-11-29T10:06:12Z") + 345 * SECOND // 1000
