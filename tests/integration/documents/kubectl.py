#!/usr/bin/env python3
"""A cluster for documents, and as much of `kubectl` as they use on it: `apply -f FILE`, `-` being standard input.

    kubectl.py serve KUBECONFIG        a real API server with a node `node-1`; ends with the sandbox
    kubectl.py apply -f FILE           as the administrator whom $ADMIN names

The real one is a build of several minutes, for what one request does.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import yaml

from services.apiserver import ApiServer
from services.kubernetes_server import from_kubeconfig
from services.manifests import applied


def serve(kubeconfig: Path) -> None:
    with ApiServer(controller_manager=True) as server:
        server.client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
        server.kubeconfig(kubeconfig.with_suffix(".new"))
        kubeconfig.with_suffix(".new").rename(kubeconfig)
        signal.pause()


def apply(path: str) -> None:
    text = sys.stdin.read() if path == "-" else Path(path).read_text()
    documents = [one for one in yaml.safe_load_all(text) if one]
    for one in applied(from_kubeconfig(Path(os.environ["ADMIN"])).client, documents):
        print(f"{one['kind'].lower()}/{one['metadata']['name']} serverside-applied")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
    elif sys.argv[1:3] == ["apply", "-f"]:
        apply(sys.argv[3])
    else:
        sys.exit(f"no document has used this before: kubectl {' '.join(sys.argv[1:])}")
