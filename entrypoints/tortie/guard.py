"""What an operator reads when a command ends unforeseen, or with Ctrl-C: one line, which says where it was.

Loading the command counts as part of it, since that takes longest.

Invariant: whatever the command meets, the process ends with an exit code and at most one line about it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows only `signal`, which loads `enum`
import os
import sys

from domain.cni.go_quote import printable
from entrypoints.skel import trace
from entrypoints.stdio import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STOPPED_BY_KEYBOARD = 130  # what a shell reports of a process that the signal killed


def guarded(command: Callable[[], int]) -> int:
    """The exit code of the command. Ctrl-C reaches it where nobody has switched that off."""
    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:  # see packaging/launcher.py.in
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    if sys.stderr is None:  # argparse would write to stdout instead
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process
    try:
        return command()
    except KeyboardInterrupt:
        say("Interrupted.\n")
        return _STOPPED_BY_KEYBOARD
    except MemoryError:
        say("Error: out of memory; give the command more, or ask it for less\n")
    except Exception as error:  # noqa: BLE001 - whatever it is, an operator reads one line
        fault = printable(f"{type(error).__name__}: {error}")
        say(f"Error: this is a fault of tortie itself, please report it: {fault} [{trace(error)}]\n")
    return 1
