"""How far one call wanders: the files that it enters, in their order. Run as a program, it prints those of an IPAM ADD.

A file is *entered* when one of its functions begins; what a module does while it is imported does not count, nor does
the making of classes. The ADD is the first of a container on a node that has a block, over the embedded datastore, as a
runtime asks for it: through `entrypoints.main`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from descriptors import replaced, signals_restored, stdin  # noqa: E402 - only now can it be found
from house.reach import PACKAGES  # noqa: E402 - likewise

_FOLDERS = tuple(f"{ROOT}/{package}/" for package in PACKAGES)


def visits(action: Callable[[], object]) -> list[str]:
    """Files as they are entered; one that calls within itself is not entered anew."""
    seen: list[str] = []

    def enter(frame, event: str, _argument: object) -> None:
        code = frame.f_code
        of_a_class = not code.co_flags & 0x2  # neither modules nor class bodies have fast locals (CO_NEWLOCALS)
        if event == "call" and code.co_filename.startswith(_FOLDERS) and not of_a_class:
            seen.append(code.co_filename[len(str(ROOT)) + 1 :])

    sys.setprofile(enter)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen[:1] + [after for before, after in pairwise(seen) if before != after]


def _run(name: str, words: list[str], environment: dict[str, str], request: str = "") -> None:
    from entrypoints.main import main

    sys.argv = [name, *words]
    os.environ.clear()
    os.environ.update(environment)
    with stdin(request), signals_restored(), replaced(1, os.open(os.devnull, os.O_WRONLY)):
        code = main()
    assert code == 0, f"{name} ended with {code}"


def ipam_add(folder: Path) -> list[str]:
    conf = {
        "cniVersion": "1.0.0",
        "name": "net",
        "type": "calico",
        "ipam": {"type": "calico-ipam"},
        "datastore_type": "sqlite",
        "sqlite_path": f"{folder}/db",
        "nodename": "n1",
        "ipam_lock_file": f"{folder}/lock",
        "log_file_path": f"{folder}/log",
    }
    asked = {"CNI_COMMAND": "ADD", "CNI_NETNS": "/var/run/netns/c", "CNI_IFNAME": "eth0", "CNI_PATH": "/x"}

    def add(container: str) -> None:
        _run("calico-ipam", [], {**asked, "CNI_CONTAINERID": container}, json.dumps(conf))

    _run("tortie", ["--datastore-path", f"{folder}/db", "init", "--node", "n1", "--pool", "10.244.0.0/16"], {})
    add("c1")
    return visits(lambda: add("c2"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for file, times in sorted(Counter(ipam_add(Path(folder))).items(), key=lambda item: -item[1]):
            print(times, file)
