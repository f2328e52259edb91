"""host-local's directory in a dict from name to text.

Invariant: nothing but the lock changes unless that is held, and an empty directory.
"""

from __future__ import annotations

from domain.ipam.upgrade import LOCK
from ports.errors import Expired, Refused, Unavailable
from ports.reservation_files import ReservationFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ports.clock import Clock, Deadline


class MemoryReservationFiles(ReservationFiles):
    """`texts` None: there is no directory. What is in `unreadable` has the reason for that in place of its text.

    `before` is told each verb, with the name that it is about, and may raise.
    """

    def __init__(self, clock: Clock, texts: Mapping[str, str] | None = None) -> None:
        self._clock = clock
        self.texts = None if texts is None else dict(texts)
        self.unreadable: set[str] = set()
        self.is_held = False
        self.before: Callable[[str, str], None] = lambda _verb, _name: None

    def exist(self) -> bool:
        return self.texts is not None

    def held(self, deadline: Deadline) -> _Held:
        if deadline.passed(self._clock.monotonic()):
            raise Expired("the lock of the reservations")
        return _Held(self)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._there()))

    def read(self, name: str) -> str:
        text = self._there().get(name, "open: no such file or directory")
        if name in self.unreadable or name not in self._there():
            raise Refused(text)
        return text

    def remove(self, name: str) -> None:
        assert self.is_held  # noqa: S101 - the port's contract
        self.before("remove", name)
        self._there().pop(name, None)

    def remove_all(self) -> None:
        self.before("remove_all", "")
        if set(self._there()) - {LOCK}:
            raise Unavailable("remove the directory: directory not empty")
        self.texts = None

    def _there(self) -> dict[str, str]:
        return {} if self.texts is None else self.texts


class _Held:
    def __init__(self, files: MemoryReservationFiles) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._files.texts = {LOCK: "", **(self._files.texts or {})}
        self._files.is_held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.is_held = False
