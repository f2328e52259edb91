"""What every watch of folders keeps: derive, provide `watch` of `folder` (there, empty) and `absent` (not there), and
`change`, which changes something in the folder.
"""

from __future__ import annotations

from collections.abc import Callable

from ports.folder_watch import FolderWatch

LONG = 60.0  # seconds: much longer than any change takes to be told


class FolderWatchContract:
    def test_a_change_ends_the_wait(self, watch: FolderWatch, folder: str, change: Callable[[], None]) -> None:
        watch.unwatched()
        change()
        assert watch.wait(LONG) == (folder,)

    def test_without_one_the_seconds_pass(self, watch: FolderWatch) -> None:
        watch.unwatched()
        assert watch.wait(0.0) == ()

    def test_what_is_told_is_not_told_again(self, watch: FolderWatch, folder: str, change: Callable[[], None]) -> None:
        watch.unwatched()
        for _ in range(3):
            change()
            assert watch.wait(LONG) == (folder,)
            assert watch.wait(0.0) == ()

    def test_a_folder_that_cannot_be_watched_is_named(self, watch: FolderWatch, absent: str) -> None:
        assert list(watch.unwatched()) == [absent]

    def test_closing_can_be_repeated(self, watch: FolderWatch) -> None:
        watch.unwatched()
        for _ in range(3):
            watch.close()
