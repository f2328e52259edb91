"""`tortie`: what an operator does to a datastore by hand; calicoctl's words and manifests, without a server.

    tortie init --pool 10.244.0.0/16 --pool fd00:10:244::/48
    tortie get ippools -o wide        tortie apply -f pools.yaml        tortie delete ippool default-ipv4-ippool
    tortie ipam show --blocks         tortie ipam check                 tortie ipam gc

Exit code 0: done. 1: it could not be done, one line on stderr says why and what to change; or `ipam check` has found
something. 2: the command line is not understood.

Invariant: stdout has the result and nothing else.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys

from adapters.records.kinds import KINDS, kind_named
from domain.cni.netconf import KubernetesSettings, NetConf
from entrypoints.tortie import commands as ctl_commands
from entrypoints.tortie.answer import Answer, people, told
from entrypoints.tortie.client_config import DEFAULT_PATH, client_config
from entrypoints.tortie.commands import FAULTS, Session
from entrypoints.tortie.ipam import command_line as ctl_ipam
from entrypoints.wiring.calico import DEFAULT_SQLITE_PATH, SELF_CONTAINED, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from adapters.records.kinds import Kind
    from entrypoints.wiring.container import Container
    from entrypoints.wiring.plain_container import PlainContainer

_STOPPED_BY_PIPE = 141  # what a shell reports of a process that the signal killed


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """The exit code of `tortie <arguments>`. It works on the well-known libraries unless TORTIE_TRANSPORT says else.

    The self-contained executable has none.
    """
    if SELF_CONTAINED:
        from entrypoints.wiring.plain_container import PlainContainer

        return run(arguments, environment, PlainContainer())
    from entrypoints.wiring.container import Container

    return run(arguments, {"TORTIE_TRANSPORT": "library", **environment}, Container())


def run(arguments: Sequence[str], environment: Mapping[str, str], container: Container | PlainContainer) -> int:
    """The same with the ports of a container, which is configured here."""
    try:
        options = _parsed(arguments, environment)
    except SystemExit as ended:  # argparse has said what is wrong, or has shown the help that was asked for
        return int(ended.code or 0)
    session = Session(container)
    try:
        _configure(container, options, environment)
        answer = _answer(options.command(options, session))
        _deliver(answer.text)
        _note(answer.notes)
    except FAULTS as error:
        return _failed(told(error))
    except BrokenPipeError:
        return _unheard(_STOPPED_BY_PIPE)
    except OSError as error:
        return _unheard(_failed(f"cannot write the output: {error.strerror}"))
    finally:
        session.close()
    return answer.code


def _answer(given: str | Answer) -> Answer:
    return given if isinstance(given, Answer) else Answer(given)


def _deliver(text: str) -> None:
    out: TextIO | None = sys.stdout  # None where the parent left the descriptor closed
    if out is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        out.write(text)
    except UnicodeEncodeError:  # a locale without the character: what is written is UTF-8 in all others
        out.buffer.write(text.encode("utf-8", "replace"))
    out.flush()


def _note(lines: Sequence[str]) -> None:
    err: TextIO | None = sys.stderr  # None as above
    try:
        if err is not None:
            err.write(people(lines))
    except OSError:  # nobody hears; the interpreter would try again at its end
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process


def _failed(why: str) -> int:
    _note([f"Error: {why}"])
    return 1


def _unheard(code: int) -> int:
    """Nobody reads stdout any more; the interpreter would complain when it flushes at its end."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process
    return code


def _configure(container: Container | PlainContainer, options: Namespace, environment: Mapping[str, str]) -> None:
    """A path of an embedded datastore on the command line settles it; else file and environment do."""
    path: str = getattr(options, "datastore_path", "")
    if path:
        container.environment.override({**environment, "CALICO_DATASTORE_TYPE": "sqlite"})
    elif options.command is not ctl_commands.version:
        chosen = client_config(environment, getattr(options, "config", ""))
        container.environment.override(chosen.environment)
        container.inline.override(chosen.inline)
    kubeconfig = setting(container.environment(), "KUBECONFIG")
    container.netconf.override(NetConf(sqlite_path=path, kubernetes=KubernetesSettings(kubeconfig=kubeconfig)))
    container.create.override(options.command is ctl_commands.init)


