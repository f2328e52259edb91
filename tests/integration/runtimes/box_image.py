"""The one image that pods are made of: busybox and nothing else, as an archive that every runtime loads.

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
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder in ("bin", "etc", "tmp", "www", "proc", "sys", "dev"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        archive.add(busybox, "bin/busybox")
        for name in subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split():
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(link)
        _add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    content = layer.getvalue()
    diff = f"sha256:{hashlib.sha256(content).hexdigest()}"
    config = json.dumps(
        {
            "architecture": _architecture(),
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh", "-c", WAIT]},
            "rootfs": {"type": "layers", "diff_ids": [diff]},
        }
    ).encode()
    named = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": named, "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as image:
        _add(image, named, config)
        _add(image, "layer.tar", content)
        _add(image, "manifest.json", json.dumps(manifest).encode())


def _architecture() -> str:
    machine = subprocess.run(["uname", "-m"], check=True, capture_output=True, text=True).stdout.strip()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    archive.addfile(member, io.BytesIO(content))
