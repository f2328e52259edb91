"""The log file of the plugins and those put aside beside it, as `entrypoints/log_file.py` names them.

Another process may put the file aside while those before it are read. So it is opened before their names are listed:
whatever is put aside later is in it, and whatever was put aside before is in the list. There may be a gigabyte of it,
so many lines are searched at once, and where a time is given its place is found by halves.

Invariant: nothing is opened that could block, and nothing but regular files is read; a line that is there when reading
begins is read once. A clock that is put back as at the end of summer time hides no line.
"""

from __future__ import annotations

import os
import time
from stat import S_ISREG

from adapters.linux.files import kind_of, reason
from domain.moment import SECOND, BadMoment
from domain.trace.log_lines import read_log_line
from ports.log_history import LogHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import BinaryIO

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LONGEST = 1 << 20  # bytes of a line, and of the lines that are searched at once
_NEAR = 1 << 16  # bytes from which on lines are read one after the other, and not by halves
_TRIES = 100  # lines in which a time is looked for
_PUT_BACK = 2 * 3600 * SECOND  # by which local time may run backwards; the other form has UTC
_STEPPED = 60 * SECOND
_DATED = len("2026-11-29T13-06-12.345")
_REASON, _COMPRESSED = "-size", ".zst"
_LOCAL = "%Y-%m-%d %H:%M:%S"


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, many at once; of a line that is too long, pieces."""
    rest = b""
    while piece := file.read(_LONGEST):
        lines, end, last = piece.rpartition(b"\n")
        if end:
            yield rest + lines
            rest = last
        elif len(rest) < _LONGEST:
            rest += piece
        else:
            yield rest
            rest = piece
    if rest:
        yield rest


def _found(lines: bytes, wanted: Sequence[bytes]) -> list[bytes]:
    """Those in which one of them stands. To look for each in all of the lines is much quicker than line by line."""
    ends: dict[int, int] = {}
    for word in wanted:
        at = lines.find(word)
        while at >= 0:
            end = lines.find(b"\n", at)
            end = len(lines) if end < 0 else end
            ends[lines.rfind(b"\n", 0, at) + 1] = end
            at = lines.find(word, end)
    return [lines[start : ends[start]] for start in sorted(ends)]


class LogFiles(LogHistory):
    """`path` is where this process finds the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        folder, _, name = path.rpartition("/")
        self._folder = folder or "/"
        stem, dot, extension = name.rpartition(".")
        self._stem, self._extension = (stem, dot + extension) if dot else (name, "")

    def lines(self, words: Collection[str], since: int | None = None, until: int | None = None) -> Iterator[str]:
        wanted = [word.encode("utf-8", "surrogateescape") for word in words if word and "\n" not in word]
        for file in self._readable():
            if since is not None and not self._find(file, since):
                continue
            for several in _pieces(file):
                if until is not None and self._side(several, until) > 0:
                    break
                for line in _found(several, wanted):
                    yield line.decode("utf-8", "replace")

    def _find(self, file: BinaryIO, since: int) -> bool:
        """Whether there is something as young, and the file at, or somewhat before, the first of it."""
        low, high = 0, os.fstat(file.fileno()).st_size
        if os.fstat(file.fileno()).st_mtime_ns < since:
            return False
        while high - low > _NEAR:
            middle = (low + high) // 2
            file.seek(middle)
            file.readline(_LONGEST)  # the rest of a line
            side = next((side for _ in range(_TRIES) if (side := self._side(file.readline(_LONGEST), since))), 0)
            low, high = (middle, high) if side < 0 else (low, middle)
        file.seek(low)
        if low:
            file.readline(_LONGEST)
        return True

    def _side(self, lines: bytes, moment: int) -> int:
        """Whether the first of them was certainly before (-1) or after the moment (1); 0 if that cannot be told."""
        line = read_log_line(lines.partition(b"\n")[0].decode("utf-8", "replace"), self.instant)
        if line is None:
            return 0
        odd = _STEPPED if line.is_json else _PUT_BACK
        return (line.when > moment + odd) - (line.when < moment - odd)

    def first(self) -> str:
        for file in self._readable():
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

    def _readable(self) -> Iterator[BinaryIO]:
        """Each file once, the oldest first; open as long as nobody asks for the next one."""
        last = self._opened_if_readable(self._path)
        try:
            for path in self._paths()[:-1]:
                file = self._opened_if_readable(path)
                if file is None:
                    continue
                with file:
                    if last is None or not os.path.sameopenfile(file.fileno(), last.fileno()):
                        yield file
            if last is not None:
                yield last
        finally:
            if last is not None:
                last.close()

    def _opened_if_readable(self, path: str) -> BinaryIO | None:
        try:
            return self._opened(path)
        except OSError:
            return None

    def _opened(self, path: str) -> BinaryIO:
        file = open(os.open(path, _OPEN), "rb")  # noqa: SIM115 - the caller closes it
        mode = os.fstat(file.fileno()).st_mode
        if not S_ISREG(mode):
            file.close()
            raise OSError(f"it is {kind_of(mode)}")
        return file
