"""`tortie doctor`: is this node fit to network containers, and if not, what is to be done?

    tortie doctor                      on the host itself
    tortie doctor --root /host         in a container, with the host's root mounted there and the host's network

Invariant: nothing is changed; what could not be looked at is told, and the rest is looked at all the same.
"""

from __future__ import annotations

from domain.doctor.diagnosis import ERROR, STATES, WARNING, count
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from entrypoints.tortie.output import Row, Sheet, add_output, shown
from usecases.doctor.patient import BIN_DIR, NET_DIR, Folders, Patient
from usecases.examine_node import examine_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from domain.doctor.diagnosis import Diagnosis
    from entrypoints.tortie.session import Session

_PLURALS = {WARNING: "warnings", ERROR: "errors"}


def _add_arguments(parser: ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--strict", action="store_true", help="exit code 1 for warnings, too")
    parser.add_argument("--root", metavar="DIR", default="", help="where the host's root is mounted, in a container")
    parser.add_argument(
        "--net-dir", metavar="DIR", default=NET_DIR, help=f"network configurations (default: {NET_DIR})"
    )
    parser.add_argument("--bin-dir", metavar="DIR", default=BIN_DIR, help=f"plugins (default: {BIN_DIR})")


def _objection(options: Namespace) -> str:
    for name in ("root", "net_dir", "bin_dir"):
        given: str = getattr(options, name)
        if given and not given.startswith("/"):
            return f"--{name.replace('_', '-')} {given}: give an absolute path"
    return ""


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 0 without errors."""
    from entrypoints.wiring.doctor import ways

    root: str = options.root.rstrip("/")
    folders = Folders(net=_of_host(options.net_dir, root), bin=_of_host(options.bin_dir, root), elsewhere=bool(root))
    host = session.host(root)
    patient = Patient(host, session.clock, folders, ways(session, host, options.datastore_path, options.config))
    patient.doing = session.doing
    diagnoses = examine_node(patient, session.log)
    bad = count(diagnoses, ERROR) + (count(diagnoses, WARNING) if options.strict else 0)
    code = 1 if bad else 0
    return Answer(shown(options.output, _sheet(diagnoses)), code)


def _sheet(diagnoses: Sequence[Diagnosis]) -> Sheet:
    document = _document(diagnoses)
    headings = ("CHECK", "STATE", "SEEN", "ADVICE")
    rows = [
        Row(f"check/{one['check']}", {heading: str(one.get(heading.lower(), "")) for heading in headings}, {**one})
        for one in document["checks"]
    ]
    text = people([*_lines(diagnoses), "", _summary(diagnoses)])
    return Sheet(document, headings, tuple(rows), lambda: text)


def _of_host(folder: str, root: str) -> str:
    """As the host has it: who has its root mounted may name either path."""
    folder = folder.rstrip("/")
    return (folder.removeprefix(root) if root and folder.startswith(f"{root}/") else folder) or "/"


def _lines(diagnoses: Sequence[Diagnosis]) -> list[str]:
    width = max([len(one.check) for one in diagnoses], default=0)
    return [
        f"{one.state:<7}  {one.check:<{width}}  {one.seen}" + (f" → {one.advice}" if one.advice else "")
        for one in diagnoses
    ]


def _summary(diagnoses: Sequence[Diagnosis]) -> str:
    numbers = {state: count(diagnoses, state) for state in STATES}
    return (
        ", ".join(
            [f"{number} {state if number == 1 else _PLURALS.get(state, state)}" for state, number in numbers.items()]
        )
        + "."
    )


def _document(diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    return {
        "version": 1,
        **{f"{_PLURALS.get(state, state)}": count(diagnoses, state) for state in STATES},
        "checks": [
            {"check": one.check, "state": one.state, "seen": one.seen, **({"advice": one.advice} if one.advice else {})}
            for one in diagnoses
        ],
    }


COMMAND = Command(
    "doctor",
    "Look at all that this node needs to network containers. Exit code 1 if there are errors.",
    _run,
    _add_arguments,
    _objection,
    uses_datastore=False,
    examples="""\
tortie doctor                                     on the node itself
tortie doctor --root /host                        in a container with the host's root mounted there
tortie doctor --strict -o json                    for a program; warnings count, too""",
)
