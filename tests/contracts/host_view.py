"""What every view of a host keeps: derive, provide `host`, `place` (an empty folder that `put` writes below) and
`put(path, text, mode)`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from domain.doctor.seen import FileSeen
from ports.clock import Deadline
from ports.errors import Missing, Refused
from ports.host_view import HostView

SOON = Deadline(1e9)


class HostViewContract:
    def test_a_file_is_seen_with_mode_and_size(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/f", "text", 0o600)
        assert host.file(f"{place}/f") == FileSeen("a regular file", 0o600, 0, 4)
        assert host.read(f"{place}/f") == "text"
        assert host.exists(f"{place}/f")

    def test_a_folder_has_names_in_order(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        for name in ("b", "a", "d/c"):
            put(f"{place}/folder/{name}", "", 0o600)
        assert host.names(f"{place}/folder") == ("a", "b", "d")
        seen = host.file(f"{place}/folder")
        assert seen is not None
        assert seen.is_folder
        assert not seen.is_file

    def test_what_is_not_there_is_none(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        assert host.file(f"{place}/none/f") is None
        assert host.names(f"{place}/none") is None
        assert not host.exists(f"{place}/none")
        with pytest.raises(Missing):
            host.read(f"{place}/none")

    def test_a_program_that_says_nothing_is_refused(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/silent", "", 0o755)
        with pytest.raises(Refused):
            host.version_of(f"{place}/silent", SOON)

    def test_a_look_in_time_is_given(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        assert host.within(60, "a look", lambda: 7) == 7

    def test_a_setting_that_no_kernel_has_is_empty(self, host: HostView, place: str, put: Callable[..., None]) -> None:
        assert host.setting("net.ipv4.no_such_thing") == ""
