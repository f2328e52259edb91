"""Whether files have the kind, the mode and the content that they need.

Invariant: a file that somebody else than root may write is never in order, and one with secrets is nobody else's to
read.
"""

from __future__ import annotations

from domain.cni.plugin_conf import METRICS_FILE
from domain.doctor.diagnosis import error, listed, ok, warning
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.doctor.diagnosis import Diagnosis
    from domain.doctor.seen import FileSeen

PLUGINS, VERSIONS, LOCK, LOG, REPLACED = "plugins", "versions", "lock-file", "log-file", "replaced"
METRICS = "metrics-dir"
_OTHERS_WRITE, _OTHERS_READ, _EXECUTE = 0o022, 0o077, 0o111
OWN_PROGRAMS = ("calico", "calico-ipam", "tortie", "my-custom-cni")


def judge_mode(check: str, path: str, seen: FileSeen, *, secret: bool = False) -> Diagnosis | None:
    """What is wrong with who may read and write it; None if nothing."""
    if seen.mode & _OTHERS_WRITE:
        return error(check, f"{path} has mode {seen.mode:04o}: others than root can write it", f"chmod go-w {path}")
    if seen.owner:
        return warning(check, f"{path} belongs to user {seen.owner}, who can write it", f"chown root:root {path}")
    if secret and seen.mode & _OTHERS_READ:
        return warning(check, f"{path} has mode {seen.mode:04o} and holds credentials", f"chmod 600 {path}")
    return None


def judge_plugins(folder: str, wanted: Sequence[str], seen: Mapping[str, FileSeen | None]) -> tuple[Diagnosis, ...]:
    """`wanted` are the programs that the configuration names; `seen` what is in the folder under each name."""
    found: list[Diagnosis] = []
    for name in wanted:
        file, path = seen.get(name), f"{folder}/{name}"
        install = (
            "`tortie install` puts it there" if name in OWN_PROGRAMS else "it comes with the CNI project's plugins"
        )
        if file is None:
            found.append(error(PLUGINS, f"{path} is not there, and the configuration names it", install))
        elif not file.is_file:
            found.append(error(PLUGINS, f"{path} is {file.kind}", f"remove it; {install}"))
        elif not file.mode & _EXECUTE:
            found.append(error(PLUGINS, f"{path} has mode {file.mode:04o}: it cannot be executed", f"chmod 755 {path}"))
        elif wrong := judge_mode(PLUGINS, path, file):
            found.append(wrong)
    return tuple(found) or (ok(PLUGINS, f"{', '.join(wanted)} in {folder}"),)


def judge_versions(
    versions: Mapping[str, str], faults: Mapping[str, str], *, elsewhere: bool = False
) -> tuple[Diagnosis, ...]:
    """What each program of ours, or of Calico's, says of itself; `faults` are of those that say nothing.

    With `elsewhere` the programs are another root's, whose libraries and interpreter are not to be found here.
    """
    found: list[Diagnosis] = []
    judge, do = (warning, "try it on the host itself") if elsewhere else (error, "install it anew: `tortie install`")
    for name, fault in faults.items():
        found.append(judge(VERSIONS, f"{name} -v: {fault}", do))
    shown = ", ".join([f"{name} {version}" for name, version in versions.items()])
    if len({*versions.values()}) > 1:
        found.append(
            warning(VERSIONS, f"not all are of one version: {shown}", "install all of them anew: `tortie install`")
        )
    if not found and versions:
        found.append(ok(VERSIONS, shown))
    return tuple(found)


def judge_lock(path: str, seen: FileSeen | None) -> Diagnosis:
    """The IPAM lock, which the first call makes."""
    if seen is None:
        return ok(LOCK, f"{path} is not there yet; the first call makes it")
    if not seen.is_file:
        return error(LOCK, f"{path} is {seen.kind}", 'remove it, or set "ipam_lock_file" to another path')
    return judge_mode(LOCK, path, seen) or ok(LOCK, path)


def judge_log(path: str, seen: FileSeen | None, folder: str, holding: FileSeen | None) -> Diagnosis:
    """`holding` is the log's folder, which a call makes where it is missing."""
    move = 'move it away, or set "log_file_path" to another path'
    if not path:
        return ok(LOG, "none is configured: plugins log to standard error, which runtimes keep")
    if holding is not None and not holding.is_folder:
        return error(LOG, f"{folder} is {holding.kind}", move)
    if holding is not None and (wrong := judge_mode(LOG, folder, holding)):
        return wrong
    if seen is None:
        return ok(LOG, f"{path} is not there yet; the first line makes it")
    if not seen.is_file:
        return error(LOG, f"{path} is {seen.kind}", move)
    return judge_mode(LOG, path, seen) or ok(LOG, f"{path}, {seen.size >> 10} KiB")


def judge_metrics(folder: str, seen: FileSeen | None, file: FileSeen | None) -> Diagnosis:
    """`file` is the one in the folder in which calls are counted. They never fail because of it."""
    if not folder.startswith("/"):
        return warning(METRICS, f"{folder} is no absolute path: no call is counted", 'give "metrics_dir" a whole path')
    if seen is not None and not seen.is_folder:
        move = 'move it away, or set "metrics_dir" to another path'
        return warning(METRICS, f"{folder} is {seen.kind}: no call is counted", move)
    if file is None:
        return ok(METRICS, f"{folder} has no {METRICS_FILE} yet; the first call makes it")
    if not file.is_file:
        return warning(METRICS, f"{folder}/{METRICS_FILE} is {file.kind}", "the next call sets it aside: see the log")
    return ok(METRICS, f"{folder}/{METRICS_FILE}, {file.size} bytes")


class KeptBefore(Value):
    """A folder in which `tortie install` keeps what it has replaced: what is at its path, and what is in it."""

    path: str
    seen: FileSeen | None
    names: tuple[str, ...] = ()


def judge_replaced(folders: Sequence[KeptBefore], staged: Sequence[str]) -> tuple[Diagnosis, ...]:
    """`staged` are folders of an installation that has not come to its end."""
    found: list[Diagnosis] = []
    for folder in folders:
        if folder.seen is not None and not folder.seen.is_folder:
            do = "move it away: `tortie uninstall` looks into a folder of that name"
            found.append(error(REPLACED, f"{folder.path} is {folder.seen.kind}", do))
        elif folder.seen is not None and (wrong := judge_mode(REPLACED, folder.path, folder.seen)):
            found.append(wrong)
    if staged:
        do = "install again: `tortie install` clears that away"
        found.append(warning(REPLACED, f"an installation was killed, or is at work: {listed(staged)}", do))
    if found:
        return tuple(found)
    if all(folder.seen is None for folder in folders):
        return (ok(REPLACED, "nothing is kept from before an installation"),)
    kept = listed([f"{folder.path}/{name}" for folder in folders for name in folder.names])
    back = f"puts back {kept}" if kept else "removes what was installed, as nothing was there before"
    return (ok(REPLACED, f"`tortie uninstall` {back}"),)
