"""One folder of the host that is being installed to: everything is made ready first, and then put into its place.

What needs room on the disk, and most of what can fail, happens before the first file is replaced. Before that, what was
there is kept, once and for all, and written down (`domain.install.replaced`).

Invariant: until `put_in_place` nothing that anybody loads has changed; after `close` nothing of the staging is left.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.places import RECORD, REPLACED, is_own
from domain.install.replaced import ABSENT, ReplacedRecord, parse_record
from ports.host_files import FOLDER
from ports.node import MissingFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ports.host_files import HostFiles


def record_of(files: HostFiles, folder: str) -> ReplacedRecord | None:
    """What has been written down there; None if nothing was installed to that folder."""
    path = f"{folder}/{REPLACED}/{RECORD}"
    try:
        return parse_record(files.read(path).decode("utf-8", "replace"), path)
    except MissingFile:
        return None


def each_once(folders: Sequence[str], files: HostFiles) -> list[str]:
    """Without those that are another one of them under a second name: who holds a folder cannot hold it once more."""
    found: dict[str, str] = {}
    for folder in folders:
        found.setdefault(files.identity(folder) or folder, folder)
    return list(found.values())


class StagedFolder:
    """Names are relative to the folder; those with a `/` are not written down, their folder is."""

    def __init__(self, files: HostFiles, folder: str) -> None:
        self.folder = folder
        self._files = files
        self._stage = files.open_stage(folder)
        self._staged: list[str] = []
        self._leaving: list[str] = []
        self._shared: list[str] = []
        self._made: list[str] = []
        self._is_first = False

    def copy(self, source: str, name: str) -> None:
        if is_own(name):
            raise CannotInstall(f"{source} has a name of the installer's own: rename it, or leave it out")
        self._files.copy(source, self._room_for(name), like=f"{self.folder}/{name}")
        self._staged.append(name)

    def write(self, name: str, text: str, mode: int) -> None:
        self._files.write(
            self._room_for(name), text.encode("utf-8", "surrogateescape"), mode, like=f"{self.folder}/{name}"
        )
        self._staged.append(name)

    def will_remove(self, name: str) -> None:
        """Written down here; the removing comes last, by others, who do not stop if it fails."""
        self._leaving.append(name)

    def others_rewrite(self, name: str) -> None:
        """Whoever takes this back leaves the file, or folder, alone if it was there before."""
        self._shared.append(name)
        if self._files.look(f"{self.folder}/{name}") is None:
            self._made.append(name)

    def path(self, name: str) -> str:
        """Where it is for now."""
        return f"{self._stage}/{name}" if name in self._staged else f"{self.folder}/{name}"

    def keep_what_is_there(self) -> None:
        """Keep what will be replaced and write that down."""
        known = record_of(self._files, self.folder)
        record = self._next(known or ReplacedRecord())
        kept = f"{self.folder}/{REPLACED}"
        if record == (known or ReplacedRecord()):
            return
        found = self._files.look(kept)
        if found and found.kind != FOLDER:
            raise CannotInstall(f"{kept} is {found.kind}: remove it, what was there before us is to be kept in it")
        self._is_first = known is None
        self._files.make_folder(kept, 0o700)
        for file in record.files:
            if not (known and known.knows(file.name)):
                self._files.remove(f"{kept}/{file.name}")  # left by an installation that was killed right here
                if file.before != ABSENT:
                    self._files.keep(f"{self.folder}/{file.name}", f"{kept}/{file.name}")
        self._files.write(f"{self._stage}/{RECORD}", record.text().encode(), 0o600)
        self._files.move(f"{self._stage}/{RECORD}", f"{kept}/{RECORD}")

    def forget_what_was_kept(self) -> None:
        """Nothing has been replaced yet, and there was no record before."""
        if self._is_first:
            self._files.remove_tree(f"{self.folder}/{REPLACED}")

    def put_in_place(self, name: str) -> None:
        """Does nothing for what is not staged."""
        if name in self._staged:
            self._files.move(f"{self._stage}/{name}", f"{self.folder}/{name}")

    def put_folder_in_place(self, name: str) -> None:
        """All that is staged below that name; in one step if no such folder is there yet."""
        path = f"{self.folder}/{name}"
        staged = [each for each in self._staged if each.startswith(f"{name}/")]
        found = self._files.look(path)
        if found and found.kind == FOLDER:
            for each in staged:
                self._files.move(f"{self._stage}/{each}", f"{self.folder}/{each}")
        elif staged:
            self._files.remove(path)
            self._files.move(f"{self._stage}/{name}", path)

    def close(self) -> None:
        try:
            self._files.remove_tree(self._stage)
        finally:  # a signal ends the first of them at most
            self._files.close_stage(self._stage)

    def _room_for(self, name: str) -> str:
        """Where to make it, after a look at what it will replace."""
        found = self._files.look(f"{self.folder}/{name}")
        if found and found.kind == FOLDER:
            raise CannotInstall(f"{self.folder}/{name} is a folder: remove it, a file is to be installed there")
        above = name.rpartition("/")[0]
        if above:
            self._files.make_folder(f"{self._stage}/{above}")
        return f"{self._stage}/{name}"

    def _next(self, record: ReplacedRecord) -> ReplacedRecord:
        for name in [name for name in self._staged if "/" not in name and name not in self._shared]:
            before = self._files.digest(f"{self.folder}/{name}")
            record = record.with_file(name, before, self._files.digest(f"{self._stage}/{name}"))
        for name in self._leaving:
            record = record.with_file(name, self._files.digest(f"{self.folder}/{name}"), ABSENT)
        for name in self._made:
            record = record.with_made(name)
        return record
