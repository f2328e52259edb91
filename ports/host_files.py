"""Files of the host that is being installed to, changed so that a crash, a kill or a full disk leaves each one whole.

What is new is first written into a *stage*, a hidden folder beside its destination that no runtime looks into, and then
moved to its place, which needs no room on the disk any more. So whoever stages everything first and moves it afterwards
either changes all of it or, if the disk is full, nothing.

Invariant: at every moment each path has what it had before or all of what it shall have, mode and label included, and
what has been moved outlasts a power failure. A symbolic link at a destination is replaced, never followed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FILE, FOLDER, LINK, OTHER = "a regular file", "a folder", "a symbolic link", "something else"
STAGE, STAGE_END = ".tortie-", ".tmp"
"""How the name of a stage begins and ends; the CNI library loads `.conf`, `.conflist` and `.json` only."""


class HostFileError(PortError):
    """`<operation> <path>: <reason>`, in Go's words for the reason: `open /x: permission denied`."""

    def __init__(self, operation: str, path: str, reason: str) -> None:
        super().__init__(f"{operation} {path}: {reason}")
        self.path = path
        self.reason = reason


class Look(Value):
    """`kind` is FILE, FOLDER, LINK or OTHER; `mode` has the permission bits, set-id and sticky among them."""

    kind: str
    size: int
    mode: int


class HostFiles(ABC):
    """Paths are absolute. All verbs raise `HostFileError`; `ports.node.MissingFile` where they say so."""

    @abstractmethod
    def look(self, path: str, *, follow: bool = False) -> Look | None:
        """What is there; None if nothing is. A symbolic link is one unless it is followed."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """All of a regular file of 4 MiB at most, symbolic links followed. MissingFile."""

    @abstractmethod
    def names(self, folder: str) -> tuple[str, ...]:
        """What is in a folder, sorted by name, stages left out. MissingFile."""

    @abstractmethod
    def same(self, source: str, target: str) -> bool:
        """Whether the target is a regular file with the source's content and mode. The source's links are followed, a
        link as the target is another file: it may lead elsewhere on the host. An error without a source.
        """

    @abstractmethod
    def digest(self, path: str) -> str:
        """Equal for equal contents of a regular file; another for each symbolic link's target; "" for nothing."""

    @abstractmethod
    def why_unwritable(self, folder: str) -> str:
        """Why nothing can be made in that folder, in Go's words; "" if something can."""

    @abstractmethod
    def identity(self, folder: str) -> str:
        """Equal for all paths that lead to one folder, by links or by mounts; "" if no folder is there."""

    @abstractmethod
    def make_folder(self, path: str, mode: int = 0o755) -> None:
        """Make it and, 0755, those above it as far as they are missing; what is there keeps its mode."""

    @abstractmethod
    def held(self, folder: str) -> AbstractContextManager[None]:
        """Whoever else wants to hold the folder waits until the `with` block, or this process, has ended."""

    @abstractmethod
    def open_stage(self, folder: str) -> str:
        """A new empty folder in `folder`, 0700. Stages that killed processes have left there are removed."""

    @abstractmethod
    def close_stage(self, stage: str) -> None:
        """Remove it with what is left in it."""

    @abstractmethod
    def write(self, path: str, data: bytes, mode: int, like: str = "") -> None:
        """A new file with that mode, whatever the umask, and with the security label of `like`, if that has one."""

    @abstractmethod
    def copy(self, source: str, path: str, like: str = "") -> None:
        """A new file with the content and mode of a regular one; labels as with `write`.

        Of something else: `CopyFile: non-regular source file portmap ("drwxr-xr-x")`, as the original says it.
        """

    @abstractmethod
    def keep(self, path: str, kept: str) -> None:
        """Let what is at `path` be at `kept` as well, with owner, mode, label and times. Nothing may be there yet."""

    @abstractmethod
    def move(self, path: str, target: str) -> None:
        """Put a file, in one step, in the place of whatever file or link is at the target; a folder if nothing is."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """A file or link; a missing one is fine."""

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """A folder with all that is in it, or a file or link; a missing one is fine. No link is followed."""

    def replace(self, path: str, data: bytes, mode: int) -> None:
        """Write a small file in the place of whatever is there. Its folder has to exist."""
        folder, _, name = path.rpartition("/")
        stage = self.open_stage(folder)
        try:
            staged = f"{stage}/{name}"
            self.write(staged, data, mode, like=path)
            self.move(staged, path)
        finally:
            self.close_stage(stage)
