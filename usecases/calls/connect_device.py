"""Have the dataplane make a container's device pair, and see that it goes if a later step fails."""

from __future__ import annotations

from usecases.calls.removal import disconnect_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.attachment import Attachment
    from ports.dataplane import Connected
    from ports.deadline import Deadline
    from ports.runtime import Runtime
    from usecases.calls.undo import Undo


def connect_device(runtime: Runtime, attachment: Attachment, deadline: Deadline, undo: Undo) -> Connected:
    """What came of it; on an error the dataplane itself has taken its pair back."""
    connected = runtime.dataplane.connect(attachment, deadline)
    undo.register("connect", lambda deadline: disconnect_by(deadline, runtime, attachment.netns, attachment.ifname))
    return connected
