"""IPAM plugins run on Linux, where a child can be tied to its parent's life.

Invariant: no plugin that we started works on after a call has returned or this process has died.
"""

from __future__ import annotations

import os

from adapters.executed_ipam import ExecutedIpam, Ran
from adapters.linux.files import reason
from adapters.linux.process.child import ChildCommand, Finished, dies_with_us, run
from adapters.plugin_path import find_plugin
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.clock import Deadline
    from ports.ipam_plugin import IpamCall

_RUNS = 6  # of a plugin whose file is being written just now
_BETWEEN_RUNS = 1.0
_ETXTBSY = 26


class ExecutedIpamPlugin(ExecutedIpam):
    def _find(self, type: str, path: tuple[str, ...]) -> str:
        return find_plugin(type, path)

    def _start(self, path: str, environment: Mapping[str, str], call: IpamCall, deadline: Deadline) -> Ran:
        command = ChildCommand(
            path=path,
            environment=environment,
            stdin=call.netconf_text.encode("utf-8", "surrogateescape"),
            waited_for=f"IPAM plugin {call.netconf.ipam.type}",
        )
        if not dies_with_us():
            self._log.warning("Cannot tie the IPAM plugin to this process: it may outlive it", plugin=command.path)
        try:
            finished = self._run_when_free(command, deadline)
        except OSError as error:
            raise Refused(
                f"netplugin failed with no error message: fork/exec {command.path}: {reason(error)}"
            ) from error
        return Ran(_ending(finished.status) if finished.status else "", finished.stdout, finished.stderr)

    def _run_when_free(self, command: ChildCommand, deadline: Deadline) -> Finished:
        """An installer may be replacing the file at this moment: give it some seconds."""
        for left in reversed(range(_RUNS)):
            try:
                return run(command, deadline, self._clock)
            except OSError as error:
                if error.errno != _ETXTBSY or not left:
                    raise
            self._clock.sleep(min(_BETWEEN_RUNS, deadline.left(self._clock.monotonic())))
            if deadline.passed(self._clock.monotonic()):
                break
        raise Expired(command.waited_for)


def _ending(status: int) -> str:
    """How a process ended, as Go's `os/exec` says it."""
    if not os.WIFSIGNALED(status):
        return f"exit status {os.WEXITSTATUS(status)}"
    from _signal import strsignal  # type: ignore[import-not-found]  # as in child_process

    number = os.WTERMSIG(status)
    name = (strsignal(number) or f"signal {number}").lower()
    return f"signal: {name}" + (" (core dumped)" if os.WCOREDUMP(status) else "")