def _parsed(arguments: Sequence[str], environment: Mapping[str, str]) -> Namespace:
    """SystemExit 2, with usage and reason on stderr, for a command line that is not understood."""
    parser = _command_line(environment)
    options = parser.parse_args(arguments)
    if getattr(options, "datastore_path", "") and getattr(options, "config", ""):
        parser.error("--config and --datastore-path name two datastores; give one of them")
    if options.command is ctl_commands.delete and bool(options.filename) == bool(options.kind and options.names):
        parser.error("delete: give either a kind with at least one name, or -f FILE")
    ctl_ipam.settle(parser, options)
    return options


def _command_line(environment: Mapping[str, str]) -> ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--datastore-path",
        metavar="PATH",
        default=argparse.SUPPRESS,  # a command's own default would hide the option given before the command
        help=f"embedded datastore (default: $TORTIE_SQLITE_PATH, else {DEFAULT_SQLITE_PATH})",
    )
    shared.add_argument(
        "-c",
        "--config",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help=f"calicoctl's configuration file (default: {DEFAULT_PATH}, if it is there)",
    )
    parser = argparse.ArgumentParser(
        prog="tortie",
        description="Set up, show and change a Calico datastore.",
        parents=[shared],
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, summary: str) -> ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary, parents=[shared], allow_abbrev=False)
        made.set_defaults(command=getattr(ctl_commands, name))
        return made

    _add_init(command("init", "Make a datastore ready: cluster information, this node, and IP pools."), environment)
    get = command("get", "Show resources.")
    get.add_argument("kind", metavar="KIND", type=_kind, help=_kinds_help())
    get.add_argument("names", metavar="NAME", nargs="*", help="show these only")
    get.add_argument("-o", "--output", choices=("json", "yaml", "wide"), help="as manifests, or with more columns")
    _add_namespace(get)
    get.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    for name, summary in (
        ("create", "Write resources that do not exist yet."),
        ("apply", "Create or replace resources."),
    ):
        writing = command(name, summary)
        _add_file(writing, required=True)
        _add_namespace(writing)
    delete = command("delete", "Delete resources.")
    delete.add_argument("kind", metavar="KIND", type=_kind, nargs="?", help=_kinds_help())
    delete.add_argument("names", metavar="NAME", nargs="*")
    _add_file(delete, required=False)
    _add_namespace(delete)
    delete.add_argument("--skip-not-exists", action="store_true", help="what is not there counts as deleted")
    ipam = commands.add_parser("ipam", help="Show, check and repair IP address management.", allow_abbrev=False)
    ctl_ipam.add_ipam(ipam, shared)
    command("version", "Show the version.")
    return parser


def _add_init(parser: ArgumentParser, environment: Mapping[str, str]) -> None:
    parser.add_argument(
        "--pool", metavar="CIDR", action="append", required=True, help="a range to assign addresses from; repeatable"
    )
    parser.add_argument(
        "--block-size",
        metavar="N",
        type=int,
        action="append",
        help="prefix length of blocks: 20-32 for IPv4 pools (default 26), 116-128 for IPv6 pools (default 122)",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        default=environment.get("NODENAME", ""),
        help="name of this node (default: $NODENAME, else the host name in lower case)",
    )


def _add_file(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "-f", "--filename", metavar="FILE", default="", required=required, help="YAML or JSON; - is standard input"
    )


def _add_namespace(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", default="", help="(default: default)")


def _kind(word: str) -> Kind:
    kind = kind_named(word)
    if kind is None:
        raise argparse.ArgumentTypeError(f"unknown kind {word!r}; known are {_kinds_help()}")
    return kind


def _kinds_help() -> str:
    return ", ".join([kind.plural for kind in KINDS])
