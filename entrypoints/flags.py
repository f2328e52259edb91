"""Command-line flags by the rules of Go's `flag` package, without `argparse` (9 ms), for the two plugins.

All flags are boolean: `-x`, `--x`, `-x=true`. Parsing stops at the first word that is no flag, or after `--`; what
follows is ignored, as the original does (tests pass it a netconf there).

Invariant: texts and exit codes are those of Go's package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class UsageWanted(Exception):
    """The process prints `text` on stderr and ends with `exit_code`: 2 after a mistake, 0 when help was asked for."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


def usage(name: str, known: Mapping[str, str]) -> str:
    """Go's usage text: short flags have their meaning on the same line."""
    gap = {1: "\t"}
    lines = ["  -" + flag + gap.get(len(flag), "\n    \t") + known[flag] for flag in sorted(known)]
    return "\n".join([f"Usage of {name}:", *lines, ""])


def parse_flags(arguments: Sequence[str], name: str, known: Mapping[str, str]) -> frozenset[str]:
    """The flags that are set; `known` has what each means. `UsageWanted` for help and for mistakes."""
    chosen: set[str] = set()
    for word in arguments:
        if len(word) < 2 or not word.startswith("-") or word == "--":
            break
        flag, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
        if not flag or flag.startswith("-"):
            raise UsageWanted(f"bad flag syntax: {word}\n" + usage(name, known), 2)
        if flag not in known:
            if flag in ("h", "help"):
                raise UsageWanted(usage(name, known), 0)
            raise UsageWanted(f"flag provided but not defined: -{flag}\n" + usage(name, known), 2)
        if equals and value not in _TRUE | _FALSE:
            why = f'invalid boolean value "{value}" for -{flag}: parse error\n'
            raise UsageWanted(why + usage(name, known), 2)
        chosen.discard(flag)
        if not equals or value in _TRUE:
            chosen.add(flag)
    return frozenset(chosen)
