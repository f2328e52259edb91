"""The command line of `tortie ipam`, in calicoctl's words where it has them; both spellings of a word are taken.

    tortie ipam show [--blocks] [--ip A] [--node N]      tortie ipam check [-o json | -o FILE]
    tortie ipam gc [--leaked] [--yes]                    tortie ipam release --ip A | --handle H | --from-report FILE
    tortie ipam configure --strictaffinity=true

Invariant: what is said here about a command is what it does; a combination that means nothing is refused.
"""

from __future__ import annotations

import argparse

from domain.ipam.address import Address
from entrypoints.tortie.ipam.check import check, gc
from entrypoints.tortie.ipam.release import configure, release
from entrypoints.tortie.ipam.show import show
from usecases.collect_ipam import Sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

_SWITCH = {"true": True, "false": False, "enabled": True, "disabled": False}
_PERSISTENCE = {"enabled": "Enabled", "disabled": "Disabled"}


def add_ipam(parser: ArgumentParser, shared: ArgumentParser) -> None:
    """The commands below `tortie ipam`; `shared` has the options of every command."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(
        name: str, summary: str, run: Callable[[Namespace, Any], Any], *, output: str = "json"
    ) -> ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary, parents=[shared], allow_abbrev=False)
        made.set_defaults(command=run)
        if output == "json":
            made.add_argument("-o", "--output", choices=("json",), help="for programs")
        return made

    _add_show(command("show", "Show how full IP pools and blocks are, and who has an address.", show))
    _add_check(command("check", "Find inconsistencies and leaks. Exit code 1 if there are any.", check, output=""))
    _add_gc(command("gc", "Put right what check finds, where that is safe. Only says so without --yes.", gc))
    _add_release(command("release", "Release addresses that nobody uses any more.", release))
    _add_configure(command("configure", "Change the settings of allocation.", configure, output=""))


def settle(parser: ArgumentParser, options: Namespace) -> None:
    """SystemExit 2, with the reason on stderr, for options that do not go together."""
    if options.command is release:
        named = bool(options.ip or options.handle)
        if named == bool(options.from_report):
            parser.error("ipam release: give --ip, --handle or --from-report")
        if options.sequence is not None and len(options.ip) != 1:
            parser.error("ipam release: --sequence goes with one --ip")
    if options.command is configure and all(getattr(options, name) is None for name in _CONFIGURED):
        parser.error("ipam configure: give at least one setting")


_CONFIGURED = (
    "strict_affinity",
    "auto_allocate_blocks",
    "max_blocks_per_host",
    "kubevirt_persistence",
    "cooldown_seconds",
)


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("--blocks", "--show-blocks", action="store_true", help="each block, too")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--ip", metavar="IP", type=_address, help="who has this address")
    one.add_argument("--show-borrowed", "--borrowed", action="store_true", help="addresses used on other nodes")
    one.add_argument("--show-configuration", "--configuration", action="store_true", help="the settings")
    parser.add_argument("--node", metavar="NODE", default="", help="only what this node owns or holds")


def _add_check(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="json|FILE", type=_report, help="the report as JSON, or into a file besides"
    )
    parser.add_argument("--show-problem-ips", action="store_true", help="every finding, however many")
    parser.add_argument("--show-all-ips", action="store_true", help="every address in use, too")


def _add_gc(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", "--force", action="store_true", help="do it")
    parser.add_argument("--leaked", action="store_true", help="release addresses of containers and nodes that are gone")
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=_seconds,
        default=Sweep().grace,
        help="between the two looks in which a thing must be the same (default: %(default)g)",
    )
    _add_report(parser, "an earlier `check -o FILE` is the first look; of several what all found")
    _add_copies(parser)


def _add_report(parser: ArgumentParser, summary: str) -> None:
    parser.add_argument("--from-report", metavar="FILE", action="append", default=[], help=summary)


def _add_copies(parser: ArgumentParser) -> None:
    summary = "a new file for copies of damaged records (default: tortie-set-aside-TIME.json)"
    parser.add_argument("--copies", metavar="FILE", default="", help=summary)


def _add_release(parser: ArgumentParser) -> None:
    parser.add_argument("--ip", metavar="IP", type=_address, action="append", default=[], help="repeatable")
    parser.add_argument("--handle", metavar="HANDLE", default="", help="all its addresses; with --ip only if it has it")
    parser.add_argument("--sequence", metavar="N", type=int, help="only the allocation with this number")
    parser.add_argument("--force", action="store_true", help="even if an endpoint has the address")
    _add_report(parser, "leaked addresses and orphan handles of a `check -o FILE`; of several what all found")
    _add_copies(parser)


def _add_configure(parser: ArgumentParser) -> None:
    _add_copies(parser)

    def setting(field: str, *names: str, metavar: str, type: Callable[[str], Any], summary: str) -> None:
        parser.add_argument(*names, dest=field, metavar=metavar, type=type, help=summary)

    setting(
        "strict_affinity",
        *("--strictaffinity", "--strict-affinity"),
        metavar="true|false",
        type=_switch,
        summary="nodes use their own blocks only",
    )
    setting(
        "auto_allocate_blocks",
        *("--auto-allocate-blocks", "--autoallocateblocks"),
        metavar="true|false",
        type=_switch,
        summary="nodes claim blocks by themselves",
    )
    setting(
        "max_blocks_per_host",
        *("--max-blocks-per-host", "--maxblocksperhost"),
        metavar="N",
        type=_whole,
        summary="0: no limit of one's own",
    )
    setting(
        "cooldown_seconds",
        *("--cooldown", "--ip-cooldown-seconds", "--ipcooldownseconds"),
        metavar="SECONDS",
        type=_whole,
        summary="how long a released address rests, 0 to 1200",
    )
    setting(
        "kubevirt_persistence",
        *("--kubevirt-persistence", "--kubevirt-vm-address-persistence", "--kubevirtvmaddresspersistence"),
        metavar="Enabled|Disabled",
        type=_persistence,
        summary="virtual machines keep their addresses",
    )


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _SWITCH[text.lower()]


def _persistence(text: str) -> str:
    if text.lower() not in _PERSISTENCE:
        raise argparse.ArgumentTypeError(f"{text!r} is neither Enabled nor Disabled")
    return _PERSISTENCE[text.lower()]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return seconds


def _report(text: str) -> str:
    """`json`, or something that looks like the name of a file: a misspelt format must not become one."""
    if text == "json" or "." in text or "/" in text:
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is neither json nor the name of a file, such as report.json")
