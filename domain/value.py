"""The base of all domain types: frozen, slotted, compared by value, cheap to define.

A plugin process lives for tens of milliseconds and defines some sixty types, so the usual generator of such classes
(`dataclasses`: it compiles source text for each class) would cost more than the work itself. Here a metaclass reads
the annotations once and one shared `__init__` fills the slots.

Invariant: a value never changes after construction; `replace` returns another one. Field defaults are immutable.
Every module that defines a value needs `from __future__ import annotations`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda decorated: decorated


_set = object.__setattr__


@dataclass_transform(frozen_default=True)
class _ValueType(type):
    """Turns annotated names into slots, and class-level assignments of them into defaults."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _ValueType:
        own = tuple(body.get("__annotations__", ()))
        inherited = [base for base in bases if isinstance(base, _ValueType)]
        defaults: dict[str, Any] = {}
        fields: list[str] = []
        for base in inherited:
            defaults.update(base._defaults)
            fields += [field for field in base._fields if field not in fields]
        defaults.update({field: body.pop(field) for field in own if field in body})
        body["__slots__"] = tuple(field for field in own if field not in fields)
        body["_fields"] = (*fields, *body["__slots__"])
        body["_defaults"] = defaults
        return super().__new__(mcs, name, bases, body)

    if TYPE_CHECKING:
        _fields: tuple[str, ...]
        _defaults: dict[str, Any]


class Value(metaclass=_ValueType):
    """Derive, annotate fields, done: `class Point(Value): x: int; y: int = 0`."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        fields = type(self)._fields
        if len(positional) > len(fields):
            raise TypeError(f"{type(self).__name__} takes at most {len(fields)} fields, not {len(positional)}")
        for field, item in zip(fields, positional):
            if field in named:
                raise TypeError(f"{type(self).__name__}: field {field!r} is given twice")
            _set(self, field, item)
        defaults = type(self)._defaults
        for field in fields[len(positional) :]:
            if field in named:
                _set(self, field, named.pop(field))
            elif field in defaults:
                _set(self, field, defaults[field])
            else:
                raise TypeError(f"{type(self).__name__}: field {field!r} is missing")
        if named:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(map(repr, named))}")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        named = {field: getattr(self, field) for field in type(self)._fields}
        return type(self)(**named | changes)

    def __setattr__(self, name: str, item: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: it cannot change; use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: it cannot change; use replace()")

    def _items(self) -> tuple[object, ...]:
        return tuple([getattr(self, field) for field in type(self)._fields])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._items() == other._items()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._items()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self)._fields)
        return f"{type(self).__name__}({shown})"
