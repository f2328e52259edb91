#!/usr/bin/env python3
"""Builds the product for Windows on x86-64: one file that is calico.exe and calico-ipam.exe.

    windows.py TARGET
        TARGET/calico.exe and the same file under the other name; beside it `versions` of what is in it

The interpreter is CPython as Maven Central ships it, whole and unchanged; its library and our modules are compiled with
it, under Wine. launcher.c starts it and says how the file is laid out.

Invariant: equal sources and parts give an equal file. Its last line is its build stamp, as a bundle's.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

from wine import CACHE, Wine, windows_path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging"))  # run by its path, a script finds what is beside it only

from bundle import copy_own_code, say  # noqa: E402 - not before it can be found

PYTHON = "3.13.5"
JAR = f"org.bytedeco:cpython:{PYTHON}-1.5.12:jar:windows-x86_64"
JAR_SHA256 = "cfe5502ffa7ea369be707b6d88bf68344732a7800450665080fb4267c01bfeae"
WITHIN = "org/bytedeco/cpython/windows-x86_64/"
NAMES = ("calico.exe", "calico-ipam.exe")
COMPILER = (
    "x86_64-w64-mingw32-gcc",
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-municode",
    "-static",
    "-s",
    "-Wl,--no-insert-timestamp",
)

# What the interpreter loads from files; everything else of it is within python313.dll.
BINARIES = (
    "python313.dll",
    *(f"lib/{name}.pyd" for name in ("_ctypes", "_hashlib", "_socket", "_sqlite3", "_ssl", "select", "unicodedata")),
    *(f"lib/{name}.dll" for name in ("libcrypto-3", "libffi-8", "libssl-3", "sqlite3")),
    *(f"lib/{name}.dll" for name in ("vcruntime140", "vcruntime140_1")),
)
# Folders of the standard library: not even fetched, and not in the executable, since nothing of ours loads them.
NOT_FETCHED = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "pip", "pip-25.1.1.dist-info")
LEFT_OUT = (*NOT_FETCHED, "venv", "_pyrepl", "pydoc_data", "curses", "wsgiref", "xmlrpc", "unittest", "multiprocessing")
PTH = "python313.zip\napp.zip\n.\n"
COMPILE = """\
import compileall, py_compile, sys
tree, mode = sys.argv[1], py_compile.PycInvalidationMode.UNCHECKED_HASH
sys.exit(not compileall.compile_dir(tree, quiet=2, force=True, legacy=True, stripdir=tree, invalidation_mode=mode))
"""
SAME_TIME = (1980, 1, 1, 0, 0, 0)


def interpreter() -> Path:
    """The folder with CPython for Windows, fetched once."""
    kept = CACHE / f"cpython-{PYTHON}"
    if kept.is_dir():
        return kept
    fresh = CACHE / f"cpython.{os.getpid()}"
    say(f"== Fetching CPython {PYTHON} for Windows from Maven Central")
    command = ["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"]
    subprocess.run([*command, f"-Dartifact={JAR}", f"-DoutputDirectory={fresh}"], cwd=CACHE, check=True)
    [jar] = fresh.glob("*.jar")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != JAR_SHA256:
        sys.exit(f"{jar} is not the file that it was: its hash is another one")
    with zipfile.ZipFile(jar) as archive:
        for item in archive.infolist():
            name = item.filename.removeprefix(WITHIN)
            wanted = name in ("python.exe", "python313.dll") or name.startswith("lib/")
            if wanted and not item.is_dir() and name.split("/")[1:2] not in [[one] for one in NOT_FETCHED]:
                target = fresh / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(item))
    jar.unlink()
    fresh.rename(kept)
    return kept


def zipped(tree: Path, target: Path) -> None:
    """The compiled modules of a tree, not compressed: that would cost every start."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(tree.rglob("*.pyc")):
            name = path.relative_to(tree).as_posix()
            archive.writestr(zipfile.ZipInfo(name, SAME_TIME), path.read_bytes())


def compile_tree(tree: Path, python: Path, wine: Wine) -> None:
    done = wine.run(python / "python.exe", "-I", "-S", "-c", COMPILE, windows_path(tree))
    if done.returncode:
        sys.exit(f"Some file under {tree} does not compile: {done.stdout.decode()} {done.stderr.decode()}")


def library(python: Path, wine: Wine) -> Path:
    """The standard library, compiled once."""
    kept = CACHE / f"library-{PYTHON}.zip"
    if not kept.exists():
        say("== Compiling the standard library")
        tree = CACHE / f"library.{os.getpid()}"
        shutil.copytree(python / "lib", tree, ignore=shutil.ignore_patterns("*.pyd", "*.dll", *LEFT_OUT))
        compile_tree(tree, python, wine)
        zipped(tree, tree.with_suffix(".zip"))
        tree.with_suffix(".zip").rename(kept)
        shutil.rmtree(tree)
    return kept


def own_code(work: Path, python: Path, wine: Wine) -> Path:
    tree = work / "app"
    copy_own_code(tree)
    compile_tree(tree, python, wine)
    zipped(tree, work / "app.zip")
    return work / "app.zip"


def packed(launcher: bytes, entries: dict[str, bytes]) -> bytes:
    """As launcher.c reads it."""
    behind = b"".join(
        struct.pack("<I", len(name.encode())) + name.encode() + struct.pack("<Q", len(content)) + content
        for name, content in sorted(entries.items())
    )
    stamp = hashlib.sha256(launcher + behind).hexdigest()
    closing = struct.pack("<QI", len(launcher), len(entries)) + stamp[:16].encode() + b"TORTIE01"
    return launcher + behind + closing + f"\n# build-stamp: {stamp}\n".encode()


def build(target: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    python = interpreter()
    work = ROOT / "build" / "windows"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    launcher = work / "launcher.exe"
    subprocess.run([*COMPILER, "-o", launcher, Path(__file__).with_name("launcher.c")], check=True)
    entries = {name.rpartition("/")[2]: (python / name).read_bytes() for name in BINARIES}
    entries["python313._pth"] = PTH.encode()
    with Wine() as wine:
        entries["python313.zip"] = library(python, wine).read_bytes()
        entries["app.zip"] = own_code(work, python, wine).read_bytes()
        tried = work / NAMES[0]
        tried.write_bytes(packed(launcher.read_bytes(), entries))
        done = wine.run(tried, "-v")
    if done.returncode:
        sys.exit(f"{tried} does not run under Wine: {done.stdout.decode()} {done.stderr.decode()}")
    place(tried, target)
    size = tried.stat().st_size / (1 << 20)
    say(f"{target}: {', '.join(NAMES)}, one file of {size:.0f} MB; under Wine it is {done.stdout.decode().strip()}")


def place(made: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (target / name).unlink(missing_ok=True)
        os.link(made, target / name)
    (target / "versions").write_text(f"CPython {PYTHON} ({JAR})\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build calico.exe.")
    parser.add_argument("target", type=Path)
    build(parser.parse_args().target)


if __name__ == "__main__":
    main()
