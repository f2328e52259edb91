"""What renews the plugins' token, made from what a process of the DaemonSet is told by: its environment.

Invariant: nothing is opened or asked here.
"""

from __future__ import annotations

import os

from domain.cni.netconf import NetConf
from domain.install.places import SERVICE_ACCOUNT
from domain.install.token import ACCOUNT, refresh_interval
from entrypoints.wiring.datastores import api_servers
from entrypoints.wiring.this_program import ON_WINDOWS
from usecases.install.refresh_token import Renewal, TokenRefresher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.clock import Clock
    from ports.folder_watch import FolderWatch
    from ports.host_files import HostFiles
    from ports.log import Log

_BITS = 53  # of a number between 0 and 1


def renewal(environ: Mapping[str, str], net_dir: str, log: Log, *, namespace: str = "") -> Renewal:
    """`net_dir` is the folder of network configurations, as this process sees it."""
    text = environ.get("CNI_TOKEN_REFRESH_INTERVAL", "")
    interval = None
    try:
        interval = refresh_interval(text)
    except ValueError as error:
        log.error("Detected an invalid CNI_TOKEN_REFRESH_INTERVAL.", error=error, value=text)
    return Renewal(
        folder=net_dir,
        watched=SERVICE_ACCOUNT,
        namespace=namespace,
        account=environ.get("CALICO_CNI_SERVICE_ACCOUNT", "") or ACCOUNT,
        interval=interval,
        insecure=environ.get("SKIP_TLS_VERIFY", "") == "true",
    )


def folder_watch(*folders: str, clock: Clock) -> FolderWatch:
    if ON_WINDOWS:
        from entrypoints.wiring.windows_installer import folder_watch as polling

        return polling(folders, clock)
    from adapters.linux.folder_watch import InotifyWatch

    return InotifyWatch(folders, clock)


def token_refresher(renewal: Renewal, environ: Mapping[str, str], clock: Clock) -> TokenRefresher:
    # Hasty: it is tried again anyway, or somebody waits at a terminal.
    issuer = api_servers(NetConf(), environ, clock, hasty=True)().token_issuer(renewal.watched)
    return TokenRefresher(renewal, issuer, _host_files(), clock, chance=_chance)


def _host_files() -> HostFiles:
    if ON_WINDOWS:
        from adapters.windows.host_files import WindowsHostFiles

        return WindowsHostFiles()
    from adapters.linux.host_files import LinuxHostFiles

    return LinuxHostFiles()


def _chance() -> float:
    return (int.from_bytes(os.urandom(8), "big") >> (64 - _BITS)) / (1 << _BITS)
