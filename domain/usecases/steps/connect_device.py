"""Have the dataplane make a container's device pair, and see that it goes if a later step fails."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.usecases.undo import Undo
    from domain.workload.attachment import Attachment
    from ports.dataplane import Connected
    from ports.deadline import Deadline
    from ports.runtime import Runtime


def connect_device(runtime: Runtime, attachment: Attachment, deadline: Deadline, undo: Undo) -> Connected:
    """What came of it; on an error the dataplane itself has taken its pair back."""
    dataplane = runtime.dataplane
    connected = dataplane.connect(attachment, deadline)
    undo.register("connect", lambda deadline: dataplane.disconnect(attachment.netns, attachment.ifname, deadline))
    return connected
