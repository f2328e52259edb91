"""For which machines the executable is made, and with which of Debian's compilers: this one's own, or a cross compiler.

Invariant: a machine's build never runs a program that is for that machine; so it needs no emulator.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

GNU = {"amd64": "x86_64", "arm64": "aarch64"}  # Debian's and Docker's names, and the kernel's
OPENSSL = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch64"}


def here() -> str:
    """This machine's architecture as Debian calls it."""
    machine = platform.machine()
    return next((name for name, gnu in GNU.items() if gnu == machine), machine)


class Machine:
    """`arch` is Debian's name; `prefix` begins the names of the compiler and its like, and is "" for this machine's."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.gnu = GNU.get(arch, arch)
        self.crossed = arch != here()
        self.prefix = f"{self.gnu}-linux-gnu-" if self.crossed else ""
        self.gcc = f"{self.prefix}gcc"
        self.ar = f"{self.prefix}ar"
        self.openssl = OPENSSL.get(self.gnu, "linux-generic64")

    @property
    def tools(self) -> dict[str, str]:
        """Program → Debian's package, of those that differ from machine to machine."""
        if not self.crossed:
            return {"gcc": "gcc"}
        return {self.gcc: f"gcc-{self.gnu}-linux-gnu"}

    @property
    def headers(self) -> tuple[Path, str]:
        """The folder of the kernel's headers, and Debian's package of them."""
        if self.crossed:
            return Path(f"/usr/{self.gnu}-linux-gnu/include"), f"linux-libc-dev-{self.arch}-cross"
        return Path("/usr/include"), "linux-libc-dev"

    def kernel_headers(self) -> dict[str, Path]:
        """Name in a C library's include folder → where the kernel's own are, which go with any C library."""
        folder, _ = self.headers
        asm = folder / "asm"
        if not self.crossed:
            said = subprocess.run([self.gcc, "-print-multiarch"], text=True, capture_output=True, check=True)
            own = folder / said.stdout.strip() / "asm"
            asm = own if own.is_dir() else asm
        return {"linux": folder / "linux", "asm-generic": folder / "asm-generic", "asm": asm}

    def compiler_version(self) -> str:
        words = [self.gcc, "-dumpfullversion"]
        return subprocess.run(words, text=True, capture_output=True, check=True).stdout
