"""Several calls at once, interleaved at every datastore call, with lost replies and deaths anywhere.

After each run the runtime repeats its DELs, and nothing may be left. Cases R03, L07; spec: ipam 16.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipam_world import NODES, World
from simulate import CONTAINERS, FATES, FILLERS, VERBS, require_recovery, run_schedule

calls = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from(CONTAINERS), st.sampled_from(NODES), st.booleans()),
    min_size=2,
    max_size=4,
)
flags = st.booleans()
earlier = st.lists(st.tuples(st.sampled_from([*CONTAINERS, *FILLERS]), st.sampled_from(NODES)), max_size=16)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier, calls, st.data(), st.sampled_from([0, 0, 30]), st.fixed_dictionaries({"strict": flags, "paged": flags}))
def test_any_interleaving_keeps_the_invariants_and_repeated_del_cleans_up(before, asked, data, cooldown, kind):
    """Also where listings go page by page, and one of them shows a moment long past."""
    world = World(cooldown=cooldown, **kind)
    run_schedule(
        world,
        before,
        asked,
        lambda count: data.draw(st.integers(0, count - 1)),
        lambda: data.draw(st.sampled_from(FATES)),
    )
    if not cooldown:
        require_recovery(world)
