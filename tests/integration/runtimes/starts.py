"""Watches the pods of a cluster while something else goes on: what is seen is told by `sightings`.

Invariant: what is seen is the list of pods, about ten times a second while the API server answers; times are of this
machine's clock when it did.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from typing import Self

from integration.runtimes.sightings import Sightings
from services.kube_client import KubeClient, Refused


class Starts(threading.Thread):
    """`with Starts(client) as starts:`, and `starts.sightings` afterwards."""

    def __init__(self, client: KubeClient, seconds: float = 0.1) -> None:
        super().__init__(daemon=True)
        self._client, self._pause = client, seconds
        self._ended = threading.Event()
        self.sightings = Sightings()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        self.join(60)

    def run(self) -> None:
        while not self._ended.wait(self._pause):
            with suppress(OSError, Refused, json.JSONDecodeError):
                self.sightings.see(self._client.list("/api/v1/namespaces/default/pods"), time.monotonic())
