"""Plugins are looked up by the CNI library's rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.linux.files import reason
from adapters.plugin_path import find_plugin
from ports.errors import Refused


def test_the_first_regular_file_in_the_path_is_found(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("1", "2", "3"))
    (first / "x").mkdir(parents=True)  # a directory of that name does not count
    second.mkdir()
    (third).mkdir()
    (third / "x").write_text("")
    (second / "x").symlink_to(third / "x")
    assert find_plugin("x", (str(first), "", "/nowhere", str(second), str(third))) == f"{second}/x"


@pytest.mark.parametrize("type", ["absent", ".", "..", "nul\0"])
def test_what_is_no_file_is_not_found(tmp_path: Path, type: str) -> None:
    with pytest.raises(Refused, match=r"^failed to find plugin "):
        find_plugin(type, (str(tmp_path),))


def test_an_empty_entry_is_not_the_working_directory(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        find_plugin("pyproject.toml", ("", str(tmp_path)))
    assert str(refused.value) == f'failed to find plugin "pyproject.toml" in path [ {tmp_path}]'


def test_system_errors_are_told_in_gos_words() -> None:
    assert reason(PermissionError(13, "x")) == "permission denied"
    assert reason(OSError(26, "x")) == "text file busy"
    assert reason(ValueError("embedded null byte")) == "invalid argument"
