"""`tortie uninstall`: put back what was there before the first `install`.

Invariant: as `usecases.install.uninstall`; what is said to have been done has been done.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.install import add_host_arguments, host_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session

_EXAMPLES = """\
examples:
  tortie uninstall --root /                     on this host
  tortie uninstall --root /mnt/node             on a host whose file system is mounted there

Nothing is changed if somebody else has replaced one of the files since, unless --force is given."""


def _add_arguments(parser: ArgumentParser) -> None:
    from argparse import RawDescriptionHelpFormatter

    add_host_arguments(parser)
    parser.add_argument("--force", action="store_true", help="also replace what somebody else has put there since")
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES


def _run(options: Namespace, _session: Session) -> Answer:
    from adapters.linux.host_files import LinuxHostFiles
    from usecases.install.uninstall import uninstall

    return Answer(people(uninstall(host_options(options).places(), LinuxHostFiles(), force=options.force)))


COMMAND = Command(
    "uninstall",
    "Put back what was there before `tortie install`.",
    _run,
    _add_arguments,
    uses_datastore=False,
)
