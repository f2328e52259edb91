"""`tortie version`: the version, without a look at any datastore.

Invariant: no datastore is opened.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from entrypoints.tortie.session import Session


def _run(_options: Namespace, _session: Session) -> Answer:
    return Answer(f"tortie {VERSION}\n")


COMMAND = Command("version", "Show the version.", _run, uses_datastore=False)
