"""Which program a process is: decided by the name it was started under, CNI_COMMAND and the first argument.

One executable is installed under several names, so a runtime that asks for `calico-ipam` and an operator who types
`calico version` start the same file. Here it is only decided, from these three alone.
"""

from __future__ import annotations

from domain.value import Value

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
    "calico-ipam.exe": IPAM,
    "calicoctl": COMMANDS,
    "uds": COMMANDS,
    "tortie": OPERATOR,
    "my-custom-cni": BRIDGE,
    "bridge": BRIDGE,
}
_INSERTED = {"calicoctl": ("ctl",), "uds": ("component", "flexvol")}


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
    if name in ("calico", "calico.exe"):
        return Choice(_calico(arguments, cni_command), name, arguments)
    return Choice(_PROGRAMS.get(name, UNKNOWN), name, (*_INSERTED.get(name, ()), *arguments))


def _calico(arguments: tuple[str, ...], cni_command: str) -> str:
    first = arguments[0] if arguments else ""
    if cni_command:
        return COMMANDS if first in _SUB_COMMANDS else NETWORK
    return NETWORK if first.startswith("-") else COMMANDS
