"""`tortie uninstall`: what was there before the first installation is put back, what was not there goes.

What somebody else has put in our place since is theirs: nothing is touched until that has been settled. A configuration
that was not there before goes first, and one that comes back comes last, so that at each moment the one in force finds
its executables.

Invariant: it can be interrupted anywhere and done again; what was kept is given up last.
"""

from __future__ import annotations

from contextlib import ExitStack

from domain.install.errors import CannotInstall, NothingInstalled
from domain.install.places import REPLACED
from domain.install.replaced import ABSENT, NOTHING, REMOVE, RESTORE, THEIRS
from domain.value import Value
from ports.host_files import HostFileError
from usecases.install.staging import each_once, record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.install.places import Places
    from domain.install.replaced import Replaced, ReplacedRecord
    from ports.host_files import HostFiles


class _Step(Value):
    folder: str
    file: Replaced
    verdict: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.file.name}"

    @property
    def kept(self) -> str:
        return f"{self.folder}/{REPLACED}/{self.file.name}"


def uninstall(places: Places, files: HostFiles, *, force: bool = False) -> tuple[str, ...]:
    """What was done, a line for each file. CannotInstall, before anything is changed, if it cannot be done;
    NothingInstalled, if it has been done.

    With `force` what we kept takes the place of somebody else's; where nothing was before us, theirs stays.
    """
    try:
        folders = each_once((places.net_dir, *places.bin_dirs), files)
        with ExitStack() as holds:
            for folder in [folder for folder in folders if record_of(files, folder)]:
                holds.enter_context(files.held(folder))
            return _take_back(places.net_dir, folders, files, force=force)
    except HostFileError as error:
        raise CannotInstall(str(error)) from error


def _take_back(net_dir: str, folders: Sequence[str], files: HostFiles, *, force: bool) -> tuple[str, ...]:
    records = {folder: record_of(files, folder) for folder in folders}
    known = {folder: record for folder, record in records.items() if record}
    if not known:
        looked = ", ".join(records)
        raise NothingInstalled(f"there is no installation to take back: none of {looked} has a {REPLACED}")
    steps = [step for folder, record in known.items() for step in _steps(folder, record, files)]
    _settle(steps, files, force=force)
    return tuple(_carry_out(net_dir, known, steps, files))


def _steps(folder: str, record: ReplacedRecord, files: HostFiles) -> list[_Step]:
    return [_Step(folder, file, file.verdict(files.digest(f"{folder}/{file.name}"))) for file in record.files]


def _settle(steps: Sequence[_Step], files: HostFiles, *, force: bool) -> None:
    theirs = [step.path for step in steps if step.verdict == THEIRS]
    if theirs and not force:
        raise CannotInstall(
            f"somebody else has replaced {', '.join(theirs)} since; "
            "nothing has been changed, --force puts back what was there before us all the same"
        )
    for step in steps:
        wanted = step.verdict in (RESTORE, THEIRS) and step.file.before != ABSENT
        if wanted and files.digest(step.kept) != step.file.before:
            raise CannotInstall(f"{step.kept} is not what was kept there any more, so {step.path} cannot be put back")


def _carry_out(net_dir: str, known: dict[str, ReplacedRecord], steps: Sequence[_Step], files: HostFiles) -> list[str]:
    ours = [step for step in steps if step.folder == net_dir]
    others = [step for step in steps if step.folder != net_dir]
    leaving = [step for step in ours if step.verdict == REMOVE]
    returning = [step for step in ours if step.verdict != REMOVE]
    lines = [_undo(step, files) for step in (*leaving, *others, *returning)]
    for folder, record in known.items():
        for name in record.made:
            files.remove_tree(f"{folder}/{name}")
            lines.append(f"removed   {folder}/{name}")
    for folder in known:
        files.remove_tree(f"{folder}/{REPLACED}")
    return lines


def _undo(step: _Step, files: HostFiles) -> str:
    if step.verdict == NOTHING and not _has_our_mode(step, files):
        return f"unchanged {step.path}"
    if step.verdict == REMOVE:
        files.remove(step.path)
        return f"removed   {step.path}"
    if step.file.before == ABSENT:
        return f"left      {step.path}, which somebody else has put there"
    files.move(step.kept, step.path)
    return f"restored  {step.path}"


def _has_our_mode(step: _Step, files: HostFiles) -> bool:
    """A file of ours may have the content of the one before it, and another mode."""
    kept, found = files.look(step.kept), files.look(step.path)
    return bool(
        step.file.before in step.file.ours
        and kept
        and found
        and kept.mode != found.mode
        and files.digest(step.kept) == step.file.before
    )
