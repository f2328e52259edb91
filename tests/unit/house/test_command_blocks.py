"""What documents say about their blocks of commands can be understood; tests/integration/documents runs these."""

from __future__ import annotations

import pytest

from house.command_blocks import NEEDS, SAYINGS, agrees, blocks, documents

PAGE = """Text.

<!-- with: etcd -->
<!-- exit code: 1 -->
```console
# one      # a comment
first  …
…
last
# two
```

   ```sh
   three <<'X'
   four
   X
   ```

```json
{}
```
"""


def test_blocks_are_found_with_what_is_said_about_them():
    console, shell = blocks("x.md", PAGE)
    assert console.sayings == {"with": "etcd", "exit code": "1"}
    assert [(one.text, one.printed) for one in console.commands] == [
        ("one      # a comment", ("first  …", "…", "last")),
        ("two", None),
    ]
    assert (shell.line, shell.commands[0].text) == (13, "three <<'X'\nfour\nX\n")


def test_output_that_is_not_to_be_compared():
    (block,) = blocks("x.md", "<!-- output: of another cluster -->\n```console\n$ a\nb\n```\n")
    assert [one.printed for one in block.commands] == [None]


@pytest.mark.parametrize(
    ("printed", "same"),
    [("first  x\nlast\n", True), ("first\nmore\nlast", False), ("first 1\n2\n3\nlast \n", True), ("first y\n", False)],
)
def test_what_is_printed_is_compared_but_for_what_may_differ(printed, same):
    assert agrees(printed, ("first …", "…", "last")) is same


@pytest.mark.parametrize("document", documents())
def test_all_that_is_said_has_a_meaning(document):
    said = [(f"line {block.line}", *one) for block in blocks(document) for one in block.sayings.items()]
    assert [one for one in said if one[1] not in SAYINGS] == []
    assert [one for one in said if one[1] == "with" and not set(one[2].split()) <= set(NEEDS)] == []
