"""`tortie ipam configure`: the settings of allocation, both spellings of each.

Invariant: a setting that is not given stays what it is.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.value import Value
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.ipam.arguments import add_copies
from entrypoints.tortie.ipam.copies import Copies
from usecases.configure_ipam import configure_ipam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from entrypoints.tortie.session import Session

_SWITCH = {"true": True, "false": False, "enabled": True, "disabled": False}
_PERSISTENCE = {"enabled": "Enabled", "disabled": "Disabled"}


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return _SWITCH[text.lower()]


def _persistence(text: str) -> str:
    if text.lower() not in _PERSISTENCE:
        raise ArgumentTypeError(f"{text!r} is neither Enabled nor Disabled")
    return _PERSISTENCE[text.lower()]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


class Setting(Value):
    """`field` is what the use case calls it, `name` what Calico does."""

    field: str
    name: str
    options: tuple[str, ...]
    metavar: str
    type: Callable[[str], bool | int | str]
    summary: str


_SETTINGS = (
    Setting(
        "strict_affinity",
        "StrictAffinity",
        ("--strictaffinity", "--strict-affinity"),
        "true|false",
        _switch,
        "nodes use their own blocks only",
    ),
    Setting(
        "auto_allocate_blocks",
        "AutoAllocateBlocks",
        ("--auto-allocate-blocks", "--autoallocateblocks"),
        "true|false",
        _switch,
        "nodes claim blocks by themselves",
    ),
    Setting(
        "max_blocks_per_host",
        "MaxBlocksPerHost",
        ("--max-blocks-per-host", "--maxblocksperhost"),
        "N",
        _whole,
        "0: no limit of one's own",
    ),
    Setting(
        "kubevirt_persistence",
        "KubeVirtVMAddressPersistence",
        ("--kubevirt-persistence", "--kubevirt-vm-address-persistence", "--kubevirtvmaddresspersistence"),
        "Enabled|Disabled",
        _persistence,
        "virtual machines keep their addresses",
    ),
    Setting(
        "cooldown_seconds",
        "IPCooldownSeconds",
        ("--cooldown", "--ip-cooldown-seconds", "--ipcooldownseconds"),
        "SECONDS",
        _whole,
        "how long a released address rests, 0 to 1200",
    ),
)


def _add_arguments(parser: ArgumentParser) -> None:
    add_copies(parser)
    for setting in _SETTINGS:
        parser.add_argument(
            *setting.options,
            dest=setting.field,
            metavar=setting.metavar,
            type=setting.type,
            help=setting.summary,
        )


def _given(options: Namespace) -> dict[str, bool | int | str]:
    given = {setting.field: getattr(options, setting.field) for setting in _SETTINGS}
    return {field: value for field, value in given.items() if value is not None}


def _objection(options: Namespace) -> str:
    return "" if _given(options) else "give at least one setting"


def _run(options: Namespace, session: Session) -> Answer:
    """Says of each setting given what it is now."""
    changes = _given(options)
    copies = Copies(options.copies)
    config = configure_ipam(session.work(), changes, copies.keep)
    lines = [
        f"Successfully set {setting.name} to: {_shown(getattr(config, setting.field))}"
        for setting in _SETTINGS
        if setting.field in changes
    ]
    return Answer(people(lines), notes=copies.notes)


def _shown(value: bool | int | str | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


COMMAND = Command(
    "configure",
    "Change the settings of allocation.",
    _run,
    _add_arguments,
    _objection,
    examples="""\
tortie ipam configure --strictaffinity=true --max-blocks-per-host=4
tortie ipam configure --cooldown 300""",
)
