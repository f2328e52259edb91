"""What failed tests said, out of logs of pytest's: for whoever sees only the end of all that a run has printed.

    python3 packaging/failures.py build/check/unit.log build/check/ut-kdd.log

Of each failure and error its name and the end of its traceback, which is where it says what is wrong; of what was
before that, the errors and where they came from. Invariant: the whole is short enough to stand beside a summary,
however many have failed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOST = 5  # tests
LINES = {1: 40, 2: 40, 3: 40, 4: 30, 5: 24}  # of each, by how many there are
EARLIER = 10  # of these lines, for what is before the end
WIDTH = 240
_TELLING = re.compile(r"E  .*|> .*|\S+:\d+: .*")
_SECTION = re.compile(r"=+ (?P<name>.+?) =+")
_TEST = re.compile(r"_+ (?P<name>[^_ ].*?) _+")  # lines of the kind `_ _ _ _` are between the frames of one


def failures(log: str) -> Iterator[tuple[str, list[str]]]:
    """Names, and what is said about each; pytest says first what it could not set up."""
    inside, name, said = False, "", list[str]()
    for line in [*log.splitlines(), "= the end ="]:
        section, test = _SECTION.fullmatch(line), _TEST.fullmatch(line)
        if section or (inside and test):
            if name:
                yield name, said
            name, said = (test["name"] if test else ""), []
            inside = section["name"] in {"ERRORS", "FAILURES"} if section else inside
        elif name:
            said.append(line)


def excerpt(found: list[tuple[str, list[str]]]) -> Iterator[str]:
    shown = found[:MOST]
    for name, said in shown:
        yield f"--- {name}"
        yield from [line[:WIDTH] for line in shortened(said, LINES[len(shown)])]
    if len(found) > MOST:
        yield f"--- and {len(found) - MOST} more"


def shortened(said: list[str], most: int) -> list[str]:
    if len(said) <= most:
        return said
    earlier, end = said[: EARLIER - most], said[EARLIER - most :]
    telling = [line for line in earlier if _TELLING.fullmatch(line)]
    errors = [line for line in telling if line.startswith("E ")][-EARLIER // 2 :]
    others = [line for line in telling if not line.startswith("E ")][len(errors) + 1 - EARLIER :]
    return [*[line for line in telling if line in (*errors, *others)][1 - EARLIER :], "…", *end]


if __name__ == "__main__":
    logs = [Path(name).read_text(errors="replace") for name in sys.argv[1:]]
    print("\n".join(excerpt([one for log in logs for one in failures(log)])))
