"""The command line of `tortie`, made from its commands; the `ipam` ones go by calicoctl's words where it has them.

Invariant: what is said here about a command is what it does; a combination that means nothing is refused.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache

from domain.cni.go_quote import printable
from domain.value import Value
from entrypoints.tortie import (
    completion_scripts,
    convert,
    delete,
    doctor,
    get,
    init,
    install,
    migrate,
    patch,
    refresh_token,
    store,
    trace,
    uninstall,
    version,
)
from entrypoints.tortie.client_config import DEFAULT_PATH
from entrypoints.tortie.ipam import check, configure, gc, metrics, release, show, split, upgrade
from entrypoints.version import VERSION
from entrypoints.wiring.datastores import DEFAULT_SQLITE_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from entrypoints.tortie.command import Command


class Group(Value):
    """Commands that stand behind one word."""

    name: str
    summary: str
    commands: tuple[Command | Group, ...]


COMMANDS: tuple[Command | Group, ...] = (
    init.COMMAND,
    get.COMMAND,
    store.CREATE,
    store.APPLY,
    store.REPLACE,
    patch.PATCH,
    patch.LABEL,
    delete.COMMAND,
    convert.COMMAND,
    Group(
        "ipam",
        "Show, check and repair IP address management.",
        (
            show.COMMAND,
            check.COMMAND,
            metrics.COMMAND,
            gc.COMMAND,
            release.COMMAND,
            configure.COMMAND,
            split.COMMAND,
            upgrade.COMMAND,
        ),
    ),
    Group(
        "datastore",
        "Lock a datastore, and take what it has elsewhere.",
        (
            Group(
                "migrate",
                "Lock, export, import and unlock a datastore.",
                (migrate.LOCK, migrate.EXPORT, migrate.IMPORT, migrate.UNLOCK),
            ),
        ),
    ),
    trace.COMMAND,
    doctor.COMMAND,
    install.COMMAND,
    uninstall.COMMAND,
    refresh_token.COMMAND,
    version.COMMAND,
    completion_scripts.COMMAND,
)
# kubectl's spellings; here a check asks the server for what is there, and writes nothing on either side.
_DRY_RUNS = {"--dry-run=client": "--dry-run", "--dry-run=server": "--dry-run"}
_HELP = "Show the help of a command."
EXIT_CODES = {
    0: "done",
    1: "it could not be done, or something was found that wants to be acted on: standard error or the answer says what",
    2: "the command line is not understood, and nothing was done",
    130: "ended by Ctrl-C",
    141: "nobody reads the output any more",
}


def parsed(arguments: Sequence[str]) -> Namespace:
    """`command` is the Command that is meant, `parser` its own; the shared options are "" if not given.

    SystemExit 2, with the reason on stderr, for a command line that is not understood.
    """
    words = [_DRY_RUNS.get(word, word) for word in arguments]
    top = command_parser()
    given = argparse.Namespace(datastore_path="", config="", context="", allow_version_mismatch=False)
    options, unknown = top.parse_known_args(words, given)
    if unknown:  # by the command's own parser, whose help has what it knows
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.datastore_path and options.config:
        options.parser.error("--config and --datastore-path name two datastores; give one of them")
    command: Command | None = options.command
    if command is None:
        _help(top, options)
    elif objection := command.objection(options):
        options.parser.error(objection)
    return options


class CommandParser(argparse.ArgumentParser):
    """`group` lists commands and has none of its own; `about` is the Command that it reads the options of."""

    group = False
    about: Command | None = None

    def error(self, message: str) -> NoReturn:
        """What is complained about may come from a record, by way of a script.

        Without the usage, which is longer than what is to be read.
        """
        if self.group and message.startswith("the following arguments are required: COMMAND"):
            self.print_help(sys.stderr)
            self.exit(2)
        words = self.prog.partition(" ")[2]
        self.exit(
            2, f"{self.prog}: error: {printable(message)}\n`tortie help{words and f' {words}'}` shows what there is.\n"
        )


@cache
def command_parser() -> CommandParser:
    """The whole of it, with a parser for each command below. It says the same as long as the process lives."""
    shared = _shared_options()
    parser = CommandParser(
        prog="tortie",
        description="Set up, show and change a Calico datastore.",
        parents=[shared],
        allow_abbrev=False,
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-v", "--version", action="version", version=VERSION, help="show the version and end")
    parser.group = True
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for item in COMMANDS:
        _add(commands, item, shared)
    helper = commands.add_parser("help", help=_HELP, description=_HELP, allow_abbrev=False)
    helper.add_argument("words", metavar="COMMAND", nargs="*", help="such as `get` or `ipam show`")
    helper.set_defaults(command=None, parser=helper)
    return parser


def _shared_options() -> ArgumentParser:
    """They may stand before the command or after it: a default of the command's own would hide the former."""
    parser = argparse.ArgumentParser(add_help=False)
    shared = parser.add_argument_group("options of every command")
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
    shared.add_argument(
        "--context",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="context of the kubeconfig (default: the one that it names as current)",
    )
    shared.add_argument(
        "--allow-version-mismatch",
        action="store_true",
        default=argparse.SUPPRESS,
        help="taken for calicoctl's sake: versions are not compared here",
    )
    return parser


def _add(parsers: Any, item: Command | Group, shared: ArgumentParser) -> None:
    if isinstance(item, Group):
        group = parsers.add_parser(item.name, help=item.summary, description=item.summary, allow_abbrev=False)
        group.group = True
        inside = group.add_subparsers(metavar="COMMAND", required=True)
        for one in item.commands:
            _add(inside, one, shared)
    else:
        _add_command(parsers, item, shared)


def _add_command(parsers: Any, command: Command, shared: ArgumentParser) -> None:
    examples = f"examples:\n{_indented(command.examples)}" if command.examples else ""
    below = f"\n{command.more}" if examples and command.more else command.more
    parser: CommandParser = parsers.add_parser(
        command.name,
        help=command.summary,
        description=command.summary,
        parents=[shared],
        allow_abbrev=False,
        epilog=(examples + below) or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.about = command
    parser.set_defaults(command=command, parser=parser)
    command.add_arguments(parser)


def _epilog() -> str:
    codes = "".join([f"  {code:<5}{about}\n" for code, about in EXIT_CODES.items()])
    return f"`tortie help COMMAND` shows the options of a command, with examples.\n\nexit codes:\n{codes}"


def _indented(lines: str) -> str:
    return "".join([f"  {line}\n" for line in lines.splitlines()])


def below(parser: ArgumentParser) -> dict[str, CommandParser]:
    """The parsers of the commands behind the next word, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _help(top: CommandParser, options: Namespace) -> NoReturn:
    parser: CommandParser = top
    for word in options.words:
        known = below(parser)
        if word not in known:
            options.parser.error(f"there is no command {word!r}; `tortie help` lists them")
        parser = known[word]
    parser.print_help()
    raise SystemExit(0)
