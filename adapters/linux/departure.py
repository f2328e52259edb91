"""A device that is being deleted while the call goes on with something else.

The kernel answers the message that deletes a device some 10 to 40 ms after the device has left every namespace, with
its routes and neighbours. So long it waits in `rcu_barrier` for readers of its own tables, without any lock and
whatever the message was (docs/decisions/0022). The sender sleeps as long, so a thread sends it.

A thread and no process: the kernel lets no process end before the last of its threads has left the kernel. So nothing
outlives the call, even one that is killed, and nobody is left who would have to be waited for.

Invariant: the netlink that was given is closed once the kernel has answered; no signal reaches the thread.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from adapters.linux.netlink.seam import KernelError, Unanswered, delete_found
from adapters.linux.process.signals import Withheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.linux.netlink.seam import Netlink
    from domain.linux.link import Link

_ENOMEM = 12


class Departure:
    """Begins at once. Where there can be no thread, it is over when it has begun."""

    def __init__(self, netlink: Netlink, found: Link) -> None:
        self._netlink, self._found = netlink, found
        self._failure: KernelError | None = Unanswered(_ENOMEM)  # for a thread that dies of something else
        self._over = allocate_lock()
        self._over.acquire()
        with Withheld():  # a thread inherits what its maker does not hear
            try:
                start_new_thread(self._delete, ())
            except RuntimeError:  # as many threads as there may be, or none
                self._delete()

    def _delete(self) -> None:
        try:
            delete_found(self._netlink, self._found)
            self._failure = None
        except KernelError as error:
            self._failure = error
        finally:
            self._netlink.close()
            self._over.release()

    def wait(self, seconds: float) -> bool:
        """Whether the kernel has answered, after that time at the latest."""
        if not self._over.acquire(timeout=seconds):
            return False
        self._over.release()
        return True

    @property
    def failure(self) -> KernelError | None:
        """What the kernel had against it, once it has answered."""
        return self._failure
