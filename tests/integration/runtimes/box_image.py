"""The image that pods are made of: busybox and nothing else, as an archive that every runtime loads.

`COMMAND` says the pod's name on port 80 and ends at once when told to. No registry is asked.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

NAME = "tortie.test/box:1"
# PID 1 has no default actions for signals, so a shell is there to take them. Without a command it only waits, so that
# the image is also the one that keeps a sandbox.
WAIT = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
SERVE = "cd /www; hostname >index.html; httpd -p '[::]:80'; " + WAIT
COMMAND = ["/bin/sh", "-c", SERVE]


def write_image(path: Path) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        raise RuntimeError("no busybox (Debian: busybox-static)")
    names = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in names if name != "busybox"}
    write_archive(path, NAME, {"bin/busybox": Path(busybox)}, links, ["/bin/sh", "-c", WAIT])


def write_archive(
    path: Path, name: str, files: dict[str, Path], links: dict[str, str], command: list[str] | None = None
) -> None:
    """An image of one layer: executables, symbolic links, and empty folders to mount on."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder in ("bin", "etc", "tmp", "www", "proc", "sys", "dev", "usr", "usr/bin", "host"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for where, source in files.items():
            _add(archive, where, source.read_bytes(), 0o755)
        for where, target in links.items():
            link = tarfile.TarInfo(where)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        _add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    content = layer.getvalue()
    settings = {"Env": ["PATH=/bin:/usr/bin"]} | ({"Cmd": command} if command else {})
    diff = f"sha256:{hashlib.sha256(content).hexdigest()}"
    rootfs = {"type": "layers", "diff_ids": [diff]}
    config = json.dumps({"architecture": _architecture(), "os": "linux", "config": settings, "rootfs": rootfs}).encode()
    named = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": named, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as image:
        _add(image, named, config)
        _add(image, "layer.tar", content)
        _add(image, "manifest.json", json.dumps(manifest).encode())


def _architecture() -> str:
    machine = subprocess.run(["uname", "-m"], check=True, capture_output=True, text=True).stdout.strip()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))
