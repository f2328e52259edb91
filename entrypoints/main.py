"""Where every executable of the product starts: find out which program this is, and be it."""

from __future__ import annotations

import gc
import os
import sys

from entrypoints import programs
from entrypoints.stdio import open_missing_descriptors, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_NO_MEMORY = b'{"code": 999, "msg": "out of memory"}'


def main() -> int:
    """The exit code. The name under which the process was started decides (`sys.argv[0]`)."""
    try:
        return _main()
    except MemoryError:  # before a call could begin, or in answering it
        os.write(1 if os.environ.get("CNI_COMMAND") else 2, _NO_MEMORY)
        return 1


def _main() -> int:
    open_missing_descriptors()
    choice = programs.choose(sys.argv, os.environ.get("CNI_COMMAND", ""))
    if choice.program in (programs.NETWORK, programs.IPAM):
        gc.disable()  # a call is over before looking for cycles pays: two milliseconds of forty
    if choice.program == programs.NETWORK:
        from entrypoints import calico

        return calico.main(choice.arguments, os.environ)
    if choice.program == programs.IPAM:
        from entrypoints import calico_ipam

        return calico_ipam.main(choice.arguments, os.environ)
    if choice.program == programs.COMMANDS:
        from entrypoints import sub_commands

        return sub_commands.run(choice.arguments, os.environ)
    if choice.program == programs.OPERATOR:
        from entrypoints.tortie.guard import guarded

        return guarded(lambda: _operate(choice.arguments))
    if choice.program == programs.BRIDGE:
        from entrypoints import bridge

        return bridge.main(choice.name, choice.arguments, os.environ)
    say(f"Unknown binary name: {choice.name}\n")
    return 2


def _operate(arguments: Sequence[str]) -> int:
    from entrypoints.tortie.main import main

    return main(arguments)
