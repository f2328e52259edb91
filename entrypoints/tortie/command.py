"""What a command of `tortie` is: one file has its arguments, what they must not say together, and what it does.

Each such file ends with its `COMMAND`; `command_line` lists them in the order in which the help shows them.

Invariant: `run` prints nothing: what it gives is printed when it has succeeded.
"""

from __future__ import annotations

from adapters.records.manifests import BadManifest
from domain.install.errors import CannotInstall
from domain.ipam.errors import IpamError
from domain.ipam.pool_rules import BadPool
from domain.value import Value
from domain.workload.identity import InvalidField
from entrypoints.tortie.manifest_files import BadFile
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from entrypoints.tortie.answer import Answer
    from entrypoints.tortie.session import Session

FAULTS = (
    PortError,
    CannotInstall,
    IpamError,
    BadFile,
    BadManifest,
    BadPool,
    InvalidField,
)  # what a command may end with


class Stopped(PortError):
    """A fault with more to say about it: what to do, or how many resources were done before it."""


def _no_arguments(_parser: ArgumentParser) -> None:
    pass


def _makes_none(_options: Namespace) -> bool:
    return False


def _no_objection(_options: Namespace) -> str:
    return ""


def place(text: str) -> str:
    """A path as an option, absolute. Of a script's variable that is not set one would get wherever it runs."""
    from argparse import ArgumentTypeError
    from os.path import abspath

    if not text:
        raise ArgumentTypeError("it is empty; / is this host itself")
    try:
        return abspath(text)
    except OSError as error:
        raise ArgumentTypeError(f"the working directory: {error.strerror}; give an absolute path") from None


class Command(Value):
    """`objection` says what is wrong with options that do not go together, "" if nothing is. `examples` are lines that
    the help and the manual show: a command, and after some blanks what it is for; `more` is a text below them.

    With `uses_datastore` it is settled before `run` which datastore is meant; an embedded one may be made where
    `makes_datastore` says so. Whatever may last says to the session what it is doing.
    """

    name: str
    summary: str
    run: Callable[[Namespace, Session], Answer]
    add_arguments: Callable[[ArgumentParser], None] = _no_arguments
    objection: Callable[[Namespace], str] = _no_objection
    uses_datastore: bool = True
    makes_datastore: Callable[[Namespace], bool] = _makes_none
    examples: str = ""
    more: str = ""
