"""Watches pods: how long each took from its creation until it was ready, and whether two ever had the same address.

Invariant: what is seen is every change of a pod, in order; times are of this machine's clock when it was told.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from typing import Any, Self

from services.kube_client import KubeClient, Object, Refused


class Starts(threading.Thread):
    """`with Starts(client) as starts:`. `doubled` has a line for each address that two pods had at once."""

    def __init__(self, client: KubeClient, seconds: float = 0.1) -> None:
        super().__init__(daemon=True)
        self._client, self._pause = client, seconds
        self._ended = threading.Event()
        self._created: dict[str, float] = {}
        self._ready: dict[str, float] = {}
        self.doubled: list[str] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        self.join(60)

    def run(self) -> None:
        while not self._ended.wait(self._pause):
            with suppress(OSError, Refused, json.JSONDecodeError):
                self._see(self._client.list("/api/v1/namespaces/default/pods"))

    def _see(self, pods: list[Object]) -> None:
        holders: dict[str, str] = {}
        for pod in pods:
            uid, now = pod["metadata"]["uid"], time.monotonic()
            self._created.setdefault(uid, now)
            if any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", [])):
                self._ready.setdefault(uid, now)
            for address in self._held(pod):
                other = holders.setdefault(address, uid)
                if other != uid:
                    self.doubled.append(f"{address}: {pod['metadata']['name']} and the pod with uid {other}")

    def _held(self, pod: Object) -> list[str]:
        """Those of a pod that runs. One that ends says its addresses until it is gone, though they are free."""
        ends = "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") != "Running"
        named: list[dict[str, Any]] = [] if ends else pod["status"].get("podIPs", [])
        return [one["ip"] for one in named]

    def seconds(self) -> list[float]:
        return sorted(self._ready[uid] - self._created[uid] for uid in self._ready)
