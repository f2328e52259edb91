"""Calico's selector language: which labels a node, namespace or endpoint must have.

    all()  global()  has(k)  k == "v"  k != "v"  k in {"a", "b"}  k not in {…}
    k contains "x"  k starts with "x"  k ends with "x"  !s  s && s  s || s  (s)

`||` binds loosest, then `&&`, then `!`. Strings stand in ' or " without escapes. A label that is absent satisfies
`!=` and `not in` and nothing else. An empty text selects everything.

Invariant: parsing either gives a test of label sets or raises `SelectorError`; testing never fails.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Labels: TypeAlias = Mapping[str, str]
    Test: TypeAlias = Callable[[Labels], bool]

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")
_LONGEST_NAME = 512
_DEEPEST = 100
_SIGNS = ("==", "!=", "&&", "||", "(", ")", "{", "}", ",", "!")


class SelectorError(ValueError):
    """The text is not a selector; the message quotes it and says where it stops making sense."""


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) pairs; kind is `name`, `string`, or the sign itself."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        one = text[at]
        if one in " \t":
            at += 1
            continue
        if one in "\"'":
            end = text.find(one, at + 1)
            if end < 0:
                raise SelectorError(f"Failed to parse selector {text!r}: unterminated string at {text[at:]!r}")
            found.append(("string", text[at + 1 : end]))
            at = end + 1
            continue
        sign = next((sign for sign in _SIGNS if text.startswith(sign, at)), None)
        if sign:
            found.append((sign, sign))
            at += len(sign)
            continue
        end = at
        while end < len(text) and text[end] in _NAME:
            end += 1
        if end == at or end - at > _LONGEST_NAME:
            raise SelectorError(f"Failed to parse selector {text!r}: unexpected {text[at : at + 20]!r}")
        found.append(("name", text[at:end]))
        at = end
    return found


class _SelectorParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def _peek(self, *kinds: str) -> bool:
        ahead = self._tokens[self._at : self._at + len(kinds)]
        return [kind for kind, _ in ahead] == list(kinds)

    def _next(self, kind: str) -> str:
        if not self._peek(kind):
            raise self._unexpected(f"expected {kind}")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _word(self, *words: str) -> bool:
        """Consume these names if they come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if ahead != [("name", word) for word in words]:
            return False
        self._at += len(words)
        return True

    def _unexpected(self, why: str) -> SelectorError:
        rest = " ".join(text for _, text in self._tokens[self._at :]) or "the end"
        return SelectorError(f"Failed to parse selector {self._text!r}: {why} at {rest!r}")

    def whole(self) -> Test:
        test = self._either(0)
        if self._at < len(self._tokens):
            raise self._unexpected("unexpected text")
        return test

    def _either(self, depth: int) -> Test:
        if depth > _DEEPEST:
            raise self._unexpected("too deeply nested")
        tests = [self._both(depth)]
        while self._peek("||"):
            self._at += 1
            tests.append(self._both(depth))
        return tests[0] if len(tests) == 1 else lambda labels: any(test(labels) for test in tests)

    def _both(self, depth: int) -> Test:
        tests = [self._negated(depth)]
        while self._peek("&&"):
            self._at += 1
            tests.append(self._negated(depth))
        return tests[0] if len(tests) == 1 else lambda labels: all(test(labels) for test in tests)

    def _negated(self, depth: int) -> Test:
        negate = False
        while self._peek("!"):
            self._at += 1
            negate = not negate
        test = self._term(depth)
        return (lambda labels: not test(labels)) if negate else test

    def _term(self, depth: int) -> Test:
        if self._peek("("):
            self._at += 1
            test = self._either(depth + 1)
            self._next(")")
            return test
        name = self._next("name")
        if not self._peek("("):
            return self._comparison(name)
        self._at += 1
        if name == "has":
            label = self._next("name")
            self._next(")")
            return lambda labels: label in labels
        self._next(")")
        if name not in ("all", "global"):
            raise self._unexpected(f"unknown function {name}()")
        return lambda _labels: True

    def _comparison(self, label: str) -> Test:
        if self._peek("=="):
            self._at += 1
            wanted = self._next("string")
            return lambda labels: labels.get(label) == wanted
        if self._peek("!="):
            self._at += 1
            refused = self._next("string")
            return lambda labels: labels.get(label) != refused
        if self._word("in"):
            members = self._set()
            return lambda labels: label in labels and labels[label] in members
        if self._word("not", "in"):
            others = self._set()
            return lambda labels: label not in labels or labels[label] not in others
        return self._substring(label)

    def _substring(self, label: str) -> Test:
        if self._word("contains"):
            part = self._next("string")
            return lambda labels: label in labels and part in labels[label]
        if self._word("starts", "with"):
            head = self._next("string")
            return lambda labels: label in labels and labels[label].startswith(head)
        if self._word("ends", "with"):
            tail = self._next("string")
            return lambda labels: label in labels and labels[label].endswith(tail)
        raise self._unexpected("expected an operator")

    def _set(self) -> frozenset[str]:
        self._next("{")
        members: list[str] = []
        while not self._peek("}"):
            members.append(self._next("string"))
            if not self._peek(","):
                break
            self._at += 1
        self._next("}")
        return frozenset(members)


def parse_selector(text: str) -> Test:
    """A test of a set of labels. `SelectorError` when the text is not a selector."""
    if not text.strip():
        return lambda _labels: True
    return _SelectorParser(text).whole()


def selects(text: str, labels: Labels) -> bool:
    """Whether the labels satisfy the selector; the two selectors that select everything are not even parsed."""
    return text in ("", "all()") or parse_selector(text)(labels)
