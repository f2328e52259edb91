#!/usr/bin/env python3
"""Builds the self-contained executable: one file that is calico, calico-ipam, my-custom-cni and tortie.

    dist.py TARGET [--arch arm64]
        TARGET/calico and links to it; beside it LICENSES/, `versions` of what is in it, and `modules`

For another machine than this one it is cross-compiled, and tried with QEMU where there is Debian's qemu-user-static.

Which of them a process is depends on the name that it is started under. It holds a static interpreter, OpenSSL, SQLite
and our modules; nothing is unpacked, written or looked up when it starts.

Invariant: equal sources, libraries and compiler give an equal file. Its last line is its build stamp, as a bundle's.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from importlib import metadata
from pathlib import Path

from dist_machine import GNU, here
from dist_runtime import COMPILED, LINKED, Runtime, runtime
from dist_sources import call, say

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging"))  # run by its path, a script finds what is beside it only

from bundle import LAUNCHER as NAME  # noqa: E402 - not before it can be found
from bundle import publish  # noqa: E402 - likewise
from snapshot import begin_loaded  # noqa: E402 - likewise

LICENCES = {
    "CPython": "python3.11/LICENSE",
    "CPython.Debian": "python3.11/debian/copyright",
    "OpenSSL": "openssl/LICENSE.txt",
    "SQLite": "sqlite3/debian/copyright",
    "musl": "musl/COPYRIGHT",
}
PARTS = ("executable", "last_words", "memory", "quick_import", "snapshot")  # of the program, in C
PURE = ("PyYAML",)  # as in freeze.py, by the name of the distribution
SNAPSHOT = ("libpython3.11.a", "libsqlite3.a", *(f"{name}.o" for name in (*PARTS, "frozen")))  # whose data are in it
WRAPPED = tuple(f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "free"))  # memory.c
INTERNALS = (
    "-DPy_BUILD_CORE",
    "-fvisibility=hidden",
    "-std=c11",
)  # what CPython's own frozen modules are compiled with


# musl words errors and signals in its own way; our messages, and who searches for them, know glibc's and Go's.
TEXTS = """\
#include <stdio.h>
static const char *const errors[] = {%s};
static const char *const signals[] = {%s};
static const char *text(const char *const *texts, int count, int number, const char *otherwise)
{
    static _Thread_local char unknown[40];
    if (number >= 0 && number < count) return texts[number];
    snprintf(unknown, sizeof unknown, otherwise, number);
    return unknown;
}
const char *__strerror_l(int number, void *locale)
{
    return text(errors, sizeof errors / sizeof *errors, number, "Unknown error %%d");
}
const char *strerror_l(int number, void *locale) { return __strerror_l(number, locale); }
const char *strerror(int number) { return __strerror_l(number, 0); }
const char *strsignal(int number)
{
    return text(signals, sizeof signals / sizeof *signals, number, "Unknown signal %%d");
}
"""


def texts() -> str:
    """C functions with the words of this machine's library in place of musl's."""
    last = max(errno.errorcode)
    errors = [os.strerror(number) for number in range(last + 1)]
    known = [signal.strsignal(number) or f"Unknown signal {number}" for number in range(1, signal.SIGSYS + 1)]
    named = ["Unknown signal 0", *known]
    return TEXTS % tuple(", ".join(json.dumps(word) for word in words) for words in (errors, named))


def compile_all(made: Runtime, stage: Path, sources: Path = ROOT) -> Path:
    """The linked executable of the modules in `sources`."""
    cpython = made.cpython
    say("== Freezing the modules")
    # Of no use without the source: where in its line something is.
    freeze = ("-X", "no_debug_ranges", ROOT / "packaging" / "executable" / "freeze.py")
    made.python(*freeze, sources, cpython / "Lib", sysconfig.get_path("purelib"), stage)
    include = ("-I", str(cpython), "-I", str(cpython / "Include"))
    compiler = ("nice", "-n", "10", str(made.gcc), *COMPILED.split(), *include)
    say(f"== Compiling {len((stage / 'modules').read_text().split())} modules")
    # Data only: there is nothing to optimise, and much to be compiled.
    call(*compiler, "-O0", *INTERNALS, f"-ffile-prefix-map={stage}=.", "-c", "frozen.c", folder=stage)
    for name in PARTS:
        source = ROOT / "packaging" / "executable" / f"{name}.c"
        call(*compiler, "-DNDEBUG", f"-ffile-prefix-map={source.parent}=.", "-c", source, "-o", stage / f"{name}.o")
    (stage / "texts.c").write_text(texts())
    call(*compiler, "-fno-builtin", "-c", "texts.c", folder=stage)
    say("== Linking")
    libraries = [made.folder / name for name in ("libsqlite3.a", "openssl/libssl.a", "openssl/libcrypto.a")]
    own = [stage / f"{name}.o" for name in (*PARTS, "frozen", "texts")]
    objects = (*own, cpython / "libpython3.11.a", *libraries)
    linked = stage / NAME
    options = (*LINKED.split(), "-Wl,--gc-sections,-s", *WRAPPED, f"-Wl,-Map={stage / 'map'}")
    call(made.gcc, *options, "-o", linked, *objects, "-lm")
    return linked


def load_ahead(linked: Path, stage: Path) -> None:
    """Make it begin with its modules loaded."""
    say("== Loading the modules")
    begin_loaded(linked, stage / "map", SNAPSHOT)


def stamp(linked: Path) -> str:
    """Write the file's build stamp at its end."""
    content = linked.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    linked.write_bytes(content + f"\n# build-stamp: {found}\n".encode())
    return found


