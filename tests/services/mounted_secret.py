"""A secret as a kubelet mounts it into a pod: files are links into a folder of their version, which is swapped whole.

    mounted = MountedSecret(tmp_path / "account")
    mounted.put(token="...", namespace="kube-system")
    mounted.put(token="another", namespace="kube-system")       the same way as the kubelet replaces it

Invariant: whoever opens a file gets that of one version or of the next, never half of it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_DATA, _NEW = "..data", "..data_tmp"


class MountedSecret:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._version = 0

    def put(self, **files: str | bytes) -> None:
        """`ca_crt` is the file `ca.crt`."""
        self._version += 1
        version = self.folder / f"..2026_11_29_{self._version:06d}"
        version.mkdir()
        for name, content in files.items():
            octets = content.encode() if isinstance(content, str) else content
            (version / name.replace("_", ".")).write_bytes(octets)
        data = self.folder / _DATA
        before = os.readlink(data) if data.is_symlink() else ""
        (self.folder / _NEW).symlink_to(version.name)
        (self.folder / _NEW).rename(data)
        for name in files:
            path = self.folder / name.replace("_", ".")
            if not path.is_symlink():
                path.symlink_to(f"{_DATA}/{path.name}")
        if before:
            shutil.rmtree(self.folder / before)
