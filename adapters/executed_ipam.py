"""IPAM plugins as the CNI specification has them: an executable, run once per verb. What is the same on every system.

It gets our environment with CNI_COMMAND replaced and the configuration on stdin; it answers on stdout. What it
writes to stderr when it succeeds is passed on to ours. How a program is found and run, each system says.

Invariant: what leaves is a result, or an error with the plugin's own code and text.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod

from domain.cni.errors import (
    INCOMPATIBLE_VERSION,
    INVALID_ENVIRONMENT,
    NOT_AVAILABLE,
    UNKNOWN_CONTAINER,
    CniError,
)
from domain.cni.go_quote import go_quoted
from domain.json_text import parse
from domain.value import Value
from ports.errors import Refused
from ports.ipam_plugin import IpamPlugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.request import Request
    from domain.cni.result import Result
    from ports.clock import Clock, Deadline
    from ports.ipam_plugin import IpamCall
    from ports.log import Log

_LONGEST_QUOTE = 1 << 16  # characters of a plugin's output in an error


class Ran(Value):
    """`ending` is "" for success, else how the process ended, as Go's `os/exec` says it."""

    ending: str
    stdout: bytes
    stderr: bytes


class ExecutedIpam(IpamPlugin):
    """`environment` is what the plugin inherits: ours, with what the configuration adds to it."""

    def __init__(self, environment: Mapping[str, str], clock: Clock, log: Log) -> None:
        self._environment = environment
        self._clock = clock
        self._log = log

    @abstractmethod
    def _find(self, type: str, path: tuple[str, ...]) -> str:
        """Where in CNI_PATH the plugin is. `Refused` without one."""

    @abstractmethod
    def _start(self, path: str, environment: Mapping[str, str], call: IpamCall, deadline: Deadline) -> Ran:
        """Run it to its end. `Refused` if it cannot be started, `Expired`."""

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
            self._find(call.netconf.ipam.type, call.request.path)
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

    def _run(self, verb: str, call: IpamCall, deadline: Deadline) -> Ran:
        path = self._find(call.netconf.ipam.type, call.request.path)
        ran = self._start(path, {**self._environment, **_variables(verb, call.request)}, call, deadline)
        if ran.ending:
            raise refusal(ran)
        _pass_on(ran.stderr)
        return ran


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


def refusal(ran: Ran) -> Refused:
    """What a plugin that failed has to say, by the CNI library's rules; code 0 where it says nothing in JSON."""
    stdout, stderr = _text(ran.stdout), _text(ran.stderr)
    if not stdout and not stderr:
        return Refused(f"netplugin failed with no error message: {ran.ending}", 0)
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


def _pass_on(stderr: bytes) -> None:
    """Without a stderr of our own (it was closed) the descriptor may be anybody's."""
    if not stderr or sys.__stderr__ is None:
        return
    try:
        sys.__stderr__.flush()
        os.write(sys.__stderr__.fileno(), stderr)
    except (OSError, ValueError):
        pass  # it is informational, and there is nobody to tell
