#!/usr/bin/env python3
"""Builds and installs the product's bundle: executables and, beside them, all the code that they load.

    calico                    a launcher of a few lines, run by an interpreter named by its absolute path
    calico-ipam, my-custom-cni, tortie
                              links to it; and bridge, if it is asked for, since another plugin may have that name
    .tortie/<id>/app          domain, ports, adapters, entrypoints
    .tortie/<id>/lib          the libraries of the bundled extras, from the lock file
    .tortie/<id>/manifest     the hash and name of each file that is no compiled code

Nothing is unpacked or compiled when a plugin starts. `<id>` is the beginning of the build stamp, the SHA-256 of the
manifest and the launcher: equal inputs give an equal stamp, and an update never changes a folder that a running
plugin still loads from.

Invariant: publishing replaces the launcher last and atomically, so that an interrupted one leaves the old bundle
working. The folder before the current one stays for processes that are still running from it.
"""

from __future__ import annotations

import argparse
import compileall
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parent.parent
OWN_PACKAGES = ("domain", "ports", "usecases", "adapters", "entrypoints")
BUNDLED_EXTRAS = ("linux", "grpc", "etcd", "kubernetes", "operator")
NO_WHEEL = "etcd3"  # pure Python that PyPI has in source form only
LAUNCHER = "calico"
LINKS = ("calico-ipam", "my-custom-cni", "tortie")
ON_REQUEST = ("bridge",)
FOLDER = ".tortie"
ELF = b"\x7fELF"  # how an executable of `make dist` begins
LONGEST_INTERPRETER = 110  # kernels before 5.1 cut a script's first line at 127 bytes


def say(text: str) -> None:
    print(text, flush=True)


def interpreter() -> str:
    """The real path of the interpreter behind this environment, as a script's first line can name it."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    path = os.path.realpath(base)
    if len(path) > LONGEST_INTERPRETER or re.search(r"\s", path):
        sys.exit(f"The path of the interpreter does not fit in a script's first line: {path!r}")
    return path


# --- what goes in ---------------------------------------------------------------------------------------------------


def locked_stanzas(lock: str) -> dict[str, str]:
    """Package name → its lines in the lock file: the pin, its hashes, and who asked for it."""
    stanzas: dict[str, str] = {}
    for stanza in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE):
        if name := re.match(r"[A-Za-z0-9._-]+(?===)", stanza):
            stanzas[name[0]] = stanza
    return stanzas


def runtime_requirements(lock: str) -> str:
    """The part of the lock file that the bundled extras and what they depend on need."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [re.split(r"[^A-Za-z0-9._-]", item)[0] for extra in BUNDLED_EXTRAS for item in extras[extra]]
    wanted = {re.sub(r"[-_.]+", "-", name).lower() for name in asked}
    stanzas = locked_stanzas(lock)
    if absent := wanted - set(stanzas):
        sys.exit(f"The lock file does not pin {', '.join(sorted(absent))}; run `make lock`")
    while True:
        parents = {
            name: set(re.findall(r"^\s+#\s+(?:via\s+)?([a-z0-9.-]+)$", text, flags=re.MULTILINE))
            for name, text in stanzas.items()
        }
        more = {name for name, needed_by in parents.items() if needed_by & wanted} - wanted
        if not more:
            return "".join(stanzas[name] for name in sorted(wanted))
        wanted |= more


def compile_tree(tree: Path) -> None:
    """Compile ahead of time; compiled files are trusted without a look at their source, and name it relatively."""
    if not compileall.compile_dir(
        tree, quiet=2, force=True, stripdir=str(tree), invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    ):
        sys.exit(f"Some file under {tree} does not compile")


