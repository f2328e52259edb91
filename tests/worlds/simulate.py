"""Random schedules of IPAM calls by the thousand, reproducible by seed:
`python tests/worlds/simulate.py --runs N --seed S`.

Several calls run at once over the memory datastore, interleaved at every datastore call, with lost replies and deaths
anywhere (tests/worlds/scheduler.py); after each run the runtime repeats its DELs and nothing may be left. Exit code 1
and the schedule when an invariant fails.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":  # as a script: the project and the test modules beside it
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from domain.ipam.audit import is_clean
from domain.ipam.errors import HandleFull, IpamError, StillContended
from ports.datastore import Blocks
from ports.errors import PortError
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import Sweep, collect_ipam
from worlds.ipam_world import GONE, NEVER, NODES, VM, World, call_of
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, PROCEED, Died, Process, Schedule
from worlds.seeded_runs import command

CONTAINERS = ("c1", "c2", "c3")
VERBS = ["ADD"] * 5 + ["DEL"] * 3 + ["IP"] * 2 + ["VM"] * 2 + ["VMDEL", "FREE", "GIVEUP", "GONE", "STRICT", "POOL"]
CROWDS = (
    ["ADD", "DEL"],
    ["ADD", "DEL"],
    ["VM"] * 4 + ["VMFAIL"] * 2 + ["VMDEL"],
)  # all about one container, or one virtual machine
SPECIFIC = {False: "10.9.0.5", True: "10.9.0.9"}
FATES = [PROCEED] * 40 + [LOSE_REPLY, DIE_BEFORE, DIE_AFTER]
SAME_START = 8  # seeds
FILLERS = ("f1", "f2", "f3", "f4", "f5")  # hold addresses so that blocks run out; nobody deletes them in a run


def settle(world: World, before: list[tuple[str, str]]) -> dict[str, str]:
    """What is there when the run begins: ADDs (container, node), one after the other. Address → container."""
    alive = {}
    for container, node in before:
        try:
            alive |= dict.fromkeys(world.add(call_of(container, node)), container)
        except IpamError:
            continue
    return alive


def body_of(world: World, asked: tuple[str, str, str, bool]):
    """What one process does; `asked` is (verb, container, node, a flag whose meaning is the verb's)."""
    verb, container, node, flag = asked
    bodies = {
        "ADD": lambda store: world.add(call_of(container, node, assign_ipv6="true" if flag else "false"), store),
        "DEL": lambda store: world.delete(call_of(container, node, "DEL"), store),
        "IP": lambda store: world.add(call_of(container, node, address=SPECIFIC[flag]), store),
        "VM": lambda store: world.add_vm(container, node, store, dual=flag),
        "VMFAIL": lambda store: world.add_vm(container, node, store, dual=flag, delivered=False),
        "VMDEL": world.delete_vm,
        "FREE": lambda store: world.free(container, store),
        "GIVEUP": lambda store: world.give_up(node, store, must_be_empty=flag),
        "GONE": lambda store: world.give_up(GONE, store, must_be_empty=flag),
        "STRICT": lambda store: world.make_strict(store, strict=flag),
        "POOL": lambda store: world.switch_pool(store, disabled=flag),
    }
    return bodies[verb]


def run_schedule(world: World, start, asked, choose, fate) -> tuple[Schedule, list[Process]]:
    """All that is asked at once; the answers given must fit it. `start`: what was asked before, and what it got."""
    before, alive = start
    if choose(2):
        world.stand_still()
    processes = [
        Process(f"{number} {one[0]} {one[1]} on {one[2]}", body_of(world, one)) for number, one in enumerate(asked)
    ]
    schedule = Schedule(world.store, choose, fate, world.check)
    schedule.run(processes)
    for process, (verb, _, _, flag) in zip(processes, asked):
        assert isinstance(process.error, (type(None), Died, IpamError, PortError)), (process.name, process.error)
        expected = {"ADD": 1 + flag, "VM": 1 + flag, "IP": 1}.get(verb)
        assert process.result is None or len(process.result) == expected, (process.name, process.result)
        require_clean_failure(world, process, schedule, asked, [one[0] for one in before])
    deleted = {container for verb, container, *_ in asked if verb in ("DEL", "FREE")}
    require_no_double_answer(processes, asked, {a for a, container in alive.items() if container not in deleted})
    starts = [process for process, (verb, *_) in zip(processes, asked) if verb in ("VM", "VMFAIL")]
    require_one_answer(world, starts, asked, schedule.trace)
    return schedule, processes


def require_clean_failure(world: World, process: Process, schedule: Schedule, asked, before: list[str]) -> None:
    """A failed ADD holds nothing, and a block write whose reply alone was lost is no failure."""
    faults = [line for line in schedule.trace if line.startswith(f"{process.name}: ") and not line.endswith("[ok]")]
    _, verb, container, *_ = process.name.split()
    rivals = [one for one in asked if one[0] in ("ADD", "IP", "DEL", "FREE") and one[1] == container]
    if verb != "ADD" or len(rivals) > 1:
        return
    writes_a_block = any(word in faults[0] for word in ("update BlockKey", ": write ")) if len(faults) == 1 else False
    if writes_a_block and faults[0].endswith("[reply lost]"):
        assert not isinstance(process.error, PortError), (process.name, process.error)
    if isinstance(process.error, IpamError) and not faults and container not in before:
        held = {handle for handle, _ in world.held()} | {handle for handle, _ in world.counted()}
        assert f"net.{container}" not in held, (process.name, process.error)


def require_no_double_answer(processes: list[Process], asked, held: set[str]) -> None:
    """No ADD gets an address that a container has which nobody deletes, and no two of them get the same."""
    deleted = {container for verb, container, *_ in asked if verb in ("DEL", "FREE")}
    given_out = [
        address
        for process, (verb, container, *_) in zip(processes, asked)
        if container not in deleted and verb not in ("VM", "VMFAIL")
        for address in process.result or ()
    ]
    if all(verb != "VMDEL" for verb, *_ in asked):  # its containers all have the same
        given_out += set().union(
            *[process.result or () for process, (verb, *_) in zip(processes, asked) if verb == "VM"]
        )
    assert len(given_out) == len(set(given_out)), given_out
    assert not held.intersection(given_out), held.intersection(given_out)


def require_one_answer(world: World, starts: list[Process], asked, trace: list[str]) -> None:
    """A virtual machine has what each of its containers was answered, unless it was deleted meanwhile.

    And however a schedule ended, its next start gets the address that it has, or one if it has none.
    """
    for process in starts:
        assert not isinstance(process.error, (HandleFull, StillContended)), (process.name, process.error)
    held = {str(address) for address in world.held_by(VM)}
    undone = len(starts) == 1 and not starts[0].result and not starts[0].error
    if undone and all("[ok]" in line for line in trace):
        assert not held, "the only start of the virtual machine was undone"
    if all(verb != "VMDEL" for verb, *_ in asked):
        answered = set().union(*[process.result or () for process in starts])
        assert answered <= held, f"the virtual machine has {held}, but was answered {answered}"
    world.switch_pool(disabled=False)
    v4 = {address for address in held if "." in address}
    again = next_start(world)
    assert again == v4 or not v4, (again, held)


def next_start(world: World) -> frozenset[str]:
    """What a virtual machine that starts once more is given; nothing if there is no address left."""
    try:
        return world.add_vm("again", NODES[0])
    except (HandleFull, StillContended) as error:
        raise AssertionError(f"the virtual machine cannot start: {error}") from error
    except IpamError:
        return frozenset()


def require_recovery(world: World, containers) -> None:
    """The runtime repeats DEL for all of these containers, once any cooldown is over; then nothing is left.

    What a claim or a release that died has left of blocks and affinities, an operator's gc puts right.
    """
    world.delete_vm()
    for container in sorted(containers):
        world.delete(call_of(container, "node-a", "DEL"))
    world.check_at_rest(set())
    assert all(stored.record.is_empty() for stored in world.store.list(Blocks(), NEVER))
    collect_ipam(world.work(), Sweep())
    findings = check_ipam(world.work()).findings
    assert is_clean(findings), findings
    assert not world.blocks_led_to_twice(), world.blocks_led_to_twice()


class Start:
    """Where schedules begin, drawn from a number: a cluster in which some calls are done already.

    A node that is no more may have left affinities without blocks.
    """

    def __init__(self, number: int) -> None:
        dice = random.Random(f"start {number}")
        self.number = number
        paged = number % 4 == 0
        self._kind = {"strict": number % 3 == 0, "paged": paged, "together": number % 7 in (2, 4) and not paged}
        self.before = [(dice.choice([*CONTAINERS, *FILLERS]), dice.choice(NODES)) for _ in range(dice.randint(0, 16))]
        world = World(**self._kind)
        for _ in range(dice.choice((0, 0, 1, 3))):
            world.leave_behind(dice.randrange(8), dice.choice(world.states_left_behind()))
        self.alive = settle(world, self.before)
        self._now, self._snapshot = world.clock.now(), world.store.snapshot()

    def world(self) -> World:
        world = World(**self._kind, now=self._now)
        world.store.restore(self._snapshot)
        return world


_latest: list[Start] = []


def start_of(seed: int) -> Start:
    """Seeds share it by eights: what is done before takes longer than what is tried."""
    number = seed // SAME_START
    if not _latest or _latest[0].number != number:
        _latest[:] = [Start(number)]
    return _latest[0]


def random_run(seed: int) -> tuple[Schedule, list[Process]]:
    """One schedule of two to four calls, drawn from the seed."""
    start, dice = start_of(seed), random.Random(seed)
    crowd = dice.random() < 0.5  # everything is about one container on one node
    containers, nodes = (CONTAINERS[:1], NODES[:1]) if crowd else (CONTAINERS, NODES)
    verbs = dice.choice(CROWDS) if crowd else VERBS
    asked = [
        (dice.choice(verbs), dice.choice(containers), dice.choice(nodes), dice.random() < 0.4)
        for _ in range(dice.randint(2, 4))
    ]
    world = start.world()
    outcome = run_schedule(world, (start.before, start.alive), asked, dice.randrange, lambda: dice.choice(FATES))
    require_recovery(world, {container for container, _ in start.before} | set(CONTAINERS))
    return outcome


def counted_run(seed: int) -> Counter[str]:
    """What happened: how calls ended, and what befell which datastore call."""
    schedule, processes = random_run(seed)
    seen = Counter(f"{process.name.split()[1]}: {type(process.error).__name__}" for process in processes)
    seen["steps"] = schedule.steps
    for line in schedule.trace:
        verb, fate = line.partition(": ")[2].split("(", 1)[0], line.rsplit("[", 1)[1].rstrip("]")
        seen[f"[{fate}]"] += 1
        seen[f"{verb} [{fate}]"] += 1
    return seen


if __name__ == "__main__":
    sys.exit(command(__doc__, counted_run, "schedules"))
