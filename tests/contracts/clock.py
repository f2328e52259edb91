"""What every clock keeps: derive, provide a `clock` fixture."""

from __future__ import annotations

from itertools import pairwise

from ports.clock import Clock


class ClockContract:
    def test_instants_strictly_increase(self, clock: Clock) -> None:
        instants = [clock.now() for _ in range(10_000)]
        assert all(earlier < later for earlier, later in pairwise(instants))

    def test_an_instant_is_in_nanoseconds_since_1970(self, clock: Clock) -> None:
        assert 1_700_000_000_000_000_000 < clock.now() < 4_000_000_000_000_000_000

    def test_sleeping_passes_time_on_both_clocks(self, clock: Clock) -> None:
        before, instant = clock.monotonic(), clock.now()
        clock.sleep(0.02)
        assert clock.monotonic() - before >= 0.019
        assert clock.now() - instant >= 19_000_000

    def test_sleeping_for_no_time_or_less_returns_at_once(self, clock: Clock) -> None:
        before = clock.monotonic()
        clock.sleep(0)
        clock.sleep(-60)
        assert clock.monotonic() - before < 30

    def test_a_deadline_lies_its_budget_ahead(self, clock: Clock) -> None:
        deadline = clock.deadline(60)
        assert 30 < deadline.left(clock.monotonic()) <= 60
        assert not deadline.passed(clock.monotonic())
        assert clock.deadline(0).passed(clock.monotonic())
