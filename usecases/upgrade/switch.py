"""Stop all of Calico's plugins in the cluster for a while: ClusterInformation says that the datastore is not ready.

Whoever finds them stopped goes on, as the original does, and leaves it to others to start them if it fails. Whoever has
stopped them starts them again, however it ends.

Invariant: once `off` has written, the way back stands in `undo` until they have been started.
"""

from __future__ import annotations

from ports.datastore import ClusterInformationKey
from ports.errors import Conflict, Missing, PortError, Refused
from usecases.upgrade.reservations import work_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cluster import ClusterInformation
    from ports.clock import Deadline
    from ports.datastore import Stored
    from ports.runtime import UpgradeRuntime
    from usecases.calls.safeguards import Undo

TRIES = 5
PAUSE = 1.0  # seconds before a record that somebody else has changed is read again
_CLUSTER = ClusterInformationKey("default")


class Switch:
    """Of one upgrade, however often it is tried."""

    def __init__(self, runtime: UpgradeRuntime, undo: Undo) -> None:
        self._runtime = runtime
        self._undo = undo
        self._is_ours = False

    def is_on(self) -> bool:
        """What is unset the original takes for ready here."""
        return _is_ready(self._read())

    def off(self) -> None:
        for _ in range(TRIES):
            stored = self._read()
            if not _is_ready(stored):
                return
            self._register(stored.record)
            try:
                self._write(stored, ready=False)
            except Conflict:
                self._forget()
                self._runtime.clock.sleep(PAUSE)
            else:
                return
        raise Conflict(_CLUSTER)

    def on(self) -> None:
        """Whoever has stopped them: the original does the same."""
        try:
            self._make_ready()
        except PortError as error:
            raise Refused(f"failed to re-enable cluster: {error}") from error
        self._forget()

    def on_if_ours(self) -> None:
        """There is nothing to do any more, but an earlier try has stopped them."""
        if self._is_ours:
            self.on()

    def _make_ready(self) -> None:
        for _ in range(TRIES):
            stored = self._read()
            if stored.record.datastore_ready:
                return
            try:
                self._write(stored, ready=True)
            except Conflict:
                self._runtime.clock.sleep(PAUSE)
            else:
                return
        raise Conflict(_CLUSTER)

    def _register(self, former: ClusterInformation) -> None:
        """The way back to how ready it was. Whatever others change meanwhile stays."""

        def restore(deadline: Deadline) -> None:
            stored = self._runtime.datastore.get(_CLUSTER, deadline)
            if stored is not None and not _is_ready(stored):
                restored = stored.record.replace(datastore_ready=former.datastore_ready)
                self._runtime.datastore.update(_CLUSTER, restored, stored.revision, deadline)

        self._is_ours = True
        self._undo.register("datastoreReady: false", restore)

    def _forget(self) -> None:
        self._is_ours = False
        self._undo.keep()

    def _read(self) -> Stored[ClusterInformation]:
        stored = self._runtime.datastore.get(_CLUSTER, work_step(self._runtime).deadline)
        if stored is None:
            raise Missing(_CLUSTER)
        return stored

    def _write(self, stored: Stored[ClusterInformation], *, ready: bool) -> None:
        record = stored.record.replace(datastore_ready=ready)
        self._runtime.datastore.update(stored.key, record, stored.revision, work_step(self._runtime).deadline)


def _is_ready(stored: Stored[ClusterInformation]) -> bool:
    return stored.record.datastore_ready is not False
