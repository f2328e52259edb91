"""Standard input, output and error, none of which a plugin may trust: closed, endless, full, or read by nobody.

A write to a pipe that is full, and whose reader stands still, would stop a call for ever, its undoing and its deadline
with it. So reading and writing wait for a limited time only. A pipe that takes anything takes `_PIECE` bytes at once,
so a piece that was waited for never blocks.

Invariant: everything here ends; what of a log line or an answer could not be written is given up.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, POLLOUT, poll

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
    """For how many seconds more somebody at the other end is waited for."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, descriptor: int, what: int) -> bool:
        """Whether that can be done with the descriptor without blocking, be it that it fails. OSError."""
        waiting = poll()
        waiting.register(descriptor, what)
        if waiting.poll(0):
            return True
        began = time.monotonic()
        ready = waiting.poll(max(self.left, 0.0) * 1000)
        self.left -= time.monotonic() - began
        return bool(ready)


def read_stdin(seconds: float) -> tuple[str, float]:
    """All of stdin, and for how many of those seconds it was waited for.

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
