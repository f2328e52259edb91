"""What every host lock keeps: derive, provide `clock`, `lock` and `rival` (the same lock as another call sees it)."""

from __future__ import annotations

import pytest

from ports.clock import Clock
from ports.lock import Lock

PATIENCE = 0.1  # seconds


class LockContract:
    def test_a_free_lock_is_held_for_the_block(self, clock: Clock, lock: Lock) -> None:
        with lock.held(clock.deadline(PATIENCE)) as really:
            assert really is True

    def test_it_is_free_again_after_the_block(self, clock: Clock, lock: Lock, rival: Lock) -> None:
        for each in (lock, rival, lock):
            with each.held(clock.deadline(PATIENCE)) as really:
                assert really

    def test_an_error_in_the_block_frees_it_and_goes_on(self, clock: Clock, lock: Lock, rival: Lock) -> None:
        with pytest.raises(KeyError), lock.held(clock.deadline(PATIENCE)):
            raise KeyError
        with rival.held(clock.deadline(PATIENCE)) as really:
            assert really

    def test_whoever_cannot_have_it_by_the_deadline_goes_on_unlocked(
        self, clock: Clock, lock: Lock, rival: Lock
    ) -> None:
        with lock.held(clock.deadline(PATIENCE)):
            before = clock.monotonic()
            with rival.held(clock.deadline(PATIENCE)) as really:
                assert really is False
            assert PATIENCE * 0.9 <= clock.monotonic() - before < PATIENCE + 20

    def test_going_on_unlocked_does_not_free_the_holders_lock(self, clock: Clock, lock: Lock, rival: Lock) -> None:
        with lock.held(clock.deadline(PATIENCE)):
            for _ in range(2):
                with rival.held(clock.deadline(0)) as really:
                    assert not really

    def test_a_free_lock_is_taken_even_when_the_deadline_has_passed(self, clock: Clock, lock: Lock) -> None:
        with lock.held(clock.deadline(0)) as really:
            assert really


class NotedLockContract(LockContract):
    """Of one that can have notes, and has none yet."""

    def test_whoever_comes_next_finds_the_notes_of_the_last_holder(self, clock: Clock, lock: Lock, rival: Lock) -> None:
        assert lock.notes() == ""
        for each, other, text in ((lock, rival, "long notes\nof the first\n"), (rival, lock, "süße\n")):
            with each.held(clock.deadline(PATIENCE)):
                each.leave(text)
                assert other.notes() == text
        assert lock.notes() == rival.notes() == "süße\n"
