"""A host to look at, as dictionaries: a path is a regular file if it is in `files`, else what `seen` says of it."""

from __future__ import annotations

from adapters.memory.node import MemoryNode
from domain.doctor.seen import FileSeen
from ports.errors import Refused
from ports.host_view import HostView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from domain.doctor.seen import Uplink
    from domain.linux.link import Link
    from ports.clock import Deadline

    T = TypeVar("T")


class MemoryHost(MemoryNode, HostView):
    """Files have mode 0600 and programs, which are in `versions` by their paths, 0755, unless `seen` says otherwise."""

    def __init__(self, name: str = "", files: Mapping[str, str] | None = None) -> None:
        super().__init__(name, files)
        self.seen: dict[str, FileSeen] = {}
        self.versions: dict[str, str] = {}  # what each program says to `-v`; "" fails
        self.devices: tuple[Link, ...] = ()
        self.default_routes: tuple[Uplink, ...] = ()
        self.settings: dict[str, str] = {}
        self.not_to_be_had: dict[str, str] = {}

    def place(self, path: str) -> str:
        return path

    def file(self, path: str) -> FileSeen | None:
        if path in self.broken:
            raise Refused(f"stat {path}: permission denied")
        if path in self.seen:
            return self.seen[path]
        if path in self.versions:
            return FileSeen("a regular file", 0o755)
        if path in self.files:
            return FileSeen("a regular file", 0o600, 0, len(self.files[path]))
        return FileSeen("a folder", 0o755) if self.names(path) is not None else None

    def names(self, folder: str) -> tuple[str, ...] | None:
        if folder in self.broken:
            raise Refused(f"open {folder}: permission denied")
        start = f"{folder}/"
        paths = [path for path in (*self.files, *self.seen, *self.versions) if path.startswith(start)]
        found = sorted({path.removeprefix(start).partition("/")[0] for path in paths})
        return tuple(found) if found else None

    def links(self) -> tuple[Link, ...]:
        return self.devices

    def uplinks(self) -> tuple[Uplink, ...]:
        return self.default_routes

    def setting(self, name: str) -> str:
        return self.settings.get(name, "")

    def lacking(self) -> Mapping[str, str]:
        return self.not_to_be_had

    def version_of(self, program: str, deadline: Deadline) -> str:
        del deadline
        if not self.versions.get(program):
            raise Refused("it ends with status 256 and says nothing")
        return self.versions[program]

    def within(self, seconds: float, waited_for: str, look: Callable[[], T]) -> T:
        del seconds, waited_for
        return look()
