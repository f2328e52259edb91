"""Appending and rotating, alone and with others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from entrypoints.log_file import Limits, LogFile

DAY = 86_400
ROOT = Path(__file__).resolve().parents[3]


def limits(size: int = 100, age: int = DAY, count: int = 100) -> Limits:
    return Limits(size, age, count)


def rotated(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "cni.log")


def test_numbers_that_are_not_positive_mean_the_defaults() -> None:
    assert Limits.of(0, -1, 0) == Limits(100 << 20, 30 * DAY, 10)
    assert Limits.of(1, 2, 3) == Limits(1 << 20, 2 * DAY, 3)


def test_a_full_file_is_renamed_and_a_new_one_begun(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "cni.log"), limits(size=25))
    for number in range(5):
        file.write(b"record %d\n" % number)
    names = rotated(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == [b"record 0\nrecord 1\n", b"record 2\nrecord 3\n"]
    assert (tmp_path / "cni.log").read_bytes() == b"record 4\n"
    assert all(re.fullmatch(r"cni-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}-size\.log", name) for name in names)


def test_a_record_longer_than_the_limit_is_written_all_the_same(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "cni.log"), limits(size=5))
    file.write(b"a long record\n")
    assert (tmp_path / "cni.log").read_bytes() == b"a long record\n"
    assert rotated(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_new_file_has_the_old_ones_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "cni.log"
    path.touch()
    path.chmod(mode)
    file = LogFile(str(path), limits(size=10))
    file.write(b"record 0\n")
    file.write(b"record 1\n")
    assert path.read_bytes() == b"record 1\n"
    assert path.stat().st_mode & 0o777 == mode


def test_only_so_many_rotated_files_are_kept(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "cni.log"), limits(size=10, count=3))
    for number in range(10):
        file.write(b"record %d\n" % number)
    assert [(tmp_path / name).read_bytes() for name in rotated(tmp_path)] == [
        b"record 6\n",
        b"record 7\n",
        b"record 8\n",
    ]


def test_old_rotated_files_go_also_those_the_original_compressed(tmp_path: Path) -> None:
    old = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(time.time() - 2 * DAY))
    new = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(time.time() - DAY // 2))
    kept = [f"cni-{new}.000-size.log.zst", "cni-notes.log", "other.log", f"other-{old}.000-size.log"]
    for name in [f"cni-{old}.000-size.log", f"cni-{old}.001-size.log.zst", *kept]:
        (tmp_path / name).touch()
    file = LogFile(str(tmp_path / "cni.log"), limits(size=10))
    file.write(b"record 0\n")
    file.write(b"record 1\n")
    left = rotated(tmp_path)
    assert set(kept) <= set(left)
    assert len(left) == len(kept) + 1


@pytest.mark.parametrize("days", [10**7, 10**15, 2**63 - 1])
def test_an_age_beyond_all_dates_breaks_nothing(tmp_path: Path, days: int) -> None:
    file = LogFile(str(tmp_path / "cni.log"), limits(size=10, age=days * DAY))
    file.write(b"record 0\n")
    file.write(b"record 1\n")
    assert (tmp_path / "cni.log").read_bytes() == b"record 1\n"
    assert len(rotated(tmp_path)) == 1


@pytest.mark.parametrize("name", ["cni", "cni.log.txt"])
def test_names_with_another_or_no_extension_rotate_too(tmp_path: Path, name: str) -> None:
    file = LogFile(str(tmp_path / name), limits(size=10))
    file.write(b"record 0\n")
    file.write(b"record 1\n")
    assert len(list(tmp_path.iterdir())) == 2
    assert (tmp_path / name).read_bytes() == b"record 1\n"


def test_a_file_in_the_working_directory_needs_no_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    LogFile("cni.log", limits()).write(b"x\n")
    assert (tmp_path / "cni.log").read_bytes() == b"x\n"


def test_whoever_comes_late_goes_on_in_the_new_file(tmp_path: Path) -> None:
    path = str(tmp_path / "cni.log")
    first, second = LogFile(path, limits(size=20)), LogFile(path, limits(size=20))
    first.write(b"record 0\nrecord 1\n")
    second.write(b"record 2\n")  # rotates
    first.write(b"record 3\n")  # its own file is full, the new one is not
    assert (tmp_path / "cni.log").read_bytes() == b"record 2\nrecord 3\n"
    assert len(rotated(tmp_path)) == 1


def test_somebody_elses_rotation_is_not_waited_for(tmp_path: Path) -> None:
    import fcntl

    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    file = LogFile(str(tmp_path / "cni.log"), limits(size=10))
    file.write(b"record 0\n")
    file.write(b"record 1\n")
    os.close(lock)
    assert (tmp_path / "cni.log").read_bytes() == b"record 0\nrecord 1\n"


def test_a_file_that_was_deleted_is_begun_again(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "cni.log"), limits(size=10))
    file.write(b"record 0\n")
    (tmp_path / "cni.log").unlink()
    file.write(b"record 1\n")
    assert (tmp_path / "cni.log").read_bytes() == b"record 1\n"


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "cni.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        LogFile(str(tmp_path / "cni.log"), limits())
    assert not (tmp_path / "elsewhere").exists()


def test_a_fifo_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cni.log")
    with pytest.raises(OSError, match="No such device"):
        LogFile(str(tmp_path / "cni.log"), limits())


def test_the_mode_of_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cni.log"
    path.touch(mode=0o600)
    LogFile(str(path), limits()).write(b"x\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_many_processes_lose_and_tear_nothing(tmp_path: Path) -> None:
    """C17: rotation is safe with many processes."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from entrypoints.log_file import Limits, LogFile\n"
        f"file = LogFile({str(tmp_path / 'cni.log')!r}, Limits(4000, {DAY}, 100000))\n"
        "for number in range(200): file.write(b'%s %d %s\\n' % (sys.argv[1].encode(), number, b'x' * 50))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-ISBc", program, str(number)]) for number in range(8)]
    assert [process.wait(300) for process in processes] == [0] * 8
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{who} {number} {'x' * 50}" for who in range(8) for number in range(200))
    assert rotated(tmp_path)  # how many is chance: who finds the lock held goes on writing
