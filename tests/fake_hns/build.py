"""Builds the fake of Windows' networking DLLs (the C sources beside this file): for Linux, or for Windows with mingw.

For Linux it is one library that stands for all DLLs, and has CoTaskMemFree as well. For Windows it is
`computenetwork.dll`, compiled against Microsoft's header as mingw has it, and a `vmcompute.dll` that passes its
functions on to that.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MINGW = "x86_64-w64-mingw32-gcc"
FLAGS = ("-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-shared")


def _sources() -> list[str]:
    return [str(path) for path in sorted(HERE.glob("*.c"))]


def for_linux(folder: Path) -> Path:
    made = folder / "libfake_hns.so"
    subprocess.run(["cc", *FLAGS, "-fPIC", "-fvisibility=hidden", "-o", made, *_sources()], check=True)
    return made


def for_windows(folder: Path) -> tuple[Path, Path]:
    service, old = folder / "computenetwork.dll", folder / "vmcompute.dll"
    subprocess.run([MINGW, *FLAGS, "-o", service, *_sources(), "-lole32"], check=True)
    forward = ["-shared", "-nostdlib", "-Wl,-e,0"]
    subprocess.run([MINGW, *forward, "-o", old, HERE / "vmcompute.def"], check=True)
    return service, old


def powershell(folder: Path) -> Path:
    """For Windows: what stands for PowerShell."""
    made = folder / "powershell.exe"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-municode", "-static"]
    subprocess.run([MINGW, *options, "-o", made, HERE / "powershell" / "powershell.c"], check=True)
    return made
