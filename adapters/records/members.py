"""Members of a JSON object, taken one by one with their types checked; what nobody takes is kept.

A record is rewritten by programs of several versions, so a member that we do not know must survive (`rest`), one that
is absent or null has its default, and one of the wrong type makes the record corrupt rather than the reader crash;
unless no call needs it: then it is kept like one that we do not know (`spare`). Whoever lists leaves a corrupt record
out; whoever asks for it by name is told which and why (`BadRecord`).

Invariant: every member of the object is either taken once or part of `rest`. A record that could not be read stays as
it is: its revision does not get out, and a write has to name that.
"""

from __future__ import annotations

from domain.json_text import JsonError, dumps, parse
from domain.moment import parse_rfc3339
from ports.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from domain.json_text import Json

    T = TypeVar("T")
    Unknown = tuple[tuple[str, str], ...]


class BadRecord(Damaged, ValueError):
    """Text: `record <kind and name> is corrupt: <fault>`."""

    def __init__(self, key: object, fault: str) -> None:
        from ports.record_title import record_title

        super().__init__(f"record {record_title(key)} is corrupt: {fault}")
        self.key = key
        self.fault = fault


class BadName(BadRecord):
    """A record that cannot be there: no key can have its name. Text: `<key>: <fault>`."""

    def __init__(self, key: object, fault: str) -> None:
        super().__init__(key, fault)
        self.args = (f"{key}: {fault}",)
        self.details = ""


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number"}


class BadMember(ValueError):
    """What is wrong with a record, without saying which record."""


def _kind(value: Json) -> str:
    return "null" if value is None else _KINDS.get(type(value), "a fraction")


def expect(value: Json, wanted: type, where: str) -> None:
    """BadMember unless the value has exactly that type (a boolean is no number)."""
    if type(value) is not wanted:
        raise BadMember(f"{where} must be {_KINDS[wanted]}, not {_kind(value)}")


class Members:
    """Reads one JSON object. `where` is its path inside the record ("" for the record itself)."""

    __slots__ = ("_left", "_where")

    def __init__(self, value: Json, where: str = "") -> None:
        if not isinstance(value, dict):
            raise BadMember(f"{where or 'the record'} must be an object, not {_kind(value)}")
        self._left = dict(value)
        self._where = f"{where}." if where else ""

    @classmethod
    def of_text(cls, text: str, where: str = "") -> Members:
        """JsonError (a ValueError) when the text is not JSON; BadMember when it is no object or `where` is named."""
        try:
            return cls(parse(text), where)
        except JsonError as error:
            if not where:
                raise
            raise BadMember(f"{where} is no JSON: {error}") from None

    def path(self, name: str) -> str:
        return self._where + name

    def peek(self, name: str) -> Json:
        """The member as it is, not yet taken; None when absent."""
        return self._left.get(name)

    def take(self, name: str) -> Json:
        """The member as it is; None when absent."""
        return self._left.pop(name, None)

    def drop(self, *names: str) -> None:
        for name in names:
            self._left.pop(name, None)

    def text(self, name: str) -> str:
        return self.optional_text(name) or ""

    def optional_text(self, name: str) -> str | None:
        value = self._left.pop(name, None)
        if value is None or isinstance(value, str):
            return value
        raise BadMember(f"{self._where}{name} must be a string, not {_kind(value)}")

    def optional_time(self, name: str) -> str | None:
        """An RFC 3339 text as it stands, so that it is written back unchanged."""
        value = self.optional_text(name)
        try:
            if value is not None:
                parse_rfc3339(value)
        except ValueError as error:
            raise BadMember(f"{self._where}{name} is {error}") from None
        return value

    def spare(self, name: str, read: Callable[[str], T], default: T) -> T:
        """What `read` makes of a member that no call needs: one of the wrong type is none, and stays as it is."""
        value = self._left.get(name)
        try:
            return read(name)
        except BadMember:
            self._left[name] = value
            return default

    def number(self, name: str) -> int:
        value = self._left.pop(name, None)
        if value is None:
            return 0
        expect(value, int, self._where + name)
        return int(value)  # type: ignore[arg-type]  # `expect` has just said that it is one

    def flag(self, name: str) -> bool:
        return bool(self.optional_flag(name))

    def optional_flag(self, name: str) -> bool | None:
        value = self._left.pop(name, None)
        if value is None or isinstance(value, bool):
            return value
        raise BadMember(f"{self._where}{name} must be a boolean, not {_kind(value)}")

    def items(self, name: str) -> list[Json]:
        """A list; empty when absent."""
        value = self._left.pop(name, None)
        if value is None:
            return []
        if isinstance(value, list):
            return value
        raise BadMember(f"{self._where}{name} must be a list, not {_kind(value)}")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        found: list[str] = []
        for item in self.items(name):
            expect(item, str, f"every item of {self._where}{name}")
            found.append(str(item))
        return tuple(found)

    def objects(self, name: str) -> list[Members]:
        """A list of objects."""
        return [Members(item, f"{self._where}{name}[{at}]") for at, item in enumerate(self.items(name))]

    def inner(self, name: str) -> Members:
        """An object; an empty one when absent."""
        value = self._left.pop(name, None)
        return Members({} if value is None else value, self._where + name)

    def all_texts(self) -> dict[str, str]:
        """All members not yet taken; they must be strings."""
        return {name: self.text(name) for name in list(self._left)}

    def labels(self, name: str) -> dict[str, str]:
        """An object of strings."""
        return self.optional_labels(name) or {}

    def optional_labels(self, name: str) -> dict[str, str] | None:
        value = self._left.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise BadMember(f"{self._where}{name} must be an object, not {_kind(value)}")
        for key, item in value.items():
            if type(item) is not str:
                raise BadMember(f"{self._where}{name}.{key} must be a string, not {_kind(item)}")
        return value  # type: ignore[return-value]  # the loop has just checked every value

    def json(self, name: str, default: str) -> str:
        """The member as JSON text of an object."""
        value = self._left.pop(name, None)
        if value is None:
            return default
        expect(value, dict, self._where + name)
        return dumps(value)

    def object_text(self, name: str) -> str:
        """The same, `{}` where there is none."""
        return self.json(name, "{}")

    def rest(self) -> Unknown:
        """Everything not taken, as (name, JSON text)."""
        return tuple([(name, dumps(value)) for name, value in self._left.items()]) if self._left else ()


def object_text(known: Iterable[tuple[str, str]], unknown: Unknown = ()) -> str:
    """A JSON object of members that are JSON text already; known names need no escaping, unknown ones may.

    An unknown member that has a known name could not be read, and is written back as it was.
    """
    if unknown:
        kept = {name for name, _ in unknown}
        known = [one for one in known if one[0] not in kept]
    members = [f'"{name}":{text}' for name, text in known]
    members += [f"{dumps(name)}:{text}" for name, text in unknown]
    return "{" + ",".join(members) + "}"


def labels_text(labels: Mapping[str, str]) -> str:
    """Go writes maps in the order of their keys."""
    return dumps({key: labels[key] for key in sorted(labels)})


def texts_text(texts: Iterable[str]) -> str:
    return dumps(list(texts))
