"""The executables, into each folder that takes them: our own under its two names, and the plugins staged beside it.

Invariant: what has been staged is what its source is, octet by octet, and our own has run from where it will be.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.places import plugins_to_copy
from ports.errors import Refused
from ports.host_files import FILE, HostFileError
from ports.node import MissingFile
from usecases.install.staging import StagedFolder, each_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from usecases.install.installer import Installer

_TRIAL = 30.0  # seconds


class Binaries:
    """What goes into one folder."""

    def __init__(self, folder: StagedFolder) -> None:
        self.folder = folder
        self._installed: list[str] = []
        self._skipped: list[str] = []
        self._version = ""

    def stage(self, program: str, places: Places, settings: InstallSettings, host: Installer) -> None:
        """CannotInstall, which names the file."""
        sources = dict.fromkeys(places.names, program) | _plugins(places, settings, host)
        for name, source in sources.items():
            target = f"{self.folder.folder}/{name}"
            if not settings.update and host.files.look(target) is not None:
                self._skipped.append(name)
                continue
            self._stage_one(source, name, host)
            if name in places.names:
                self._try(source, name, host)

    def _stage_one(self, source: str, name: str, host: Installer) -> None:
        target = f"{self.folder.folder}/{name}"
        try:
            if source == target or host.files.same(source, target):
                host.log.info("File is already up to date, skipping", file=target)
            else:
                self.folder.copy(source, name)
                if not host.files.same(source, self.folder.path(name)):
                    raise CannotInstall(f"Failed to verify installed binary {target}: it is not what {source} is")
        except HostFileError as error:
            raise CannotInstall(f"Failed to install {target}: failed to copy file: {error}") from error
        self._installed.append(name)

    def _try(self, source: str, name: str, host: Installer) -> None:
        """A file that needs others beside it, another architecture, or a file system mounted noexec."""
        try:
            self._version = host.program.version(self.folder.path(name), host.clock.deadline(_TRIAL))
        except Refused as error:
            target = f"{self.folder.folder}/{name}"
            advice = "what is installed has to run alone, as the self-contained executable does"
            raise CannotInstall(
                f"Failed to verify installed binary {target}, a copy of {source}: {error}; {advice}"
            ) from error

    def put_in_place(self, host: Installer) -> None:
        for name in self._skipped:
            host.log.info(f"Skipping installation of {self.folder.folder}/{name}")
        for name in self._installed:
            self.folder.put_in_place(name)
            host.log.info(f"Installed {self.folder.folder}/{name}")
        host.log.info(f"Wrote Calico CNI binaries to {self.folder.folder}")
        host.log.info(f"CNI plugin version: {self._version}")


def writable_folders(places: Places, settings: InstallSettings, host: Installer) -> list[str]:
    """All that can be written to, each once. CannotInstall without one, unless what is needed is there and may stay."""
    faults = {folder: host.files.why_unwritable(folder) for folder in places.bin_dirs}
    for folder, why in faults.items():
        if why:
            host.log.info(f"{folder} is not writeable, skipping", reason=why)
    found = each_once([folder for folder, why in faults.items() if not why], host.files)
    if found:
        return found
    for folder in places.bin_dirs:
        there = [host.files.look(f"{folder}/{name}", follow=True) for name in places.names]
        if not settings.update and all(look and look.kind == FILE for look in there):
            host.log.info(
                f"No writeable CNI bin directory found but [{' '.join(places.names)}] already exist at {folder}"
                " and UPDATE_CNI_BINARIES=false; continuing"
            )
            return []
    told = "; ".join([f"{folder}: {why}" for folder, why in faults.items()])
    first = places.bin_dirs[0]
    advice = f"; make {first}, or mount the host's folder of CNI programs there"
    raise CannotInstall(
        f"found no writeable directory, exiting: {told}{'' if host.files.look(first, follow=True) else advice}"
    )


def own_program(places: Places, host: Installer) -> str:
    """The first that is there."""
    for path in places.programs:
        found = host.files.look(path, follow=True)
        if found and found.kind == FILE:
            return path
    raise CannotInstall(f"there is no executable to install: none of {', '.join(places.programs)} is a file")


def _plugins(places: Places, settings: InstallSettings, host: Installer) -> dict[str, str]:
    if not places.staged:
        return {}
    try:
        listed = host.files.names(places.staged)
    except MissingFile:
        return {}
    return {name: f"{places.staged}/{name}" for name in plugins_to_copy(listed, settings.skipped)}
