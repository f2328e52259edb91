"""`tortie version`: the version, without a look at any datastore.

Invariant: no datastore is opened.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command
from entrypoints.tortie.output import Row, Sheet, add_output, shown
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from domain.json_text import Json
    from entrypoints.tortie.session import Session


def _run(options: Namespace, _session: Session) -> Answer:
    about: dict[str, Json] = {"clientVersion": VERSION}
    row = Row(f"version/{VERSION}", {"CLIENT VERSION": VERSION}, about)
    return Answer(shown(options.output, Sheet(about, ("CLIENT VERSION",), (row,), lambda: f"tortie {VERSION}\n")))


COMMAND = Command(
    "version", "Show the version.", _run, add_output, uses_datastore=False, examples="tortie version -o json"
)
