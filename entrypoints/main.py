"""Where every executable of the product starts: find out which program this is, and be it.

One executable is installed under several names, so a runtime that asks for `calico-ipam` and an operator who types
`calico version` start the same file.

Invariant: the name that the process was started under, CNI_COMMAND and the first argument decide, and nothing else.
"""

from __future__ import annotations

import gc
import os
import sys

from domain.value import Value
from entrypoints.stdio import open_missing_descriptors, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NETWORK = "network plugin"
IPAM = "IPAM plugin"
BRIDGE = "bridge plugin"
COMMANDS = "sub-commands"
OPERATOR = "operator command"
UNKNOWN = "unknown"

_SUB_COMMANDS = ("component", "ctl", "health", "version", "help")  # even when CNI_COMMAND is set
_PROGRAMS = {
    "calico-ipam": IPAM,
    "calicoctl": COMMANDS,
    "uds": COMMANDS,
    "tortie": OPERATOR,
    "my-custom-cni": BRIDGE,
    "bridge": BRIDGE,
}
_INSERTED = {"calicoctl": ("ctl",), "uds": ("component", "flexvol")}
_SELDOM = (50_000, 20, 20)
_NO_MEMORY = b'{"code": 999, "msg": "out of memory"}'


class Choice(Value):
    """`arguments` are what the program gets after its own name; `name` is that name, for texts."""

    program: str
    name: str
    arguments: tuple[str, ...]


def choose(argv: Sequence[str], cni_command: str) -> Choice:
    """`argv` as the process got it, the path of the executable first."""
    path = argv[0] if argv else ""
    name = path.replace("\\", "/").rpartition("/")[2]
    arguments = tuple(argv[1:])
    program = name.lower().removesuffix(".exe") if name.lower().endswith(".exe") else name
    if program == "calico":
        return Choice(_calico(arguments, cni_command), name, arguments)
    return Choice(_PROGRAMS.get(program, UNKNOWN), name, (*_INSERTED.get(program, ()), *arguments))


def _calico(arguments: tuple[str, ...], cni_command: str) -> str:
    first = arguments[0] if arguments else ""
    if cni_command:
        return COMMANDS if first in _SUB_COMMANDS else NETWORK
    return NETWORK if first.startswith("-") else COMMANDS


def main() -> int:
    """The exit code. The name under which the process was started decides (`sys.argv[0]`)."""
    try:
        return _main()
    except MemoryError:  # before a call could begin, or in answering it
        os.write(1 if os.environ.get("CNI_COMMAND") else 2, _NO_MEMORY)
        return 1


def _main() -> int:
    open_missing_descriptors()
    choice = choose(sys.argv, os.environ.get("CNI_COMMAND", ""))
    if choice.program in (NETWORK, IPAM):
        gc.disable()  # a call is over before looking for cycles pays: two milliseconds of forty
    if choice.program == NETWORK:
        from entrypoints import calico

        return calico.main(choice.arguments, os.environ)
    if choice.program == IPAM:
        from entrypoints import calico_ipam

        return calico_ipam.main(choice.arguments, os.environ)
    if choice.program == COMMANDS:
        from entrypoints import sub_commands

        return sub_commands.run(choice.arguments, os.environ)
    if choice.program == OPERATOR:
        gc.set_threshold(*_SELDOM)  # what a large cluster's records are read into is not garbage
        from entrypoints.tortie.guard import guarded

        return guarded(lambda: _operate(choice.arguments))
    if choice.program == BRIDGE:
        from entrypoints import bridge

        return bridge.main(choice.name, choice.arguments, os.environ)
    from domain.cni.go_quote import printable

    say(f"Unknown binary name: {printable(choice.name)}\n")
    return 2


def _operate(arguments: Sequence[str]) -> int:
    from entrypoints.tortie.main import main

    return main(arguments)
