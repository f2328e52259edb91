"""Upgrade a node from host-local to calico-ipam: what host-local has reserved for running pods becomes Calico's.

The order is the original's. No plugin of the cluster may work meanwhile, so ClusterInformation says that the datastore
is not ready; the old programs go, and those that still run get the time to end; under host-local's own lock one address
after the other is recorded and its file removed; then the datastore is ready again, and the directory goes.

Invariant: the upgrade may die at any point, and when it is begun again it ends as if it had not. Whoever takes back
what `undo` has leaves the datastore as ready as it was.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.value import Value
from ports.errors import BadConfiguration, PortError, Refused
from usecases.upgrade.reservations import Outcome, Reservations
from usecases.upgrade.switch import PAUSE, Switch
from usecases.upgrade.tunnel import keep_tunnel_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.upgrade import Left
    from ports.runtime import UpgradeRuntime
    from usecases.calls.safeguards import Undo

_LOCK_WAIT = 60.0  # seconds for host-local's lock, which each call of it holds for some milliseconds


class Wish(Value):
    """`programs` are the paths of what must not run any more; `wait` is how many seconds it may go on running."""

    node: str
    programs: tuple[str, ...] = ()
    wait: float = 5.0


def upgrade_until_done(runtime: UpgradeRuntime, wish: Wish, undo: Undo) -> Outcome:
    """As often as it fails, as the original does: whatever is away now may be back in a second.

    BadConfiguration is raised: the settings of a process stay as they are.
    """
    switch = Switch(runtime, undo)
    while True:
        try:
            return _upgrade(runtime, wish, switch)
        except BadConfiguration:
            raise
        except (PortError, IpamError) as error:
            runtime.log.error("failed to migrate ipam, retrying...", error=error)
            runtime.clock.sleep(PAUSE)


def upgrade_ipam(runtime: UpgradeRuntime, wish: Wish, undo: Undo) -> Outcome:
    """One attempt. An error after the switch has been turned off leaves the datastore not ready."""
    return _upgrade(runtime, wish, Switch(runtime, undo))


def foresee_upgrade(runtime: UpgradeRuntime, wish: Wish) -> Outcome:
    """What would become of the reservations and of the tunnel's address now. Nothing is changed."""
    if not runtime.reservations.exist():
        return Outcome()
    runtime.doing("comparing reservations with pods")
    foreseen = Reservations(runtime, wish.node).foresee()
    return _with(foreseen, keep_tunnel_address(runtime, wish.node, foreseen.recorded, foresee=True))


def _upgrade(runtime: UpgradeRuntime, wish: Wish, switch: Switch) -> Outcome:
    """The cluster is stopped only if something can be moved."""
    files, reservations = runtime.reservations, Reservations(runtime, wish.node)
    if not files.exist():
        switch.on_if_ours()
        return Outcome()
    runtime.doing("comparing reservations with pods")
    foreseen = reservations.foresee()
    left = keep_tunnel_address(runtime, wish.node, foreseen.recorded)
    if not files.names():
        switch.on_if_ours()
        return _ended(runtime, Outcome(left=left))
    foreseen = _with(foreseen, left)
    if foreseen.in_vain and switch.is_on():
        return foreseen
    switch.off()
    _end_programs(runtime, wish)
    runtime.doing("waiting for host-local's lock")
    with files.held(runtime.clock.deadline(_LOCK_WAIT)):
        outcome = _with(reservations.move(), left)
        runtime.doing("making the datastore ready again")
        switch.on()
        return _ended(runtime, outcome)


def _with(outcome: Outcome, left: tuple[Left, ...]) -> Outcome:
    return outcome.replace(left=(*left, *outcome.left))


def _ended(runtime: UpgradeRuntime, outcome: Outcome) -> Outcome:
    """The directory goes when nothing is left to do. That it stays is no failure of what has been done."""
    if not outcome.left:
        try:
            runtime.reservations.remove_all()
        except PortError as error:
            runtime.log.error("failed to remove the reservations' directory", error=error)
    return outcome


def _end_programs(runtime: UpgradeRuntime, wish: Wish) -> None:
    """Nobody starts them any more; those that run have some time."""
    for path in wish.programs:
        if runtime.node.exists(path):
            runtime.log.info("Removing a program", path=path)
            try:
                runtime.node.remove(path)
            except PortError as error:
                raise Refused(f"failed to remove binary {path}: {error}") from error
    runtime.doing(f"waiting {wish.wait:g} s for programs that still run")
    runtime.clock.sleep(wish.wait)
