"""Running one other program on Windows: text in, text out, never longer than its deadline.

Invariant: when `run` is left the program has ended.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from domain.value import Value
from ports.errors import Expired

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.clock import Clock, Deadline

_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # a service has no desktop to show one on


class Ended(Value):
    """`status` is the exit code."""

    status: int
    stdout: bytes
    stderr: bytes


class WindowsCommand(Value):
    """`arguments` begin with the program itself. `environment` None is our own. `waited_for` names it in `Expired`."""

    arguments: tuple[str, ...]
    waited_for: str
    environment: Mapping[str, str] | None = None
    stdin: bytes = b""


def run(command: WindowsCommand, deadline: Deadline, clock: Clock) -> Ended:
    """OSError if it cannot be started; `ports.errors.Expired` past the deadline, which ends it."""
    left = deadline.left(clock.monotonic())
    if left <= 0:
        raise Expired(command.waited_for)
    environment = None if command.environment is None else dict(command.environment)
    try:
        done = subprocess.run(  # noqa: S603 - what is run, the caller has been asked for
            list(command.arguments),
            input=command.stdin,
            capture_output=True,
            env=environment,
            timeout=left,
            check=False,
            creationflags=_NO_WINDOW,
        )
    except subprocess.TimeoutExpired:
        raise Expired(command.waited_for) from None
    return Ended(done.returncode, done.stdout, done.stderr)
