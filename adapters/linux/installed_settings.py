"""The configuration files in the folder from which container runtimes read networks.

Invariant: only regular files of a bounded size are read, and what cannot be read is left out.
"""

from __future__ import annotations

import os

from ports.errors import PortError
from ports.former import Installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.node import ThisNode

DEFAULT_FOLDER = "/etc/cni/net.d"
KUBECONFIG = "calico-kubeconfig"
_SUFFIXES = (".conf", ".conflist", ".json")
_MOST_FILES = 100


def installed_settings(folder: str, node: ThisNode) -> Installed:
    try:
        names = sorted([name for name in os.listdir(folder) if name.endswith(_SUFFIXES)])
    except OSError:
        names = []
    found = []
    for name in names[:_MOST_FILES]:
        path = os.path.join(folder, name)
        try:
            found.append((path, node.read(path)))
        except PortError:
            continue
    kubeconfig = os.path.join(folder, KUBECONFIG)
    return Installed(folder, tuple(found), kubeconfig if node.exists(kubeconfig) else "")
