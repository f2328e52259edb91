"""What an operator reads when a command ends in a way that nobody foresaw, or with Ctrl-C: one line, never a trace.

The line says where it was, so that it can be reported. The loading of the command is inside, since that takes longest.

Invariant: whatever the command meets, the process ends with an exit code and at most one line about it.
"""

from __future__ import annotations

from domain.cni.go_quote import printable
from entrypoints.standard_streams import say
from entrypoints.stdio import trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STOPPED_BY_KEYBOARD = 130  # what a shell reports of a process that the signal killed


def guarded(command: Callable[[], int]) -> int:
    """The exit code of the command."""
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
