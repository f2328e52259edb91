"""What may stand at the cursor of a shell, when its script (`completion_scripts`) asks.

It asks `tortie __complete WORD…`, the last word being the one that is completed, and is answered with lines:
`WORD<tab>WHAT IT IS`, or `:files`, `:folders`. So options, kinds and names in a datastore are known to one place, in
Python, for every shell; and the self-contained executable needs no library for it (docs/decisions/0021).

Invariant: `__complete` ends with 0 and writes nothing but answers, whatever state the datastore is in. A shell puts an
answer into the command line as it is, so what comes from the datastore can neither be run there nor be an option.
"""

from __future__ import annotations

from domain.value import Value
from entrypoints.tortie.command import FAULTS
from entrypoints.tortie.command_line import below, command_parser
from entrypoints.tortie.completion_scripts import COMMAND
from entrypoints.tortie.output import COLUMNS, FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, Namespace
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from adapters.records.kinds import Kind
    from entrypoints.tortie.command_line import CommandParser
    from entrypoints.tortie.session import Session

    Candidate: TypeAlias = tuple[str, str]  # a word, and what it is
    Names: TypeAlias = Callable[[Kind, Mapping[str, str]], Iterable[str]]  # of a kind, by the options given so far

WORD = "__complete"
PATIENCE = 2.0  # seconds for the datastore
FILES, FOLDERS = (":files", ""), (":folders", "")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=+@%")  # to every shell
_PATHS = {"FILE": FILES, "PATH": FILES, "DIR": FOLDERS, "FOLDER": FOLDERS}


class Line(Value):
    """A command line as far as it goes: whose options these are, what stands there already, and what is completed."""

    parser: CommandParser
    values: tuple[str, ...]
    options: Mapping[str, str]
    awaited: Action | None
    word: str


def read_line(top: CommandParser, words: Sequence[str]) -> Line:
    *before, word = words or [""]
    parser = top
    values: list[str] = []
    options: dict[str, str] = {}
    awaited: Action | None = None
    for one in before:
        known = below(parser)
        if awaited is not None:
            options[awaited.dest] = one
            awaited = None
        elif one.startswith("-") and one != "-":
            name, equals, value = one.partition("=")
            action = parser._option_string_actions.get(name)
            if action is not None and equals:
                options[action.dest] = value
            elif action is not None and action.nargs != 0:
                awaited = action
        elif one in known:
            parser, values = known[one], []
        else:
            values.append(one)
    return Line(parser, tuple(values), options, awaited, word)


def candidates(line: Line, names: Names) -> list[Candidate]:
    """What may stand in the word's place, not only what begins as it does."""
    if line.awaited is not None:
        return _values(line.awaited, line, names)
    option, equals, _ = line.word.partition("=")
    if equals and option.startswith("-"):
        action = line.parser._option_string_actions.get(option)
        found = _values(action, line, names) if action is not None else []
        return [(text if text.startswith(":") else f"{option}={text}", about) for text, about in found]
    if line.word.startswith("-"):
        return [
            (string, _short(action.help or "")) for action in line.parser._actions for string in action.option_strings
        ]
    if known := below(line.parser):
        return [(name, (parser.description or "").rstrip(".")) for name, parser in known.items()]
    return _words(line, names)


def _short(text: str) -> str:
    return text.partition("; ")[0].partition(" (default")[0].replace("%(default)s", "").replace("%(default)g", "")


def _values(action: Action, line: Line, names: Names) -> list[Candidate]:
    """Of an option, by its choices or by what stands for its value in the help."""
    metavar = str(action.metavar)
    if action.choices:
        return [(str(choice), "") for choice in action.choices]
    if metavar.startswith("FORMAT"):
        forms = [(name, "") for name in FORMS]
        return [*forms, FILES] if metavar != "FORMAT" and not line.word.startswith(COLUMNS) else forms
    if metavar in _PATHS:
        return [_PATHS[metavar]]
    if "|" in metavar:
        return [(word, "") for word in metavar.split("|")]
    if metavar in ("NODE", "POOL"):
        from adapters.records.kinds import kind_named

        kind = kind_named(metavar)
        return [(name, "") for name in names(kind, line.options)] if kind else []
    return []


def _words(line: Line, names: Names) -> list[Candidate]:
    """Of a command: what its first free words may be."""
    free = [action for action in line.parser._actions if not action.option_strings]
    kinds: tuple[Kind, ...] = getattr(free[0], "kinds", ()) if free else ()
    if not kinds:
        return [(str(choice), "") for choice in free[0].choices or ()] if free and not line.values else _help(line)
    by_name = {name: kind for kind in kinds for name in kind.names}
    if line.values:
        named = by_name.get(line.values[0].lower())
        there = names(named, line.options) if named else ()
        return [(name, "") for name in there if name not in line.values]
    if "/" in line.word:
        word = line.word.partition("/")[0]
        named = by_name.get(word.lower())
        return [(f"{word}/{name}", "") for name in names(named, line.options)] if named else []
    earlier, comma, word = line.word.rpartition(",")
    return [(f"{earlier}{comma}{_kind_name(kind, word)}", kind.name) for kind in kinds]


def _kind_name(kind: Kind, word: str) -> str:
    """The usual name, or else one that begins so."""
    return next((name for name in (kind.plural, *kind.names) if name.startswith(word)), kind.plural)


def _help(line: Line) -> list[Candidate]:
    """`tortie help`: the commands below those that are named already."""
    if not line.parser.prog.endswith(" help"):
        return []
    parser = command_parser()
    for word in line.values:
        if word not in below(parser):
            return []
        parser = below(parser)[word]
    return [(name, (one.description or "").rstrip(".")) for name, one in below(parser).items()]


def answered(words: Sequence[str], names: Names) -> str:
    """The lines that a shell gets."""
    words = list(words)
    if "--" in words[-2:-1]:  # fish hides an empty word otherwise
        del words[-2]
    line = read_line(command_parser(), words)
    fitting = [
        (text, about)
        for text, about in candidates(line, names)
        if text.startswith((line.word, ":")) and _PLAIN.issuperset(text)
    ]
    return "".join([f"{text}\t{about}\n" if about or text.endswith("=") else f"{text}\n" for text, about in fitting])


def options_of(given: Mapping[str, str]) -> Namespace:
    """The options so far that say which datastore is meant, as a command line that is complete would have them."""
    from argparse import Namespace

    shared = {name: given.get(name, "") for name in ("datastore_path", "config", "context")}
    return Namespace(**shared, command=COMMAND.replace(uses_datastore=True))


def stored_names(kind: Kind, namespace: str, session: Session) -> list[str]:
    """The names of what there is of a kind; none if the datastore does not say."""
    from adapters.records.manifests import name_of

    try:
        listings = kind.listings(namespace)
        stored = [name_of(one.key) for each in listings for one in session.datastore.list(each, session.deadline)]
    except FAULTS:
        return []
    return [name for name in stored if not name.startswith(("-", ":"))]
