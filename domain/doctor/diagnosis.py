"""What one check of `tortie doctor` comes to: a state, what was seen, and what to do.

Invariant: what is not in order says what to do about it; what is in order asks for nothing.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OK, WARNING, ERROR = "ok", "warning", "error"
STATES = (OK, WARNING, ERROR)


class Diagnosis(Value):
    """`check` is a name that stays the same between versions. `advice` is "" if, and only if, the state is ok."""

    check: str
    state: str
    seen: str
    advice: str = ""


def ok(check: str, seen: str) -> Diagnosis:
    return Diagnosis(check, OK, seen)


def warning(check: str, seen: str, advice: str) -> Diagnosis:
    return Diagnosis(check, WARNING, seen, advice)


def error(check: str, seen: str, advice: str) -> Diagnosis:
    return Diagnosis(check, ERROR, seen, advice)


def count(diagnoses: Iterable[Diagnosis], state: str) -> int:
    return sum(1 for diagnosis in diagnoses if diagnosis.state == state)


def listed(items: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    texts = list(items)
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
