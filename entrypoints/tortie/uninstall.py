"""`tortie uninstall`: put back what was there before the first `install`.

In a cluster it runs on each node as a container of a DaemonSet, which has to stay (--stay), or it would be started
again and again. There it does not matter whether the node has been done already.

Invariant: as `usecases.install.uninstall`; what is said to have been done has been done.
"""

from __future__ import annotations

from domain.install.errors import NothingInstalled
from entrypoints.stdio import send
from entrypoints.termination import Interrupted, raise_when_signalled, seen
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.install import add_host_arguments, host_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session
    from ports.clock import Clock

_A_WHILE = 3600.0  # seconds
_KEYBOARD = 130  # what a shell reports of a process that the signal killed
_EXAMPLES = """\
tortie uninstall --root /                     on this host
tortie uninstall --root /mnt/node             on a host whose file system is mounted there"""
_MORE = """\
Nothing is changed if somebody else has replaced one of the files since, unless --force is given."""


def _add_arguments(parser: ArgumentParser) -> None:
    add_host_arguments(parser)
    parser.add_argument("--force", action="store_true", help="also replace what somebody else has put there since")
    parser.add_argument("--stay", action="store_true", help="do not end afterwards: for a container of a DaemonSet")


def _run(options: Namespace, session: Session) -> Answer:
    from adapters.linux.host_files import LinuxHostFiles
    from usecases.install.uninstall import uninstall

    try:
        done = uninstall(host_options(options).places(), LinuxHostFiles(), force=options.force)
    except NothingInstalled as nothing:
        if not options.stay:
            raise
        done = (str(nothing),)
    return _stay(people(done), session.clock) if options.stay else Answer(people(done))


def _stay(text: str, clock: Clock) -> Answer:
    """Until it is asked to end."""
    raise_when_signalled()
    try:
        send(text)
        while True:
            clock.sleep(_A_WHILE)
    except Interrupted as signal:
        seen()
        return Answer("", code=_KEYBOARD if str(signal) == "SIGINT" else 0)


COMMAND = Command(
    "uninstall",
    "Put back what was there before `tortie install`.",
    _run,
    _add_arguments,
    uses_datastore=False,
    examples=_EXAMPLES,
    more=_MORE,
)
