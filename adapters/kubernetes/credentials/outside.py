"""What reading credentials takes from the machine besides files: environment, time, and running other programs.

Invariant: the modules that read credentials take none of it by themselves, so a test can say what there is.
"""

from __future__ import annotations

from adapters.regular_file import read_regular
from domain.value import Value
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Program(Value):
    """Run without standard input. `environment` is all of it."""

    path: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Program({self.path!r})"  # arguments and environment may be secrets


class Outside(Value):
    """`now` is nanoseconds since the epoch. `run` takes a program and the most seconds it may take, and gives its
    status as from `waitpid` and its output; it raises OSError if it cannot be started, `Expired` if it takes longer.
    """

    environment: Mapping[str, str]
    now: Callable[[], int]
    sleep: Callable[[float], None]
    run: Callable[[Program, float], tuple[int, bytes]]
    service_account: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    """Where Kubernetes puts the credentials of a pod."""


def read_file(shown: str, path: str) -> bytes:
    """BadConfiguration `<shown> <path>: <why>`."""
    try:
        return read_regular(path)
    except OSError as error:
        raise BadConfiguration(f"{shown} {path}: {error.strerror}") from None
