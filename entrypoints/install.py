"""`calico component cni install`, as a DaemonSet's container runs it: settings from the environment, a log on stderr.

Invariant: the exit code is 0 when everything is installed, or when a resident installer is asked to end; 1 with one
error line that names what to change; and what a shell reports of the signal that ended an installation.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.places import Places
from domain.install.settings import read_settings
from entrypoints.logs import CallLog
from entrypoints.termination import Interrupted, ignore, raise_when_signalled, seen
from entrypoints.wiring.installer import installer
from entrypoints.wiring.this_program import ON_WINDOWS, own_path
from usecases.install.stay import Vigil, stay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.install.settings import InstallSettings
    from ports.log import Log
    from usecases.install.installer import Installer

_ENDED_BY = {"SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}  # 128 and the signal's number


def main(environ: Mapping[str, str]) -> int:
    """The exit code."""
    places = Places()
    if ON_WINDOWS:
        from entrypoints.wiring.windows_installer import places as windows_places

        places = windows_places(environ)
    return run(places.replace(programs=(*places.programs, own_path())), environ, CallLog("cni-installer"))


def run(places: Places, environ: Mapping[str, str], log: Log) -> int:
    """The same from and to other places."""
    from usecases.install.install import install

    raise_when_signalled()
    resident = False
    try:
        settings = _settings(environ, log)
        host = installer(environ, log)
        resident = settings.sleep
        install(places, settings, host)
        if resident:
            stay(places, settings, host, _vigil(places, settings, host, environ))
    except CannotInstall as error:
        log.error(str(error))
        return 1
    except Interrupted as signal:
        seen()
        log.info(f"Ended by {signal}")
        return 0 if resident else _ENDED_BY[str(signal)]
    finally:
        ignore()
    return 0


def _settings(environ: Mapping[str, str], log: Log) -> InstallSettings:
    if ON_WINDOWS:
        from entrypoints.wiring.windows_installer import settings

        return settings(environ, log)
    from adapters.linux.node_files import NodeFiles

    return read_settings(environ, NodeFiles().host_name())


def _vigil(places: Places, settings: InstallSettings, host: Installer, environ: Mapping[str, str]) -> Vigil:
    from entrypoints.wiring.token_refresher import folder_watch, renewal, token_refresher

    chosen = renewal(environ, places.net_dir, host.log).replace(watched=places.service_account, as_installed=True)
    watch = folder_watch(settings.tls_assets_dir, chosen.watched, clock=host.clock)
    return Vigil(watch, token_refresher(chosen, environ, host.clock))
