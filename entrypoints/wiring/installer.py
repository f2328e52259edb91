"""What stands behind the installer's ports: this machine's files and processes, and the cluster we are a pod of.

Invariant: nothing is opened or asked here; a port does that when it is used.
"""

from __future__ import annotations

from entrypoints.wiring.this_program import ON_WINDOWS
from usecases.install.installer import Installer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.log import Log


def installer(environ: Mapping[str, str], log: Log) -> Installer:
    if ON_WINDOWS:
        from entrypoints.wiring.windows_installer import windows_installer

        return windows_installer(environ, log)
    from adapters.linux.clock import SystemClock
    from adapters.linux.host_files import LinuxHostFiles
    from adapters.linux.process.installed_program import ExecutedProgram
    from domain.cni.netconf import NetConf
    from entrypoints.wiring.datastores import api_servers

    clock = SystemClock()
    issuer = api_servers(NetConf(), environ, clock)().token_issuer()
    return Installer(LinuxHostFiles(), ExecutedProgram(clock), issuer, clock, log)
