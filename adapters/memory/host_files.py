"""A host's files as a dict from path to what is there, with trouble at any change that a test likes.

Invariant: as `ports.host_files`. What `trouble` raises, it raises before the change has been made.
"""

from __future__ import annotations

from domain.value import Value
from ports.host_files import FILE, FOLDER, LINK, STAGE, STAGE_END, HostFileError, HostFiles, Look
from ports.node import MissingFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_MODE = {FILE: 0o644, FOLDER: 0o755, LINK: 0o777}


class Entry(Value):
    """`data` is a file's content, or where a link leads to; `label` is what a security module has written on it."""

    kind: str
    mode: int
    data: bytes = b""
    label: bytes = b""


def _no_trouble(_operation: str, _path: str) -> None:
    pass


def _is_stage(name: str) -> bool:
    return name.startswith(STAGE) and name.endswith(STAGE_END)


class _Alone:
    """Nobody else is there who could hold anything, so who waits for it waits for himself."""

    def __init__(self, folder: str, held: set[str]) -> None:
        self._folder = folder
        self._held = held

    def __enter__(self) -> None:
        if self._folder in self._held:
            raise AssertionError(f"{self._folder} is held already, and would be waited for for ever")
        self._held.add(self._folder)

    def __exit__(self, *_ended: object) -> None:
        self._held.remove(self._folder)


class MemoryHostFiles(HostFiles):
    """`entries` may be changed by a test at any time. Nothing can be made in a folder that is in `read_only`.

    `trouble` is asked before each change, with the verb and the path.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.read_only: set[str] = set()
        self.trouble: Callable[[str, str], None] = _no_trouble
        self._held: set[str] = set()
        self._stages = 0

    def put(self, path: str, data: str = "", mode: int = 0o644, kind: str = FILE) -> None:
        """For tests: what is there already, with the folders above it."""
        above = path.rpartition("/")[0]
        if above and above not in self.entries:
            self.put(above, kind=FOLDER, mode=_MODE[FOLDER])
        self.entries[path] = Entry(kind, mode, data.encode())

    def text(self, path: str) -> str:
        """For tests: the content of a file."""
        return self.entries[path].data.decode()

    def look(self, path: str, *, follow: bool = False) -> Look | None:
        entry = self._followed(path) if follow else self.entries.get(path)
        return Look(entry.kind, len(entry.data), entry.mode) if entry else None

    def read(self, path: str) -> bytes:
        entry = self._followed(path)
        if entry is None:
            raise MissingFile(path)
        if entry.kind != FILE:
            raise HostFileError("open", path, "not a regular file")
        return entry.data

    def names(self, folder: str) -> tuple[str, ...]:
        if self._kind(folder) != FOLDER:
            raise MissingFile(folder)
        found = [path.removeprefix(f"{folder}/") for path in self.entries if path.startswith(f"{folder}/")]
        return tuple(sorted([name for name in found if "/" not in name and not _is_stage(name)]))

    def same(self, source: str, target: str) -> bool:
        one, other = self._followed(source), self.entries.get(target)
        if one is None:
            raise HostFileError("stat", source, "no such file or directory")
        return other is not None and other.kind == FILE and (one.mode, one.data) == (other.mode, other.data)

    def digest(self, path: str) -> str:
        entry = self.entries.get(path)
        return f"{entry.kind}: {entry.data!r}" if entry else ""

    def why_unwritable(self, folder: str) -> str:
        if not self.identity(folder):
            return "no such file or directory"
        return "read-only file system" if folder in self.read_only else ""

    def identity(self, folder: str) -> str:
        entry = self.entries.get(folder)
        if entry and entry.kind == LINK:
            return self.identity(entry.data.decode())
        return folder if self._kind(folder) == FOLDER else ""

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        if self._kind(path) == FOLDER:
            return
        above = path.rpartition("/")[0]
        if above:
            self.make_folder(above)
        self._make("mkdir", path, Entry(FOLDER, mode))

    def held(self, folder: str) -> AbstractContextManager[None]:
        return _Alone(self.identity(folder), self._held)

    def open_stage(self, folder: str) -> str:
        for path in list(self.entries):
            if path.startswith(f"{folder}/") and _is_stage(path.removeprefix(f"{folder}/").partition("/")[0]):
                del self.entries[path]
        self._stages += 1
        stage = f"{folder}/{STAGE}{self._stages}{STAGE_END}"
        self._make("mkdir", stage, Entry(FOLDER, 0o700))
        return stage

    def close_stage(self, stage: str) -> None:
        self.remove_tree(stage)

    def write(self, path: str, data: bytes, mode: int, like: str = "") -> None:
        self._make("open", path, Entry(FILE, mode, data, self._label(like)))

    def copy(self, source: str, path: str, like: str = "") -> None:
        entry = self._followed(source)
        if entry is None:
            raise HostFileError("open", source, "no such file or directory")
        if entry.kind != FILE:
            name = source.rpartition("/")[2]
            raise HostFileError("copy", source, f'CopyFile: non-regular source file {name} ("drwxr-xr-x")')
        self._make("open", path, entry.replace(label=self._label(like)))

    def keep(self, path: str, kept: str) -> None:
        if path not in self.entries:
            raise HostFileError("link", path, "no such file or directory")
        self._make("link", kept, self.entries[path])

    def move(self, path: str, target: str) -> None:
        self.trouble("rename", target)
        if path not in self.entries:
            raise HostFileError("rename", target, "no such file or directory")
        if self._kind(target) == FOLDER:
            raise HostFileError("rename", target, "is a directory")
        for each in [each for each in self.entries if each == path or each.startswith(f"{path}/")]:
            self.entries[target + each.removeprefix(path)] = self.entries.pop(each)

    def remove(self, path: str) -> None:
        if path in self.entries:
            self.trouble("remove", path)
            if self._kind(path) == FOLDER:
                raise HostFileError("remove", path, "is a directory")
            del self.entries[path]

    def remove_tree(self, path: str) -> None:
        for each in [each for each in self.entries if each == path or each.startswith(f"{path}/")]:
            self.trouble("remove", each)
            del self.entries[each]

    def _followed(self, path: str) -> Entry | None:
        entry = self.entries.get(path)
        return self._followed(entry.data.decode()) if entry and entry.kind == LINK else entry

    def _kind(self, path: str) -> str:
        return self.entries[path].kind if path in self.entries else ""

    def _label(self, path: str) -> bytes:
        return self.entries[path].label if path in self.entries else b""

    def _make(self, operation: str, path: str, entry: Entry) -> None:
        self.trouble(operation, path)
        folder = path.rpartition("/")[0]
        if folder and self._kind(folder) != FOLDER:
            raise HostFileError(operation, path, "no such file or directory")
        if folder in self.read_only:
            raise HostFileError(operation, path, "read-only file system")
        if path in self.entries:
            raise HostFileError(operation, path, "file exists")
        self.entries[path] = entry
