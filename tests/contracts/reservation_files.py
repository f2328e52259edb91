"""What every directory of host-local's reservations keeps: derive, provide `files` and the verbs below."""

from __future__ import annotations

import pytest

from ports.clock import Deadline
from ports.errors import Expired, Refused, Unavailable
from ports.reservation_files import ReservationFiles

PASSED = Deadline(float("-inf"))


class ReservationFilesContract:
    """`files`: no directory yet. `fill`: what host-local, or anybody, puts into it."""

    def fill(self, files: ReservationFiles, **texts: str) -> None:
        raise NotImplementedError

    def spoil(self, files: ReservationFiles, name: str) -> None:
        """Put something there that cannot be read."""
        raise NotImplementedError

    def hold_elsewhere(self, files: ReservationFiles) -> None:
        """Let somebody else have the lock."""

    def test_a_directory_is_emptied_and_goes(self, files, near) -> None:
        assert not files.exist()
        self.fill(files, b="c2\r\neth0", a="c1")
        assert files.exist()
        assert files.names() == ("a", "b")
        assert (files.read("a"), files.read("b")) == ("c1", "c2\r\neth0")
        with files.held(near):
            assert files.names() == ("a", "b", "lock")
            files.remove("a")
            files.remove("a")
            with pytest.raises(Unavailable, match="directory not empty"):
                files.remove_all()
            assert files.names() == ("b", "lock")
            files.remove("b")
            files.remove_all()
            assert not files.exist()
        assert not files.exist()

    def test_what_cannot_be_read_is_refused(self, files) -> None:
        self.fill(files, a="c1")
        self.spoil(files, "b")
        with pytest.raises(Refused):
            files.read("b")
        with pytest.raises(Refused, match="no such file or directory"):
            files.read("c")

    def test_the_lock_is_waited_for_until_the_deadline(self, files) -> None:
        self.fill(files)
        self.hold_elsewhere(files)
        with pytest.raises(Expired), files.held(PASSED):
            pytest.fail("it was not held")
