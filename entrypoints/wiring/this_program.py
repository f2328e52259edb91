"""What this process is: its system, its executable, and whether it has libraries beside it and should use them.

Invariant: a transport on a library is never chosen unless it was asked for.
"""

from __future__ import annotations

import sys

from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ON_WINDOWS = "nt" in sys.builtin_module_names
SELF_CONTAINED = "_tortie_syscalls" in sys.builtin_module_names  # the executable of `make dist`, without libraries


def own_path() -> str:
    """Where the executable is that we are; "" where there is none, as in tests."""
    path: str = getattr(sys.modules["__main__"], "__file__", None) or ""
    return path


def wants_library(environment: Mapping[str, str]) -> bool:
    """Whether TORTIE_TRANSPORT asks for the transports on well-known libraries instead of our own lean ones."""
    choice = environment.get("TORTIE_TRANSPORT", "") or "lean"
    if choice not in ("lean", "library"):
        raise BadConfiguration(f'TORTIE_TRANSPORT "{choice}" is unknown; set "lean" or "library"')
    if choice == "library" and SELF_CONTAINED:
        raise BadConfiguration(
            'TORTIE_TRANSPORT "library": this executable has lean transports only; unset it, or use the Python packages'
        )
    return choice == "library"
