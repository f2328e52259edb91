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
from ports.datastore import ClusterInformationKey
from ports.errors import Conflict, Missing, PortError, Refused
from usecases.upgrade.reservations import Outcome, Reservations, work_step
from usecases.upgrade.tunnel import PAUSE, TRIES, keep_tunnel_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cluster import ClusterInformation
    from domain.ipam.upgrade import Left
    from ports.clock import Deadline
    from ports.datastore import Stored
    from ports.runtime import UpgradeRuntime
    from usecases.calls.safeguards import Undo

_CLUSTER = ClusterInformationKey("default")


class Wish(Value):
    """`programs` are the paths of what must not run any more; `wait` is how many seconds it may go on running."""

    node: str
    programs: tuple[str, ...] = ()
    wait: float = 5.0


def upgrade_until_done(runtime: UpgradeRuntime, wish: Wish, undo: Undo) -> Outcome:
    """As often as it fails, as the original does: whatever is away now may be back in a second."""
    while True:
        try:
            return upgrade_ipam(runtime, wish, undo)
        except (PortError, IpamError) as error:
            runtime.log.error("failed to migrate ipam, retrying...", error=error)
            runtime.clock.sleep(PAUSE)


def foresee_upgrade(runtime: UpgradeRuntime, wish: Wish) -> Outcome:
    """What would become of the reservations now. Nothing is changed."""
    return Reservations(runtime, wish.node).foresee() if runtime.reservations.exist() else Outcome()


def upgrade_ipam(runtime: UpgradeRuntime, wish: Wish, undo: Undo) -> Outcome:
    """Once. Errors are raised with the datastore not ready, unless it never came to that.

    If there is nothing but what cannot be moved, the cluster is not stopped for it once more.
    """
    files, reservations = runtime.reservations, Reservations(runtime, wish.node)
    if not files.exist():
        return Outcome()
    left = keep_tunnel_address(runtime, wish.node)
    if not files.names():
        return _ended(runtime, Outcome(left=left))
    foreseen = _with(reservations.foresee(), left)
    if foreseen.in_vain and _is_ready(_information(runtime)):
        return foreseen
    _disable(runtime, undo)
    _end_programs(runtime, wish)
    with files.held(runtime.clock.deadline(60.0)):
        outcome = _with(reservations.move(), left)
        _enable(runtime)
        undo.keep()
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


def _is_ready(stored: Stored[ClusterInformation]) -> bool:
    """What is unset the original takes for ready here."""
    return stored.record.datastore_ready is not False


def _information(runtime: UpgradeRuntime) -> Stored[ClusterInformation]:
    stored = runtime.datastore.get(_CLUSTER, work_step(runtime).deadline)
    if stored is None:
        raise Missing(_CLUSTER)
    return stored


def _disable(runtime: UpgradeRuntime, undo: Undo) -> None:
    """Whoever finds it disabled already leaves that to others when it fails."""
    for _ in range(TRIES):
        stored = _information(runtime)
        if not _is_ready(stored):
            return
        _register(runtime, stored.record, undo)
        try:
            _write(runtime, stored, ready=False)
        except Conflict:
            undo.keep()
            runtime.clock.sleep(PAUSE)
        else:
            return
    raise Conflict(_CLUSTER)


def _register(runtime: UpgradeRuntime, former: ClusterInformation, undo: Undo) -> None:
    """The way back to how ready it was. Whatever others change meanwhile stays."""

    def restore(deadline: Deadline) -> None:
        stored = runtime.datastore.get(_CLUSTER, deadline)
        if stored is not None and not _is_ready(stored):
            restored = stored.record.replace(datastore_ready=former.datastore_ready)
            runtime.datastore.update(_CLUSTER, restored, stored.revision, deadline)

    undo.register("datastoreReady: false", restore)


def _enable(runtime: UpgradeRuntime) -> None:
    """Whoever has disabled it: the original does the same."""
    try:
        for _ in range(TRIES):
            stored = _information(runtime)
            if stored.record.datastore_ready:
                return
            try:
                _write(runtime, stored, ready=True)
            except Conflict:
                runtime.clock.sleep(PAUSE)
            else:
                return
        raise Conflict(_CLUSTER)
    except PortError as error:
        raise Refused(f"failed to re-enable cluster: {error}") from error


def _write(runtime: UpgradeRuntime, stored: Stored[ClusterInformation], *, ready: bool) -> None:
    record = stored.record.replace(datastore_ready=ready)
    runtime.datastore.update(stored.key, record, stored.revision, work_step(runtime).deadline)


def _end_programs(runtime: UpgradeRuntime, wish: Wish) -> None:
    """Nobody starts them any more; those that run have some time."""
    for path in wish.programs:
        if runtime.node.exists(path):
            runtime.log.info("Removing a program", path=path)
            try:
                runtime.node.remove(path)
            except PortError as error:
                raise Refused(f"failed to remove binary {path}: {error}") from error
    runtime.clock.sleep(wish.wait)
