#!/usr/bin/env python3
"""Writes what a release hands out, from the executables that `make dist` has made.

    release.py DIST TARGET ARCH...    DIST/linux-ARCH becomes TARGET/tortie-VERSION-linux-ARCH.tar.gz, beside it the
                                      bill of materials .cdx.json, and SHA256SUMS of all of them

In a tarball are the executable under its names, the terms of all that is inside, the manifests, what operators read,
and the bill.

Invariant: equal executables and an equal commit give equal octets, on whatever machine and at whatever time. SHA256SUMS
is written last and names exactly what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from layout import ROOT, Entry, commit_time, programs, tarball, texts
from sbom import bill

sys.path.append(str(ROOT))  # run by its path, a script finds what is beside it only

from entrypoints.version import VERSION

SUMS = "SHA256SUMS"
READ = (  # of docs/
    *("annotations", "commands", "configuration", "from-calico", "install", "kept-addresses", "metrics", "operating"),
    *("troubleshooting", "upgrade"),
)


def contents(made: Path, arch: str, when: int) -> tuple[list[Entry], str]:
    """What is in the tarball, and the bill by itself."""
    program = (made / "calico").read_bytes()
    materials = bill(VERSION, arch, program, (made / "versions").read_text(), when)
    return [
        *programs(made),
        *texts(made / "LICENSES", "LICENSES/"),
        *texts(ROOT / "manifests", "manifests/"),
        *texts(ROOT / "manifests" / "monitoring", "manifests/monitoring/"),
        *texts(ROOT, "", "LICENSE"),
        *shared(),
        *[Entry(f"docs/{name}.md", (ROOT / "docs" / f"{name}.md").read_bytes()) for name in READ],
        Entry("sbom.cdx.json", materials.encode()),
        Entry("versions", (made / "versions").read_bytes()),
    ], materials


def shared() -> list[Entry]:
    """The manual page, and what shells complete by: made from the parser, which needs the product's own packages."""
    with TemporaryDirectory() as folder:
        words = [str(ROOT / ".venv" / "bin" / "python"), str(ROOT / "packaging" / "manual.py"), folder]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        made = [path for path in Path(folder).rglob("*") if path.is_file()]
        return [Entry(f"share/{path.relative_to(folder)}", path.read_bytes()) for path in made]


def release(dist: Path, target: Path, arches: list[str]) -> None:
    when = commit_time()
    fresh = target.with_name(f"{target.name}.new-{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        for arch in sorted(arches):
            made = dist / f"linux-{arch}"
            if not (made / "calico").is_file():
                sys.exit(f"There is no executable for {arch} in {made}; run `make dist ARCH={arch}`")
            top = f"tortie-{VERSION}-linux-{arch}"
            entries, materials = contents(made, arch, when)
            (fresh / f"{top}.tar.gz").write_bytes(tarball(entries, top, when))
            (fresh / f"{top}.cdx.json").write_text(materials)
        files = sorted(fresh.iterdir())
        sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
        (fresh / SUMS).write_text("".join(sums))
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for path in (*files, fresh / SUMS):
        print(f"== {target / path.name}: {(target / path.name).stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write what a release hands out.")
    parser.add_argument("dist", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("arch", nargs="+")
    asked = parser.parse_args()
    os.umask(0o022)
    release(asked.dist, asked.target, asked.arch)


if __name__ == "__main__":
    main()
