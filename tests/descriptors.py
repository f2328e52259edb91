"""Standard descriptors for tests that run a plugin in their own process."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def replaced(descriptor: int, by: int) -> Iterator[None]:
    """One of the process's descriptors is another one for a while; `by` is closed."""
    saved = os.dup(descriptor)
    os.dup2(by, descriptor)
    os.close(by)
    try:
        yield
    finally:
        os.dup2(saved, descriptor)
        os.close(saved)


@contextmanager
def stdin(content: bytes | str) -> Iterator[None]:
    with tempfile.TemporaryFile() as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.seek(0)
        with replaced(0, os.dup(file.fileno())):
            yield


@contextmanager
def signals_restored() -> Iterator[None]:
    """A plugin keeps its signal handlers until its process ends; a test process lives on."""
    saved = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)
