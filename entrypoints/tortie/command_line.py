"""The command line of `tortie`, made from its commands; the `ipam` ones go by calicoctl's words where it has them.

Invariant: what is said here about a command is what it does; a combination that means nothing is refused.
"""

from __future__ import annotations

import argparse

from domain.cni.go_quote import printable
from entrypoints.tortie import delete, doctor, get, init, install, refresh_token, store, uninstall, version
from entrypoints.tortie.client_config import DEFAULT_PATH
from entrypoints.tortie.ipam import check, configure, gc, release, show, upgrade
from entrypoints.version import VERSION
from entrypoints.wiring.calico import DEFAULT_SQLITE_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from entrypoints.tortie.command import Command

_RESOURCES = (init.COMMAND, get.COMMAND, store.CREATE, store.APPLY, delete.COMMAND)
_HOST = (doctor.COMMAND, install.COMMAND, uninstall.COMMAND, refresh_token.COMMAND)
_IPAM = (show.COMMAND, check.COMMAND, gc.COMMAND, release.COMMAND, configure.COMMAND, upgrade.COMMAND)


def parsed(arguments: Sequence[str]) -> Namespace:
    """`command` is the Command that is meant, `parser` its own; `datastore_path` and `config` are "" if not given.

    SystemExit 2, with usage and reason on stderr, for a command line that is not understood.
    """
    parser = _parser()
    options = parser.parse_args(arguments, argparse.Namespace(datastore_path="", config=""))
    if options.datastore_path and options.config:
        options.parser.error("--config and --datastore-path name two datastores; give one of them")
    command: Command = options.command
    if objection := command.objection(options):
        options.parser.error(objection)
    return options


class _CommandParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """What is complained about may come from a record, by way of a script."""
        super().error(printable(message))


def _parser() -> ArgumentParser:
    shared = _shared_options()
    parser = _CommandParser(
        prog="tortie",
        description="Set up, show and change a Calico datastore.",
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("-v", "--version", action="version", version=VERSION, help="show the version and end")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add(commands, _RESOURCES, shared)
    ipam = commands.add_parser("ipam", help="Show, check and repair IP address management.", allow_abbrev=False)
    _add(ipam.add_subparsers(metavar="COMMAND", required=True), _IPAM, shared)
    _add(commands, (*_HOST, version.COMMAND), shared)
    return parser


def _shared_options() -> ArgumentParser:
    """They may stand before the command or after it: a default of the command's own would hide the former."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--datastore-path",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help=f"embedded datastore (default: $TORTIE_SQLITE_PATH, else {DEFAULT_SQLITE_PATH})",
    )
    shared.add_argument(
        "-c",
        "--config",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help=f"calicoctl's configuration file (default: {DEFAULT_PATH}, if it is there)",
    )
    return shared


def _add(parsers: Any, commands: Sequence[Command], shared: ArgumentParser) -> None:
    for command in commands:
        parser: ArgumentParser = parsers.add_parser(
            command.name, help=command.summary, description=command.summary, parents=[shared], allow_abbrev=False
        )
        parser.set_defaults(command=command, parser=parser)
        command.add_arguments(parser)
