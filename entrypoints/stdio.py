"""Standard input, output and error: each may be closed, endless, full, or read by nobody.

A full pipe whose reader stands still would stop a call for ever, and with it its undoing and its deadline. So reading
and writing wait for a limited time only. A pipe that takes anything takes `_PIECE` bytes at once, so writing a piece
returns at once after such a wait.

Invariant: everything here ends; what of a log line or an answer could not be written is given up.
"""

from __future__ import annotations

import os
import time

try:
    from select import POLLIN, POLLOUT, poll
except ImportError:  # on Windows, where `select` knows sockets alone
    from adapters.windows.pipes import POLLIN, POLLOUT, poll  # type: ignore[assignment]  # what it stands for

from domain.cni.errors import DECODING_FAILURE, IO_FAILURE, TRY_AGAIN_LATER, CniError

MOST_STDIN = 8 << 20
_PATIENCE = 10.0  # seconds for whoever reads an answer
_PIECE = 4096  # PIPE_BUF


def open_missing_descriptors() -> None:
    """Fill descriptors 0 to 2 where the parent left them closed, before any file of ours lands there.

    Stdout is filled with something that cannot be written to: nobody would get the answer, so the call must fail.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)  # the lowest free one: this one


class Patience:
    """The seconds that are left for waiting for whoever is at the other end."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, descriptor: int, what: int) -> bool:
        """Whether `what` (POLLIN, POLLOUT) returns at once on the descriptor, in success or in failure. OSError."""
        waiting = poll()
        waiting.register(descriptor, what)
        if waiting.poll(0):
            return True
        began = time.monotonic()
        ready = waiting.poll(max(self.left, 0.0) * 1000)
        self.left -= time.monotonic() - began
        return bool(ready)


def read_stdin(seconds: float) -> tuple[str, float]:
    """All of stdin, and how many of the seconds went by in waiting for it.

    Bytes that are not UTF-8 are replaced, as Go's decoder does. CniError 5 and 6; 11 if it does not end in time.
    """
    pieces: list[bytes] = []
    size, patience = 0, Patience(seconds)
    while True:
        try:
            piece = os.read(0, 1 << 18) if patience.wait(0, POLLIN) else None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CniError(IO_FAILURE, f"error reading from stdin: read /dev/stdin: {why}") from None
        if piece is None:
            raise CniError(TRY_AGAIN_LATER, "deadline exceeded while waiting for the end of standard input")
        if not piece:
            return b"".join(pieces).decode("utf-8", "replace"), seconds - patience.left
        pieces.append(piece)
        size += len(piece)
        if size > MOST_STDIN:
            why = f"network config is larger than {MOST_STDIN} bytes"
            raise CniError(DECODING_FAILURE, f"error unmarshall network config: {why}")


def send(text: str) -> bool:
    """Write all of it to stdout; False when that was not possible."""
    return write(1, text.encode("utf-8", "replace"), Patience(_PATIENCE))


def say(text: str) -> None:
    """Write to stderr; it does not matter whether anybody hears."""
    write(2, text.encode("utf-8", "replace"), Patience(_PATIENCE))


def write(descriptor: int, left: bytes, patience: Patience) -> bool:
    """Whether all of it was written; nothing raises but a termination signal."""
    try:
        while left:
            if not patience.wait(descriptor, POLLOUT):
                return False
            left = left[os.write(descriptor, left[:_PIECE]) :]
    except OSError:
        return False
    return True
