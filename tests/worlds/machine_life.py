"""The life of a virtual machine: a Hypothesis machine over the memory adapters (D09; spec: ipam 14, 16).

It is made, started, moved, stopped, made anew and deleted, pods come and go in any order, and the setting changes.
Every call may be cut short at any of its port calls, and a rival may make a whole call of his own there.
What must hold:

- a machine that is not being deleted keeps each address that a pod of it was ever answered;
- what a pod that is there owns is not freed, and every owner is a pod of the machine;
- an address has one active owner: the pod that started it last, or that it was moved to;
- when a machine is deleted, its pods' DELs leave nothing; and whatever they could not see, garbage collection takes.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from domain.cni.errors import CniError
from domain.ipam.address import Address
from domain.ipam.errors import HandleFull, IpamError, StillContended
from domain.workload.annotations import CONTAINER_ID, POD_IP
from ports.errors import PortError
from usecases.collect_ipam import Sweep, collect_ipam
from worlds.ipam_world import NEVER, NODES
from worlds.machine_world import MachineWorld
from worlds.scheduler import Died
from worlds.troubled_life import CALM, DUAL, SPACE, TroubledLife, deliveries, endpoint_key, nodes, numbers, troubles_by
from worlds.troubled_ports import Outside

MOST_PODS = 4  # of one machine at once


class Sandbox:
    """One attempt to network a pod. `addresses` are what it was answered; None before, and after its DEL was sent."""

    def __init__(self, pod: str, node: str, container: str, *, target: bool) -> None:
        self.pod, self.node, self.container, self.target = pod, node, container, target
        self.addresses: frozenset[Address] | None = None


RIVALS = (None, "end", "end", "start", "again", "migrate", "delete", "persist", "remove", "promote")
troubles = troubles_by(RIVALS, 12)


class Life(TroubledLife):
    def __init__(self) -> None:
        super().__init__(MachineWorld())
        self.world.create()
        self.setting: str | None = None
        self.answered: frozenset[Address] = frozenset()
        self.losable = False  # the machine's addresses may go in this step
        self.owners: set[str] = set()  # pods that owned an address after the last step
        self.latest: Sandbox | None = None  # the last that an ADD in this step was answered for

    # --- objects -----------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return (SPACE, "db") in self.world.cluster.machines

    def runs(self) -> bool:
        return (SPACE, "db") in self.world.cluster.instances

    def is_over(self) -> bool:
        return not self.exists() or self.world.machine().deleting

    def is_there(self, sandbox: Sandbox) -> bool:
        return (SPACE, sandbox.pod) in self.world.cluster.pods

    def present(self) -> list[Sandbox]:
        """Those whose pods are there."""
        return [one for one in self.sandboxes if self.is_there(one)]

    @precondition(lambda self: self.runs())
    @rule()
    def stop(self) -> None:
        """The instance goes; its pods may still be there."""
        self.world.stop()

    @rule()
    def run_again(self) -> None:
        """A new instance of the machine that is there, or of a new one by its name."""
        if self.exists():
            self.world.run()
        else:
            self.answered = frozenset()
            self.world.create()

    @precondition(lambda self: self.exists())
    @rule()
    def delete(self) -> None:
        self.losable = True
        self.world.delete_machine()

    @precondition(lambda self: self.is_over())
    @rule()
    def vanish(self) -> None:
        self.losable = True
        self.world.forget()

    @rule(setting=st.sampled_from([None, "Enabled", "Disabled"]))
    def persist(self, setting: str | None) -> None:
        self.setting = setting
        self.world.persist(setting)

    @precondition(lambda self: self.sandboxes)
    @rule(number=numbers)
    def remove_pod(self, number: int) -> None:
        """By force: whether its sandbox has been taken down or not."""
        self._remove(self.sandboxes[number % len(self.sandboxes)])

    def _remove(self, sandbox: Sandbox) -> None:
        if self.is_there(sandbox):
            self.world.remove_pod(sandbox.pod)
            self.world.store.delete(endpoint_key(sandbox.pod), None, NEVER)

    def _make_pod(self, node: str, *, target: bool) -> Sandbox:
        self.made += 1
        pod = self.world.pod(str(self.made), migration=f"j{self.made}" if target else "")
        self._create_endpoint(pod, node)
        return self._add(Sandbox(pod, node, f"c{self.made}", target=target))

    def _add(self, sandbox: Sandbox) -> Sandbox:
        self.sandboxes.append(sandbox)
        return sandbox

    # --- calls -------------------------------------------------------------------------------------------------------

    @rule(node=nodes, trouble=troubles, delivered=deliveries)
    def start(self, node: str, trouble, delivered: bool) -> None:
        if not self.runs():
            self.run_again()
        self._make_and_network(node, self._outside(trouble), target=False, delivered=delivered)

    @precondition(lambda self: self.runs())
    @rule(node=nodes, trouble=troubles, delivered=deliveries)
    def migrate(self, node: str, trouble, delivered: bool) -> None:
        self._make_and_network(node, self._outside(trouble), target=True, delivered=delivered)

    @precondition(lambda self: self.present())
    @rule(number=numbers, trouble=troubles)
    def network_again(self, number: int, trouble) -> None:
        """A new sandbox for a pod, as when the runtime has given an earlier one up."""
        self._network_again(number, self._outside(trouble))

    @precondition(lambda self: self.sandboxes)
    @rule(number=numbers, trouble=troubles)
    def end(self, number: int, trouble) -> None:
        """Any DEL: a first one, a late one, one more."""
        self._take_down(self.sandboxes[number % len(self.sandboxes)], self._outside(trouble))

    @precondition(lambda self: self.up())
    @rule(number=numbers, trouble=troubles)
    def end_and_remove(self, number: int, trouble) -> None:
        """As a pod goes when nothing goes wrong."""
        sandbox = self.up()[number % len(self.up())]
        self._take_down(sandbox, self._outside(trouble))
        self._remove(sandbox)

    @precondition(lambda self: any(one.target for one in self.up()))
    @rule(number=numbers, trouble=troubles)
    def promote(self, number: int, trouble) -> None:
        """A migration is over: Felix makes its target the active owner."""
        targets = [one for one in self.up() if one.target]
        self._promote(targets[number % len(targets)], self._outside(trouble))

    @rule(trouble=troubles)
    def collect(self, trouble) -> None:
        outside = self._outside(trouble)
        self.world.clock.advance(3600)
        self._survive(
            lambda: collect_ipam(self.world.work(outside.store), Sweep(leaked=True), outside.cluster), outside
        )

    def _rival(self, what: str | None):
        """A whole call, or change, by somebody else."""

        def end() -> None:
            for sandbox in self._idle()[:1]:
                self._take_down(sandbox, self._calm())

        def promote() -> None:
            for sandbox in [one for one in self._idle() if one.target][-1:]:
                self._promote(sandbox, self._calm())

        def remove() -> None:
            for sandbox in self.up()[:1]:
                self._remove(sandbox)

        found = {
            "end": end,
            "start": lambda: self.start(NODES[0], CALM, delivered=True),
            "migrate": lambda: self._make_and_network(NODES[0], self._calm(), target=True),
            "again": lambda: self._network_again(0, self._calm()),
            "promote": promote,
            "delete": lambda: self.exists() and self.delete(),
            "persist": lambda: self.persist("Disabled" if self.setting != "Disabled" else None),
            "remove": remove,
        }
        return found.get(what or "")

    def _idle(self) -> list[Sandbox]:
        return [one for one in self.up() if one.pod not in self.busy]

    def _make_and_network(self, node: str, outside: Outside, *, target: bool, delivered: bool = True) -> None:
        if self.runs() and len({one.pod for one in self.present()}) < MOST_PODS:
            self._network(self._make_pod(node, target=target), outside, delivered=delivered)

    def _network_again(self, number: int, outside: Outside) -> None:
        there = [one for one in self.present() if one.pod not in self.busy]
        if there:
            earlier = there[number % len(there)]
            self.made += 1
            sandbox = Sandbox(earlier.pod, earlier.node, f"c{self.made}", target=earlier.target)
            self._network(self._add(sandbox), outside)

    def _survive(self, action, outside: Outside) -> object:
        """The call's answer, or None if it failed in one of the ways that it may."""
        self._note_losses()
        try:
            return action()
        except (HandleFull, StillContended) as error:
            raise AssertionError("a handle is wedged") from error
        except (Died, CniError, IpamError, PortError):
            outside.disturbed = True
            return None
        finally:
            self._note_losses()

    def _note_losses(self) -> None:
        """A machine that is over, or whose addresses are not to be kept, may lose them in this step."""
        self.losable = self.losable or self.setting == "Disabled" or self.is_over()

    def _network(self, sandbox: Sandbox, outside: Outside, *, delivered: bool = True) -> None:
        call = self.world.launch(sandbox.pod, sandbox.node, container=sandbox.container, **DUAL)
        before, had, self.latest = self.world.owners(), self.answered, None
        self.busy.add(sandbox.pod)
        result = self._survive(
            lambda: self.world.answer(call, outside.store, outside.cluster, delivered=delivered), outside
        )
        self.busy.discard(sandbox.pod)
        if result is None or not delivered:
            self._require_rival_intact(outside)
            return
        self.latest = sandbox
        for earlier in self.sandboxes:
            if earlier.pod == sandbox.pod:
                earlier.addresses = None  # the pod has left that sandbox
        sandbox.addresses = frozenset(ip.address.address for ip in result.ips)
        self._mark(sandbox)
        if self._is_of_machine(sandbox):
            assert bool(result.routes) is not sandbox.target
            assert self.losable or had <= sandbox.addresses, "the machine has another address"
            self.answered |= sandbox.addresses
            self._require_owner(sandbox, outside, before)

    def _require_owner(self, sandbox: Sandbox, outside: Outside, before) -> None:
        """`before`: the owners before the call."""
        held = {Address.parse(address): owners for address, owners in self.world.owners().items()}
        if outside.writes:
            assert any(sandbox.pod in held[address] for address in sandbox.addresses), "it owns nothing"
        if not outside.disturbed:
            for address in sandbox.addresses:
                active, alternate = held[address]
                assert (alternate if sandbox.target else active) == sandbox.pod
                assert not sandbox.target or active == before[str(address)][0], "the source is no owner any more"

    def _require_rival_intact(self, outside: Outside) -> None:
        """An ADD that failed has taken nothing from a pod that was networked meanwhile."""
        rival, self.latest = self.latest, None
        if rival and rival.addresses and not outside.faulted and self._is_of_machine(rival) and self.is_there(rival):
            named = {pod for owners in self.world.owners().values() for pod in owners}
            assert rival.pod in named, "undoing has taken the rival's slot"

    def _mark(self, sandbox: Sandbox) -> None:
        """What the network plugin writes about a pod, if it is still there."""
        pod = self.world.cluster.pods.get((SPACE, sandbox.pod))
        if pod is not None:
            marks = {CONTAINER_ID: sandbox.container, POD_IP: str(min(sandbox.addresses, key=str))}
            self.world.cluster.pods[SPACE, sandbox.pod] = pod.replace(annotations=marks)
            networks = tuple([address.host_cidr for address in sandbox.addresses])
            stored = self.world.store.get(endpoint_key(sandbox.pod), NEVER)
            record = stored.record.replace(container_id=sandbox.container, ip_networks=networks)
            self.world.store.update(stored.key, record, stored.revision, NEVER)

    def _is_of_machine(self, sandbox: Sandbox) -> bool:
        return not self.world.holders(f"net.{sandbox.container}")

    def _take_down(self, sandbox: Sandbox, outside: Outside) -> None:
        there = self.is_there(sandbox)
        pod = self.world.cluster.pods.get((SPACE, sandbox.pod))
        marks = pod.annotations if pod else {}
        current = marks.get(CONTAINER_ID, sandbox.container) == sandbox.container
        if there and current:  # the network plugin takes its mark off first
            self.world.cluster.pods[SPACE, sandbox.pod] = pod.replace(annotations={**marks, POD_IP: ""})
        sandbox.addresses = None
        before, over = self.world.owners(), self.is_over()
        self.busy.add(sandbox.pod)
        done = self._survive(
            lambda: (
                self.world.end(sandbox.pod, sandbox.node, outside.store, outside.cluster, container=sandbox.container)
                or True
            ),
            outside,
        )
        self.busy.discard(sandbox.pod)
        if done and not outside.faulted and there and current and over and self.is_over():
            owners = {pod for those in self.world.owners().values() for pod in those} - {""}
            left = [one for one in self.sandboxes if one.pod in owners and self.is_there(one)]
            assert left or not self.world.owners(), "nobody owns it, and the machine is deleted"
        if done and not outside.disturbed:
            assert not self.world.holders(f"net.{sandbox.container}")
            if marks.get(POD_IP) and not current:
                assert self.world.owners() == before, "an earlier sandbox's DEL is not about the newer one"
            elif there:
                for owners in self.world.owners().values():
                    assert sandbox.pod not in owners

    def _promote(self, sandbox: Sandbox, outside: Outside) -> None:
        done = self._survive(lambda: self.world.promote(sandbox.pod, store=outside.store) or True, outside)
        if done and not outside.disturbed:
            assert {active for active, _ in self.world.owners().values()} == {sandbox.pod}

    # --- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def records_are_sound(self) -> None:
        self.world.check()
        versions = [Address.parse(one).version for one in self.world.owners()]
        assert len(versions) == len(set(versions)), f"the machine has {[*self.world.owners()]}"

    @invariant()
    def the_machine_keeps_its_addresses(self) -> None:
        held = frozenset(map(Address.parse, self.world.owners()))
        if self.losable:
            self.answered &= held
        assert self.answered <= held, f"the machine has lost {self.answered - held}"
        self.losable = False

    @invariant()
    def owners_are_pods_of_the_machine(self) -> None:
        pods = {one.pod for one in self.sandboxes} | {""}
        for owners in self.world.owners().values():
            assert pods.issuperset(owners), owners

    @invariant()
    def nothing_is_freed_under_a_pod_that_owned_it(self) -> None:
        """Of two targets, and of two pods that were started, only the later one counts."""
        owned = {address: set(owners) for address, owners in self.world.owners().items()}
        for sandbox in self.present():
            if sandbox.addresses and sandbox.pod in self.owners:
                own = self.world.holders(f"net.{sandbox.container}")
                assert sandbox.addresses <= set(map(Address.parse, [*own, *owned])), sandbox.pod
        self.owners = set().union(*owned.values()) - {""}

    def teardown(self) -> None:
        """Everything ends, as runtimes and KubeVirt end it; whoever was cut short is called again."""
        watched = bool(self.present())
        if self.exists():
            self.world.delete_machine()
        for sandbox in [*self.sandboxes, *reversed(self.sandboxes)]:  # runtimes repeat DEL
            self.world.end(sandbox.pod, sandbox.node, container=sandbox.container)
        if watched:
            assert not self.world.owners(), f"the machine is deleted, and {self.world.owners()} is left"
            assert not self.world.has_handle()
        for sandbox in self.sandboxes:
            self._remove(sandbox)
        self.world.forget()
        self.world.clock.advance(3600)
        collect_ipam(self.world.work(), Sweep(leaked=True), self.world.cluster)
        self._require_nothing_left()
