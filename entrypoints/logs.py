"""What a plugin call leaves behind for an operator: lines on stderr and, if configured, in a rotating file.

    2026-11-29 13:06:12.345 [INFO][4711] cni-plugin/add_workload.py 42: Assigned addresses ips="10.0.0.1/26"

Local time, fields sorted by key, texts quoted as Go does, and what is not printable escaped everywhere, so that a
record is one line whatever it holds. The number is that of the process, which is one call. With `log_format: json` a
record is an object instead (entrypoints/call_record.py), and each call leaves one.

Until the configuration is known, INFO and above go to stderr, as text.

Invariant: a call goes on as if all its lines had been written, whatever becomes of them.
"""

from __future__ import annotations

import os
import sys
import time

from domain.cni.go_quote import go_quoted, printable
from entrypoints.stdio import Patience, write
from ports.log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.plugin_conf import PluginConf
    from domain.json_text import Json
    from entrypoints.log_file import LogFile

_PATIENCE = 1.0  # seconds for whoever reads stderr
_DEBUG, _INFO, _WARNING, _ERROR = range(4)
_NAMES = ("DEBUG", "INFO", "WARNING", "ERROR")
_LEVELS = {"debug": _DEBUG, "warn": _WARNING, "warning": _WARNING, "error": _ERROR}  # anything else is INFO


def _shown(value: object) -> str:
    """Texts quoted; errors and our own values as their text; Go's words for the rest."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, list):
        return printable(",".join([str(item) for item in value]))
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value))


class CallLog(Log):
    """`component` goes before the source file's name: `cni-plugin` or `ipam`, as in the original. `default` is the
    level unless the configuration names one.
    """

    def __init__(self, component: str, descriptor: int = 2, default: str = "info") -> None:
        self._component = component
        self._descriptor = descriptor
        self._default = default
        self._least = _LEVELS.get(default, _INFO)
        self._always: dict[str, object] = {}
        self._file: LogFile | None = None
        self.lead = b""  # what goes before a line on stderr, to wipe away what stands there
        self._call = ""  # its id, if records are JSON
        self._concerns: dict[str, str] = {}
        self.patience = Patience(_PATIENCE)  # for all lines together

    def configure(self, netconf: PluginConf) -> None:
        """Level and file as the configuration wants them."""
        self._least = _LEVELS.get(netconf.log_level.lower() or self._default, _INFO)
        if netconf.log_format:
            self._choose_format(netconf.log_format)
        if netconf.log_file_path:
            self._open_file(netconf)

    def _choose_format(self, name: str) -> None:
        from entrypoints.call_record import FORMATS, call_id

        if name == "json":
            self._call = call_id()
        elif name not in FORMATS:
            self.warning("No such log_format; it is text: write text or json", log_format=name)

    def _open_file(self, netconf: PluginConf) -> None:
        from entrypoints.log_file import Limits, LogFile, why

        limits = Limits.of(netconf.log_file_max_size, netconf.log_file_max_age, netconf.log_file_max_count)
        try:
            self._file = LogFile(netconf.log_file_path, limits)
        except (OSError, ValueError, RecursionError) as error:  # ValueError: a zero byte in the path
            self.error("Cannot write the log file", path=netconf.log_file_path, error=why(netconf.log_file_path, error))
            return
        if self._file.risk:
            self.warning("The log file is at risk", path=netconf.log_file_path, reason=self._file.risk)

    def always(self, **fields: object) -> None:
        """Fields that every later record has."""
        self._always.update(fields)

    def concerns(self, **subject: str) -> None:
        """Whose call it is, for records that are JSON: `command`, `container`, `ifname`, `pod`."""
        self._concerns.update(subject)

    @property
    def whose(self) -> dict[str, str]:
        """The container, and the pod if it is one's, by which the call is found among those of others."""
        return {name: text for name in ("container", "pod") if (text := self._concerns.get(name))}

    def succeeded(self, verb: str, answer: str, seconds: float) -> None:
        """The call is over, and its answer out. As text only whoever debugs reads of it."""
        level = _INFO if self._call else _DEBUG
        if level < self._least:
            return
        try:
            from entrypoints.call_record import said

            fields: dict[str, object] = {"seconds": round(seconds, 3), **said(answer)}
            self._record(level, f"CNI {verb} succeeded.", fields if self._call else {**self._concerns, **fields})
        except MemoryError:
            pass

    def debug(self, message: str, **fields: object) -> None:
        self._record(_DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        self._record(_INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._record(_WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        self._record(_ERROR, message, fields)

    def _record(self, level: int, message: str, fields: dict[str, object]) -> None:
        if level < self._least:
            return
        caller = sys._getframe(2)  # the line that logs, past debug() to error() above
        file, number = caller.f_code.co_filename.rpartition(os.sep)[2], caller.f_lineno
        line = (self._object if self._call else self._line)(level, f"{file} {number}", message, fields)
        write(self._descriptor, self.lead + line, self.patience)
        if self._file:
            self._file.write(line)

    def _line(self, level: int, place: str, message: str, fields: dict[str, object]) -> bytes:
        now = time.time_ns() // 1_000_000
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now // 1000))
        head = f"{date}.{now % 1000:03d} [{_NAMES[level]}][{os.getpid()}] {self._component}/{place}: "
        fields = {**self._always, **fields}
        tail = "".join([f" {key}={_shown(fields[key])}" for key in sorted(fields)])
        return (head + printable(message) + tail + "\n").encode("utf-8", "replace")

    def _object(self, level: int, place: str, message: str, fields: dict[str, object]) -> bytes:
        from entrypoints.call_record import json_line

        now = time.time_ns() // 1_000_000
        date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000))
        head: dict[str, Json] = {"time": f"{date}.{now % 1000:03d}Z", "level": _NAMES[level].lower()}
        head |= {"call": self._call, "plugin": self._component, **self._concerns}
        head |= {"source": place.replace(" ", ":"), "pid": os.getpid()}
        return json_line(head, message, {**self._always, **fields})