def libraries(lock: Path) -> Path:
    """The libraries' folder, made once per user, pinned set and interpreter version, and shared by all clones."""
    requirements = runtime_requirements(lock.read_text())
    key = hashlib.sha256(f"{requirements}{sys.version}{platform.machine()}".encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tortie" / "libraries"
    kept = cache / key
    if kept.is_dir():
        return kept
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    listed = fresh.with_name(f"{fresh.name}.txt")  # ours alone: other clones may be at it at the same time
    listed.write_text(requirements)
    say("== Fetching the bundled libraries")
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q", "--no-compile"]
    pip += [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-binary",
        NO_WHEEL,
        "--use-pep517",
        "--require-hashes",
        "--target",
        str(fresh),
        "-r",
        str(listed),
    ]
    subprocess.run(pip, check=True)
    listed.unlink()
    shutil.rmtree(fresh / "bin", ignore_errors=True)  # their commands; the bundle starts none of them
    for path in [path for path in fresh.rglob("*") if path.suffix in {".c", ".pyx", ".pxd"}]:
        path.unlink()  # what their compiled modules were made from
    compile_tree(fresh)
    with suppress(OSError):  # somebody else was faster
        fresh.rename(kept)
    shutil.rmtree(fresh, ignore_errors=True)
    return kept


def copy_own_code(app: Path) -> int:
    """Copy our packages' sources; the number of files."""
    count = 0
    for package in OWN_PACKAGES:
        for source in sorted((ROOT / package).rglob("*.py")):
            target = app / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            count += 1
    return count


def link_or_copy(source: str, target: str) -> None:
    """For files that nobody changes."""
    try:
        os.link(source, target)
    except OSError:  # of another file system
        shutil.copy2(source, target)


# --- stamp and manifest ---------------------------------------------------------------------------------------------


def manifest(tree: Path) -> str:
    """One line per file that is not derived from another: its hash and its name."""
    names = sorted(
        path.relative_to(tree).as_posix()
        for path in tree.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path.name != "manifest"
    )
    return "".join(f"{hashlib.sha256((tree / name).read_bytes()).hexdigest()}  {name}\n" for name in names)


def launcher_text(stamp: str) -> str:
    template = (ROOT / "packaging" / "launcher.py.in").read_text()
    return template.replace("@PYTHON@", interpreter()).replace("@ID@", stamp[:16]).replace("@STAMP@", stamp)


def folder_of(launcher: Path) -> str:
    """The `<id>` that a launcher loads from; "" if it is none of ours."""
    try:
        found = re.search(rb"/\.tortie/([0-9a-f]{16})\"", launcher.read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""


# --- publishing -----------------------------------------------------------------------------------------------------


def set_modes(tree: Path) -> None:
    """Readable for all, writable for the owner, whatever the umask was."""
    tree.chmod(0o755)
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def same_trees(one: Path, other: Path) -> bool:
    def contents(tree: Path) -> dict[str, bytes]:
        return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}

    return other.is_dir() and contents(one) == contents(other)


def place_tree(source: Path, target: Path, *, lasting: bool) -> None:
    """Copy a folder beside its destination, then rename it there; `lasting`: once it would outlast a power cut."""
    if same_trees(source, target):
        set_modes(target)
        return
    fresh = target.with_name(f"{target.name}.new-{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(source, fresh)
    set_modes(fresh)
    if lasting:
        subprocess.run(["sync", "-f", fresh], check=True)  # of this file system only: others may have much to write
    if target.exists():  # damaged: the same stamp with other files
        target.rename(target.with_name(f"{target.name}.old-{os.getpid()}"))
    fresh.rename(target)


def place_file(text: bytes, target: Path) -> None:
    fresh = target.with_name(f".{target.name}.new-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o755)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        os.fchmod(descriptor, 0o755)
        os.fsync(descriptor)
    fresh.rename(target)


def place_link(name: str, target: Path) -> None:
    fresh = target.with_name(f".{target.name}.new-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    fresh.rename(target)


def publish(
    tree: Path | None, launcher: bytes, target: Path, links: tuple[str, ...] = LINKS, *, lasting: bool = True
) -> None:
    """Put a bundle into a folder that may hold an older one, the launcher last. One at a time per folder.

    An executable that needs nothing beside it has no `tree`. What a power cut may damage because it is not `lasting`
    is put right by the next build, which compares all of it.
    """
    target.mkdir(parents=True, exist_ok=True)
    lock = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = {folder_of(target / LAUNCHER)}
        if tree:
            kept.add(tree.name)
            (target / FOLDER).mkdir(exist_ok=True)
            (target / FOLDER).chmod(0o755)
            place_tree(tree, target / FOLDER / tree.name, lasting=lasting)
        for name in links:
            if not (target / name).exists():
                place_link(LAUNCHER, target / name)  # a first installation: nothing to keep working yet
        place_file(launcher, target / LAUNCHER)
        for name in links:
            place_link(LAUNCHER, target / name)
        remove_leftovers(target, kept)
    finally:
        os.close(lock)


def remove_leftovers(target: Path, kept: set[str]) -> None:
    """Folders of older builds, and what interrupted installations left."""
    for old in (target / FOLDER).glob("*"):
        if old.name not in kept:
            shutil.rmtree(old, ignore_errors=True)
    for name in (LAUNCHER, *LINKS, *ON_REQUEST):
        for old in target.glob(f".{name}.new-*"):
            old.unlink()


# --- commands -------------------------------------------------------------------------------------------------------


def build(target: Path, lock: Path) -> None:
    lib = libraries(lock)
    stage = ROOT / "build" / f"stage-{os.getpid()}"
    shutil.rmtree(stage, ignore_errors=True)
    try:
        tree = stage / "tree"
        count = copy_own_code(tree / "app")
        compile_tree(tree / "app")
        shutil.copytree(lib, tree / "lib", copy_function=link_or_copy)
        listing = manifest(tree)
        (tree / "manifest").write_text(listing)
        stamp = hashlib.sha256((listing + launcher_text("")).encode()).hexdigest()
        tree = tree.rename(stage / stamp[:16])
        publish(tree, launcher_text(stamp).encode(), target, lasting=False)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    say(f"== Built {target}/{{{','.join((LAUNCHER, *LINKS))}}}: {count} modules, build stamp {stamp[:16]}")


def install(source: Path, target: Path, links: tuple[str, ...]) -> None:
    launcher = (source / LAUNCHER).read_bytes()
    tree = None if launcher.startswith(ELF) else source / FOLDER / folder_of(source / LAUNCHER)
    publish(tree, launcher, target, links)
    say(f"== Installed {', '.join((LAUNCHER, *links))} in {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build or install the bundle.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("--lock", type=Path, required=True)
    building.add_argument("target", type=Path)
    installing = commands.add_parser("install")
    installing.add_argument("source", type=Path)
    installing.add_argument("target", type=Path)
    installing.add_argument("--also", action="append", choices=ON_REQUEST, default=[], help="another name to install")
    asked = parser.parse_args()
    os.umask(0o022)
    if asked.command == "build":
        build(asked.target, asked.lock)
    else:
        install(asked.source, asked.target, (*LINKS, *asked.also))


if __name__ == "__main__":
    main()
