"""The files that lead to etcd: copied to where the plugins find them.

Invariant: a file that is there at its source is there at its destination, or the installation fails; what is no longer
at its source leaves the destination last, since the configuration in force may still name it.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.places import TLS, TLS_FILES
from ports.errors import PortError
from ports.host_files import FILE, FOLDER, HostFileError
from ports.node import MissingFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from usecases.install.installer import Installer
    from usecases.install.staging import StagedFolder


def secrets_at(source: str, host: Installer) -> tuple[str, ...]:
    """The names of those that are there."""
    looks = {name: host.files.look(f"{source}/{name}", follow=True) for name in TLS_FILES}
    return tuple([name for name, look in looks.items() if look and look.kind == FILE])


def stage_secrets(folder: StagedFolder, settings: InstallSettings, host: Installer) -> tuple[str, ...]:
    """The names of those that will be installed."""
    source = settings.tls_assets_dir
    found = host.files.look(source, follow=True)
    if found is None or found.kind != FOLDER:
        return ()
    names = secrets_at(source, host)
    if not names:
        host.log.info(f"No TLS assets found in {source}, skipping")
        return ()
    host.log.info("Installing any TLS assets")
    folder.others_rewrite(TLS)
    for name in TLS_FILES:
        if name not in names:
            host.log.warning(f"Missing {name}")
            continue
        try:
            folder.copy(f"{source}/{name}", f"{TLS}/{name}")
        except HostFileError as error:
            raise CannotInstall(f"Failed to install {name} of TLS_ASSETS_DIR={source}: {error}") from error
    return names


def remove_stale(places: Places, names: tuple[str, ...], host: Installer) -> None:
    """All but what has been installed now; the folder too, if nothing has."""
    try:
        if not names:
            host.files.remove_tree(places.tls_dir)
            return
        for name in host.files.names(places.tls_dir):
            if name not in names:
                host.files.remove_tree(f"{places.tls_dir}/{name}")
    except (HostFileError, MissingFile) as error:
        host.log.warning("Error removing old TLS directory", error=error)


def update_secrets(places: Places, settings: InstallSettings, host: Installer) -> None:
    """Copy whatever is at the source now. What cannot be copied is told, and is no reason to stop."""
    source = settings.tls_assets_dir
    try:
        names = host.files.names(source)
    except PortError as error:
        host.log.warning(f"Failed to list {source}", error=error)
        return
    for name in names:
        if name.startswith(".."):
            continue  # of the kubelet, which swaps what these lead to
        target = f"{places.tls_dir}/{name}"
        try:
            if not host.files.same(f"{source}/{name}", target):
                host.files.make_folder(places.tls_dir)
                look = host.files.look(f"{source}/{name}", follow=True)
                host.files.replace(target, host.files.read(f"{source}/{name}"), look.mode if look else 0o600)
        except PortError as error:
            host.log.warning(f"Failed to update {target}", error=error)


def have_changed(places: Places, settings: InstallSettings, host: Installer) -> bool:
    """Whether one of those that plugins need differs from what is installed."""
    try:
        return any(
            not host.files.same(f"{settings.tls_assets_dir}/{name}", f"{places.tls_dir}/{name}")
            for name in secrets_at(settings.tls_assets_dir, host)
        )
    except PortError:
        return False
