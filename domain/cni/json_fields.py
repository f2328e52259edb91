"""Reading JSON objects into named values as Go's decoder does: the same matching of keys, the same refusals.

A table says for each member of an object where its value goes and how it is read:

    FIELDS = {"mtu": ("mtu", integer), "ipam": ("ipam", section(IPAM, build, "types.IPAM"))}

Keys match case-insensitively, unknown ones are ignored, of several that match the last one wins, and `null` changes
nothing. The first member in the text with a wrong type is the one complained about.

Invariant: what a reader returned has the type its name says; nothing later checks it again.
"""

from __future__ import annotations

from domain.json_text import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from domain.json_text import Json

    Reader: TypeAlias = "Callable[[Json, str], Any]"
    Fields: TypeAlias = "Mapping[str, tuple[str, Reader]]"

_INT64 = 1 << 63
_UINT64 = 1 << 64


class WrongType(ValueError):
    """`json: cannot unmarshal <what> into Go struct field <where> of type <wanted>`.

    `place` leads to the member from the outermost object, by the table's names; `spelt` by those of the document.
    """

    def __init__(self, what: str, where: str, wanted: str) -> None:
        super().__init__(f"json: cannot unmarshal {what} into Go struct field {where} of type {wanted}")
        self.place: tuple[str, ...] = ()
        self.spelt: tuple[str, ...] = ()

    def inside(self, name: str, key: str) -> WrongType:
        self.place, self.spelt = (name, *self.place), (key, *self.spelt)
        return self


def _number(value: Json, where: str, wanted: str, limits: range) -> int:
    """An integer within limits. Go names the number in its refusal only if it is one."""
    if isinstance(value, int) and not isinstance(value, bool) and value in limits:
        return value
    what = kind_of(value)
    raise WrongType(f"{what} {value!r}" if what == "number" else what, where, wanted)


def integer(value: Json, where: str) -> int:
    return _number(value, where, "int", range(-_INT64, _INT64))


def unsigned(value: Json, where: str) -> int:
    return _number(value, where, "uint64", range(_UINT64))


def text(value: Json, where: str) -> str:
    if not isinstance(value, str):
        raise WrongType(kind_of(value), where, "string")
    return value


def flag(value: Json, where: str) -> bool:
    if not isinstance(value, bool):
        raise WrongType(kind_of(value), where, "bool")
    return value


def text_or_flag(value: Json, where: str) -> str:
    """A text, or a JSON boolean as the text of it (the original refuses the latter)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text(value, where)


def texts(value: Json, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WrongType(kind_of(value), where, "[]string")
    return tuple(["" if item is None else text(item, where) for item in value])


def members(value: Json, where: str) -> dict[str, Json]:
    """An object whose keys are the user's own."""
    if not isinstance(value, dict):
        raise WrongType(kind_of(value), where, "map[string]interface {}")
    return value


def read_fields(document: Mapping[str, Json], fields: Fields, struct: str, path: str = "") -> dict[str, Any]:
    """The values of the members that are there, under the names of the table.

    `struct` and `path` are for errors only: Go names the innermost structure, then all keys down to the member.
    """
    exact = {_folded(name): name for name in fields}
    found: dict[str, Any] = {}
    for key, value in document.items():
        name = key if key in fields else exact.get(_folded(key))
        if name is None or value is None:
            continue
        target, read = fields[name]
        try:
            found[target] = read(value, f"{struct}.{path}{name}")
        except WrongType as error:
            raise error.inside(name, key)  # noqa: B904 - the same error, with the way to it
    return found


def unknown_members(document: Mapping[str, Json], fields: Fields) -> tuple[str, ...]:
    """The keys that `read_fields` passes over, as they are spelt."""
    known = {_folded(name) for name in fields}
    return tuple([key for key in document if _folded(key) not in known])


def without(document: Mapping[str, Json], spelt: tuple[str, ...]) -> dict[str, Json]:
    """The document less the member that a `WrongType` is about; all of a list if it is in one."""
    key, *inside = spelt
    rest = {name: value for name, value in document.items() if name != key}
    nested = document[key]
    if inside and isinstance(nested, dict):
        rest[key] = without(nested, tuple(inside))
    return rest


def section(
    fields: Fields, build: Callable[[dict[str, Any]], Any], go_type: str, path: str, struct: str | None = None
) -> Reader:
    """A reader for a nested object: `build` makes the value from what was found.

    `path` is the object's own place (`ipam.`), `struct` its structure's name in errors if it has one.
    """
    inside = go_type.rpartition(".")[2] if struct is None else struct

    def read(value: Json, where: str) -> Any:
        if not isinstance(value, dict):
            raise WrongType(kind_of(value), where, go_type)
        return build(read_fields(value, fields, inside, path))

    return read


def sections(fields: Fields, go_type: str, path: str, build: Callable[[dict[str, Any]], Any]) -> Reader:
    """A reader for a list of such objects."""
    read_one = section(fields, build, go_type, path)

    def read(value: Json, where: str) -> Any:
        if not isinstance(value, list):
            raise WrongType(kind_of(value), where, "[]" + go_type)
        return tuple([build({}) if item is None else read_one(item, where) for item in value])

    return read


def _folded(key: str) -> str:
    """Go folds case by Unicode's simple rules; of the letters outside ASCII two fold into it."""
    return key.lower().replace("\u017f", "s")
