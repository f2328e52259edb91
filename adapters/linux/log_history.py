"""The log file of the plugins and those put aside beside it, as `entrypoints/log_file.py` names them.

Another process may put the file aside while it is read; what was opened is read to its end.

Invariant: nothing is opened that could block, and nothing but regular files is read.
"""

from __future__ import annotations

import os
import time
from stat import S_ISREG

from adapters.linux.files import kind_of, reason
from domain.moment import SECOND, BadMoment
from ports.log_history import LogHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LONGEST = 1 << 20  # bytes of a line
_DATED = len("2026-11-29T13-06-12.345")
_REASON, _COMPRESSED = "-size", ".zst"
_LOCAL = "%Y-%m-%d %H:%M:%S"


class LogFiles(LogHistory):
    """`path` is where this process finds the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        folder, _, name = path.rpartition("/")
        self._folder = folder or "/"
        stem, dot, extension = name.rpartition(".")
        self._stem, self._extension = (stem, dot + extension) if dot else (name, "")

    def lines(self, words: Collection[str]) -> Iterator[str]:
        wanted = [word.encode("utf-8", "surrogateescape") for word in words]
        for path in self._readable():
            with self._opened(path) as file:
                while line := file.readline(_LONGEST):
                    if any(word in line for word in wanted):
                        yield line.decode("utf-8", "replace").rstrip("\n")

    def first(self) -> str:
        for path in self._readable():
            with self._opened(path) as file:
                if line := file.readline(_LONGEST):
                    return line.decode("utf-8", "replace").rstrip("\n")
        return ""

    def gaps(self) -> tuple[str, ...]:
        compressed = [name for name in self._put_aside() if name.endswith(_COMPRESSED)]
        found = [f"{self._folder}/{name} is compressed and was left out; `zstd -d` it" for name in compressed]
        for path in self._paths():
            try:
                self._opened(path).close()
            except FileNotFoundError:
                if path == self._path:
                    found.append(f"There is no log at {path}; name it with --log-file")
            except OSError as error:
                why = reason(error) if error.errno else str(error)
                found.append(f"{path} cannot be read: {why}")
        return tuple(found)

    def instant(self, local: str) -> int:
        whole, _, milliseconds = local.partition(".")
        try:
            return int(time.mktime(time.strptime(whole, _LOCAL))) * SECOND + int(milliseconds) * (SECOND // 1000)
        except (ValueError, OverflowError):
            raise BadMoment(f"not a time of the log: {local!r}") from None

    def _put_aside(self) -> list[str]:
        """Names, the oldest first."""
        length = len(self._stem) + 1 + _DATED + len(_REASON + self._extension)
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return sorted(
            name
            for name in names
            if name.startswith(f"{self._stem}-")
            and len(plain := name.removesuffix(_COMPRESSED)) == length
            and plain.endswith(_REASON + self._extension)
        )

    def _paths(self) -> list[str]:
        plain = [name for name in self._put_aside() if not name.endswith(_COMPRESSED)]
        return [*[f"{self._folder}/{name}" for name in plain], self._path]

    def _readable(self) -> Iterator[str]:
        for path in self._paths():
            try:
                self._opened(path).close()
            except OSError:
                continue
            yield path

    def _opened(self, path: str) -> BinaryIO:
        file = open(os.open(path, _OPEN), "rb")  # noqa: SIM115 - the caller closes it
        mode = os.fstat(file.fileno()).st_mode
        if not S_ISREG(mode):
            file.close()
            raise OSError(f"it is {kind_of(mode)}")
        return file
