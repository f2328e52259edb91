"""Whatever a crash leaves, `ipam gc` collects, and `ipam check` then finds nothing (L03, L04; spec: ipam 16).

Schedules are those of tests/simulate.py; here the sweep comes after them, or is one of the calls at work.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.ipam.audit import is_clean
from domain.usecases.check_ipam import check_ipam
from domain.usecases.collect_ipam import KEPT, Sweep, collect_ipam
from domain.usecases.steps.work import Work
from ipam_world import NEVER, NODES, World, call_of
from scheduler import PROCEED, Process, Schedule
from simulate import CONTAINERS, FATES, FILLERS, run_schedule, settle

calls = st.lists(
    st.tuples(
        st.sampled_from(["ADD", "ADD", "DEL"]), st.sampled_from(CONTAINERS), st.sampled_from(NODES), st.booleans()
    ),
    min_size=2,
    max_size=4,
)
earlier = st.lists(st.tuples(st.sampled_from([*CONTAINERS, *FILLERS]), st.sampled_from(NODES)), max_size=16)


def work_of(world: World, store=None) -> Work:
    return Work.on(world.runtime(store), NEVER)


def audit_of(world: World):
    return check_ipam(work_of(world)).findings


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier, calls, st.data(), st.booleans(), st.booleans())
def test_after_any_schedule_a_sweep_alone_makes_the_datastore_clean(before, asked, data, strict, repeat):
    """With the runtime's DELs repeated and without them: what containers hold is not touched."""
    world = World(strict=strict)
    run_schedule(
        world,
        before,
        asked,
        lambda count: data.draw(st.integers(0, count - 1)),
        lambda: data.draw(st.sampled_from(FATES)),
    )
    if repeat:
        for container in (*CONTAINERS, *FILLERS):
            world.delete(call_of(container, "node-a", "DEL"))
    held = world.held()
    outcomes = collect_ipam(work_of(world), Sweep())
    assert not [one for one in outcomes if one.outcome == KEPT]
    assert is_clean(audit_of(world)), audit_of(world)
    assert world.held() == held
    world.check_at_rest({handle.partition(".")[2] for handle, _ in held})


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier, calls, st.data(), st.booleans())
def test_a_sweep_that_waits_for_nothing_hurts_no_call_at_work(before, asked, data, strict):
    """Even without any grace: the invariants hold at every step, every answer keeps its addresses, all can go on."""
    world = World(strict=strict)
    settle(world, before)
    processes = []
    for number, (verb, container, node, both) in enumerate(asked):
        call = call_of(container, node, verb, **({"assign_ipv6": "true"} if both else {}))
        perform = world.add if verb == "ADD" else world.delete
        processes.append(Process(f"{number} {verb} {container}", lambda store, c=call, do=perform: do(c, store)))
    sweep = Sweep(grace=0)
    processes.append(Process("sweep", lambda store: collect_ipam(work_of(world, store), sweep)))
    schedule = Schedule(
        world.store,
        lambda count: data.draw(st.integers(0, count - 1)),
        lambda: data.draw(st.sampled_from([PROCEED] * 20 + FATES)),
        world.check,
    )
    schedule.run(processes)
    deleted = {container for verb, container, *_ in asked if verb == "DEL"}
    answered = [a for p, (_, c, *_) in zip(processes, asked) if c not in deleted and p.result for a in p.result]
    assert len(answered) == len(set(answered))
    taken = {str(cidr.at(o)) for cidr, (b, _) in blocks(world).items() for o in range(cidr.size) if b.holder(o)}
    assert set(answered) <= taken
    collect_ipam(work_of(world), Sweep())
    assert is_clean(audit_of(world)), audit_of(world)


def blocks(world: World):
    return check_ipam(work_of(world)).inventory.blocks
