"""The forms in which every reading command gives its answer: `-o json|yaml|wide|name|custom-columns=…`.

A command says what it has found once, as a document and as rows with cells; which of them is written, and how, is
settled here, so that a form means the same whatever was asked.

Invariant: what a program reads (json, yaml) is the document unchanged; whatever else is for people, and escaped.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.json_text import dumps
from domain.value import Value
from entrypoints.tortie.answer import aligned, people
from entrypoints.tortie.command import Stopped
from entrypoints.tortie.manifest_files import shown_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Mapping

    from domain.json_text import Json

JSON, YAML, WIDE, NAME, COLUMNS = "json", "yaml", "wide", "name", "custom-columns"
FORMS = (JSON, YAML, WIDE, NAME, f"{COLUMNS}=")
_ELSEWHERE = ("go-template", "go-template-file", "jsonpath", "jsonpath-file", "jsonpath-as-json", "template")
_NOTHING = "<none>"


class Form(Value):
    """`name` is one of those above, "" for what people read by default; `columns` are heading and path, "" if the
    heading is one of the wide table's.
    """

    name: str = ""
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def is_document(self) -> bool:
        return self.name in (JSON, YAML)


class Row(Value):
    """One thing among those found: `name` as `KIND/NAME`, `cells` by heading of the wide table, and all there is."""

    name: str
    cells: Mapping[str, str]
    document: Json


class Sheet(Value):
    """An answer in every form; `text` makes what people read by default."""

    document: Json
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    text: Callable[[], str]


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORMAT",
        type=form,
        default=Form(),
        help="json, yaml, wide (every column), name, or custom-columns=HEADING:.path,… or custom-columns=HEADING,…",
    )


def form(text: str) -> Form:
    """What is meant by `-o TEXT`. ArgumentTypeError says what there is instead."""
    name, equals, rest = text.partition("=")
    if name == COLUMNS:
        return Form(COLUMNS, _columns(rest))
    if name == "ps" and not equals:  # calicoctl's word for its default
        return Form()
    if name in _ELSEWHERE:
        raise ArgumentTypeError(f"{name} is not known here; take {COLUMNS}=NAME:.metadata.name, or -o json with jq")
    if equals or name not in FORMS:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(FORMS[:-1])} and {COLUMNS}=HEADING:.path,…")
    return Form(name)


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    columns = [tuple(part.partition(":")[::2]) for part in text.split(",")]
    if not all(heading for heading, _ in columns):
        raise ArgumentTypeError(f"{COLUMNS} needs a heading for each column, as in {COLUMNS}=NAME:.metadata.name")
    return tuple([(heading, path) for heading, path in columns])


def shown(form: Form, sheet: Sheet) -> str:
    """Stopped for a heading that the table does not have."""
    if form.is_document:
        return shown_as(sheet.document, form.name)
    if form.name == NAME:
        return people([row.name for row in sheet.rows])
    if form.name == COLUMNS:
        return _chosen(form, sheet)
    if form.name == WIDE:
        return grid(sheet.headings, [[row.cells.get(heading, "") for heading in sheet.headings] for row in sheet.rows])
    return sheet.text()


def grid(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table for people, calicoctl's gaps between its columns."""
    return "".join([f"{line}\n" for line in aligned([list(headings), *rows], gap="   ")])


def _chosen(form: Form, sheet: Sheet) -> str:
    getters = [_getter(heading, path, sheet.headings) for heading, path in form.columns]
    headings = tuple([heading.upper() for heading, _ in form.columns])
    return grid(headings, [[get(row) for get in getters] for row in sheet.rows])


def _getter(heading: str, path: str, headings: tuple[str, ...]) -> Callable[[Row], str]:
    if path:
        steps = _steps(path)
        return lambda row: _text(_followed([row.document], steps))
    known = {name.upper().replace(" ", ""): name for name in headings}
    name = known.get(heading.upper().replace(" ", ""))
    if name is None:
        raise Stopped(f"{COLUMNS}: no column {heading}; there are {', '.join(headings)}, or HEADING:.path")
    return lambda row: row.cells.get(name, "") or _NOTHING


def _steps(path: str) -> list[str]:
    r"""The members that a path goes through; `[*]` is every item of a list, `\.` a dot within a name."""
    plain = path.removeprefix("{").removesuffix("}").replace("\\.", "\0")
    plain = plain.replace("[", ".").replace("]", "")
    return [step.strip("'\"").replace("\0", ".") for step in plain.split(".") if step]


def _followed(found: list[Json], steps: list[str]) -> list[Json]:
    for step in steps:
        found = [deeper for value in found for deeper in _members(value, step)]
    return found


def _members(value: Json, step: str) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values()) if step == "*" else [value[step]] if step in value else []
    if isinstance(value, list):
        if step == "*":
            return value
        at = int(step) if step.lstrip("-").isdecimal() else len(value)
        return [value[at]] if -len(value) <= at < len(value) else []
    return []


def _text(values: list[Json]) -> str:
    texts = [value if isinstance(value, str) else dumps(value) for value in values if value is not None]
    return ",".join(texts) or _NOTHING
