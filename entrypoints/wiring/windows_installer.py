"""What stands behind the installer's ports on a Windows node, and what it is told there.

Invariant: nothing is opened or asked before it is needed, but for the version of Windows, which the settings depend on.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.windows import MOUNT_POINT, supports_dsr, windows_places, windows_settings
from entrypoints.wiring.datastores import api_servers
from entrypoints.wiring.windows import clock
from ports.errors import PortError
from usecases.install.installer import Installer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from ports.clock import Clock
    from ports.folder_watch import FolderWatch
    from ports.log import Log

_VERSION = "Get-ComputerInfo | select WindowsVersion, OsBuildNumber, OsHardwareAbstractionLayer"
_TRIES, _PAUSE, _LIMIT = 10, 1.0, 60.0  # seconds


def windows_installer(environ: Mapping[str, str], log: Log) -> Installer:
    from adapters.windows.host_files import WindowsHostFiles
    from adapters.windows.installed_program import WindowsProgram
    from domain.cni.netconf import NetConf

    timepiece = clock()
    account = places(environ).service_account
    issuer = api_servers(NetConf(), environ, timepiece)().token_issuer(account)
    return Installer(WindowsHostFiles(), WindowsProgram(timepiece), issuer, timepiece, log)


def places(environ: Mapping[str, str]) -> Places:
    return windows_places(environ.get(MOUNT_POINT, ""))


def settings(environ: Mapping[str, str], log: Log) -> InstallSettings:
    """CannotInstall, also if the version of Windows cannot be told."""
    from adapters.windows.node import WindowsNode
    from adapters.windows.powershell import PowerShell

    timepiece = clock()
    shell = PowerShell(timepiece)
    dsr = asked_dsr(lambda: shell.run(_VERSION, timepiece.deadline(_LIMIT)), timepiece, log)
    return windows_settings(environ, WindowsNode().host_name(), dsr=dsr)


def asked_dsr(ask: Callable[[], str], timepiece: Clock, log: Log) -> bool:
    """Ten times at most, a second apart."""
    for left in range(_TRIES - 1, -1, -1):
        try:
            return supports_dsr(ask())
        except (PortError, ValueError) as error:
            log.warning("Cannot tell the version of Windows", error=error, tries_left=left)
        if left:
            timepiece.sleep(_PAUSE)
    raise CannotInstall("Failed to retrieve Windows version information to determine DSR support.")


def folder_watch(folders: tuple[str, ...], timepiece: Clock) -> FolderWatch:
    from adapters.windows.folder_watch import PollingWatch

    return PollingWatch(folders, timepiece)
