"""A plugin in CNI_PATH is run in process only if it is certainly this very program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.plugin_path import is_this_program

BODY = b"\x7fELF" + b"x" * 1000 + b"\n"
STAMP = b"# build-stamp: 2026-11-29 abcdef\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "calico"
    path.write_bytes(BODY + STAMP)
    return path


def test_links_to_the_program_are_the_program(own: Path, tmp_path: Path) -> None:
    hard, soft = tmp_path / "hard", tmp_path / "soft"
    os.link(own, hard)
    soft.symlink_to(hard)
    for candidate in (own, hard, soft):
        assert is_this_program(str(candidate), str(own))


def test_a_copy_with_the_same_stamp_is_the_program(own: Path, tmp_path: Path) -> None:
    copy = tmp_path / "calico-ipam"
    copy.write_bytes(BODY + STAMP)
    assert is_this_program(str(copy), str(own))


@pytest.mark.parametrize(
    "content",
    [
        BODY + STAMP.replace(b"abcdef", b"abcdeg"),
        BODY + b"y" + STAMP,
        BODY + STAMP.replace(b"build-stamp", b"built-stamp"),
        b"",
    ],
)
def test_another_build_is_another_program(own: Path, tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "calico-ipam"
    other.write_bytes(content)
    assert not is_this_program(str(other), str(own))


def test_files_without_a_stamp_are_different_programs_even_when_equal(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(BODY)
    assert not is_this_program(str(tmp_path / "one"), str(tmp_path / "two"))


def test_what_cannot_be_read_is_another_program(own: Path, tmp_path: Path) -> None:
    for candidate in ("/nowhere/calico-ipam", str(tmp_path), "with\0nul"):
        assert not is_this_program(candidate, str(own))
        assert not is_this_program(str(own), candidate)
