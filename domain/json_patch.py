"""Changes to a JSON document, as `tortie patch` takes them: a merge patch (RFC 7386) or a JSON patch (RFC 6902).

Invariant: the document given is left as it is, and a patch of several operations happens whole or not at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.json_text import Json

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_END = "-"


class BadPatch(ValueError):
    """The patch is none, or does not fit the document. The text names the operation by its number."""


def merged(document: Json, patch: Json) -> Json:
    """Members of the patch replace the document's, null removes; whatever is no object replaces as a whole."""
    if not isinstance(patch, dict):
        return patch
    found = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def patched(document: Json, operations: Json) -> Json:
    """The document after all operations."""
    if not isinstance(operations, list):
        raise BadPatch(
            "a JSON patch is a list of operations, such as [{op: replace, path: /spec/disabled, value: true}]"
        )
    for number, operation in enumerate(operations, 1):
        try:
            document = _after(_copied(document), operation)
        except BadPatch as error:
            raise BadPatch(f"operation {number}: {error}") from None
    return document


def _copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _copied(member) for name, member in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _after(document: Json, operation: Json) -> Json:
    if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
        raise BadPatch(f"op must be one of {', '.join(_OPERATIONS)}")
    word, path = operation["op"], _path(operation, "path")
    if word == "remove":
        _at(document, path)
        return _without(document, path)
    if word in ("move", "copy"):
        return _relocated(document, _path(operation, "from"), path, move=word == "move")
    if "value" not in operation:
        raise BadPatch(f"{word} needs a value")
    value = operation["value"]
    if word == "add":
        return _with(document, path, value)
    there = _at(document, path)
    if word == "replace":
        return _with(document, path, value, replace=True)
    if there != value:
        raise BadPatch(f"{operation['path']} is not what the test expects")
    return document


def _relocated(document: Json, source: list[str], path: list[str], *, move: bool) -> Json:
    value = _copied(_at(document, source))
    if not move:
        return _with(document, path, value)
    if path[: len(source)] == source and path != source:
        raise BadPatch("a value cannot be moved into itself")
    return _with(_without(document, source), path, value)


def _path(operation: dict[str, Json], member: str) -> list[str]:
    pointer = operation.get(member)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise BadPatch(f"{member} must be a JSON pointer, such as /spec/disabled")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _at(document: Json, path: Sequence[str]) -> Json:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(step, len(document) - 1)]
        else:
            raise BadPatch(f"there is no /{'/'.join(path)}")
    return document


def _index(step: str, last: int) -> int:
    if not (step.isascii() and step.isdecimal()) or (len(step) > 1 and step[0] == "0") or int(step) > last:
        raise BadPatch(f"{step} is no place in a list of {last + 1}")
    return int(step)


def _without(document: Json, path: list[str]) -> Json:
    if not path:
        return None
    holder, step = _at(document, path[:-1]), path[-1]
    if isinstance(holder, list):
        del holder[_index(step, len(holder) - 1)]
    else:
        holder.pop(step)  # type: ignore[union-attr]  # what is taken out has been found in it
    return document


def _with(document: Json, path: list[str], value: Json, *, replace: bool = False) -> Json:
    if not path:
        return value
    holder, step = _at(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[step] = value
    elif isinstance(holder, list) and replace:
        holder[_index(step, len(holder) - 1)] = value
    elif isinstance(holder, list):
        holder.insert(len(holder) if step == _END else _index(step, len(holder)), value)
    else:
        raise BadPatch(f"/{'/'.join(path[:-1])} has no members")
    return document