def build(target: Path, arch: str) -> None:
    began = time.monotonic()
    made = runtime(arch)
    stage = ROOT / "build" / f"executable-{os.getpid()}"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        linked = compile_all(made, stage)
        if arch == here():
            load_ahead(linked, stage)
        else:
            say(f"== NOT LOADED AHEAD: on {arch} it will load its modules whenever it is started")
        shown = stamp(linked)
        target.mkdir(parents=True, exist_ok=True)
        collect_licences(made, target / "LICENSES")
        (target / "versions").write_text(versions(made))
        shutil.copyfile(stage / "modules", target / "modules")
        publish(None, linked.read_bytes(), target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    size = (target / NAME).stat().st_size / 1e6
    say(f"== Built {target / NAME}: {size:.1f} MB, build stamp {shown[:16]}, in {time.monotonic() - began:.0f} s")
    check(target / NAME, arch)


def versions(made: Runtime) -> str:
    """A line for each thing from elsewhere that is linked or frozen in: its name and its version."""
    pure = [f"{name} {metadata.version(name)}" for name in PURE]
    lines = [*(made.folder / "versions").read_text().splitlines(), *pure, f"libgcc {compiler_version(made)}"]
    return "".join(f"{line}\n" for line in sorted(lines, key=str.lower))


def compiler_version(made: Runtime) -> str:
    return call(made.gcc, "-dumpfullversion").strip()


def collect_licences(made: Runtime, folder: Path) -> None:
    """The terms of all that is in the executable, ours included."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "LICENSE", folder / "tortie")
    for name, place in LICENCES.items():
        shutil.copyfile(made.folder / place, folder / name)
    major = compiler_version(made).partition(".")[0]
    shutil.copyfile(f"/usr/share/doc/gcc-{major}-base/copyright", folder / "libgcc")  # what compiled code calls
    for name in PURE:
        (text,) = [path for path in metadata.files(name) or () if path.name.upper().startswith("LICEN")]
        shutil.copyfile(text.locate(), folder / name)


def check(program: Path, arch: str) -> None:
    """That it answers at all, with nothing around it."""
    emulator = "" if arch == here() else shutil.which(f"qemu-{GNU.get(arch, arch)}-static")
    if emulator is None:
        say(f"== NOT TRIED: there is no emulator of {arch} here (Debian's qemu-user-static)")
        return
    words = [*([emulator] if emulator else []), str(program)]
    environment = {"CNI_COMMAND": "VERSION"}
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode or b'"supportedVersions"' not in done.stdout:
        sys.exit(f"It does not start ({done.returncode}): {done.stderr.decode(errors='replace')}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the self-contained executable.")
    parser.add_argument("target", type=Path)
    parser.add_argument("--arch", choices=sorted({*GNU, here()}), default=here(), help="the machine it is for")
    asked = parser.parse_args()
    os.umask(0o022)
    build(asked.target, asked.arch)


if __name__ == "__main__":
    main()
