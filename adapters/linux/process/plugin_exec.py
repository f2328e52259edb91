"""IPAM plugins as the CNI specification has them: an executable, run once per verb.

It gets our environment with CNI_COMMAND replaced and the configuration on stdin; it answers on stdout. What it
writes to stderr when it succeeds is passed on to ours.

Invariant: no plugin that we started works on after a call has returned or this process has died.
"""

from __future__ import annotations

import os
import sys

from adapters.linux.files import reason
from adapters.linux.process.child import ChildCommand, Finished, dies_with_us, run
from adapters.linux.process.plugin_path import find_plugin
from domain.cni.errors import (
    INCOMPATIBLE_VERSION,
    INVALID_ENVIRONMENT,
    NOT_AVAILABLE,
    UNKNOWN_CONTAINER,
    CniError,
)
from domain.cni.go_quote import go_quoted
from domain.json_text import parse
from ports.errors import Expired, Refused
from ports.ipam_plugin import IpamPlugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.request import Request
    from domain.cni.result import Result
    from ports.clock import Clock, Deadline
    from ports.ipam_plugin import IpamCall
    from ports.log import Log

_RUNS = 6  # of a plugin whose file is being written just now
_BETWEEN_RUNS = 1.0
_ETXTBSY = 26
_LONGEST_QUOTE = 1 << 16  # characters of a plugin's output in an error


class ExecutedIpamPlugin(IpamPlugin):
    """`environment` is what the plugin inherits: ours, with what the configuration adds to it."""

    def __init__(self, environment: Mapping[str, str], clock: Clock, log: Log) -> None:
        self._environment = environment
        self._clock = clock
        self._log = log

    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        from domain.cni.result import parse_result

        answer = _text(self._run("ADD", call, deadline).stdout)
        try:
            return parse_result(answer, call.netconf.cni_version)
        except CniError as error:
            raise Refused(error.message, error.code, error.details) from error

    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("DEL", call, deadline)

    def check(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("CHECK", call, deadline)

    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:  # noqa: ARG002 - DEL names no result
        """DEL, the only way back that the CNI specification has: it releases all that the container holds."""
        self._run("DEL", call, deadline)

    def collect(self, call: IpamCall, deadline: Deadline) -> None:
        self._run_if_known("GC", call, deadline)

    def status(self, call: IpamCall, deadline: Deadline) -> None:
        try:
            find_plugin(call.netconf.ipam.type, call.request.path)
        except Refused as error:
            raise Refused(str(error), NOT_AVAILABLE) from error
        self._run_if_known("STATUS", call, deadline)

    def _run_if_known(self, verb: str, call: IpamCall, deadline: Deadline) -> None:
        """Plugins older than CNI 1.1 refuse the verb, the version, or a call without a container, by their codes; they
        are ready, and keep nothing that they could collect.
        """
        try:
            self._run(verb, call, deadline)
        except Refused as error:
            if error.code not in (INVALID_ENVIRONMENT, INCOMPATIBLE_VERSION, UNKNOWN_CONTAINER):
                raise
            self._log.debug("The IPAM plugin does not know the verb", verb=verb, error=error)

    def _run(self, verb: str, call: IpamCall, deadline: Deadline) -> Finished:
        type = call.netconf.ipam.type
        command = ChildCommand(
            path=find_plugin(type, call.request.path),
            environment={**self._environment, **_variables(verb, call.request)},
            stdin=call.netconf_text.encode("utf-8", "surrogateescape"),
            waited_for=f"IPAM plugin {type}",
        )
        if not dies_with_us():
            self._log.warning("Cannot tie the IPAM plugin to this process: it may outlive it", plugin=command.path)
        try:
            finished = self._run_when_free(command, deadline)
        except OSError as error:
            raise Refused(
                f"netplugin failed with no error message: fork/exec {command.path}: {reason(error)}"
            ) from error
        if finished.status:
            raise _refusal(finished)
        _pass_on(finished.stderr)
        return finished

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


def _variables(verb: str, request: Request) -> dict[str, str]:
    """The CNI variables as this call has them; the use case may have added to the arguments."""
    variables = {"CNI_COMMAND": verb, "CNI_PATH": ":".join(request.path)}
    optional = {
        "CNI_CONTAINERID": request.container_id,
        "CNI_IFNAME": request.ifname,
        "CNI_NETNS": request.netns,
        "CNI_ARGS": request.args,
    }
    return variables | {name: value for name, value in optional.items() if value}


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _refusal(finished: Finished) -> Refused:
    """What a plugin that failed has to say, by the CNI library's rules; code 0 where it says nothing in JSON."""
    stdout, stderr = _text(finished.stdout), _text(finished.stderr)
    if not stdout and not stderr:
        return Refused(f"netplugin failed with no error message: {_ending(finished.status)}", 0)
    if not stdout:
        return Refused(f"netplugin failed: {go_quoted(stderr[:_LONGEST_QUOTE])}", 0)
    try:
        return _told(stdout)
    except ValueError as error:
        return Refused(
            f"netplugin failed but error parsing its diagnostic message {go_quoted(stdout[:_LONGEST_QUOTE])}: {error}",
            0,
        )


class _NoCniError(ValueError):
    """What a plugin has printed is no error object of CNI. `str()` is Go's text."""


def _told(stdout: str) -> Refused:
    """A CNI error object. ValueError (`_NoCniError`, or of the JSON) for anything else."""
    told = parse(stdout)
    if told is None:
        return Refused("", 0)
    if not isinstance(told, dict):
        raise _NoCniError("json: cannot unmarshal into Go value of type types.Error")
    by_name = {name.lower(): member for name, member in told.items() if member is not None}
    code, message, details = by_name.get("code", 0), by_name.get("msg", ""), by_name.get("details", "")
    if not isinstance(code, int) or isinstance(code, bool) or code < 0:
        raise _NoCniError("json: cannot unmarshal into Go struct field Error.code of type uint")
    if not isinstance(message, str) or not isinstance(details, str):
        raise _NoCniError("json: cannot unmarshal into Go struct field Error.msg of type string")
    return Refused(message, code, details)


def _ending(status: int) -> str:
    """How a process ended, as Go's `os/exec` says it."""
    if not os.WIFSIGNALED(status):
        return f"exit status {os.WEXITSTATUS(status)}"
    from _signal import strsignal  # type: ignore[import-not-found]  # as in child_process

    number = os.WTERMSIG(status)
    name = (strsignal(number) or f"signal {number}").lower()
    return f"signal: {name}" + (" (core dumped)" if os.WCOREDUMP(status) else "")


def _pass_on(stderr: bytes) -> None:
    """Without a stderr of our own (it was closed) the descriptor may be anybody's."""
    if not stderr or sys.__stderr__ is None:
        return
    try:
        sys.__stderr__.flush()
        os.write(sys.__stderr__.fileno(), stderr)
    except (OSError, ValueError):
        pass  # it is informational, and there is nobody to tell
