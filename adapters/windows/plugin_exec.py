"""IPAM plugins run on Windows.

Invariant: no plugin that we started works on after a call has returned.
"""

from __future__ import annotations

from adapters.executed_ipam import ExecutedIpam, Ran
from adapters.windows.plugin_path import find_plugin
from adapters.windows.process import WindowsCommand, run
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.clock import Deadline
    from ports.ipam_plugin import IpamCall


class WindowsIpamPlugin(ExecutedIpam):
    def _find(self, type: str, path: tuple[str, ...]) -> str:
        return find_plugin(type, path)

    def _start(self, path: str, environment: Mapping[str, str], call: IpamCall, deadline: Deadline) -> Ran:
        stdin = call.netconf_text.encode("utf-8", "surrogateescape")
        command = WindowsCommand((path,), f"IPAM plugin {call.netconf.ipam.type}", environment, stdin)
        try:
            ended = run(command, deadline, self._clock)
        except OSError as error:
            why = error.strerror or str(error)
            raise Refused(f"netplugin failed with no error message: fork/exec {path}: {why}") from error
        return Ran(f"exit status {ended.status}" if ended.status else "", ended.stdout, ended.stderr)
