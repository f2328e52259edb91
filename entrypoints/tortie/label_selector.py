"""`-l`: which resources are meant, by their labels, in kubectl's words.

    -l app=web,tier!=db        -l 'rack in (a,b),!spare'

Invariant: a text that is no selector is refused, and never selects everything.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY = r"[A-Za-z0-9]([\w./-]*[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?"
_HAS = re.compile(rf"(?P<no>!?)\s*(?P<key>{_KEY})")
_IS = re.compile(rf"(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})")
_AMONG = re.compile(rf"(?P<key>{_KEY})\s+(?P<sign>in|notin)\s*\(\s*(?P<values>{_VALUE}(\s*,\s*{_VALUE})*)\s*\)")
_BETWEEN = re.compile(r",(?![^(]*\))")


class Requirement(Value):
    """`values` of None: whether the label is there at all."""

    key: str
    values: frozenset[str] | None
    wanted: bool

    def fits(self, labels: Mapping[str, str]) -> bool:
        there = self.key in labels if self.values is None else labels.get(self.key) in self.values
        return there is self.wanted


class LabelSelector(Value):
    requirements: tuple[Requirement, ...] = ()

    def fits(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.fits(labels) for requirement in self.requirements)


def label_selector(text: str) -> LabelSelector:
    """ArgumentTypeError names the part that is not understood."""
    return LabelSelector(tuple([_requirement(part.strip()) for part in _BETWEEN.split(text)]))


def _requirement(part: str) -> Requirement:
    if found := _HAS.fullmatch(part):
        return Requirement(found["key"], None, not found["no"])
    if found := _IS.fullmatch(part):
        return Requirement(found["key"], frozenset([found["value"]]), found["sign"] != "!=")
    if found := _AMONG.fullmatch(part):
        values = frozenset([value.strip() for value in found["values"].split(",")])
        return Requirement(found["key"], values, found["sign"] == "in")
    raise ArgumentTypeError(f"{part!r} is no label selector, such as app=web, app!=web, app, !app or 'app in (a,b)'")
