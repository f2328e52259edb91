"""Several calls at once, interleaved at every datastore call, with lost replies and deaths anywhere.

After each run the runtime repeats its DELs, and nothing may be left. Cases R03, L07; spec: ipam 16.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.ipam.block import PENDING, PENDING_DELETION
from worlds.ipam_world import NODES, World
from worlds.scheduler import PROCEED
from worlds.simulate import CONTAINERS, FATES, FILLERS, VERBS, require_recovery, run_schedule, settle

calls = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from(CONTAINERS), st.sampled_from(NODES), st.booleans()),
    min_size=2,
    max_size=4,
)
flags = st.booleans()
earlier = st.lists(st.tuples(st.sampled_from([*CONTAINERS, *FILLERS]), st.sampled_from(NODES)), max_size=16)


left_behind = st.lists(st.tuples(st.integers(0, 7), st.sampled_from([PENDING, PENDING_DELETION])), max_size=3)
turns = st.lists(st.tuples(st.integers(0, 11), st.sampled_from(FATES)), max_size=150)
listing = st.sampled_from([{"paged": True}, {"together": True}, {}])
kinds = st.builds(
    lambda kind, how: {**kind, **how},
    st.fixed_dictionaries({"strict": flags, "cooldown": st.sampled_from([0, 0, 30])}),
    listing,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier, calls, left_behind, turns, kinds)
def test_any_interleaving_keeps_the_invariants_and_repeated_del_cleans_up(before, asked, left, turns, kind):
    """Also where listings go page by page, and one shows a moment long past; and where two records are one write."""
    world = World(**kind)
    for place, state in left:
        world.leave_behind(place, state)
    turn = iter([*turns, *[(0, PROCEED)] * 2000])  # who goes on, and what befalls him
    drawn: list[tuple[int, int]] = []

    def choose(count: int) -> int:
        drawn.append(next(turn))
        return drawn[-1][0] % count

    run_schedule(world, (before, settle(world, before)), asked, choose, lambda: drawn[-1][1])
    if not kind["cooldown"]:
        require_recovery(world, {*CONTAINERS, *FILLERS})
