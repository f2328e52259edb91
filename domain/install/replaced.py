"""What was there before us, so that it can be put back: one record for each folder that has been installed to.

For each file the record has what was there at first, and everything that we have put in its place. It is written
before the file is replaced, so at any moment the file is either the first, or one of ours, or somebody else's.

Invariant: what was there at first is recorded once, and no later installation changes it.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.json_text import JsonError, dumps, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

ABSENT = ""
"""The digest of nothing."""
RESTORE, REMOVE, NOTHING, THEIRS = "restore", "remove", "nothing to do", "somebody else's"
_MOST_OF_OURS = 16  # the newest; each is there for some moments, or until the next installation


class Replaced(Value):
    """Digests: of what was there, ABSENT if nothing was, and of what we have put there, newest last."""

    name: str
    before: str
    ours: tuple[str, ...]

    def verdict(self, now: str) -> str:
        """What takes the installation back, if the digest of what is there is `now`."""
        if now == self.before:
            return NOTHING
        if now not in self.ours:
            return THEIRS
        return REMOVE if self.before == ABSENT else RESTORE


class ReplacedRecord(Value):
    """`made` are the names of files that others rewrite all the time, and folders, which were not there before us."""

    files: tuple[Replaced, ...] = ()
    made: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        return any(file.name == name for file in self.files)

    def with_file(self, name: str, before: str, after: str) -> ReplacedRecord:
        """`name` is going to be `after`; it is `before` now, which counts the first time only."""
        files = {file.name: file for file in self.files}
        known = files.get(name) or Replaced(name, before, ())
        ours = tuple([digest for digest in known.ours if digest != after] + [after])[-_MOST_OF_OURS:]
        files[name] = known.replace(ours=ours)
        return self.replace(files=tuple(files.values()))

    def with_made(self, name: str) -> ReplacedRecord:
        return self if name in self.made else self.replace(made=(*self.made, name))

    def text(self) -> str:
        files: Json = {file.name: {"before": file.before, "ours": list(file.ours)} for file in self.files}
        return dumps({"files": files, "made": list(self.made)}, 2) + "\n"


def parse_record(text: str, path: str) -> ReplacedRecord:
    """CannotInstall, which names the path, for what we have not written."""
    try:
        document = parse(text)
        if not isinstance(document, dict):
            raise _Unknown
        files = document["files"]
        if not isinstance(files, dict):
            raise _Unknown
        return ReplacedRecord(
            tuple([_file(name, told) for name, told in files.items()]),
            tuple([_name(name) for name in _texts(document["made"])]),
        )
    except (JsonError, KeyError, _Unknown):
        raise CannotInstall(f"{path} is not what an installation has written; it says what was there before") from None


class _Unknown(ValueError):
    pass


def _file(name: str, told: Json) -> Replaced:
    if not isinstance(told, dict):
        raise _Unknown
    (before,) = _texts([told["before"]])
    return Replaced(_name(name), before, _texts(told["ours"]))


def _name(name: str) -> str:
    """What is taken back is in the folder itself, whoever has changed the record."""
    if "/" in name or name in ("", ".", ".."):
        raise _Unknown
    return name


def _texts(told: Json) -> tuple[str, ...]:
    if not isinstance(told, list):
        raise _Unknown
    texts = tuple([item for item in told if isinstance(item, str)])
    if len(texts) != len(told):
        raise _Unknown
    return texts
